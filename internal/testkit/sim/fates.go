package sim

import (
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The fates of a request. That of a read is one of the first few.
const (
	answered = iota
	killedBefore
	serverError
	timesOut
	killedAfter
	answerLost
	conflicts
	tooBusy
	fates
)

const readFates = timesOut + 1

var errKilled = errors.New("this operator was killed")

// via carries the requests of an operator, and decides what becomes of them.
func (p *process) via(ctx context.Context, r Request, do func() error) error {
	w := p.world
	if !p.isAlive {
		return errKilled
	}
	if d := w.choices.ask(Pause, len(delays)+1); d > 0 && w.current != nil {
		pause := delays[d-1]
		w.Tracef(p.name, "stops for %s before it sends %s", pause, r)
		if !w.wait(pause) || !p.isAlive {
			return errKilled
		}
	}
	w.tick()
	if !r.IsWrite() {
		switch w.choices.ask(Fate, readFates) {
		case killedBefore:
			w.Tracef(p.name, "is killed before it reads: %s", r)
			p.kill()
			return errKilled
		case serverError:
			w.Tracef(p.name, "%s: the server answers 500", r)
			return apierrors.NewInternalError(errors.New("the simulation's server error"))
		case timesOut:
			w.Tracef(p.name, "%s: no answer for 10 s", r)
			return p.timesOut()
		}
		return do()
	}
	part := ""
	if w.story.NameOf != nil {
		part = w.story.NameOf(ctx)
	}
	fate := w.choices.ask(Fate, fates)
	n := len(w.Writes)
	w.Writes = append(w.Writes, Write{Request: r, Operator: p.number, Part: part})
	fell, err := p.meet(fate, r, do)
	w.Writes[n].Fate = fell
	if err != nil && fell == "" {
		w.Writes[n].Fate, w.Writes[n].TooLate = err.Error(), apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	}
	if w.trace != nil {
		w.Tracef(p.name, "%s [%s] %s", r, part, w.Writes[n].Fate)
	}
	return err
}

// meet has a write meet its fate.
func (p *process) meet(fate int, r Request, do func() error) (fell string, err error) {
	var resource schema.GroupResource
	if r.Kind != nil {
		resource = r.Kind.groupResource()
	}
	switch fate {
	case killedBefore:
		p.kill()
		return "is not sent: the operator is killed before it", errKilled
	case killedAfter:
		_ = do() // nobody hears the answer
		p.kill()
		return "the operator is killed after it", errKilled
	case answerLost:
		_ = do()
		return "the answer is lost", io.ErrUnexpectedEOF
	case conflicts:
		return "is answered 409, and not done", apierrors.NewConflict(resource, r.Name, errors.New("the simulation's conflict"))
	case tooBusy:
		return "is answered 429, and not done", apierrors.NewTooManyRequestsError("the simulation's overload")
	case serverError:
		return "is answered 500, and not done", apierrors.NewInternalError(errors.New("the simulation's server error"))
	case timesOut:
		return "gets no answer for 10 s, and is not done", p.timesOut()
	}
	return "", do()
}

func (p *process) timesOut() error {
	if p.world.current != nil && !p.world.wait(10*time.Second) || !p.isAlive {
		return errKilled
	}
	return context.DeadlineExceeded
}

// kill ends an operator: nothing that it sends or awaits gets through any more.
func (p *process) kill() {
	if !p.isAlive {
		return
	}
	p.isAlive = false
	p.restartAt = p.world.now.Add(deadFor[p.world.choices.ask(Restart, len(deadFor))])
	for _, c := range p.controllers {
		for _, a := range c.active {
			if a.task != p.world.current && !a.isOver {
				a.stop()
			}
		}
		c.active = nil
	}
	for _, t := range p.background {
		if t != p.world.current && !t.isOver {
			t.stop()
		}
	}
	p.background, p.informers = nil, nil
}

// deadFor is how long an operator stays dead.
var deadFor = []time.Duration{0, time.Second, 40 * time.Second, 30 * time.Minute}

// lateness is how late a watch may be. The last one is cut besides.
var lateness = []time.Duration{0, 300 * time.Millisecond, 2 * time.Second, 15 * time.Second, time.Second}
