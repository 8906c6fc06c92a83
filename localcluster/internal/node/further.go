package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
)

// InitCommand is how this program calls itself to be PID 1 of a node.
const InitCommand = "__init"

// What can be done to the network.
const (
	MakeCut = "cut"
	Heal    = "heal"
)

// What can be done to a further node.
const (
	Off    = "off"    // everything on it dies, as when the power fails
	On     = "on"     // it starts again, with its disks
	Pause  = "pause"  // its processes stop, and connections to it stay open
	Resume = "resume" // they go on
)

// further is a node beside the first one, as the first one has it.
type further struct {
	spec     Spec
	messages *os.File // what it reports while it starts
	reports  *json.Decoder

	mu   sync.Mutex
	pid  int           // of its PID 1 in the first node; 0 while it is off
	gone chan struct{} // closed when all of it has ended
}

func (n *further) name() string { return n.spec.self().Name }

// device leads to it from the first node's bridge.
func (n *further) device() string { return "node" + strconv.Itoa(n.spec.Self+1) }

// boot switches it on.
func (s *supervisor) boot(n *further) error {
	if err := s.startProcess(n); err != nil {
		return fmt.Errorf("start %s: %w", n.name(), err)
	}
	return nil
}

func (s *supervisor) startProcess(n *further) (err error) {
	if err := os.MkdirAll(filepath.Join(clusterDir, LogDir, n.name()), 0o755); err != nil {
		return err
	}
	in, settings, err := os.Pipe()
	if err != nil {
		return err
	}
	defer settings.Close()
	messages, report, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close())
	}
	pid, ended, err := s.processes.spawn(n.name()+"/supervisor", "/proc/self/exe", []string{"localcluster", InitCommand}, &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}, in, report)
	_, _ = in.Close(), report.Close() // it has them now
	if err != nil {
		return errors.Join(err, messages.Close())
	}
	gone := make(chan struct{})
	n.messages, n.reports = messages, json.NewDecoder(messages)
	n.mu.Lock()
	n.pid, n.gone = pid, gone
	n.mu.Unlock()
	go s.watch(n, pid, ended, gone)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.off(n))
		}
	}()

	if err := host.AddPair(n.device(), pid, n.spec.self().IP()); err != nil {
		return err
	}
	if err := plug(n.device()); err != nil {
		return err
	}
	if err := markRunning(n.name(), pid); err != nil {
		return err
	}
	if len(s.cuts) > 0 {
		if err := s.restoreCuts(pid, n.spec.Link); err != nil {
			return err
		}
	}
	return json.NewEncoder(settings).Encode(n.spec)
}

// watch ends the cluster when a node has ended by itself: as with a component,
// that is seen best if nothing hides it.
func (s *supervisor) watch(n *further, pid int, ended <-chan unix.WaitStatus, gone chan<- struct{}) {
	status := <-ended
	close(gone)
	n.mu.Lock()
	unplanned := n.pid == pid
	n.mu.Unlock()
	if unplanned {
		said, _ := os.ReadFile(filepath.Join(clusterDir, LogDir, n.name(), "supervisor.log")) // why, and no more
		s.ended <- fmt.Errorf("%s has ended: %s\n%s", n.name(), describe(status), said)
	}
}

// reached waits until a node that starts is that far.
func (n *further) reached(milestone Milestone) error {
	for {
		var message Message
		if err := n.reports.Decode(&message); err != nil {
			return fmt.Errorf("%s has ended while it was starting: %w", n.name(), err)
		}
		if message.Error != "" {
			return fmt.Errorf("%s: %s", n.name(), message.Error)
		}
		if message.Reached == Ready {
			_ = n.messages.Close()
		}
		if message.Reached == milestone {
			return nil
		}
	}
}

// off switches it off. The device goes first: with a power failure no
// connection is closed.
func (s *supervisor) off(n *further) error {
	n.mu.Lock()
	pid, gone := n.pid, n.gone
	n.pid = 0
	n.mu.Unlock()
	if pid == 0 {
		return nil
	}
	if err := errors.Join(unmarkRunning(n.name()), host.RemoveLink(n.device())); err != nil {
		return err
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill %s: %w", n.name(), err)
	}
	<-gone
	return host.RenewCgroup(n.spec.self().Cgroup)
}

