package starter

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// isMain has this test's program be the one under test.
const isMain = "FAIRLEAD_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(isMain) != "" {
		_ = os.Unsetenv(isMain)
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// container is a process of the program, and what its node keeps of it.
type container struct {
	*exec.Cmd
	t       *testing.T
	message string
	out     bytes.Buffer
}

// starts starts the program, which becomes the command then.
func starts(t *testing.T, at time.Time, command ...string) *container {
	t.Helper()
	c := prepares(t, at, command...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func prepares(t *testing.T, at time.Time, command ...string) *container {
	t.Helper()
	c := &container{t: t, message: filepath.Join(t.TempDir(), "message")}
	if err := os.WriteFile(c.message, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--at", at.UTC().Format(time.RFC3339Nano), "--message", c.message, "--"}, command...)
	c.Cmd = exec.CommandContext(t.Context(), self, args...)
	c.Env = append(c.Environ(), isMain+"=yes")
	c.Stdout, c.Stderr = &c.out, &c.out
	return c
}

// ended is how it ended.
func (c *container) ended() (code int, message, output string) {
	c.t.Helper()
	if err := c.Wait(); err != nil && c.ProcessState == nil {
		c.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), c.says(), c.out.String()
}

func (c *container) says() string {
	c.t.Helper()
	text, err := os.ReadFile(c.message)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// waits returns when the program waits.
func (c *container) waits() {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.says() != NotBegun; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("it does not wait: message %q", c.says())
		}
	}
	time.Sleep(100 * time.Millisecond) // until it listens to signals
}

const never = 24 * time.Hour

// TestBeginsAtItsInstant: never before it, as the same process, with its output and exit code, and without a message.
func TestBeginsAtItsInstant(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(700 * time.Millisecond)
	c := starts(t, at, "sh", "-c", `date +%s.%N; echo "$$ $0 $1"; exit 7`, "name", "an argument")
	code, message, output := c.ended()
	stamp, rest, _ := strings.Cut(output, "\n")
	began, err := strconv.ParseFloat(stamp, 64)
	if err != nil {
		t.Fatalf("output %q: %v", output, err)
	}
	if due := float64(at.UnixMicro()) / 1e6; began < due {
		t.Errorf("began %f s early", due-began)
	}
	if want := strconv.Itoa(c.Process.Pid) + " name an argument\n"; rest != want || code != 7 || message != "" {
		t.Errorf("output %q, exit code %d, message %q, want %q, 7, and none", rest, code, message, want)
	}
}

// TestWithoutACommand: it ends at its instant, and says nothing.
func TestWithoutACommand(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(300 * time.Millisecond)
	c := prepares(t, at)
	c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return arg == "--" })
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if code, message, output := c.ended(); code != 0 || message != "" || output != "" || time.Now().Before(at) {
		t.Errorf("exit code %d, message %q, output %q, %s late", code, message, output, time.Since(at))
	}
}

// TestAnInstantThatHasPassed: what comes late begins at once.
func TestAnInstantThatHasPassed(t *testing.T) {
	t.Parallel()
	if code, message, output := starts(t, time.Now().Add(-never), "echo", "hello").ended(); code != 0 || message != "" || output != "hello\n" {
		t.Errorf("exit code %d, message %q, output %q", code, message, output)
	}
}

// TestEndedBefore: whatever ends it before its instant, the message says that the command has not begun.
func TestEndedBefore(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGQUIT: 131, syscall.SIGKILL: -1} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			c := starts(t, time.Now().Add(never), "echo", "hello")
			c.waits()
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code, message, output := c.ended(); code != want || message != NotBegun || strings.Contains(output, "hello") {
				t.Errorf("exit code %d, message %q, output %q", code, message, output)
			}
		})
	}
}

// TestSignalsAreTheCommands: once it has begun, a signal is for the command, and so is the message.
func TestSignalsAreTheCommands(t *testing.T) {
	t.Parallel()
	c := prepares(t, time.Now(), "sh", "-c", `trap 'echo stopped >"$MESSAGE"; exit 5' TERM; echo ready; while :; do sleep 0.05; done`)
	c.Env = append(c.Env, "MESSAGE="+c.message)
	c.Stdout = nil
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, message, _ := c.ended(); code != 5 || message != "stopped\n" {
		t.Errorf("exit code %d, message %q", code, message)
	}
}

// TestWithdrawn: in a pod that was withdrawn before it had a node, the command does not begin, also after its instant.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	c := prepares(t, time.Now().Add(-never), "echo", "hello")
	c.Env = append(c.Env, Withdrawn+"=Suspended")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if code, message, output := c.ended(); code != 143 || message != NotBegun || output != NotBegun+"\n" {
		t.Errorf("exit code %d, message %q, output %q", code, message, output)
	}
}

