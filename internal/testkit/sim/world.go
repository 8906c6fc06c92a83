package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
)

// Story is what is played: a user, an operator, and the cluster around them.
type Story struct {
	API      *API
	Operator run.Operator
	// NameOf finds the operator's name of the write that a request is part of.
	NameOf func(context.Context) string
	// Resources are those of the cluster by group and version, for discovery.
	Resources map[string][]string
	// Begin, if set, is called with each new world, before anything happens in it.
	Begin func(w *World)

	// The user's part, as in testkit.Scenario; When, Before and Arrange may be nil.
	Before  func(ctx context.Context) error
	Arrange func(ctx context.Context) error
	// ArrangeFirst has the operators start after that.
	ArrangeFirst bool
	Steps        []Step
	Settled      func(ctx context.Context) error
	Check        func(ctx context.Context) error

	// Meddling is what others do meanwhile, at any time, and however often.
	Meddling []Step
	// MostOperators is how many may be at work at the same time; 3 if 0.
	MostOperators int
}

// Step is something that somebody does.
type Step struct {
	Name string
	When func(ctx context.Context) error
	Do   func(ctx context.Context) error
}

// Controller is a part of the cluster, such as a kubelet.
type Controller interface {
	Name() string
	// Act does at most one thing, and says whether it did. Otherwise it says when it may
	// have something to do although nothing has changed; zero for never.
	Act() (did bool, wake time.Time)
}

// changes are what a controller has seen of the server.
type changes struct {
	server *Server
	seen   int64 // the version at which there was nothing to do
}

// syncFirst has a controller do what there is to do for the first object of a type for which there is anything. It looks
// only where something has changed since there was nothing.
func syncFirst[T client.Object](c *changes, sync func(T) bool) (did bool, wake time.Time) {
	if c.seen == c.server.version {
		return false, time.Time{}
	}
	Each(c.server, func(obj T) { did = did || sync(obj) })
	if !did {
		c.seen = c.server.version
	}
	return did, time.Time{}
}

// Write is one write of an operator.
type Write struct {
	Request
	Operator int
	Part     string
	Fate     string
	// TooLate is true when the server refused it because there is another version of the
	// object, or one already.
	TooLate bool
}

// Sort is the operator's name of the write, and the verb of the request.
func (w Write) Sort() string {
	if w.Part != "" {
		return w.Part + ": " + w.Verb
	}
	return w.String()
}

// World is one history of a story.
type World struct {
	Server *Server
	// Controllers act besides the operator and the user.
	Controllers []Controller
	// Context, if set, adds to the context of the operators: what tells those who stand in for
	// some server outside which world a request is of.
	Context func(context.Context) context.Context
	// SeesNodes says that the operators have the right to see Nodes and PersistentVolumes.
	SeesNodes bool
	// Logs are what the containers of a pod have written, by its name.
	Logs map[string]string
	// Writes are those of the operators so far.
	Writes []Write

	story     *Story
	choices   *choices
	now       time.Time
	processes []*process
	slow      []slowness // of the controllers
	user      user
	current   *task // the one that runs
	idle      *coroutines
	polling   bool // a request is answered at once
	steps     int
	failure   error
	trace     func(text string)
	latest    time.Time
	jumped    time.Duration // by how much the clock has jumped
}

type slowness struct {
	seen  int64 // the server's version when there was nothing to do
	until time.Time
	wake  time.Time
	isDue bool
}

// began is when each history begins.
var began = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	// mostSteps is where a history stops being one and becomes a loop.
	mostSteps = 20000
	// patience is how long a story may take once nothing more goes wrong.
	patience = 365 * 24 * time.Hour
	// quiet is for how long an operator must write nothing at the end.
	quiet = 5 * time.Minute
	// mostAfterwards is how often it may write although the story has come to its end.
	mostAfterwards = 50
)

// History is what became of a world.
type History struct {
	// Err is what is wrong, nil if nothing is.
	Err        error
	Deviations Deviations
	Writes     []Write
	Steps      int
	Lasted     time.Duration
	// Answers has for each question, in their order, how many answers there were.
	Answers map[Question][]int
}

