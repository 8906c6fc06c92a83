package main

import (
	"context"
	"fmt"
	"time"
)

const idleTime = time.Minute

// idle counts what many Ats cost that wait for a time far off.
func idle(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return nil, err
	}
	if err := b.clear(ctx, workload); err != nil {
		return nil, err
	}
	if err := b.pendingAts(ctx, b.idle, func(int) time.Time { return farOff }); err != nil {
		return nil, err
	}
	if err := b.quiet(ctx); err != nil {
		return nil, err
	}
	requests, made, err := b.requestsOf(ctx, atOperator)
	if err != nil {
		return nil, err
	}
	figures := []figure{{
		measure: fmt.Sprintf("%d idle Ats", b.idle), what: "requests within " + idleTime.String(),
		value: fmt.Sprint(made), spread: "all: " + summary(requests), bound: "0", missed: made > 0,
	}}
	return figures, b.clear(ctx, workload)
}

// requestsOf are the requests of an operator within idleTime from now, and how many of them are no leases and
// watches.
func (b *bench) requestsOf(ctx context.Context, o operator) (all []request, made int, err error) {
	tail, err := b.tailAudit()
	if err != nil {
		return nil, 0, err
	}
	defer tail.close()
	if err := sleep(ctx, idleTime); err != nil {
		return nil, 0, err
	}
	if all, err = tail.next(); err != nil {
		return nil, 0, err
	}
	all = by(o, all)
	return all, count(all, func(r request) bool { return r.ObjectRef.Resource != "leases" && r.Verb != "watch" }), nil
}
