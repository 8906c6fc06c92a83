package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	memoryBound  = 4096 // bytes for each At
	restartBound = 30 * time.Second
	// The kubelet looks every 10 s or so, and Go collects at least every two
	// minutes and hands memory back little by little.
	memoryInterval = 15 * time.Second
	memoryRounds   = 10
)

// scale measures what very many Ats cost the manager that wait for a time far
// off: memory, and how long it takes until a new manager is at work.
func scale(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, workload, nil); err != nil {
		return nil, err
	}
	if err := b.clear(ctx, workload); err != nil {
		return nil, err
	}
	if err := b.command(ctx, "kubectl", "-n", atOperator.namespace(), "rollout", "restart", "deployment/"+atOperator.account()); err != nil {
		return nil, err
	}
	if err := b.ready(ctx, atOperator); err != nil {
		return nil, err
	}
	empty, err := b.settledMemory(ctx)
	if err != nil {
		return nil, err
	}
	b.say("without Ats: %s", empty)

	started := time.Now()
	if err := b.pendingAts(ctx, b.scale, func(int) time.Time { return farOff }); err != nil {
		return nil, err
	}
	b.say("%d Ats are pending after %s", b.scale, time.Since(started).Round(time.Second))
	full, err := b.settledMemory(ctx)
	if err != nil {
		return nil, err
	}
	b.say("with %d Ats: %s", b.scale, full)

	deleted, err := b.restart(ctx, "deleted", b.deleteManager)
	if err != nil {
		return nil, err
	}
	again, err := b.settledMemory(ctx)
	if err != nil {
		return nil, err
	}
	b.say("after a restart: %s", again)
	killed, err := b.restart(ctx, "killed", b.killManager)
	if err != nil {
		return nil, err
	}

	what := fmt.Sprintf("%d pending Ats", b.scale)
	perAt := func(name string, full uint64, empty uint64, all string, bounded bool) figure {
		each := (float64(full) - float64(empty)) / float64(b.scale)
		f := figure{measure: what, what: name, value: fmt.Sprintf("%.0f B/At", each), spread: all}
		if bounded {
			f.bound, f.missed = fmt.Sprintf("≤ %d B/At", memoryBound), each > memoryBound
		}
		return f
	}
	duration := func(name string, d time.Duration) figure {
		return figure{measure: what, what: name, value: inSeconds(d), bound: "≤ " + restartBound.String(), missed: d > restartBound}
	}
	mib := func(from, to uint64) string { return fmt.Sprintf("%d MiB → %d MiB", from>>20, to>>20) }
	return []figure{
		perAt("working set", full.workingSet, empty.workingSet, mib(empty.workingSet, full.workingSet), true),
		perAt("resident", full.resident, empty.resident, mib(empty.resident, full.resident), false),
		perAt("working set, after a restart", again.workingSet, empty.workingSet, mib(empty.workingSet, again.workingSet), true),
		perAt("highest working set seen", max(full.peak, again.peak), empty.workingSet, fmt.Sprintf("%d MiB", max(full.peak, again.peak)>>20), false),
		duration("manager's pod deleted by force, until an At that is due may run", deleted),
		duration("manager killed (SIGKILL), until an At that is due may run", killed),
	}, nil
}

// memory of the manager's container, as the kubelet tells it.
type memory struct{ workingSet, resident, peak uint64 }

func (m memory) String() string {
	return fmt.Sprintf("working set %d MiB, resident %d MiB, peak %d MiB", m.workingSet>>20, m.resident>>20, m.peak>>20)
}

// settledMemory is the memory after Go has had time for a collection, and the
// highest that was seen until then.
func (b *bench) settledMemory(ctx context.Context) (memory, error) {
	var looks []memory
	var peak uint64
	for range memoryRounds {
		if err := sleep(ctx, memoryInterval); err != nil {
			return memory{}, err
		}
		m, err := b.managerMemory(ctx)
		if err != nil {
			return memory{}, err
		}
		peak = max(peak, m.peak, m.workingSet)
		looks = append(looks, m)
	}
	m := looks[len(looks)-1]
	m.peak = peak
	return m, nil
}

// managerMemory asks the kubelet, through the API server.
func (b *bench) managerMemory(ctx context.Context) (memory, error) {
	pod, err := b.managerPod(ctx, atOperator)
	if err != nil {
		return memory{}, err
	}
	answer, err := b.kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + b.node + "/proxy/stats/summary").DoRaw(ctx)
	if err != nil {
		return memory{}, err
	}
	var summary struct {
		Pods []struct {
			PodRef     struct{ UID string }
			Containers []struct {
				Name   string
				Memory struct{ WorkingSetBytes, RSSBytes uint64 }
			}
		}
	}
	if err := json.Unmarshal(answer, &summary); err != nil {
		return memory{}, err
	}
	for _, p := range summary.Pods {
		for _, c := range p.Containers {
			if p.PodRef.UID == string(pod.UID) && c.Name == "manager" && c.Memory.WorkingSetBytes > 0 {
				return memory{workingSet: c.Memory.WorkingSetBytes, resident: c.Memory.RSSBytes}, nil
			}
		}
	}
	return memory{}, fmt.Errorf("the kubelet tells nothing of pod %s", pod.Name)
}

// managerPod is the pod of an operator's manager.
func (b *bench) managerPod(ctx context.Context, o operator) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(o.namespace()), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			return &pods.Items[i], nil
		}
	}
	return nil, fmt.Errorf("the operator %s has no pod", o)
}
