package testkit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// errKilled is what a killed operator gets for everything it sends or awaits.
var errKilled = errors.New("testkit: this operator was killed")

// Write is one write of a run, whichever of its operators sent it.
type Write struct {
	Request
	Number   int    // from 1, over all operators of the run
	Operator int    // from 1
	Part     string // the operator's name for what the request is part of, see Sweep.NameOf
	Fate     string // what the sweep did to it, or what the server answered
}

// Sort is what coverage is counted by: the operator's name for the write and the
// verb of the request, such as "apply Deployment: patch", or verb and resource if it
// has none.
func (w Write) Sort() string {
	if w.Part != "" {
		return w.Part + ": " + w.Verb
	}
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return w.Verb + " " + resource
}

// IsTooLate says whether the server refused the write because there is another version of
// the object, or one already.
func (w Write) IsTooLate() bool { return strings.HasPrefix(w.Fate, strconv.Itoa(http.StatusConflict)) }

// A plan is the one thing that goes wrong in a run: nothing if n is 0 and sort empty.
type plan struct {
	n     int
	sort  string // in place of n: the first write of this sort
	cut   string // before or after; otherwise the write meets the fault
	fault Fault
}

const (
	before     = "before"
	afterwards = "after"
)

// wire is the network between the operators of one run and the API server. It
// counts writes and carries out the plan.
type wire struct {
	nameOf func(context.Context) string // may be nil
	plan   plan
	delay  time.Duration        // by which watches are late
	late   func(Request) bool   // which watches are
	died   func(inst *instance) // called when an operator is killed
	wrote  func()               // called after the first write of each sort

	mu      sync.Mutex
	writes  []*Write
	stirred time.Time       // when a living operator last sent or received something
	pending int             // requests without an answer
	hit     *Write          // the write that the plan was about
	sorts   map[string]bool // of writes so far
	watched map[string]bool
}

// instance is one operator on the wire. Its life ends when it is killed or its
// run is over; then nothing gets through in either direction.
type instance struct {
	number int
	life   context.Context
	kill   context.CancelFunc
}

// wrap is for rest.Config.Wrap.
func (w *wire) wrap(inst *instance) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			return w.roundTrip(inst, next, req)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (w *wire) roundTrip(inst *instance, next http.RoundTripper, req *http.Request) (*http.Response, error) {
	if inst.life.Err() != nil {
		return nil, errKilled
	}
	w.stir(+1)
	defer w.stir(-1)
	r := parse(req)
	send := func() (*http.Response, error) { return w.send(inst, next, req, r) }
	if !r.isWrite() {
		return send()
	}

	var resp *http.Response
	err := w.deliver(req.Context(), inst, r, func() (string, error) {
		var err error
		resp, err = send() //nolint:bodyclose // closed below or by the caller
		return fate(resp, err), err
	}, func(f Fault) error {
		var err error
		resp, err = f.instead(req, r, send) //nolint:bodyclose // closed below or by the caller
		return err
	})
	if err != nil && resp != nil {
		_ = resp.Body.Close()
		resp = nil
	}
	return resp, err
}

// deliver counts a write and sends it, unless the plan is about this one.
func (w *wire) deliver(ctx context.Context, inst *instance, r Request, send func() (fate string, err error), meet func(Fault) error) error {
	write, hit := w.open(ctx, inst, r)
	if !hit {
		fate, err := send()
		w.done(write, fate)
		return err
	}
	switch w.plan.cut {
	case before:
		inst.kill()
		w.done(write, "not sent, killed")
	case afterwards:
		fate, _ := send()
		inst.kill()
		w.done(write, fate+", answer dropped, killed")
	default:
		err := meet(w.plan.fault)
		w.done(write, string(w.plan.fault))
		return err
	}
	w.died(inst)
	return errKilled
}

// send passes a request on for as long as the operator lives.
func (w *wire) send(inst *instance, next http.RoundTripper, req *http.Request, r Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	unbind := context.AfterFunc(inst.life, cancel)
	release := func() { unbind(); cancel() }

	resp, err := next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		release()
		if inst.life.Err() != nil {
			return nil, errKilled
		}
		return nil, err
	}
	if r.Verb == "watch" {
		w.mu.Lock()
		w.watched[r.Resource] = true
		w.mu.Unlock()
		if w.late != nil && w.late(r) {
			resp.Body = newLateBody(resp.Body, w.delay, inst.life.Done())
		}
	}
	resp.Body = &mortalBody{ReadCloser: resp.Body, life: inst.life, stir: w.stir, release: release}
	return resp, nil
}

func (w *wire) open(ctx context.Context, inst *instance, r Request) (write *Write, hit bool) {
	part := ""
	if w.nameOf != nil {
		part = w.nameOf(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	write = &Write{Request: r, Number: len(w.writes) + 1, Operator: inst.number, Part: part, Fate: "no answer yet"}
	w.writes = append(w.writes, write)
	hit = w.hit == nil && w.plan.isAbout(write)
	if hit {
		w.hit = write
	}
	return write, hit
}

func (p plan) isAbout(write *Write) bool {
	if p.sort != "" {
		return write.Sort() == p.sort
	}
	return write.Number == p.n
}

func (w *wire) done(write *Write, fate string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	write.Fate = fate
	sort := strings.Join([]string{write.Verb, write.Group, write.Resource, write.Subresource}, " ")
	if w.wrote != nil && !w.sorts[sort] {
		w.sorts[sort] = true
		w.wrote()
	}
}

// stir notes that something moves on the wire, and how many requests more or
// fewer are under way.
func (w *wire) stir(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending += more
	w.stirred = time.Now()
}

// silentFor is how long nothing has moved: no request was under way and no
// watch had news.
func (w *wire) silentFor() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending > 0 {
		return 0
	}
	return time.Since(w.stirred)
}

// history is a copy of the writes so far.
func (w *wire) history() []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Write, len(w.writes))
	for i, write := range w.writes {
		all[i] = *write
	}
	return all
}

func fate(resp *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return resp.Status
}

// mortalBody is an answer that delivers nothing once its operator is dead, not
// even what has arrived already.
type mortalBody struct {
	io.ReadCloser
	life    context.Context
	stir    func(int)
	release func()
}

func (b *mortalBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.life.Err() != nil {
		return 0, errKilled
	}
	b.stir(0)
	return n, err
}

func (b *mortalBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
