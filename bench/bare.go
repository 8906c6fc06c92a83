package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/run"
)

// workers is how many requests the bare client has in flight.
const workers = 32

// parallel does n things with the bare client's workers.
func parallel(ctx context.Context, n int, do func(i int) error) error {
	var (
		next  atomic.Int64
		group sync.WaitGroup
		once  sync.Once
		first error
	)
	for range min(workers, n) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	group.Wait()
	if first != nil {
		return first
	}
	return ctx.Err()
}

// barePods are what the bare client creates, in the operator's name, so that the
// API server's checks of who calls cost the same: pods with the bytes of one that
// the operator made. Their names are other ones, they belong to an At that is
// never due, so that the garbage collector leaves them alone, and one letter of
// the label by which the operator finds its pods is another one, so that it
// does not spend the machine's time on pods that it did not make.
type barePods struct {
	client  client.Client
	pattern *corev1.Pod
}

const ownerName = "ow-000000" // as long as the names of the Ats

// newBarePods takes a pod of the operator as the pattern.
func (b *bench) newBarePods(ctx context.Context) (*barePods, error) {
	const sample = 999_999
	pods, err := b.followPods(ctx, workload, atName(sample))
	if err != nil {
		return nil, err
	}
	defer pods.stop()
	at := newAt(atName(sample), time.Now().Truncate(time.Second), unscheduled)
	if err := b.client.Create(ctx, at); err != nil {
		return nil, err
	}
	if _, err := pods.wait(ctx, time.Minute, mayRun, 1); err != nil {
		return nil, err
	}
	pod := pods.object(atName(sample)).(*corev1.Pod)
	pattern := asSent(pod)
	pattern.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "at.example.com/claim"}}
	pattern.Labels[run.ManagedByLabel] = "at-operatoR"
	c, err := b.as(ctx, atOperator)
	if err != nil {
		return nil, err
	}
	return &barePods{client: c, pattern: pattern}, b.clear(ctx, workload)
}

// asSent is a pod as its creator sent it, without what the API server added.
func asSent(pod *corev1.Pod) *corev1.Pod {
	sent := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            pod.Name,
			Namespace:       pod.Namespace,
			Labels:          pod.Labels,
			Annotations:     pod.Annotations,
			OwnerReferences: pod.OwnerReferences,
		},
		Spec: *pod.Spec.DeepCopy(),
	}
	spec := &sent.Spec
	spec.DNSPolicy = ""
	if spec.SchedulerName == corev1.DefaultSchedulerName {
		spec.SchedulerName = ""
	}
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	spec.TerminationGracePeriodSeconds, spec.EnableServiceLinks = nil, nil
	spec.Tolerations, spec.Priority, spec.PreemptionPolicy = nil, nil, nil
	for i := range spec.Containers {
		spec.Containers[i].TerminationMessagePath, spec.Containers[i].TerminationMessagePolicy = "", ""
	}
	return sent
}

// create creates n pods as fast as the API server takes them, and returns how
// long it took from the first request until the last was answered.
func (p *barePods) create(ctx context.Context, b *bench, n int) (time.Duration, error) {
	if err := b.clear(ctx, burstNamespaces...); err != nil {
		return 0, err
	}
	owner := newAt(ownerName, farOff)
	if err := b.client.Create(ctx, owner); err != nil {
		return 0, err
	}
	const prefix = "po-"
	bodies := make([]*corev1.Pod, n)
	for i := range bodies {
		bodies[i] = p.pattern.DeepCopy()
		bodies[i].Name = fmt.Sprintf(prefix+"%06d", i)
		bodies[i].OwnerReferences[0].Name, bodies[i].OwnerReferences[0].UID = owner.Name, owner.UID
	}
	if err := b.quiet(ctx); err != nil {
		return 0, err
	}
	tail, err := b.tailAudit()
	if err != nil {
		return 0, err
	}
	defer tail.close()
	started := time.Now()
	if err := parallel(ctx, n, func(i int) error { return p.client.Create(ctx, bodies[i]) }); err != nil {
		return 0, err
	}
	created, err := tail.answered(ctx, time.Minute, createPod, prefix, n)
	return last(created).Sub(started), err
}
