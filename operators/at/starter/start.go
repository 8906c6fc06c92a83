package starter

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// ImageProgram is the program in Fairlead's image.
	ImageProgram = "/fairlead-at-start"
	// Program is where it is in the command's container. Its folder is a volume, and must not be a file in either image:
	// /fairlead is one.
	Program = "/fairlead-at/start"

	// NotBegun is the termination message while the program waits.
	NotBegun = "fairlead-at-start: the command has not begun"
	// Withdrawn is the environment variable that is not empty if the command must not begin. The command does not get it.
	Withdrawn = "FAIRLEAD_AT_WITHDRAWN"

	// NotStarted begins the termination message if the command cannot be executed, and the reason follows.
	NotStarted = "fairlead-at-start: the command could not be started: "
)

// The exit codes are those of a shell.
const (
	notExecutable = 126
	notFound      = 127
	bySignal      = 128 // and its number
	isWithdrawn   = bySignal + int(syscall.SIGTERM)
)

// longestNap is after how long the clock is read again at the latest.
const longestNap = time.Second

// Main runs the program. It returns the exit code if the command has not begun.
func Main(args []string) int {
	if len(args) == 2 && args[0] == "install" {
		if err := install(args[1]); err != nil {
			complain(err.Error())
			return 1
		}
		return 0
	}
	r, err := parse(args)
	if err != nil {
		complain(err.Error())
		return 2
	}
	return r.run()
}

// run is what is to happen, and when.
type run struct {
	at      time.Time
	message string   // the file of the termination message
	command []string // none for a program that only waits
}

func parse(args []string) (r run, err error) {
	r.message = "/dev/termination-log" // as Kubernetes has it
	for len(args) >= 2 && err == nil {
		switch args[0] {
		case "--at":
			r.at, err = time.Parse(time.RFC3339Nano, args[1])
		case "--message":
			r.message = args[1]
		case "--":
			if r.command = args[1:]; r.at.IsZero() {
				err = errUsage
			}
			return r, err
		default:
			err = errUsage
		}
		args = args[2:]
	}
	if err == nil && len(args) == 0 && !r.at.IsZero() {
		return r, nil
	}
	return r, errors.Join(err, errUsage)
}

var errUsage = errors.New("usage: fairlead-at-start install FILE, or --at INSTANT [--message FILE] [-- COMMAND [ARG...]]")

// run waits, and then becomes the command, if there is one.
func (r run) run() int {
	// First of all: what ends this process before does not say that the command has not begun. Nor does anything if
	// this fails, which is safe.
	isMarked := len(r.command) > 0 && os.WriteFile(r.message, []byte(NotBegun), 0o666) == nil
	if os.Getenv(Withdrawn) != "" {
		complain(NotBegun)
		return isWithdrawn
	}
	_ = os.Unsetenv(Withdrawn)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) { // the command inherits what is ignored
			signal.Notify(signals, s)
		}
	}
	for nap := napUntil(r.at, clock()); nap > 0; nap = napUntil(r.at, clock()) {
		select {
		case s := <-signals: // one of those that images have as STOPSIGNAL
			complain(NotBegun)
			return bySignal + int(s.(syscall.Signal))
		case <-time.After(nap):
		}
	}

	if len(r.command) == 0 {
		return 0
	}
	program, err := exec.LookPath(r.command[0]) // as runc does
	if err != nil {
		return r.notStarted(err)
	}
	if err := os.Truncate(r.message, 0); err != nil && isMarked {
		complain(err.Error())
		return notExecutable // it would not be known that the command has begun
	}
	// From here on the command counts as begun. A signal that arrives now has no effect, as one has that the first
	// process of a container does not handle: the command is killed at the end of its grace period.
	return r.notStarted(&fs.PathError{Op: "exec", Path: program, Err: syscall.Exec(program, r.command, os.Environ())})
}

// clock is the time of day as the slowest of its readers sees it: time(2), by which date and most languages get the
// second, is a tick of the kernel behind, up to 10 ms. A command of noon must not read that it is before noon.
func clock() time.Time {
	const coarse = 5 // Linux' CLOCK_REALTIME_COARSE
	var now unix.Timespec
	if err := unix.ClockGettime(coarse, &now); err != nil {
		return time.Now()
	}
	return time.Unix(now.Unix())
}

// napUntil is how long to sleep until the clock is read again, and 0 if it shows the instant, or a later one. Timers do
// not follow a clock that is set, so a nap is no longer than half of what is left.
func napUntil(instant, now time.Time) time.Duration {
	left := instant.Sub(now) // by the time of day: an instant that was parsed has no other
	if left <= 0 {
		return 0
	}
	return min(left, max(left/2, time.Millisecond), longestNap)
}

// notStarted says why the command cannot be executed.
func (r run) notStarted(err error) int {
	text := NotStarted + err.Error()
	complain(text)
	_ = os.WriteFile(r.message, []byte(text), 0o666) // otherwise the log has it
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return notFound
	}
	return notExecutable
}

// install copies this program. A file that is there may be executed, and is replaced.
func install(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	fresh := to + ".new"
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Chmod(0o755), file.Close()); err != nil { // whatever the umask, for any user
		return err
	}
	return os.Rename(fresh, to)
}

func complain(text string) { _, _ = os.Stderr.WriteString(text + "\n") }
