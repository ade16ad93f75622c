package cluster

import (
	"fmt"
	"net"
	"strconv"
)

// ports are the loopback ports that one component listens on.
type ports map[string]int

func (p ports) addr(name string) string { return fmt.Sprintf("127.0.0.1:%d", p[name]) }

func (p ports) port(name string) string { return strconv.Itoa(p[name]) }

// portNames says what each component listens for.
func portNames(c Component) []string {
	switch c {
	case Etcd:
		return []string{"client", "peer"}
	case SourceController:
		return []string{"health", "metrics", "storage"}
	case KustomizeController:
		return []string{"health", "metrics"}
	default:
		return []string{"serve"}
	}
}

// pickPorts asks the kernel for free ports. Another process can take one before
// the component listens, so a component that finds its port in use is started
// again on others.
func pickPorts(c Component) (ports, error) {
	picked := ports{}
	for _, name := range portNames(c) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("picking a port for %s: %w", c, err)
		}
		// Held until all are picked, so that they differ.
		defer func() { _ = l.Close() }()
		picked[name] = l.Addr().(*net.TCPAddr).Port
	}
	return picked, nil
}
