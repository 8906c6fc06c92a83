package store

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// errHangs is the cause of what is cancelled because no byte has moved for too long.
var errHangs = errors.New("no byte of progress")

// watch knows when a byte was last moved to or from the storage.
type watch struct {
	timeout time.Duration
	start   time.Time
	moved   atomic.Int64 // since start
	pauses  atomic.Int32 // how many wait for somebody who is not the storage
}

func newWatch(timeout time.Duration) *watch {
	return &watch{timeout: timeout, start: time.Now()}
}

func (w *watch) touch() { w.moved.Store(int64(time.Since(w.start))) }

// pause stops the clock until what it returns is called.
func (w *watch) pause() func() {
	w.pauses.Add(1)
	return func() {
		w.touch()
		w.pauses.Add(-1)
	}
}

// silent is for how long no byte has moved since the time.
func (w *watch) silent(since time.Time) time.Duration {
	if w.pauses.Load() > 0 {
		return 0
	}
	return min(time.Since(since), time.Since(w.start)-time.Duration(w.moved.Load()))
}

// tick is how often it is looked at.
func (w *watch) tick() time.Duration { return min(max(w.timeout/10, time.Millisecond), time.Second) }

// grace is how long somebody who was cancelled may take to clean up.
func (w *watch) grace() time.Duration { return min(w.timeout, 10*time.Second) + w.tick() }

// do calls f, and cancels its context if no byte moves for the timeout. If f does not return even
// then, as in a system call on a volume that hangs, it is left behind.
func (w *watch) do(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()

	start, ticker := time.Now(), time.NewTicker(w.tick())
	defer ticker.Stop()
	var late <-chan time.Time
	stopped := ctx.Done()
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		case <-stopped:
			stopped, late = nil, time.After(w.grace())
		case <-ticker.C:
			if w.silent(start) > w.timeout {
				cancel(errHangs)
			}
		case <-late:
			return context.Cause(ctx)
		}
	}
}

// conn is a connection that tells of bytes.
type conn struct {
	net.Conn
	watch *watch
}

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.watch.touch()
	}
	return n, err
}

func (c conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.watch.touch()
	}
	return n, err
}

// source is what is stored. While it is waited for, the storage is not blamed.
type source struct {
	r     io.Reader
	watch *watch
	n     atomic.Int64
	err   atomic.Pointer[error] // that of r, if not EOF
}

func (s *source) Read(p []byte) (int, error) {
	resume := s.watch.pause()
	n, err := s.r.Read(p)
	resume()
	s.n.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		s.err.Store(&err)
	}
	return n, err
}

// failure is the error of r, if that is why it ended.
func (s *source) failure() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

const (
	pumpBuffer  = 256 << 10
	pumpBuffers = 3
)

// pump reads ahead of who reads from it, so that a read that hangs is seen as such, whatever it
// hangs in.
type pump struct {
	watch  *watch
	cancel context.CancelCauseFunc
	full   chan []byte // closed at the end, after err is set
	empty  chan []byte
	err    error
	rest   []byte // of buffer
	buffer []byte
	failed error
}

func newPump(ctx context.Context, cancel context.CancelCauseFunc, w *watch, r io.ReadCloser) *pump {
	p := &pump{watch: w, cancel: cancel, full: make(chan []byte, pumpBuffers), empty: make(chan []byte, pumpBuffers)}
	for range pumpBuffers {
		p.empty <- make([]byte, pumpBuffer)
	}
	go p.run(ctx, r)
	return p
}

func (p *pump) run(ctx context.Context, r io.ReadCloser) {
	defer close(p.full)
	defer func() { _ = r.Close() }()
	for {
		var b []byte
		select {
		case b = <-p.empty:
		case <-ctx.Done():
			p.err = context.Cause(ctx)
			return
		}
		n, err := r.Read(b[:pumpBuffer])
		p.watch.touch()
		p.full <- b[:n]
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			p.err = err
			return
		}
	}
}

func (p *pump) Read(to []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.failed != nil {
			return 0, p.failed
		}
		if err := p.next(); err != nil {
			p.failed = err
			return 0, err
		}
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// next waits for the next buffer that is full.
func (p *pump) next() error {
	if p.buffer != nil {
		p.empty <- p.buffer
		p.buffer = nil
	}
	start, ticker := time.Now(), time.NewTicker(p.watch.tick())
	defer ticker.Stop()
	for {
		select {
		case b, ok := <-p.full:
			if !ok {
				return p.err
			}
			p.buffer, p.rest = b, b
			return nil
		case <-ticker.C:
			if p.watch.silent(start) > p.watch.timeout {
				p.cancel(errHangs)
				return errHangs
			}
		}
	}
}

func (p *pump) Close() error {
	p.cancel(context.Canceled)
	return nil
}
