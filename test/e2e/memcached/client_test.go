//go:build e2e

package memcached

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// mcClient talks memcached's text protocol over one connection.
type mcClient struct {
	net.Conn
	r *bufio.Reader
}

// dialMemcached connects to a server, with TLS if a configuration is given.
func dialMemcached(address string, config *tls.Config) (*mcClient, error) {
	conn, err := net.DialTimeout("tcp", address, pace.Scale(2*time.Second))
	if err != nil {
		return nil, err
	}
	if config != nil {
		conn = tls.Client(conn, config)
	}
	return &mcClient{conn, bufio.NewReader(conn)}, nil
}

// ask sends a line and returns the first line of the answer.
func (m *mcClient) ask(line string) (string, error) {
	if err := m.SetDeadline(time.Now().Add(pace.Scale(5 * time.Second))); err != nil {
		return "", err
	}
	if _, err := m.Write([]byte(line + "\r\n")); err != nil {
		return "", err
	}
	answer, err := m.r.ReadString('\n')
	return strings.TrimSpace(answer), err
}

// logIn says who asks.
func (m *mcClient) logIn(user, password string) error {
	text := user + " " + password
	answer, err := m.ask(fmt.Sprintf("set auth 0 0 %d\r\n%s", len(text), text))
	if err == nil && answer != "STORED" {
		err = errors.New(answer)
	}
	return err
}

func item(i int) (key, value string) {
	return fmt.Sprintf("key-%06d", i), fmt.Sprintf("value-%06d", i)
}

// fill stores n items.
func (m *mcClient) fill(n int) error {
	if err := m.SetDeadline(time.Now().Add(pace.Scale(time.Minute))); err != nil {
		return err
	}
	w := bufio.NewWriter(m.Conn)
	for i := range n {
		key, value := item(i)
		fmt.Fprintf(w, "set %s 0 0 %d noreply\r\n%s\r\n", key, len(value), value)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := m.ask("version")
	return err
}

// hits is how many of n items are there, as they were stored.
func (m *mcClient) hits(n int) (int, error) {
	hits := 0
	for i := range n {
		key, want := item(i)
		answer, err := m.ask("get " + key)
		if err != nil {
			return hits, err
		}
		if answer == "END" {
			continue
		}
		value, err := m.r.ReadString('\n')
		if err == nil {
			_, err = m.r.ReadString('\n') // END
		}
		if err != nil {
			return hits, err
		}
		if strings.TrimSpace(value) == want {
			hits++
		}
	}
	return hits, nil
}

// exposed makes a server reachable from here, and returns where: a Service for
// that pod alone. It shows the server also while that is not ready, so that no
// rule of a proxy hides it.
func exposed(t testing.TB, namespace, pod string) string {
	t.Helper()
	e2e.Apply(t, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s-outside}
spec:
  type: NodePort
  publishNotReadyAddresses: true
  selector: {statefulset.kubernetes.io/pod-name: %[1]s}
  ports: [{port: 11211}]
`, pod))
	return net.JoinHostPort(
		strings.Fields(e2e.Kubectl(t, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`))[0],
		e2e.Kubectl(t, "get", "service", pod+"-outside", "-n", namespace, "-o", "jsonpath={.spec.ports[0].nodePort}"))
}

// mustDial connects to a server once it can be reached.
func mustDial(t testing.TB, address string, config *tls.Config) *mcClient {
	t.Helper()
	var m *mcClient
	pace.Eventually(t, time.Minute, func() (err error) {
		m, err = dialMemcached(address, config)
		return err
	})
	t.Cleanup(func() { _ = m.Close() })
	return m
}
