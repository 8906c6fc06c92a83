//go:build apiserver

package cluster

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/operators/etcd/members/etcdtest"
)

// process is an etcd that runs, or has ended.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	output  *lastLines
	done    chan struct{} // closed when it has ended
	over    time.Time
	failure error         // to start
	served  chan struct{} // closed when it has answered once that it serves
}

// startProcess starts a program that has a file of hosts of its own. The shell becomes the program.
func startProcess(program, hosts string, env []string, health string) (*process, error) {
	flags := "-m"
	if os.Geteuid() != 0 {
		flags = "-rm"
	}
	p := &process{started: time.Now(), output: &lastLines{}, done: make(chan struct{}), served: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), // who started it ends it
		"unshare", flags, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$1"`, hosts, program)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.output, p.output
	p.cmd.SysProcAttr = etcdtest.EndsWithParent()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		p.over = time.Now()
		close(p.done)
	}()
	go p.probe(health)
	return p, nil
}

// failedProcess is one that could not be started.
func failedProcess(err error) *process {
	p := &process{started: time.Now(), over: time.Now(), output: &lastLines{}, done: make(chan struct{}), served: make(chan struct{}), failure: err}
	close(p.done)
	return p
}

var prober = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// probe asks whether the process serves, until it does.
func (p *process) probe(health string) {
	for {
		select {
		case <-p.done:
			return
		case <-time.After(200 * time.Millisecond):
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, health, nil)
		if err != nil {
			return
		}
		resp, err := prober.Do(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			close(p.served)
			return
		}
	}
}

func (p *process) hasEnded() bool  { return isClosed(p.done) }
func (p *process) hasServed() bool { return isClosed(p.served) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *process) signal(s syscall.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // one that has ended does not mind
	}
}

// end is how the process ended, as a kubelet reports it.
func (p *process) end() *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "Error", Message: p.output.String(), StartedAt: second(p.started), FinishedAt: second(p.over),
	}
	if p.failure != nil {
		t.Reason, t.Message = "StartError", p.failure.Error()
		return t
	}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	t.ExitCode = int32(status.ExitStatus())
	if status.Signaled() {
		t.ExitCode = 128 + int32(status.Signal())
	}
	if t.ExitCode == 0 {
		t.Reason, t.Message = "Completed", ""
	}
	return t
}

// lastLines is the end of a log, as a kubelet makes a termination message of it.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLines) Write(text []byte) (int, error) {
	const most = 2 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	if len(l.text) > 64*most {
		l.text = append([]byte(nil), l.text[len(l.text)-most:]...)
	}
	return len(text), nil
}

func (l *lastLines) String() string {
	const most = 2 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-most):])
}
