package main

import (
	"context"
	"fmt"
	"time"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// completed is how many Ats really run in the measure writes.
const completed = 20

// writes counts what Ats cost the API server that run to their end on the
// node, from their creation on: with their output kept, and without.
func writes(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return nil, err
	}
	var figures []figure
	for _, kept := range []struct {
		what        string
		outputBytes int32
		reads       int
	}{
		{"output not kept", 0, 1},
		{"output kept", 256, 2},
	} {
		requests, err := b.runToTheEnd(ctx, kept.outputBytes)
		if err != nil {
			return nil, err
		}
		made, asked := count(requests, request.isWrite), count(requests, request.isRead)
		b.say("%s: %s", kept.what, summary(requests))
		line := func(what string, n, bound int) figure {
			return figure{
				measure: "requests per run", what: what + ", " + kept.what,
				value: fmt.Sprintf("%g", float64(n)/completed), bound: fmt.Sprintf("≤ %d", bound), missed: n > bound*completed,
			}
		}
		wrote := line("writes", made, 6)
		wrote.spread = fmt.Sprintf("%d runs: %s", completed, summary(requests))
		figures = append(figures, wrote, line("reads", asked, kept.reads))
	}
	return figures, nil
}

// runToTheEnd is what the operator asked of the API server for Ats that ran.
func (b *bench) runToTheEnd(ctx context.Context, outputBytes int32) ([]request, error) {
	if err := b.clear(ctx, workload); err != nil {
		return nil, err
	}
	tail, err := b.tailAudit()
	if err != nil {
		return nil, err
	}
	defer tail.close()
	ats, err := b.followAts(ctx, workload)
	if err != nil {
		return nil, err
	}
	defer ats.stop()
	due := time.Now().Add(20 * time.Second).Truncate(time.Second) // with time to be prepared
	if err := parallel(ctx, completed, func(i int) error {
		at := newAt(atName(i), due)
		at.Spec.OutputBytes = outputBytes
		return b.client.Create(ctx, at)
	}); err != nil {
		return nil, err
	}
	if _, err := ats.wait(ctx, 3*time.Minute, string(atv1alpha1.Done), completed); err != nil {
		return nil, err
	}
	if outputBytes > 0 {
		if at := ats.object(atName(0)).(*atv1alpha1.At); at.Status.Output != "hello\n" {
			return nil, fmt.Errorf("the output in status is %q", at.Status.Output)
		}
	}
	if err := b.quiet(ctx); err != nil { // what comes after the end counts too
		return nil, err
	}
	requests, err := tail.next()
	return by(atOperator, requests), err
}
