package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// This file has drains while a member does not serve, and Kubernetes has not noticed that yet: for 50 s if its node does not
// answer, for 10 s if its etcd does not.

// unreadyAfter is when the readiness probe of a pod has failed for long enough.
const unreadyAfter = 10 * time.Second

func drainTales() []tale {
	// The first node is drained, while the member on another one does not serve.
	const good, bad = 0, 1
	off := testkit.Step{Name: "switches a node off", Do: stopNode(bad, (*modelNodes).kill)}
	pauses := testkit.Step{Name: "pauses a node", Do: stopNode(bad, (*modelNodes).pause)}
	hangs := testkit.Step{Name: "has an etcd stand still", Do: hang(bad)}
	cordons := testkit.Step{Name: "cordons that node", Do: cordon(bad, true)}
	drains := testkit.Step{Name: "drains another", Do: drain(good)}
	on := testkit.Step{Name: "switches it on", When: noticed(bad), Do: powerOn}
	then := func(last testkit.Step, before ...testkit.Step) []testkit.Step {
		return append(inAnyOrder(before...), last)
	}
	return []tale{
		{name: "drained-node-off", drains: true, nodes: 4, steps: then(testkit.Step{Name: "deletes the Node", When: noticed(bad), Do: deleteNode}, off, cordons, drains), settled: moved},
		{name: "drained-node-back", drains: true, nodes: 4, steps: then(on, cordons, off, drains), settled: moved},
		{name: "drained-node-paused", drains: true, nodes: 4, steps: then(testkit.Step{Name: "resumes it", Do: powerOn}, drains, pauses, cordons), settled: moved},
		{name: "drained-etcd-hangs", drains: true, nodes: 4, steps: inAnyOrder(hangs, testkit.Step{Name: "drains that node", Do: drain(bad)}, drains), settled: moved},
		{name: "drained-etcd-resumes", drains: true, nodes: 4, steps: then(testkit.Step{Name: "resumes it", When: noticed(bad), Do: resume(bad)}, cordons, drains, hangs), settled: moved},
		{name: "drained-two-members", drains: true, nodes: 4, spec: []ecOption{size(2)}, steps: then(on, off, cordons, drains), settled: moved},
		{name: "drained-one-member", drains: true, nodes: 2, spec: []ecOption{size(1)}, steps: then(
			testkit.Step{Name: "resumes it", When: noticed(good), Do: resume(good)}, testkit.Step{Name: "has the etcd stand still", Do: hang(good)}, drains,
		), settled: moved},
	}
}

// inAnyOrder are steps of which the simulation draws which is the next, and when: by how late the user is. On a good day they
// are done in their order, at once.
func inAnyOrder(all ...testkit.Step) []testkit.Step {
	steps := []testkit.Step{{Name: "begins", When: ready, Do: func(_ context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		n.undone, n.idleSince = slices.Clone(all), n.world.Now()
		return nil
	}}}
	for range all {
		steps = append(steps, testkit.Step{Name: "goes on", Do: doNext}, testkit.Step{Name: "waits", Do: func(_ context.Context, r *testkit.Run) error {
			n := r.Own.(*modelNodes)
			n.idleSince = n.world.Now()
			return nil
		}})
	}
	return steps
}

// doNext does one of the steps that are left.
func doNext(ctx context.Context, r *testkit.Run) error {
	n := r.Own.(*modelNodes)
	which := 0
	for _, late := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 15 * time.Second} {
		if n.world.Now().Sub(n.idleSince) > late {
			which++
		}
	}
	which %= len(n.undone)
	next := n.undone[which]
	n.undone = slices.Delete(n.undone, which, which+1)
	n.world.Tracef("user", "%s", next.Name)
	return next.Do(ctx, r)
}

// drain has kubectl drain a node.
func drain(i int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		n.drained = append(n.drained, nodeName(i))
		return cordon(i, true)(ctx, r)
	}
}

// stopNode has a node not answer any more.
func stopNode(i int, how func(*modelNodes, *modelPod)) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		r.Own.(*modelNodes).stop(nodeName(i), how)
		return nil
	}
}

// hang has the etcd on a node stand still, and resume has it go on.
func hang(i int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		n.on(nodeName(i), func(p *modelPod) {
			n.pause(p)
			p.hung = n.world.Now()
		})
		return nil
	}
}

func resume(i int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		n.on(nodeName(i), func(p *modelPod) {
			n.model.Resume(p.name)
			p.hung = time.Time{}
		})
		return nil
	}
}

func (n *modelNodes) pause(p *modelPod) { n.model.Pause(p.name) }

// probe finds out whether an etcd that runs serves.
func (n *modelNodes) probe(pod *corev1.Pod, p *modelPod) (did bool, wake time.Time) {
	is := corev1.ConditionTrue
	if !p.hung.IsZero() {
		is = corev1.ConditionFalse
		if noticed := p.hung.Add(unreadyAfter); n.world.Now().Before(noticed) {
			return false, noticed
		}
	}
	if pods.IsReady(pod) == (is == corev1.ConditionTrue) {
		return false, wake
	}
	n.mark(pod, is, is, n.Name())
	return true, wake
}

// noticed is nil when no member is ready on a node, as far as Kubernetes has noticed.
func noticed(i int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) (err error) {
		sim.Each(r.Own.(*modelNodes).world.Server, func(pod *corev1.Pod) {
			if pod.Spec.NodeName == nodeName(i) && pods.IsReady(pod) {
				err = errors.New(pod.Name + " is ready")
			}
		})
		return err
	}
}
