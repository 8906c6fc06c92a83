package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// brokenAts is how many broken Ats come on top in the second kind of burst.
const brokenAts = 100

// burst measures many Ats that are due in the same second against a bare client
// that creates as many pods, and again with broken Ats among them.
func burst(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.prepareBurst(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = b.cordon(context.WithoutCancel(ctx), false) }()
	bare, err := b.newBarePods(ctx)
	if err != nil {
		return nil, err
	}
	b.say("a warm-up, not counted")
	if _, err := bare.create(ctx, b, b.burst/2); err != nil {
		return nil, err
	}
	if _, err := b.burstOfAts(ctx, b.burst/2, 0); err != nil {
		return nil, err
	}

	var creates, exist, run, existBroken, runBroken []time.Duration
	for round := range b.rounds {
		took, err := bare.create(ctx, b, b.burst)
		if err != nil {
			return nil, err
		}
		sound, err := b.burstOfAts(ctx, b.burst, 0)
		if err != nil {
			return nil, err
		}
		broken, err := b.burstOfAts(ctx, b.burst, brokenAts)
		if err != nil {
			return nil, err
		}
		b.say("round %d: bare client %s; Ats exist %s, may run %s; with broken ones exist %s, may run %s", round+1, inSeconds(took),
			inSeconds(sound.exist), inSeconds(sound.run), inSeconds(broken.exist), inSeconds(broken.run))
		creates = append(creates, took)
		exist, run = append(exist, sound.exist), append(run, sound.run)
		existBroken, runBroken = append(existBroken, broken.exist), append(runBroken, broken.run)
	}
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return nil, err
	}

	rates := func(d []time.Duration) figure {
		return figure{
			value:  fmt.Sprintf("%.0f pods/s", rate(b.burst, median(d))),
			spread: "seconds: " + spread(d, func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }),
		}
	}
	named := func(f figure, measure, what string) figure {
		f.measure, f.what = measure, what
		return f
	}
	against := func(measure, what string, d []time.Duration, bound float64) figure {
		return ratio(measure, what, median(d).Seconds()/median(creates).Seconds(), bound, quotients(d, creates))
	}
	sound, broken := fmt.Sprintf("burst of %d", b.burst), fmt.Sprintf("burst, %d broken", brokenAts)
	return []figure{
		named(rates(creates), "bare client", fmt.Sprintf("%d pods, %d workers", b.burst, workers)),
		named(rates(exist), sound, "due until the last pod exists"),
		named(rates(run), sound, "due until the last pod may run"),
		against(sound, "exists, against the bare client", exist, 1.5),
		against(sound, "may run, against the bare client", run, 4),
		against(broken, "exists, against the bare client", existBroken, 1.5),
		against(broken, "may run, against the bare client", runBroken, 4),
		unbounded(ratio(broken, "exists, against without them", median(existBroken).Seconds()/median(exist).Seconds(), 0, quotients(existBroken, exist))),
		unbounded(ratio(broken, "may run, against without them", median(runBroken).Seconds()/median(run).Seconds(), 0, quotients(runBroken, run))),
	}, nil
}

func unbounded(f figure) figure {
	f.bound, f.missed = "", false
	return f
}

// prepareBurst makes the namespaces, and closes the node.
func (b *bench) prepareBurst(ctx context.Context) error {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return err
	}
	if err := b.prepareBroken(ctx); err != nil {
		return err
	}
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return err
	}
	return b.cordon(ctx, true)
}

// burstTimes are counted from the moment that all Ats are due.
type burstTimes struct {
	exist time.Duration // until the last pod exists
	run   time.Duration // until the last pod may run
}

// burstOfAts lets n Ats become due in the same second, and broken ones besides.
func (b *bench) burstOfAts(ctx context.Context, n, broken int) (burstTimes, error) {
	var times burstTimes
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return times, err
	}
	// Time to create them, and for their first status.
	due := time.Now().Add(20*time.Second + time.Duration(n)*10*time.Millisecond).Truncate(time.Second)
	trouble, err := b.createBroken(ctx, broken, due)
	if err != nil {
		return times, err
	}
	if err := b.pendingAts(ctx, n, func(int) time.Time { return due }, unscheduled); err != nil {
		return times, err
	}
	if left := time.Until(due); left < 3*time.Second {
		return times, fmt.Errorf("the Ats were pending only %s before they were due: the machine is too busy", left)
	}
	runtime.GC() // now, rather than while measuring
	tail, err := b.tailAudit()
	if err != nil {
		return times, err
	}
	defer tail.close()

	opened, err := tail.answered(ctx, 5*time.Minute, openGate, atPrefix, n)
	if err != nil {
		return times, err
	}
	created, err := tail.answered(ctx, 0, createPod, atPrefix, n)
	if err != nil {
		return times, err
	}
	for name, r := range opened {
		if r.RequestReceivedTimestamp.Before(due) {
			return times, fmt.Errorf("%s was early: it was due at %s and let run at %s", name, due, r.RequestReceivedTimestamp)
		}
	}
	times = burstTimes{exist: last(created).Sub(due), run: last(opened).Sub(due)}
	if err := b.allMayRun(ctx, n); err != nil {
		return times, err
	}
	b.say("  %s", summary(by(atOperator, tail.seen)))
	return times, trouble.check(ctx, b)
}

// The requests that the times are taken from: the one that makes a pod, and the
// one that takes its scheduling gate away. They count when they are answered.
const (
	createPod = "create pods"
	openGate  = "update pods"
)

// allMayRun checks that the requests did what they are taken for.
func (b *bench) allMayRun(ctx context.Context, n int) error {
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(workload)); err != nil {
		return err
	}
	free := 0
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, atPrefix) && len(pod.Spec.SchedulingGates) == 0 {
			free++
		}
	}
	if free != n {
		return fmt.Errorf("%d pods may run, not %d", free, n)
	}
	return nil
}
