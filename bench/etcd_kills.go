package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/test/e2e/etcd/load"
)

// kills is how often a member is killed in each way, and killPause for how long the cluster is left alone in between.
const (
	kills     = 20
	killPause = 2 * time.Second
)

// killed says which member is killed.
type killed struct {
	what   string
	leader bool
}

// killMembers kills members (SIGKILL) under a load of writes, and takes the longest time in which no client's write was
// acknowledged.
func killMembers(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-kills"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	drawn := chart{
		Title: fmt.Sprintf("For how long no write was acknowledged, %d kills each", kills),
		X:     axis{Label: "longest time between two acknowledged writes of any client", Unit: "s", Log: true},
		Y:     axis{Label: "kills after which it was not longer", Unit: "percentunit"},
	}
	var figures []figure
	for i, which := range []killed{{"the leader", true}, {"another member", false}} {
		gaps, history, err := b.killUnderLoad(ctx, namespace, fmt.Sprintf("etcd-%d", i), which)
		if err != nil {
			return nil, fmt.Errorf("%s is killed: %w", which.what, err)
		}
		report := load.NewReport(history)
		drawn.Series = append(drawn.Series, series{Name: which.what, Points: distribution(gaps)})
		figures = append(figures, figure{
			measure: "etcd kills", what: fmt.Sprintf("%s is killed, %d times: longest time without an acknowledged write", which.what, kills),
			value: inMillis(median(gaps)),
			spread: fmt.Sprintf("%s; %d writes, all there afterwards, and %d without an answer",
				spread(gaps, inMillis), report.Acknowledged(), report.Unknown()),
		})
	}
	if err := b.draw("etcd-kills", drawn); err != nil {
		return nil, err
	}
	return figures, remove(ctx)
}

// killUnderLoad kills members of a new cluster, and has the gap of each kill and the history of the load, in which
// nothing is lost.
func (b *bench) killUnderLoad(ctx context.Context, namespace, name string, which killed) (gaps []time.Duration, history load.History, err error) {
	ec := newEtcd(namespace, name, etcdMembers)
	ec.Spec.Pod = smallVolumes()
	if _, err := b.etcd(ctx, ec); err != nil {
		return nil, history, err
	}
	var spans [][2]time.Time
	history, err = b.underLoad(ctx, ec, func() error {
		for range kills {
			pods, err := b.etcdPods(ctx, namespace, name)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(ec.Status.Members.Ready, func(member string) bool { return (member == ec.Status.Leader) == which.leader })
			if at < 0 {
				return fmt.Errorf("of the members %q, with %q as the leader, none is to be killed", ec.Status.Members.Ready, ec.Status.Leader)
			}
			victim := pods[ec.Status.Members.Ready[at]]
			began := time.Now()
			if err := signalProcess(victim, "etcd", syscall.SIGKILL); err != nil {
				return err
			}
			// Another pod begins at once: in this one the kubelet would wait the longer, the more often it was killed.
			if err := b.client.Delete(ctx, victim, client.GracePeriodSeconds(0)); err != nil {
				return err
			}
			whole, err := b.etcdWhole(ctx, ec, func(pods map[string]*corev1.Pod) bool {
				now := pods[victim.Name]
				return now != nil && now.UID != victim.UID
			})
			if err != nil {
				return err
			}
			if err := sleep(ctx, killPause); err != nil {
				return err
			}
			spans = append(spans, [2]time.Time{began, whole})
		}
		return nil
	})
	if err != nil {
		return nil, history, err
	}
	report := load.NewReport(history)
	for _, span := range spans {
		gaps = append(gaps, report.Gap(span[0], span[1]))
	}
	return gaps, history, b.endEtcd(ctx, ec)
}
