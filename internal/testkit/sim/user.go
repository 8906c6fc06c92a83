package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// user is who the story is about.
type user struct {
	world *World
	task  *task
	next  int // of the steps
	until time.Time
	seen  int64
	err   error // what the next step waits for
	begun bool
	asked bool
}

var errOver = errors.New("the history is over")

func (w *World) userVia(_ context.Context, r Request, do func() error) error {
	if w.polling || w.current == nil {
		return do()
	}
	if !w.wait(thinks) {
		return errOver
	}
	err := do()
	if w.trace != nil && r.IsWrite() {
		w.Tracef("user", "%s %s", r, outcomeOf(err))
	}
	return err
}

// thinks is how long a user takes between two requests.
const thinks = 100 * time.Millisecond

func outcomeOf(err error) string {
	if err == nil {
		return ""
	}
	return "(" + err.Error() + ")"
}

func (u *user) isReady() bool {
	w := u.world
	switch {
	case u.task != nil:
		return !w.now.Before(u.task.resumeAt)
	case !u.begun:
		return true
	case u.next >= len(w.story.Steps) || w.now.Before(u.until):
		return false
	}
	if when := w.story.Steps[u.next].When; when != nil {
		if u.asked && u.seen == w.Server.version && u.err != nil {
			return false
		}
		w.polling = true
		u.err = when(context.Background())
		w.polling = false
		u.asked, u.seen = true, w.Server.version
		if u.err != nil {
			return false
		}
	}
	if u.until.IsZero() {
		if d := delays[w.choices.ask(Delay, len(delays))]; d > 0 {
			w.Tracef("user", "takes %s to do it", d)
			u.until = w.now.Add(d)
			return false
		}
	}
	return true
}

func (u *user) act() {
	w := u.world
	if u.task == nil {
		do, name := w.story.Arrange, "arrange"
		if u.begun {
			step := w.story.Steps[u.next]
			do, name = step.Do, step.Name
			u.next++
			u.until, u.asked = time.Time{}, false
		}
		u.begun = true
		w.Tracef("user", "%s", name)
		ctx := log.IntoContext(context.Background(), logr.Discard())
		u.task = w.newTask(func() {
			if do == nil {
				return
			}
			if err := do(ctx); err != nil && !errors.Is(err, errOver) {
				w.Fail(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	w.step(u.task)
	if u.task.isOver {
		u.task = nil
	}
}

// missing is what the story still waits for; nil if it has come to its end.
func (u *user) missing() error {
	w := u.world
	if u.task != nil || !u.begun {
		return errors.New("the user is at work")
	}
	if u.next < len(w.story.Steps) {
		return fmt.Errorf("step %d (%s) waits: %w", u.next+1, w.story.Steps[u.next].Name, u.err)
	}
	w.polling = true
	defer func() { w.polling = false }()
	return w.story.Settled(context.Background())
}

func (u *user) end() {
	if u.task != nil {
		u.task.stop()
	}
}
