//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Terminal is one that a person sits at: a shell in tmux.
type Terminal struct {
	t      testing.TB
	socket string
}

// NewTerminal opens a terminal of that many columns and lines, until the test ends. Programs in it have the environment
// that the test has now.
func NewTerminal(t testing.TB, columns, lines int) *Terminal {
	t.Helper()
	terminal := &Terminal{t, "fairlead-" + strings.ToLower(t.Name())}
	terminal.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines), "env PS1='$ ' sh")
	t.Cleanup(func() { terminal.tmux("kill-server") })
	return terminal
}

func (s *Terminal) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(s.t.Context()), "tmux", append([]string{"-L", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Type types a line, and Enter after it.
func (s *Terminal) Type(line string) {
	s.t.Helper()
	s.tmux("send-keys", "-l", line)
	s.tmux("send-keys", "Enter")
}

// Interrupt presses Ctrl-C.
func (s *Terminal) Interrupt() { s.tmux("send-keys", "C-c") }

// Clear empties the screen, but for a prompt.
func (s *Terminal) Clear() {
	s.t.Helper()
	s.Type("clear")
	s.Shows(`\A\$\z`)
}

// Shows waits until what is on the screen matches a regular expression, and returns the screen.
func (s *Terminal) Shows(want string) string {
	s.t.Helper()
	var screen string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		screen = strings.TrimRight(s.tmux("capture-pane", "-p"), "\n")
		if regexp.MustCompile(want).MatchString(screen) {
			s.t.Logf("the screen, as it matches %q:\n%s", want, screen)
			return screen
		}
	}
	s.t.Fatalf("the screen never matched %q, it is now:\n%s", want, screen)
	return ""
}