func (s *supervisor) on(n *further) error {
	if n.running() != 0 {
		return nil
	}
	if err := s.boot(n); err != nil {
		return err
	}
	return n.reached(Ready)
}

func (n *further) running() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pid
}

// signal sends all of its processes a signal: again, until there are no new
// ones.
func (n *further) signal(signal unix.Signal) error {
	root := n.running()
	if root == 0 {
		return fmt.Errorf("%s is off", n.name())
	}
	sent := map[int]bool{}
	for {
		parents, err := processTree()
		if err != nil {
			return err
		}
		before := len(sent)
		for _, pid := range descendants(parents, root) {
			if sent[pid] {
				continue
			}
			if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("send process %d of %s %s: %w", pid, n.name(), signal, err)
			}
			sent[pid] = true
		}
		if len(sent) == before {
			return nil
		}
	}
}

// processTree is the parent of every process.
func processTree() (map[int]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The second field is a name in parentheses that may have anything in it.
		fields := strings.Fields(string(stat)[strings.LastIndex(string(stat), ")")+1:])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parents[pid], err = strconv.Atoi(fields[1]); err != nil {
			return nil, err
		}
	}
	return parents, nil
}

// descendants are a process and all that it, or one of these, is the parent of.
// An orphan is PID 1's of its namespace.
func descendants(parents map[int]int, root int) []int {
	children := map[int][]int{}
	for pid, parent := range parents {
		children[parent] = append(children[parent], pid)
	}
	found := []int{root}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// markRunning makes the link by which processes on the host reach a node's
// root. It is relative, as an absolute one would begin at their own root.
func markRunning(name string, pid int) error {
	if err := os.MkdirAll(runningDir, 0o755); err != nil {
		return err
	}
	return os.Symlink(fmt.Sprintf("../../proc/%d/root", pid), filepath.Join(runningDir, name))
}

func unmarkRunning(name string) error {
	err := os.Remove(filepath.Join(runningDir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// A Request is what Tell sends: something to do to a node, or to the network.
type Request struct {
	Do   string
	Node string   `json:",omitempty"`
	Cut  *Cut     `json:",omitempty"`
	Ends []string `json:",omitempty"` // of what is to heal; none for all
}

// Tell has the cluster, by its PID 1 on the host, do something.
func Tell(ctx context.Context, init int, r Request) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/%d/root%s", init, controlSocket))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return err
	}
	var answer Message
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return fmt.Errorf("no answer from the cluster: %w", err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// listen answers requests, one at a time, for as long as the cluster lives.
func (s *supervisor) listen() error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", controlSocket)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var r Request
			if err := json.NewDecoder(conn).Decode(&r); err == nil {
				var answer Message
				if err := s.do(r); err != nil {
					answer.Error = err.Error()
				}
				_ = json.NewEncoder(conn).Encode(answer) // fails if the command has been interrupted
			}
			_ = conn.Close()
		}
	}()
	return nil
}

func (s *supervisor) do(r Request) error {
	switch r.Do {
	case MakeCut:
		return s.cut(*r.Cut)
	case Heal:
		return s.heal(r.Ends)
	}
	n, err := s.find(r.Node)
	if err != nil {
		return err
	}
	switch r.Do {
	case Off:
		return s.off(n)
	case On:
		return s.on(n)
	case Pause:
		return errors.Join(unmarkRunning(n.name()), n.signal(unix.SIGSTOP))
	case Resume:
		return errors.Join(n.signal(unix.SIGCONT), unmarkRunning(n.name()), markRunning(n.name(), n.running()))
	}
	return fmt.Errorf("a node is switched %s or %s, or told to %s or %s", Off, On, Pause, Resume)
}

func (s *supervisor) find(name string) (*further, error) {
	if name == Name {
		return nil, fmt.Errorf("%s has the control plane as well: switch another one off, or end the cluster by down", Name)
	}
	var names []string
	for _, n := range s.further {
		if n.name() == name {
			return n, nil
		}
		names = append(names, n.name())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no node %q: this cluster has only %s (up --nodes 3 has more)", name, Name)
	}
	return nil, fmt.Errorf("there is no node %q that can be switched off: there are %s", name, strings.Join(names, " and "))
}
