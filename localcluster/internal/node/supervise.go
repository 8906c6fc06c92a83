package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
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
	Ready  Milestone = "every node is ready"
)

// startTimeout is how long a step may take, on a fast machine: it is reached
// when something hangs, or never.
const startTimeout = 2 * time.Minute

// Supervise is the life of a node's PID 1: it reads the spec, starts everything, and
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
	// logs is where this node's log files are, below LogDir.
	logs string
	// further are the other nodes, if this is the first one.
	further []*further
	// cuts are those of the network now. Like what happens to nodes, they are
	// made by one request at a time.
	cuts []Cut
	// ended gets an error that names the component when one has ended.
	ended chan error
}

func (s *supervisor) start() error {
	if err := s.setUp(); err != nil {
		return err
	}
	containerd := containerd()
	if err := s.launch(containerd); err != nil {
		return err
	}
	rest := []component{kubelet(s.spec)}
	if s.spec.control() {
		if err := s.startControlPlane(); err != nil {
			return err
		}
		rest = append(rest, controllerManager(s.spec), scheduler(), volumeProvisioner())
	}
	if err := s.reach(Images, containerd.name, containerd.ready); err != nil {
		return err
	}
	apiReady, registered, nodeReady, err := s.spec.checks()
	if err != nil {
		return err
	}
	if err := s.await("kube-apiserver", apiReady); err != nil {
		return err
	}
	s.tell(Message{Reached: API})
	if err := s.launch(rest...); err != nil {
		return err
	}
	// kube-proxy waits for its Node for 30 s, and ends if it comes later.
	if err := s.await("kubelet", registered); err != nil {
		return err
	}
	if err := s.launch(proxy()); err != nil {
		return err
	}
	return s.reach(Ready, "kubelet", nodeReady)
}

// startControlPlane starts etcd and the API server, and the further nodes,
// which wait for it.
func (s *supervisor) startControlPlane() error {
	etcd := etcd()
	if err := s.launch(etcd); err != nil {
		return err
	}
	if err := s.await(etcd.name, etcd.ready); err != nil {
		return err
	}
	if err := s.launch(apiServer(s.spec)); err != nil {
		return err
	}
	if err := markRunning(s.spec.self().Name, os.Getpid()); err != nil {
		return err
	}
	for _, n := range s.further {
		if err := s.boot(n); err != nil {
			return err
		}
	}
	return s.listen()
}

// reach waits for a milestone of this node and of the further ones.
func (s *supervisor) reach(milestone Milestone, name string, check func(context.Context) error) error {
	if err := s.await(name, check); err != nil {
		return err
	}
	for _, n := range s.further {
		if err := n.reached(milestone); err != nil {
			return err
		}
	}
	s.tell(Message{Reached: milestone})
	return nil
}

// setUp makes everything that the components find in place.
func (s *supervisor) setUp() error {
	raiseFileLimit()
	if err := unix.Sethostname([]byte(s.spec.self().Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	dir := clusterDir // in the first node
	if s.spec.control() {
		dir = s.spec.Dir
	} else {
		s.logs = s.spec.self().Name
	}
	if err := enterRoot(dir, s.spec.self().Name); err != nil {
		return fmt.Errorf("make the root file system: %w", err)
	}
	if err := setUpNetwork(s.spec); err != nil {
		return fmt.Errorf("set up the network: %w", err)
	}
	if s.spec.control() {
		if err := s.configureNodes(); err != nil {
			return fmt.Errorf("make the configuration: %w", err)
		}
	}
	if err := writeEtc(s.spec.Etc); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := linkPlugins(); err != nil {
		return fmt.Errorf("link the CNI plugins: %w", err)
	}
	environment := environment()
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil { // LookPath looks there
			return err
		}
	}
	s.processes = newProcesses(pairs(environment), filepath.Join(clusterDir, LogDir, s.logs))
	if err := s.setUpNAT(); err != nil {
		return fmt.Errorf("the kernel has no network address translation: modprobe -a nft_compat nft_chain_nat xt_MASQUERADE, or for an older one "+
			"iptable_nat xt_MASQUERADE (on the machine itself, if this is a container; after an upgrade of the kernel, restart the machine): %w; %s", err, s.log("iptables"))
	}
	return nil
}

// configureNodes makes the configuration of all nodes, and writes the
// administrator's kubeconfig into the cluster's folder.
func (s *supervisor) configureNodes() error {
	all, err := newEtc(s.spec)
	if err != nil {
		return err
	}
	s.spec.Etc = all[0]
	for i := range s.spec.Nodes[1:] {
		n := &further{spec: s.spec}
		n.spec.Self, n.spec.Link, n.spec.Etc = i+1, host.NodeLink, all[i+1]
		s.further = append(s.further, n)
	}
	return os.WriteFile(filepath.Join(clusterDir, Kubeconfig), s.spec.Etc["kubernetes/admin.kubeconfig"], 0o600)
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
		err := s.hidePods()
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *supervisor) hidePods() error {
	for i, pods := range s.spec.self().Pods {
		if err := s.processes.run("iptables", iptables(s.spec.Families[i]), "--table", "nat", "--append", "POSTROUTING",
			"--source", pods.String(), "!", "--destination", s.spec.podNets()[i].String(), "--out-interface", s.spec.Link, "--jump", "MASQUERADE"); err != nil {
			return err
		}
	}
	return nil
}

// iptables is the program for a family.
func iptables(family host.Family) string {
	if family == host.IPv6 {
		return "ip6tables"
	}
	return "iptables"
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
	file := filepath.Join(LogDir, s.logs, name+".log")
	data, _ := os.ReadFile(filepath.Join(clusterDir, file))
	all := strings.SplitAfter(strings.TrimSpace(string(data)), "\n")
	last := strings.Join(all[max(0, len(all)-lines):], "")
	return fmt.Sprintf("its log, %s, ends:\n%s", filepath.Join(s.spec.Dir, file), last)
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

// checks tell whether the API server is ready, whether it has this node, and
// whether it calls it ready.
func (s Spec) checks() (apiReady, registered, nodeReady func(context.Context) error, err error) {
	ca, err := os.ReadFile(pki("ca.crt"))
	if err != nil {
		return nil, nil, nil, err
	}
	certificate, err := tls.LoadX509KeyPair(pki("kubelet-client.crt"), pki("kubelet-client.key"))
	if err != nil {
		return nil, nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	url := s.apiServer() + "/api/v1/nodes/" + s.self().Name
	// Before that it was as this node left it when it was switched off.
	since := time.Now().Truncate(time.Second)
	nodeReady = func(ctx context.Context) error {
		response, err := get(ctx, client, url)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return checkNode(response.Body, since)
	}
	return healthy(s.apiServer()+"/readyz", &tls.Config{RootCAs: roots}), healthy(url, config), nodeReady, nil
}

// checkNode looks whether a node has said since then that it is ready.
func checkNode(object io.Reader, since time.Time) error {
	var node struct {
		Status struct {
			Conditions []struct {
				Type, Status, Message string
				LastHeartbeatTime     time.Time
			}
		}
	}
	if err := json.NewDecoder(object).Decode(&node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != "Ready" || condition.LastHeartbeatTime.Before(since) {
			continue
		}
		if condition.Status == "True" {
			return nil
		}
		return fmt.Errorf("the node is not ready: %s", condition.Message)
	}
	return errors.New("the node has not registered")
}
