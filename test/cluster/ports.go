package cluster

import (
	"fmt"
	"math/rand/v2"
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

// The ports to pick from lie below those that Linux gives to connections by itself (32768 and up,
// net.ipv4.ip_local_port_range): source-controller listens for artifacts only seconds after it says
// that it is healthy, and a connection of another component must not have taken its port by then.
const (
	firstPort = 10000
	lastPort  = 32767
)

// pickPorts finds free ports. Another process can take one before the component listens, so a
// component that finds its port in use is started again on others.
func pickPorts(c Component) (ports, error) {
	picked := ports{}
	for _, name := range portNames(c) {
		l, err := listen()
		if err != nil {
			return nil, fmt.Errorf("picking a port for %s: %w", c, err)
		}
		// Held until all are picked, so that they differ.
		defer func() { _ = l.Close() }()
		picked[name] = l.Addr().(*net.TCPAddr).Port
	}
	return picked, nil
}

// listen takes one of the ports at random that nobody listens on.
func listen() (l net.Listener, err error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, err
}