// TestInheritsNothing: the command has the signals, the limits, the files and the environment that it would have
// without the program.
func TestInheritsNothing(t *testing.T) {
	t.Parallel()
	// The last one in place of the shell, which blocks signals while it starts a program.
	const look = `ulimit -n; cd /proc/self/fd; echo *; env | grep FAIRLEAD || echo none; exec grep -E '^Sig(Blk|Ign)' /proc/self/status`
	c := prepares(t, time.Now(), "sh", "-c", look)
	c.Env = append(c.Env, Withdrawn+"=") // as the kubelet sets it for a pod without the annotation
	direct := exec.CommandContext(t.Context(), "sh", "-c", look)
	want, err := direct.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, _, got := c.ended(); got != string(want) {
		t.Errorf("with the program:\n%swithout:\n%s", got, want)
	}
}

// TestCannotBeStarted: exit code and message are those of a command that could not be executed.
func TestCannotBeStarted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain, nonsense := filepath.Join(folder, "plain"), filepath.Join(folder, "nonsense")
	if err := errors.Join(os.WriteFile(plain, nil, 0o644), os.WriteFile(nonsense, []byte("\x7fnonsense"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		command string
		code    int
		why     string
	}{
		"not in the path": {"no-such-program", 127, `exec: "no-such-program": executable file not found in $PATH`},
		"no such file":    {"/no/such/program", 127, "no such file or directory"},
		"not executable":  {plain, 126, "permission denied"},
		"a folder":        {folder, 126, "is a directory"},
		"no program":      {nonsense, 126, "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, message, output := starts(t, time.Now(), tc.command).ended()
			if code != tc.code || !strings.HasPrefix(message, NotStarted) || !strings.Contains(message, tc.why) || output != message+"\n" {
				t.Errorf("exit code %d, message %q, output %q", code, message, output)
			}
		})
	}
}

// TestPath: the program is looked for in the command's own PATH.
func TestPath(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "own"), []byte("#!/bin/sh\necho \"$0\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := prepares(t, time.Now(), "own")
	c.Env = append(c.Env, "PATH="+folder)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, message, output := c.ended(); output != filepath.Join(folder, "own")+"\n" || message != "" {
		t.Errorf("output %q, message %q", output, message)
	}
}

// TestWithoutAMessage: where no message can be written the command runs, and nothing can be known of its end.
func TestWithoutAMessage(t *testing.T) {
	t.Parallel()
	c := prepares(t, time.Now(), "echo", "hello")
	if err := os.Remove(c.message); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.message, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || c.out.String() != "hello\n" {
		t.Errorf("%v, output %q", err, c.out.String())
	}
}

// TestClock: it is never ahead, and behind by no more than a tick of a slow kernel, and what a busy machine adds.
func TestClock(t *testing.T) {
	t.Parallel()
	for range 1000 {
		before := time.Now()
		shown := clock()
		if after := time.Now(); shown.After(after) || shown.Before(before.Add(-50*time.Millisecond)) {
			t.Fatalf("it shows %s between %s and %s", shown, before, after)
		}
	}
}

// TestNaps: after every nap the clock is read again, whatever it shows by then. This plays the loop with a clock that
// is set.
func TestNaps(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := began.Add(30 * time.Second)
	for name, tc := range map[string]struct {
		jump time.Duration // after 20 s
		late time.Duration // at most
	}{
		"no jump":            {0, time.Millisecond},
		"forward, before it": {5 * time.Second, time.Millisecond},
		"forward, beyond it": {time.Hour, time.Hour},
		"back":               {-time.Hour, time.Millisecond},
	} {
		now, passed, jumped := began, time.Duration(0), false
		for nap := napUntil(at, now); nap > 0; nap = napUntil(at, now) {
			if nap > longestNap || !jumped && nap > at.Sub(now) {
				t.Errorf("%s: a nap of %s, %s before", name, nap, at.Sub(now))
			}
			now, passed = now.Add(nap), passed+nap
			if !jumped && passed >= 20*time.Second {
				now, jumped = now.Add(tc.jump), true
			}
		}
		if late := now.Sub(at); late < 0 || late > tc.late {
			t.Errorf("%s: begins %s after the instant", name, late)
		}
		if most := 21 * time.Second; tc.jump > 10*time.Second && passed > most {
			t.Errorf("%s: slept for %s", name, passed)
		}
	}
}

// TestInstall: the copy is a program that any user can execute, also in place of one that runs.
func TestInstall(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "start")
	for range 2 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, "install", to)
		cmd.Env = append(cmd.Environ(), isMain+"=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		runs := exec.CommandContext(t.Context(), to, "--at", time.Now().Add(never).Format(time.RFC3339Nano), "--message", to+".message", "--", "true")
		runs.Env = append(runs.Environ(), isMain+"=yes")
		if err := runs.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = runs.Process.Kill(); _ = runs.Wait() }()
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	instant := "2026-01-02T12:00:00Z"
	for _, args := range [][]string{
		nil, {"install"}, {"--at"}, {"--at", instant, "true"}, {"--at", instant, "--"}, {"--", "true"}, {"--at", "noon", "--", "true"}, {"--in", "3s", "--", "true"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	got, err := parse([]string{"--at", instant, "--", "echo", "--", "--at"})
	if err != nil || !got.at.Equal(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)) || len(got.command) != 3 || got.message != "/dev/termination-log" {
		t.Errorf("%+v, %v", got, err)
	}
}
