package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
)

// historyQuota is that of a database which its history would fill within seconds.
const historyQuota = 64 << 20

// overwriteKey overwrites one key of 4 KiB of three members at full speed, whose quota is small. No write may fail.
func overwriteKey(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-history"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	ec := newEtcd(namespace, "etcd", etcdMembers)
	ec.Spec.Pod = &v1beta2.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: fmt.Sprint(historyQuota)}}}
	if _, err := b.etcd(ctx, ec); err != nil {
		return nil, err
	}
	address, err := b.etcdOutside(ctx, ec)
	if err != nil {
		return nil, err
	}
	if err := b.quiet(ctx); err != nil {
		return nil, err
	}
	c, err := etcdClient(address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	writes, failed, gap, failure := 0, 0, time.Duration(0), error(nil)
	value, acked := string(make([]byte, 4<<10)), time.Now()
	for end := time.Now().Add(b.overwrite); time.Now().Before(end) && ctx.Err() == nil; {
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := c.Put(within, "key", value)
		cancel()
		if err != nil {
			failed, failure = failed+1, err
			continue
		}
		writes, gap, acked = writes+1, max(gap, time.Since(acked)), time.Now()
	}
	if failure != nil {
		b.say("a write failed: %v", failure)
	}
	what := fmt.Sprintf("one key of 4 KiB overwritten for %s, against a quota of %d MiB", b.overwrite, historyQuota>>20)
	return []figure{
		{
			measure: "etcd history", what: what + ": writes that failed", value: fmt.Sprint(failed),
			spread: fmt.Sprintf("of %d, %.0f a second", writes+failed, float64(writes)/b.overwrite.Seconds()), bound: "0", missed: failed > 0,
		},
		{measure: "etcd history", what: what + ": longest time without an acknowledged write", value: inMillis(gap)},
	}, remove(ctx)
}
