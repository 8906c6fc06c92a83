package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitingAfter is how long clusters have waited when it is looked what they cost, once at first and once then.
const waitingAfter = 5 * time.Minute

// waitingEtcds counts what clusters cost whose pods fit no node: for as long as nobody helps them.
func waitingEtcds(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-waiting"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if err := parallel(ctx, b.etcds, func(i int) error {
		return b.client.Create(ctx, withoutNode(newEtcd(namespace, fmt.Sprintf("etcd-%03d", i), 3)))
	}); err != nil {
		return nil, err
	}
	if err := eventually(ctx, 5*time.Minute, "the pods of all clusters", func() (bool, error) {
		var pods corev1.PodList
		err := b.client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) >= 3*b.etcds, err
	}); err != nil {
		return nil, err
	}
	began := time.Now()
	var figures []figure
	for _, when := range []time.Duration{0, waitingAfter} {
		if err := sleep(ctx, time.Until(began.Add(when))); err != nil {
			return nil, err
		}
		before, err := b.managerStats(ctx, etcdOperator)
		if err != nil {
			return nil, err
		}
		requests, made, err := b.requestsOf(ctx, etcdOperator)
		if err != nil {
			return nil, err
		}
		after, err := b.managerStats(ctx, etcdOperator)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("%d clusters of three that fit no node, ", b.etcds)
		if when > 0 {
			what += fmt.Sprintf("after %s: ", when)
		} else {
			what += "at first: "
		}
		figures = append(figures,
			figure{measure: "etcd waiting", what: what + "requests within " + idleTime.String(), value: fmt.Sprint(made), spread: "all: " + summary(requests)},
			figure{measure: "etcd waiting", what: what + "the manager's part of a processor", value: fmt.Sprintf("%.1f %%", 100*after.processors(before))})
	}
	return figures, remove(ctx)
}
