package cluster

import (
	"os"
	"path/filepath"
	"strings"
)

const fluxNamespace = "flux-system"

// arguments is a component's command line after its name, without extra flags.
func (c *Cluster) arguments(name Component, p ports) ([]string, error) {
	var args []string
	var err error
	switch name {
	case Etcd:
		args = c.etcdArgs(p)
	case APIServer:
		args, err = c.apiServerArgs(p)
	case ControllerManager:
		args = append(c.secureArgs(name, p),
			"--service-account-private-key-file="+c.authority.path("sa.key"),
			"--root-ca-file="+c.authority.path("ca.crt"))
	case Scheduler:
		args = c.secureArgs(name, p)
	case Kwok:
		args, err = c.kwokArgs(p)
	case SourceController:
		args = append(fluxArgs(p),
			"--storage-path="+filepath.Join(c.dir, "artifacts"),
			"--storage-addr="+p.addr("storage"), "--storage-adv-addr="+p.addr("storage"))
	case KustomizeController:
		args = fluxArgs(p)
	}
	return args, err
}

func (c *Cluster) etcdArgs(p ports) []string {
	client, peer := "http://"+p.addr("client"), "http://"+p.addr("peer")
	return []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// The data dies with the cluster, so it need not survive a power cut.
		"--unsafe-no-fsync", "--log-level=warn",
		// A lone member elects itself; no need to wait a second for others.
		"--heartbeat-interval=20", "--election-timeout=200",
	}
}

func (c *Cluster) apiServerArgs(p ports) ([]string, error) {
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	if err := writeAuditPolicy(policy); err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=http://" + c.parts[Etcd].ports.addr("client"),
		"--bind-address=127.0.0.1", "--secure-port=" + p.port("serve"),
		// Without these two it looks for a public interface and publishes itself
		// there.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.authority.path("server.crt"),
		"--tls-private-key-file=" + c.authority.path("server.key"),
		"--cert-dir=" + filepath.Join(c.dir, "pki", string(APIServer)),
		"--client-ca-file=" + c.authority.path("ca.crt"),
		"--token-auth-file=" + c.authority.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.authority.path("sa.crt"),
		"--service-account-signing-key-file=" + c.authority.path("sa.key"),
		"--service-cluster-ip-range=10.0.0.0/16",
		// No controller may be there to make the default service accounts that
		// this plugin wants every pod to have.
		"--disable-admission-plugins=ServiceAccount",
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.auditPath(),
		// Never rotated: readers hold offsets into it.
		"--audit-log-maxsize=100000",
	}, nil
}

// secureArgs have in common those who serve only their health, with a certificate
// of ours: making one of their own takes them a second.
func (c *Cluster) secureArgs(name Component, p ports) []string {
	return []string{
		"--kubeconfig=" + c.componentKubeconfig(name),
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + p.port("serve"),
		"--tls-cert-file=" + c.authority.path("server.crt"),
		"--tls-private-key-file=" + c.authority.path("server.key"),
	}
}

func (c *Cluster) kwokArgs(p ports) ([]string, error) {
	args := []string{
		"--kubeconfig=" + c.componentKubeconfig(Kwok),
		"--manage-all-nodes=true", "--node-lease-duration-seconds=40",
		"--server-address=" + p.addr("serve"),
	}
	for _, dir := range c.binaries.StageDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			args = append(args, "--config="+f)
		}
	}
	return args, nil
}

// fluxArgs are the flags of Flux's own Deployments, on ports of ours and without
// leader election (see leases).
func fluxArgs(p ports) []string {
	return []string{
		"--watch-all-namespaces", "--log-level=info", "--log-encoding=json",
		"--health-addr=" + p.addr("health"), "--metrics-addr=" + p.addr("metrics"),
	}
}

// environment is all that a component sees of ours: whatever it keeps in a home
// or temporary directory stays in the cluster's own.
func (c *Cluster) environment(name Component) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + filepath.Join(c.dir, "home"),
		"TMPDIR=" + filepath.Join(c.dir, "tmp"),
	}
	if name == SourceController || name == KustomizeController {
		env = append(env, "KUBECONFIG="+c.componentKubeconfig(name), "RUNTIME_NAMESPACE="+fluxNamespace)
	}
	return env
}

func (c *Cluster) componentKubeconfig(name Component) string {
	return filepath.Join(c.dir, "users", string(name)+".kubeconfig")
}

// healthURL is where a component says that it works.
func healthURL(name Component, p ports) string {
	switch name {
	case Etcd:
		return "http://" + p.addr("client") + "/health"
	case APIServer:
		return "https://" + p.addr("serve") + "/readyz"
	case ControllerManager, Scheduler:
		return "https://" + p.addr("serve") + "/healthz"
	case Kwok:
		return "http://" + p.addr("serve") + "/healthz"
	default:
		return "http://" + p.addr("health") + "/readyz"
	}
}

// servingURL is where the API server says that administrators can work with it:
// what it excludes, the default roles and priorities above all, takes another
// second or two.
func servingURL(name Component, p ports) string {
	return healthURL(name, p) + "?exclude=poststarthook/rbac/bootstrap-roles" +
		"&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
}

// portTaken recognises, in a component's log, the one failure that other ports
// repair.
func portTaken(log string) bool { return strings.Contains(log, "address already in use") }
