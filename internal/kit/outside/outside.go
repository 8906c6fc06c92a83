// Package outside is how operators change something on a server that is not the API
// server, such as a member of etcd. Tests get in between by the context, so that such
// a change can be cut, delayed or refused like any other write.
package outside

import (
	"context"
	"sync"
)

// Call is what is about to be done: "add", "members", "10.0.0.7".
type Call struct{ Verb, What, Name string }

// Way carries calls: it calls do, or does not, and returns what the operator gets.
type Way func(ctx context.Context, call Call, do func() error) error

type wayKey struct{}

// With has the calls of everything that is given the context take a way.
func With(ctx context.Context, way Way) context.Context {
	return context.WithValue(ctx, wayKey{}, way)
}

// Do makes a call: what do does must change nothing but by its one request.
func Do(ctx context.Context, call Call, do func() error) error {
	if way, ok := ctx.Value(wayKey{}).(Way); ok {
		return way(ctx, call, do)
	}
	defer leave(ctx)()
	return do()
}

// Each does n things at the same time, and waits until all are done. Where calls take a way,
// one is done after the other: tests that get in between have no goroutines.
func Each(ctx context.Context, n int, do func(ctx context.Context, i int)) {
	if _, ok := ctx.Value(wayKey{}).(Way); ok {
		for i := range n {
			do(ctx, i)
		}
		return
	}
	defer leave(ctx)()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(ctx, i) })
	}
	all.Wait()
}

type backgroundKey struct{}

// WithBackground has whatever is begun in the background with the context be started by a function: tests that
// get in between have no goroutines.
func WithBackground(ctx context.Context, start func(do func())) context.Context {
	return context.WithValue(ctx, backgroundKey{}, start)
}

// Go does something in the background, in no slot. It goes on when the context ends.
func Go(ctx context.Context, do func(ctx context.Context)) {
	ctx = context.WithValue(context.WithoutCancel(ctx), slotKey{}, nil)
	if start, ok := ctx.Value(backgroundKey{}).(func(do func())); ok {
		start(func() { do(ctx) })
		return
	}
	go do(ctx)
}
