package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/pace"
)

// Process is a process that a number alone would not tell from a later one
// that was given the same number.
type Process struct {
	PID int `json:"pid"`
	// Started is when, in the kernel's ticks since the machine's start.
	Started string `json:"started"`
}

// ProcessOf looks at a running process.
func ProcessOf(pid int) (Process, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, err
	}
	started, err := startTime(string(data))
	return Process{PID: pid, Started: started}, err
}

// startTime reads the 22nd field of proc_pid_stat(5). The second one is a
// name in parentheses that may have anything in it.
func startTime(stat string) (string, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("a process's stat has only %d fields", len(fields))
	}
	return fields[19], nil
}

// exists tells whether it is still there, be it as a zombie: the first process
// of a pid namespace stays one until every other in there is gone.
func (p Process) exists() bool {
	now, err := ProcessOf(p.PID)
	return err == nil && now == p
}

// kill kills the process, if it is still there, and waits until it is gone.
func (p Process) kill() error {
	if p.PID == 0 {
		return nil
	}
	for deadline := pace.In(15 * time.Second); p.exists(); time.Sleep(20 * time.Millisecond) {
		if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", p.PID, err)
		}
		if deadline.Passed() {
			return fmt.Errorf("process %d does not end, after %s", p.PID, deadline)
		}
	}
	return nil
}
