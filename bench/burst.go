package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
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

	var creates, run, runBroken []time.Duration
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
		b.say("round %d: bare client %s; Ats may run %s; with broken ones %s", round+1, inSeconds(took), inSeconds(sound), inSeconds(broken))
		creates, run, runBroken = append(creates, took), append(run, sound), append(runBroken, broken)
	}
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return nil, err
	}

	rates := func(measure, what string, d []time.Duration) figure {
		return figure{
			measure: measure, what: what, value: fmt.Sprintf("%.0f pods/s", rate(b.burst, median(d))),
			spread: "seconds: " + spread(d, func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }),
		}
	}
	against := func(measure, what string, d, than []time.Duration, bound float64) figure {
		return ratio(measure, what, median(d).Seconds()/median(than).Seconds(), bound, quotients(d, than))
	}
	sound, broken := fmt.Sprintf("burst of %d", b.burst), fmt.Sprintf("burst, %d broken", brokenAts)
	return []figure{
		rates("bare client", fmt.Sprintf("%d pods, %d workers", b.burst, workers), creates),
		rates(sound, "due until the last pod may run", run),
		against(sound, "may run, against the bare client", run, creates, 1.5),
		against(broken, "may run, against the bare client", runBroken, creates, 1.5),
		unbounded(against(broken, "may run, against without them", runBroken, run, 0)),
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

// burstOfAts lets n Ats become due in the same second, and broken ones besides, and returns how long it takes from then
// on until the last one may run.
func (b *bench) burstOfAts(ctx context.Context, n, broken int) (time.Duration, error) {
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return 0, err
	}
	// Time to create them, and for their pods, which are made in the last quarter of it.
	due := time.Now().Add(60*time.Second + time.Duration(n)*20*time.Millisecond).Truncate(time.Second)
	trouble, err := b.createBroken(ctx, broken, due)
	if err != nil {
		return 0, err
	}
	if err := b.pendingAts(ctx, n, func(int) time.Time { return due }, unscheduled); err != nil {
		return 0, err
	}
	if err := b.prepared(ctx, n, due); err != nil {
		return 0, err
	}
	runtime.GC() // now, rather than while measuring
	tail, err := b.tailAudit()
	if err != nil {
		return 0, err
	}
	defer tail.close()
	opened, err := tail.answered(ctx, 5*time.Minute, openGate, atPrefix, n)
	if err != nil {
		return 0, err
	}
	for name, r := range opened {
		if r.RequestReceivedTimestamp.Before(due) {
			return 0, fmt.Errorf("%s was early: it was due at %s and let run at %s", name, due, r.RequestReceivedTimestamp)
		}
	}
	if err := b.allMayRun(ctx, n); err != nil {
		return 0, err
	}
	b.say("  %s", summary(by(atOperator, tail.seen)))
	var after []time.Duration
	for _, r := range opened {
		after = append(after, r.StageTimestamp.Sub(due))
	}
	b.say("  may run after %s (p50), %s (p90), %s (p99)", inMillis(percentile(after, 50)), inMillis(percentile(after, 90)), inMillis(percentile(after, 99)))
	return last(opened).Sub(due), trouble.check(ctx, b)
}

// prepared waits until n Ats are, which must be some seconds before they are due.
func (b *bench) prepared(ctx context.Context, n int, due time.Time) error {
	return eventually(ctx, time.Until(due)-3*time.Second, fmt.Sprintf("%d Ats are prepared before they are due", n), func() (bool, error) {
		var ats atv1alpha1.AtList
		err := b.client.List(ctx, &ats, client.InNamespace(workload))
		count := 0
		for _, at := range ats.Items {
			if strings.HasPrefix(at.Name, atPrefix) && at.Status.Reason == "Prepared" {
				count++
			}
		}
		return count == n, err
	})
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
