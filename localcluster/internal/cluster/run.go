package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/node"
)

// Run brings the cluster up, runs a command with it, and ends it. The result
// is the command's exit code.
func (c *Cluster) Run(ctx context.Context, names []string, command []string) (code int, err error) {
	if entry, err := host.Find(c.Dir); err != nil || entry != nil {
		return 1, errors.Join(err, fmt.Errorf("%w: run starts one of its own, in a folder without one", host.ErrAlive))
	}
	defer func() { err = errors.Join(err, c.leave()) }()
	if err := c.Up(ctx, names, false); err != nil {
		return 1, err
	}
	return c.command(ctx, command)
}

// leave ends the cluster of Run and removes what was made for it: all of a
// temporary folder, and of another one the state.
func (c *Cluster) leave() error {
	defer func() { _ = c.lifeline.Close() }() // nil, if it was not even started
	if err := c.end(); err != nil {
		return err
	}
	if c.Temporary {
		return os.RemoveAll(c.Dir)
	}
	return c.remove(node.Kubeconfig, node.StateDir)
}

// command runs a user's command with the cluster in its environment and passes
// on its exit code. When ctx is done it is asked to end, and waited for; when
// this process is killed, so is the command.
func (c *Cluster) command(ctx context.Context, command []string) (int, error) {
	runtime.LockOSThread() // the kernel means the thread when it says parent
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig(),
		"LOCALCLUSTER_DIR="+c.Dir,
		"PATH="+c.Bin()+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return 1, err // it has not been started
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), nil // as a shell says it
	}
	return cmd.ProcessState.ExitCode(), nil
}
