package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/pace"
)

// A Message tells whoever waits for the cluster how far it is.
type Message struct {
	// Reached is a milestone.
	Reached Milestone `json:"reached,omitempty"`
	// Error says which step failed, why, and where its log is. It is the last
	// message.
	Error string `json:"error,omitempty"`
}

// Milestone is a point on the way up.
type Milestone string

// The milestones, in the order that they are reached.
const (
	Images Milestone = "containerd takes images"
	API    Milestone = "the API server is ready"
	Ready  Milestone = "the node is ready"
)

// startTimeout is how long a step may take, on a fast machine: it is reached
// when something hangs, or never.
const startTimeout = 2 * time.Minute

// Supervise is the life of PID 1: it reads the spec, starts everything, and
// returns, with an error, when it cannot or when a component has ended. It
// does not start components again: a component that ends has a bug or was
// killed by somebody who wants to see what happens then, and either is seen
// best if nothing hides it.
func Supervise(spec io.Reader, report io.WriteCloser) error {
	s := &supervisor{report: json.NewEncoder(report), ended: make(chan error)}
	if err := json.NewDecoder(spec).Decode(&s.spec); err != nil {
		return fmt.Errorf("read the cluster's settings: %w", err)
	}
	if err := s.start(); err != nil {
		s.tell(Message{Error: err.Error()})
		return err
	}
	_ = report.Close()
	return <-s.ended
}

type supervisor struct {
	spec      Spec
	report    *json.Encoder
	processes *processes
	// ended gets an error that names the component when one has ended.
	ended chan error
}

func (s *supervisor) start() error {
	credentials, err := s.setUp()
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(credentials.ca.cert)

	containerd, etcd, apiServer := containerd(), etcd(), apiServer(s.spec, roots)
	if err := s.launch(containerd, etcd); err != nil {
		return err
	}
	if err := s.await(etcd.name, etcd.ready); err != nil {
		return err
	}
	if err := s.launch(apiServer); err != nil {
		return err
	}
	if err := s.await(containerd.name, containerd.ready); err != nil {
		return err
	}
	s.tell(Message{Reached: Images})
	if err := s.await(apiServer.name, apiServer.ready); err != nil {
		return err
	}
	s.tell(Message{Reached: API})
	if err := s.launch(controllerManager(), scheduler(), kubelet(s.spec), proxy(), volumeProvisioner()); err != nil {
		return err
	}
	nodeReady, err := credentials.nodeReady(roots)
	if err != nil {
		return err
	}
	if err := s.await("kubelet", nodeReady); err != nil {
		return err
	}
	s.tell(Message{Reached: Ready})
	return nil
}

// setUp makes everything that the components find in place.
func (s *supervisor) setUp() (*credentials, error) {
	raiseFileLimit()
	if err := unix.Sethostname([]byte(Name)); err != nil {
		return nil, fmt.Errorf("set the host name: %w", err)
	}
	if err := enterRoot(s.spec.Dir); err != nil {
		return nil, fmt.Errorf("make the root file system: %w", err)
	}
	if err := setUpNetwork(s.spec); err != nil {
		return nil, fmt.Errorf("set up the network: %w", err)
	}
	credentials, err := writeConfig(s.spec)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	environment := environment()
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil { // LookPath looks there
			return nil, err
		}
	}
	s.processes = newProcesses(pairs(environment), filepath.Join(clusterDir, LogDir))
	if err := s.setUpNAT(); err != nil {
		return nil, fmt.Errorf("the kernel has no network address translation: modprobe -a nft_compat nft_chain_nat xt_MASQUERADE, or for an older one "+
			"iptable_nat xt_MASQUERADE (on the machine itself, if this is a container; after an upgrade of the kernel, restart the machine): %w; %s", err, s.log("iptables"))
	}
	return credentials, nil
}

// raiseFileLimit lets the components and, through containerd, all pods open as
// many files as services of a distribution may, rather than the thousand that
// a login shell hands down.
func raiseFileLimit() {
	const usual = 1 << 20
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: usual, Max: usual}) == nil {
		return
	}
	// Without CAP_SYS_RESOURCE only up to the limit that there is.
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
}

