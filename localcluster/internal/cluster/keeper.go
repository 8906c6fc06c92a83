package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/images"
	"example.com/fairlead/localcluster/internal/node"
)

// The keeper is the cluster's one process on the host. It makes what the
// cluster has there, starts PID 1 of the cluster's namespaces, waits for its
// end or brings it about, and takes away what was made. If it is killed
// itself, the kernel kills PID 1 and with it everything inside, and what is
// left on the host (an entry and empty cgroup folders) is swept up by the next
// command.

// Files that the keeper inherits, and after them those of PID 1.
const (
	claimFD    = 3 + iota // the entry in the registry, locked
	reportFD              // where messages go
	lifelineFD            // the parent's life, see hold
)

const (
	specFD = 3 // PID 1's settings come from there
	// reportFD is the same
)

// KeeperCommand and InitCommand are how this program calls itself.
const (
	KeeperCommand = "__keeper"
	InitCommand   = node.InitCommand
)

// detach on the lifeline says that the cluster stays when its parent ends.
const detach = 'd'

// Keep is the life of the keeper.
func Keep() error {
	// The kernel sends PID 1 its signal when the thread that started it ends.
	runtime.LockOSThread()
	closeInherited()
	report := os.NewFile(reportFD, "report")
	unix.CloseOnExec(claimFD)
	unix.CloseOnExec(reportFD)
	unix.CloseOnExec(lifelineFD)
	claim, err := host.Adopt(os.NewFile(claimFD, "claim"))
	if err != nil {
		return fmt.Errorf("read the cluster's entry: %w", err)
	}
	claim.Keeper = os.Getpid()

	init, err := launch(claim, report)
	if err == nil {
		err = hold(claim, init)
	} else {
		_ = json.NewEncoder(report).Encode(node.Message{Error: err.Error()})
	}
	log.Printf("the cluster ends: %v", err)
	return claim.Release()
}

// launch makes the cluster's things on the host and starts PID 1.
func launch(claim *host.Claim, report *os.File) (*exec.Cmd, error) {
	defer report.Close() // PID 1 has it now: its end is the report's end
	if err := claim.Write(); err != nil {
		return nil, err
	}
	if err := claim.CreateCgroups(); err != nil {
		return nil, fmt.Errorf("%w%s", err, needsPrivilege(err))
	}
	spec, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	init := exec.CommandContext(context.Background(), "/proc/self/exe", InitCommand)
	init.Args[0] = "localcluster" // what ps shows
	init.Stdout, init.Stderr = os.Stdout, os.Stderr
	init.ExtraFiles = []*os.File{spec, report}
	init.SysProcAttr = &unix.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  unix.SIGKILL,
	}
	if err := init.Start(); err != nil {
		return nil, fmt.Errorf("start a process in namespaces of its own: %w%s", err, needsPrivilege(err))
	}
	_ = spec.Close()
	if err := settle(claim, init.Process.Pid, out); err != nil {
		return nil, errors.Join(err, stop(init))
	}
	return init, nil
}

// needsPrivilege says what a container lacks that may not do it.
func needsPrivilege(err error) string {
	if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return " (this takes root, and in a container: docker run --privileged)"
	}
	return ""
}

// settle connects PID 1 to the host and sends it its settings.
func settle(claim *host.Claim, pid int, settings io.Writer) error {
	var err error
	if claim.Init, err = host.ProcessOf(pid); err != nil {
		return err
	}
	if err := claim.Write(); err != nil {
		return err
	}
	if err := claim.Connect(pid); err != nil {
		return err
	}
	return json.NewEncoder(settings).Encode(node.NewSpec(claim.Entry, pauseImage()))
}

func pauseImage() string {
	name, err := images.FullName(images.Pause)
	if err != nil {
		panic(err) // it is a constant
	}
	return name
}

// hold waits for a reason to end, ends PID 1, and returns the reason.
func hold(claim *host.Claim, init *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- init.Wait() }()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	orphaned := make(chan struct{})
	go watchLifeline(os.NewFile(lifelineFD, "lifeline"), orphaned)
	vanished := make(chan struct{})
	go watchFolder(claim.Dir, vanished)

	var reason error
	select {
	case err := <-ended:
		return fmt.Errorf("PID 1 has ended: %w", err)
	case received := <-signals:
		reason = fmt.Errorf("asked to, by signal %s", received)
	case <-orphaned:
		reason = errors.New("the command that started it has ended")
	case <-vanished:
		reason = fmt.Errorf("its folder %s is gone", claim.Dir)
		defer finishRemoval(claim.Dir)
	}
	if err := init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(reason, err)
	}
	<-ended //nolint:errcheck // it was killed, and says so
	return reason
}

// finishRemoval removes what whoever removed the folder could not, because it
// was still being written to.
func finishRemoval(dir string) {
	for _, state := range []string{node.StateDir, node.LogDir} {
		_ = os.RemoveAll(filepath.Join(dir, state))
	}
	_ = os.Remove(dir) // unless something else is in there
}

func stop(init *exec.Cmd) error {
	if err := init.Process.Kill(); err != nil {
		return err
	}
	_ = init.Wait() // says that it was killed
	return nil
}

// watchLifeline reads from the pipe whose other end the parent has. It brings
// a byte if the cluster shall stay without its parent; its end is the parent's.
func watchLifeline(lifeline *os.File, orphaned chan<- struct{}) {
	defer lifeline.Close()
	if n, _ := lifeline.Read(make([]byte, 1)); n == 0 {
		close(orphaned)
	}
}

// watchFolder notices when the cluster's folder is removed. A removal in
// progress shows in the kubeconfig, which nothing makes again.
func watchFolder(dir string, vanished chan<- struct{}) {
	defer close(vanished)
	born, err := os.Stat(dir)
	if err != nil {
		return
	}
	kubeconfig := filepath.Join(dir, node.Kubeconfig)
	complete := false
	for range time.Tick(500 * time.Millisecond) {
		if now, err := os.Stat(dir); err != nil || !os.SameFile(born, now) {
			return
		}
		_, err := os.Stat(kubeconfig)
		if complete && errors.Is(err, os.ErrNotExist) {
			return
		}
		complete = complete || err == nil
	}
}

// closeInherited closes what the caller's caller left open, such as make's job
// server or the pipe that a test runner waits for the end of.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= lifelineFD {
			continue
		}
		// Go's own files have the flag, inherited ones have not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// Init is the life of PID 1.
func Init() error {
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(reportFD)
	spec, report := os.NewFile(specFD, "spec"), os.NewFile(reportFD, "report")
	return node.Supervise(spec, report)
}
