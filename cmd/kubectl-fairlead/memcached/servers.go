package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	operator "example.com/fairlead/operators/memcached"
)

// server is a server of a pool, and what it said of itself.
type server struct {
	name string
	port *connection
	// items are those that it has, hits how many reads found one since it started, and uptime is since when.
	items, hits int64
	uptime      time.Duration
	// problem is why it does not answer.
	problem error
}

// connection is one to a server, in memcached's text protocol.
type connection struct {
	net.Conn
	lines *bufio.Scanner
}

// answerWithin is how long a server may take.
const answerWithin = 10 * time.Second

// askPool asks the servers how much they have. One that does not answer has a problem.
func askPool(ctx context.Context, c *cli.CLI, k client.Client, mc *cachev1alpha1.Memcached, found []corev1.Pod) ([]server, error) {
	pods, err := c.Pods()
	if err != nil {
		return nil, err
	}
	var pool []server
	for i := range found {
		if pod := &found[i]; pod.DeletionTimestamp == nil {
			s := server{name: pod.Name}
			s.port, s.problem = dialServer(ctx, pods, k, mc, pod)
			if s.problem == nil {
				s.problem = s.refresh()
			}
			pool = append(pool, s)
		}
	}
	return pool, nil
}

// dialServer connects to a server through its pod, logged in, and with TLS where the pool has it.
func dialServer(ctx context.Context, p *cli.Pods, k client.Reader, mc *cachev1alpha1.Memcached, pod *corev1.Pod) (*connection, error) {
	at, err := p.Forward(ctx, pod.Name, operator.PortOf(mc, pod))
	if err != nil {
		return nil, err
	}
	plain, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	conn, login, err := operator.Secure(ctx, k, mc, plain)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	c := &connection{conn, bufio.NewScanner(conn)}
	if login == "" {
		return c, nil
	}
	return c, c.do(login, "STORED")
}

// send sends a command.
func (c *connection) send(command string) error {
	if err := c.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	_, err := io.WriteString(c, command)
	return err
}

// answer is the next line.
func (c *connection) answer() (string, error) {
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return "", err
		}
		return "", errors.New("the server closed the connection")
	}
	return c.lines.Text(), nil
}

// do sends a command, and wants this answer.
func (c *connection) do(command, want string) error {
	if err := c.send(command); err != nil {
		return err
	}
	got, err := c.answer()
	if err == nil && got != want {
		err = fmt.Errorf("the server answers %q", got)
	}
	return err
}

// refresh asks for the statistics.
func (s *server) refresh() error {
	if err := s.port.send("stats\r\n"); err != nil {
		return err
	}
	for {
		line, err := s.port.answer()
		switch {
		case err != nil:
			return err
		case line == "END":
			return nil
		case !strings.HasPrefix(line, "STAT "):
			return fmt.Errorf("the server answers %q", line)
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		n, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			continue // it is no number
		}
		switch words[1] {
		case "curr_items":
			s.items = n
		case "get_hits":
			s.hits = n
		case "uptime":
			s.uptime = time.Duration(n) * time.Second
		}
	}
}
