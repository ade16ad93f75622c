package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// adminUser is who the cluster's own kubeconfig speaks for.
const adminUser = "admin"

// users are who the components are to the API server, and so in the audit log:
// Flux's controllers go by the names that their service accounts would have.
func users() map[Component]string {
	return map[Component]string{
		ControllerManager:   "system:kube-controller-manager",
		Scheduler:           "system:kube-scheduler",
		Kwok:                "system:kwok",
		SourceController:    "system:serviceaccount:" + fluxNamespace + ":" + string(SourceController),
		KustomizeController: "system:serviceaccount:" + fluxNamespace + ":" + string(KustomizeController),
	}
}

// authority signs the server's certificate and those of minted users. It lives
// as long as the cluster.
type authority struct {
	dir    string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	pem    []byte
	tokens map[string]string
}

// newAuthority writes all that the API server's command line refers to into dir.
func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir, tokens: map[string]string{}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the cluster's authority: %w", err)
	}
	template := certificate(pkix.Name{CommonName: "standup test cluster"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the cluster's authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("making the cluster's authority: %w", err)
	}
	a.key, a.pem = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(a.path("ca.crt"), a.pem, 0o600); err != nil {
		return nil, fmt.Errorf("writing the cluster's authority: %w", err)
	}
	server := certificate(pkix.Name{CommonName: "kube-apiserver"})
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	if err := a.issue(server, "server"); err != nil {
		return nil, err
	}
	if err := a.issue(certificate(pkix.Name{CommonName: "service-accounts"}), "sa"); err != nil {
		return nil, err
	}
	return a, a.writeTokens()
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.crt and name.key.
func (a *authority) issue(template *x509.Certificate, name string) error {
	cert, key, err := a.sign(template)
	if err != nil {
		return err
	}
	for ext, data := range map[string][]byte{".crt": cert, ".key": key} {
		if err := os.WriteFile(a.path(name+ext), data, 0o600); err != nil {
			return fmt.Errorf("writing the certificate of %s: %w", name, err)
		}
	}
	return nil
}

func (a *authority) sign(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	fail := func(err error) ([]byte, []byte, error) {
		return nil, nil, fmt.Errorf("issuing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fail(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}

func certificate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// writeTokens gives the administrator and every component a token.
func (a *authority) writeTokens() error {
	var csv strings.Builder
	names := []string{adminUser}
	for _, name := range users() {
		names = append(names, name)
	}
	for i, name := range names {
		secret := make([]byte, 20)
		if _, err := rand.Read(secret); err != nil {
			return fmt.Errorf("making tokens: %w", err)
		}
		a.tokens[name] = hex.EncodeToString(secret)
		fmt.Fprintf(&csv, "%s,%s,uid-%d,system:masters\n", a.tokens[name], name, i)
	}
	if err := os.WriteFile(a.path("tokens.csv"), []byte(csv.String()), 0o600); err != nil {
		return fmt.Errorf("writing tokens: %w", err)
	}
	return nil
}

// tokenKubeconfig writes a kubeconfig, readable by its owner only, for one of
// the users with a token.
func (a *authority) tokenKubeconfig(path, server, user string) error {
	return a.writeKubeconfig(path, server, user, &clientcmdapi.AuthInfo{Token: a.tokens[user]})
}

// certKubeconfig writes a kubeconfig for a new user without any rights of its
// own.
func (a *authority) certKubeconfig(path, server, user string, groups []string) error {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	cert, key, err := a.sign(template)
	if err != nil {
		return err
	}
	return a.writeKubeconfig(path, server, user,
		&clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func (a *authority) writeKubeconfig(path, server, user string, auth *clientcmdapi.AuthInfo) error {
	const context = "standup-test"
	config := clientcmdapi.NewConfig()
	config.Clusters[context] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.pem}
	config.AuthInfos[user] = auth
	config.Contexts[context] = &clientcmdapi.Context{Cluster: context, AuthInfo: user}
	config.CurrentContext = context
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}