// setUpNAT finds out which kind of iptables the kernel has, and hides pods
// behind the node's address where they reach out to the host. One rule for all
// of them is quicker than one per pod from the CNI plugin.
func (s *supervisor) setUpNAT() error {
	var failed error
	for _, kind := range []string{"nft", "legacy"} {
		if err := linkTools(kind); err != nil {
			return err
		}
		err := s.processes.run("iptables", "iptables", "--table", "nat", "--append", "POSTROUTING",
			"--source", podCIDR, "!", "--destination", podCIDR, "--out-interface", s.spec.Link, "--jump", "MASQUERADE")
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *supervisor) launch(components ...component) error {
	for _, c := range components {
		ended, err := s.processes.start(c.name, c.name, c.args...)
		if err != nil {
			return fmt.Errorf("start %s: %w", c.name, err)
		}
		go func() {
			status := <-ended
			s.ended <- fmt.Errorf("%s has ended: %s; %s", c.name, describe(status), s.log(c.name))
		}()
	}
	return nil
}

// await waits until a check succeeds, unless a component ends before that.
func (s *supervisor) await(name string, check func(context.Context) error) error {
	deadline := pace.In(startTimeout)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), deadline.Stretch(5*time.Second))
		err := check(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if deadline.Passed() {
			return fmt.Errorf("%s is not ready after %s: %w; %s", name, deadline, err, s.log(name))
		}
		select {
		case err := <-s.ended:
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *supervisor) tell(m Message) {
	_ = s.report.Encode(m) // fails when nobody waits any more, and that is fine
}

// log tells where a component's log is for people, who are outside, and how it
// ends: often that is all there is to know.
func (s *supervisor) log(name string) string {
	const lines = 10
	data, _ := os.ReadFile(filepath.Join(clusterDir, LogDir, name+".log"))
	all := strings.SplitAfter(strings.TrimSpace(string(data)), "\n")
	last := strings.Join(all[max(0, len(all)-lines):], "")
	return fmt.Sprintf("its log, %s, ends:\n%s", filepath.Join(s.spec.Dir, LogDir, name+".log"), last)
}

// environment is what the components run with, and nothing of the caller's.
// Debian's programs find their libraries where they were unpacked.
func environment() map[string]string {
	debian := filepath.Join(clusterDir, DebianDir)
	libraries, _ := filepath.Glob(debian + "/usr/lib/*-linux-gnu*")
	more, _ := filepath.Glob(debian + "/lib/*-linux-gnu*")
	libraries = append(libraries, more...)
	plugins, _ := filepath.Glob(debian + "/usr/lib/*-linux-gnu*/xtables")
	return map[string]string{
		"PATH": strings.Join([]string{filepath.Join(clusterDir, BinDir), toolsDir,
			debian + "/usr/sbin", debian + "/usr/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}, ":"),
		"LD_LIBRARY_PATH": strings.Join(libraries, ":"),
		"XTABLES_LIBDIR":  strings.Join(plugins, ":"),
		"HOME":            "/root",
		// Go collects garbage whenever a heap has doubled. Those of a small cluster
		// are small: it took a quarter of the API server's time under load, which
		// no control plane with gigabytes of objects spends.
		"GOGC": "400",
	}
}

func pairs(environment map[string]string) []string {
	var list []string
	for name, value := range environment {
		list = append(list, name+"="+value)
	}
	return list
}

// nodeReady asks the API server whether the node is ready.
func (c *credentials) nodeReady(roots *x509.CertPool) (func(context.Context) error, error) {
	admin := c.clients["admin"]
	certificate, err := tls.X509KeyPair(admin.cert, admin.key)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
	}}
	url := "https://" + net.JoinHostPort("127.0.0.1", apiPort) + "/api/v1/nodes/" + Name
	return func(ctx context.Context) error {
		response, err := get(ctx, client, url)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		if err := json.NewDecoder(response.Body).Decode(&node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" {
				if condition.Status == "True" {
					return nil
				}
				return fmt.Errorf("the node is not ready: %s", condition.Message)
			}
		}
		return errors.New("the node has not registered")
	}, nil
}