// Now is the time of the cluster's clock.
func (w *World) Now() time.Time { return w.now }

// Changed says that something has changed that is not on the server, such as what a container
// says: those who wait for news look again.
func (w *World) Changed() {
	for i := range w.slow {
		w.slow[i].seen = -1
	}
	w.user.asked = false
}

// Latest is the latest time that the clock has shown: it may be set back.
func (w *World) Latest() time.Time {
	if w.now.After(w.latest) {
		return w.now
	}
	return w.latest
}

// passed is how much time has passed, however often the clock was set.
func (w *World) passed() time.Duration { return w.now.Sub(began) - w.jumped }

// Fail ends the history.
func (w *World) Fail(err error) {
	if w.failure == nil && err != nil {
		w.failure = err
	}
}

// Tracef adds a line to the story in plain words, if somebody reads it.
func (w *World) Tracef(who, format string, args ...any) {
	if w.trace != nil {
		w.trace(w.now.Format("15:04:05.000") + " " + who + ": " + fmt.Sprintf(format, args...))
	}
}

// Client is a client of this world for somebody besides its operators.
func (w *World) Client(by string) *Client {
	return NewClient(w.Server, by, by, w.userVia, nil)
}

func play(story *Story, c *choices, idle *coroutines, trace func(string)) History {
	w := &World{story: story, choices: c, idle: idle, now: began, trace: trace, Logs: map[string]string{}}
	w.Server = NewServer(story.API, w.Now)
	w.user.world = w
	if story.Begin != nil {
		story.Begin(w)
	}
	if story.Before != nil {
		w.polling = true
		w.Fail(story.Before(context.Background()))
		w.polling = false
	}
	w.slow = make([]slowness, len(w.Controllers))
	most := story.MostOperators
	if most == 0 {
		most = 3
	}
	for story.ArrangeFirst && (!w.user.begun || w.user.task != nil) && w.failure == nil {
		if !w.act() {
			w.now, _ = w.nextWake()
		}
	}
	if story.ArrangeFirst {
		w.now = w.now.Add(testkit.ComesUp)
	}
	for range 1 + c.ask(Operators, most) {
		w.start()
	}
	w.run()
	for _, p := range w.processes {
		p.kill()
	}
	w.user.end()
	h := History{Err: w.failure, Deviations: c.made, Writes: w.Writes, Steps: w.steps, Lasted: w.now.Sub(began)}
	if c.record {
		h.Answers = map[Question][]int{}
		for i, q := range questions {
			h.Answers[q] = c.options[i]
		}
	}
	return h
}

// run lets one after the other act until all is done.
func (w *World) run() {
	settled := false
	var quietSince time.Time
	written, afterwards := 0, 0
	for w.failure == nil {
		if w.steps++; w.steps > mostSteps {
			w.Fail(fmt.Errorf("%d steps and no end: %w", mostSteps, errors.Join(w.user.missing(), errNoEnd)))
			return
		}
		if w.act() || w.failure != nil {
			continue
		}
		// Nobody has anything to do at this instant.
		next, more := w.nextWake()
		err := w.user.missing()
		switch {
		case err != nil && !more:
			w.Fail(fmt.Errorf("nothing more happens: %w", err))
			return
		case err != nil && w.now.Sub(began) > patience:
			w.Fail(fmt.Errorf("after %s: %w", patience, err))
			return
		case err != nil:
			settled = false
		case !settled || len(w.Writes) != written:
			if settled {
				if afterwards++; afterwards > mostAfterwards {
					w.Fail(fmt.Errorf("the operator goes on writing after the end: %s", w.Writes[len(w.Writes)-1].Sort()))
					return
				}
			}
			settled, written, quietSince = true, len(w.Writes), w.now
		}
		if settled && (!more || next.Sub(quietSince) > quiet) && !w.someoneIsSlow() {
			break
		}
		w.now = next
	}
	if w.failure == nil && w.story.Check != nil {
		w.polling = true
		w.Fail(w.story.Check(context.Background()))
	}
}

