package node

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// processes starts processes and collects them when they end. PID 1 is given
// every orphan of its namespace, such as the containers' shims, so it waits
// for any child at all, which os/exec's own waiting does not go together with.
type processes struct {
	env []string
	out string // folder of the log files

	mu      sync.Mutex
	waiting map[int]chan<- unix.WaitStatus
}

func newProcesses(env []string, logs string) *processes {
	p := &processes{env: env, out: logs, waiting: map[int]chan<- unix.WaitStatus{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGCHLD)
	go func() {
		for range signals {
			p.collect()
		}
	}()
	return p
}

// collect takes in every child that has ended: signals do not queue, so one of
// them can stand for many.
func (p *processes) collect() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		p.mu.Lock()
		if ended, ok := p.waiting[pid]; ok {
			ended <- status
			delete(p.waiting, pid)
		}
		p.mu.Unlock()
	}
}

// start starts a program of the search path with its output in a log file. The
// channel gets its status when it has ended.
func (p *processes) start(log, name string, args ...string) (<-chan unix.WaitStatus, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	_, ended, err := p.spawn(log, path, append([]string{name}, args...), nil)
	return ended, err
}

// spawn starts a program, which also gets files from number 3 on.
func (p *processes) spawn(log, path string, argv []string, sys *syscall.SysProcAttr, files ...*os.File) (int, <-chan unix.WaitStatus, error) {
	file, err := os.OpenFile(filepath.Join(p.out, log+".log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return 0, nil, err
	}
	defer file.Close()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer nothing.Close()

	p.mu.Lock() // so that a child that ends at once finds its channel
	defer p.mu.Unlock()
	process, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: "/", Env: p.env, Files: append([]*os.File{nothing, file, file}, files...), Sys: sys,
	})
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan unix.WaitStatus, 1)
	pid := process.Pid // Release forgets it
	p.waiting[pid] = ended
	return pid, ended, process.Release()
}

// run runs a program to its end.
func (p *processes) run(log, name string, args ...string) error {
	ended, err := p.start(log, name, args...)
	if err != nil {
		return err
	}
	if status := <-ended; status != 0 {
		return fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), describe(status))
	}
	return nil
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "killed by signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
