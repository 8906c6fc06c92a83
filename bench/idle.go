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
	tail, err := b.tailAudit()
	if err != nil {
		return nil, err
	}
	defer tail.close()
	if err := sleep(ctx, idleTime); err != nil {
		return nil, err
	}
	requests, err := tail.next()
	if err != nil {
		return nil, err
	}
	requests = by(atOperator, requests)
	made := count(requests, func(r request) bool { return r.ObjectRef.Resource != "leases" && r.Verb != "watch" })
	figures := []figure{{
		measure: fmt.Sprintf("%d idle Ats", b.idle), what: "requests within " + idleTime.String(),
		value: fmt.Sprint(made), spread: "all: " + summary(requests), bound: "0", missed: made > 0,
	}}
	return figures, b.clear(ctx, workload)
}
