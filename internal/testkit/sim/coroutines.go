package sim

import (
	"iter"
	"time"
)

// task is something that takes requests, one after the other, and may stop before each.
type task struct {
	*coroutine
	isOver   bool
	resumeAt time.Time
}

// coroutine runs one task after the other: to make a new one for each takes longer than
// most of them.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	do    func()
}

// coroutines are those that run nothing.
type coroutines []*coroutine

func (cs *coroutines) take() *coroutine {
	if n := len(*cs); n > 0 {
		c := (*cs)[n-1]
		*cs = (*cs)[:n-1]
		return c
	}
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for {
			c.do()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

func (cs *coroutines) end() {
	for _, c := range *cs {
		c.stop()
	}
}

// newTask is one that has not begun.
func (w *World) newTask(do func()) *task {
	t := &task{coroutine: w.idle.take()}
	t.do = func() {
		do()
		t.isOver = true
	}
	return t
}

// step continues a task up to where it stops next.
func (w *World) step(t *task) {
	previous := w.current
	w.current = t
	t.next()
	w.current = previous
	if t.isOver {
		*w.idle = append(*w.idle, t.coroutine)
	}
}

// Sleep has a request that is being answered take a while. It returns false if nobody waits for the answer any more.
func (w *World) Sleep(d time.Duration) bool { return w.wait(d) }

// wait stops the task that runs for a time. It returns false if the task is not to continue.
func (w *World) wait(d time.Duration) bool {
	t := w.current
	t.resumeAt = w.now.Add(d)
	return t.yield(struct{}{})
}
