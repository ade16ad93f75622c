package main

import (
	"errors"
	"fmt"

	"github.com/go-logr/zapr"
	"github.com/urfave/cli/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// cluster is one API server and the clients that the libraries ask for.
type cluster struct {
	Host, Context string
	Dynamic       dynamic.Interface
	Discovery     discovery.DiscoveryInterface
	Kube          kubernetes.Interface
	APIExtensions apiextensions.Interface
}

// NoKubeconfigError says that no cluster is configured.
type NoKubeconfigError struct{}

func (*NoKubeconfigError) Error() string { return "no cluster to talk to: there is no kubeconfig" }

// KubeconfigError says that the kubeconfig is there and of no use.
type KubeconfigError struct{ Err error }

func (e *KubeconfigError) Error() string { return "reading the kubeconfig: " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *KubeconfigError) Unwrap() error { return e.Err }

// connect reads the kubeconfig and builds the clients. It makes no request.
func (a *app) connect(c *cli.Context) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.String(flagKubeconfig)
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.String(flagContext)})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, clientcmd.ErrEmptyConfig) {
		return nil, &NoKubeconfigError{}
	}
	if err != nil {
		return nil, &KubeconfigError{Err: err}
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	name := raw.CurrentContext
	if o := c.String(flagContext); o != "" {
		name = o
	}
	config.UserAgent = "standup/" + version()
	// standup makes few requests and some at once; the API server's own priority and fairness
	// is the brake.
	config.QPS = -1
	klog.SetLogger(zapr.NewLogger(a.log))
	return newCluster(config, name)
}

func newCluster(config *rest.Config, name string) (*cluster, error) {
	k := &cluster{Host: config.Host, Context: name}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if k.Dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if k.Kube, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if k.APIExtensions, err = apiextensions.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	k.Discovery = k.Kube.Discovery()
	return k, nil
}