var errNoEnd = errors.New("it does not come to rest")

// act has somebody act, if anybody can.
func (w *World) act() bool {
	if m := w.choices.ask(Meddling, 1+len(w.story.Meddling)+len(jumps)); m > 0 {
		w.meddle(m - 1)
		return true
	}
	var ready [24]func()
	n := 0
	add := func(f func()) {
		if n < len(ready) {
			ready[n] = f
			n++
		}
	}
	for _, p := range w.processes {
		if p.isAlive {
			p.ready(add)
		} else if !p.isReplaced && !w.now.Before(p.restartAt) {
			add(func() { p.isReplaced = true; w.start() })
		}
	}
	for i, c := range w.Controllers {
		if w.isDue(i) {
			add(func() { w.control(i, c) })
		}
	}
	if w.user.isReady() {
		add(w.user.act)
	}
	if n == 0 {
		return false
	}
	turn := w.choices.ask(Turn, n)
	ready[(w.steps+turn)%n]()
	return true
}

// jumps are those of the clock.
var jumps = []time.Duration{time.Minute, 2 * time.Hour, -10 * time.Second}

// meddle has somebody interfere.
func (w *World) meddle(what int) {
	if what < len(jumps) {
		jump := jumps[what]
		w.Tracef("clock", "jumps by %s", jump)
		w.latest = w.Latest()
		w.now = w.now.Add(jump)
		w.jumped += jump
		return
	}
	step := w.story.Meddling[what-len(jumps)]
	w.polling = true
	defer func() { w.polling = false }()
	ctx := context.Background()
	if step.When != nil && step.When(ctx) != nil {
		return
	}
	if err := client.IgnoreNotFound(step.Do(ctx)); err != nil {
		w.Tracef("somebody", "%s: %v", step.Name, err)
		return
	}
	w.Tracef("somebody", "%s", step.Name)
}

// delays are how late somebody may be.
var delays = []time.Duration{0, 200 * time.Millisecond, 3 * time.Second, 20 * time.Second}

// isDue says whether a controller may have something to do.
func (w *World) isDue(i int) bool {
	s := &w.slow[i]
	changed := s.seen != w.Server.version
	if !s.isDue && (changed || !s.wake.IsZero() && !w.now.Before(s.wake)) {
		s.isDue = true
		if d := delays[w.choices.ask(Delay, len(delays))]; d > 0 {
			w.Tracef(w.Controllers[i].Name(), "is slow, by %s", d)
			s.until = w.now.Add(d)
		}
	}
	return s.isDue && !w.now.Before(s.until)
}

func (w *World) control(i int, c Controller) {
	s := &w.slow[i]
	version := w.Server.version
	did, wake := c.Act()
	s.wake = wake
	if !did {
		s.isDue, s.seen = false, version
	}
}

// nextWake is when somebody may have something to do.
func (w *World) nextWake() (next time.Time, ok bool) {
	add := func(t time.Time) {
		if t.After(w.now) && (!ok || t.Before(next)) {
			next, ok = t, true
		}
	}
	for i := range w.slow {
		if w.slow[i].isDue {
			add(w.slow[i].until)
		} else {
			add(w.slow[i].wake)
		}
	}
	for _, p := range w.processes {
		p.wakes(add)
	}
	add(w.user.until)
	if w.user.task != nil {
		add(w.user.task.resumeAt)
	}
	return next, ok
}

// someoneIsSlow says whether somebody is only late.
func (w *World) someoneIsSlow() bool {
	for i := range w.slow {
		if w.slow[i].isDue {
			return true
		}
	}
	for _, p := range w.processes {
		if p.isSlow() {
			return true
		}
	}
	return false
}

// tick lets a request take its time. A server that is flooded is slow: two operators of
// which one is late may undo each other's writes for as long as that.
func (w *World) tick() {
	d := time.Millisecond
	if len(w.Writes) > flood {
		d = 100 * time.Millisecond
	}
	w.now = w.now.Add(d)
}

// flood is more writes than a history has that goes well.
const flood = 300
