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
	// The kubelet looks every 10 s or so, and Go collects at least every two
	// minutes and hands memory back little by little.
	memoryInterval = 15 * time.Second
	memoryRounds   = 10
)

// memory of the manager's container, as the kubelet tells it.
type memory struct{ workingSet, resident, peak uint64 }

func inMiB(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func (m memory) String() string {
	return fmt.Sprintf("working set %d MiB, resident %d MiB, peak %d MiB", m.workingSet>>20, m.resident>>20, m.peak>>20)
}

// settledMemory is the memory after Go has had time for a collection, and the
// highest that was seen until then.
func (b *bench) settledMemory(ctx context.Context, o operator) (memory, error) {
	var looks []memory
	var peak uint64
	for range memoryRounds {
		if err := sleep(ctx, memoryInterval); err != nil {
			return memory{}, err
		}
		m, err := b.managerMemory(ctx, o)
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

// managerMemory is that of an operator's manager now.
func (b *bench) managerMemory(ctx context.Context, o operator) (memory, error) {
	s, err := b.managerStats(ctx, o)
	return memory{workingSet: s.Memory.WorkingSetBytes, resident: s.Memory.RSSBytes}, err
}

// containerStats is what the kubelet tells of a container.
type containerStats struct {
	Name string
	CPU  struct {
		Time time.Time
		Used time.Duration `json:"usageCoreNanoSeconds"`
	}
	Memory struct{ WorkingSetBytes, RSSBytes uint64 }
}

// processors is how much of a processor was used between two looks.
func (s containerStats) processors(before containerStats) float64 {
	return float64(s.CPU.Used-before.CPU.Used) / float64(s.CPU.Time.Sub(before.CPU.Time))
}

// managerStats asks the kubelet, through the API server.
func (b *bench) managerStats(ctx context.Context, o operator) (s containerStats, err error) {
	pod, err := b.managerPod(ctx, o)
	if err != nil {
		return s, err
	}
	answer, err := b.kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + b.node + "/proxy/stats/summary").DoRaw(ctx)
	if err != nil {
		return s, err
	}
	var summary struct {
		Pods []struct {
			PodRef     struct{ UID string }
			Containers []containerStats
		}
	}
	if err := json.Unmarshal(answer, &summary); err != nil {
		return s, err
	}
	for _, p := range summary.Pods {
		for _, c := range p.Containers {
			if p.PodRef.UID == string(pod.UID) && c.Name == "manager" && c.Memory.WorkingSetBytes > 0 {
				return c, nil
			}
		}
	}
	return s, fmt.Errorf("the kubelet tells nothing of pod %s", pod.Name)
}

// managerPod is the pod of an operator's manager.
func (b *bench) managerPod(ctx context.Context, o operator) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(o.namespace()), managerPods); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			return &pods.Items[i], nil
		}
	}
	return nil, fmt.Errorf("the operator %s has no pod", o)
}
