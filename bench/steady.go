package main

import (
	"context"
	"fmt"
	"time"
)

const (
	steadyRate     = 20 // Ats a second
	steadySeconds  = 30
	steadyRounds   = 3
	latenessBound  = 100 * time.Millisecond
	steadyHeadroom = 30 * time.Second // to create them
)

// steady measures how late single Ats are, when one is due every 50 ms.
func steady(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return nil, err
	}
	if err := b.cordon(ctx, true); err != nil {
		return nil, err
	}
	defer func() { _ = b.cordon(context.WithoutCancel(ctx), false) }()

	var p50, p99, most, all []time.Duration
	early := 0
	for round := range min(steadyRounds, b.rounds) {
		late, tooSoon, err := b.steadyRound(ctx)
		if err != nil {
			return nil, err
		}
		p50, p99, most = append(p50, percentile(late, 50)), append(p99, percentile(late, 99)), append(most, percentile(late, 100))
		early += tooSoon
		all = append(all, late...)
		b.say("round %d: p50 %s, p99 %s, max %s, %d early", round+1, inMillis(p50[round]), inMillis(p99[round]), inMillis(most[round]), tooSoon)
	}
	if err := b.draw("steady", lateness(all)); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("steady, %d/s", steadyRate)
	line := func(name string, d []time.Duration) figure {
		return figure{measure: what, what: "due until it may run, " + name, value: inMillis(median(d)), spread: "rounds: " + spread(d, inMillis)}
	}
	bounded := line("p99", p99)
	bounded.bound, bounded.missed = "≤ "+inMillis(latenessBound), median(p99) > latenessBound
	return []figure{
		line("p50", p50), bounded, line("max", most),
		{measure: what, what: "early", value: fmt.Sprint(early), spread: fmt.Sprintf("of %d", len(p50)*steadyRate*steadySeconds), bound: "0", missed: early > 0},
	}, b.clear(ctx, workload)
}

// lateness is the part of the Ats that were at most so late.
func lateness(late []time.Duration) chart {
	return chart{
		Title:  fmt.Sprintf("How late %d Ats were, %d a second", len(late), steadyRate),
		X:      axis{Label: "from due until it may run", Unit: "s", Log: true, Mark: latenessBound.Seconds()},
		Y:      axis{Label: "Ats that were not later", Unit: "percentunit"},
		Series: []series{{Name: "Ats; dashed: the bound of their 99th percentile", Points: distribution(late)}},
	}
}

// steadyRound is how late each At was, and how many were early.
func (b *bench) steadyRound(ctx context.Context) (late []time.Duration, early int, err error) {
	const n = steadyRate * steadySeconds
	if err := b.clear(ctx, workload); err != nil {
		return nil, 0, err
	}
	start := time.Now().Add(steadyHeadroom).Truncate(time.Second)
	dues := map[string]time.Time{}
	for i := range n {
		dues[atName(i)] = start.Add(time.Duration(i) * time.Second / steadyRate)
	}
	if err := b.pendingAts(ctx, n, func(i int) time.Time { return dues[atName(i)] }); err != nil {
		return nil, 0, err
	}
	tail, err := b.tailAudit()
	if err != nil {
		return nil, 0, err
	}
	defer tail.close()
	if time.Until(start) < 3*time.Second {
		return nil, 0, fmt.Errorf("the Ats were not pending in time: the machine is too busy")
	}
	opened, err := tail.answered(ctx, 5*time.Minute, openGate, atPrefix, n)
	if err != nil {
		return nil, 0, err
	}
	for name, r := range opened {
		late = append(late, r.StageTimestamp.Sub(dues[name]))
		if r.RequestReceivedTimestamp.Before(dues[name]) {
			early++
		}
	}
	return late, early, b.allMayRun(ctx, n)
}
