package testkit

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	nodeName     = "pretend"
	restartAfter = 100 * time.Millisecond // a real kubelet's back-off begins at 10 s
	pollEvery    = 20 * time.Millisecond
)

// Kubelet pretends to be the scheduler and the kubelet of one namespace. Each
// pod without scheduling gates is bound to a node, started, and ended as its
// [Outcome] says; a deleted one is ended and then removed, as a kubelet does.
// Nothing really runs.
//
// It keeps a ledger of what it started, which is what "at most once" and
// "never early" are checked against: an operator's own account is not.
type Kubelet struct {
	client    client.WithWatch
	namespace string
	behave    func(*corev1.Pod) Outcome

	mu     sync.Mutex
	pods   map[types.UID]*podCare
	starts []Start
	logs   map[string]string // by pod name
	// refusals are how many pods of a name were refused.
	refusals map[string]int
	wg       sync.WaitGroup
}

// Start is an entry of the ledger: the containers of this pod were started.
type Start struct {
	// Pod is the pod as it was then.
	Pod *corev1.Pod
	// Time is when, with the clock's full resolution.
	Time time.Time
	// Restart is 0 for a pod's first start.
	Restart int32
}

// podCare is one pod in the kubelet's care.
type podCare struct {
	pod     *corev1.Pod // latest version seen
	changed chan struct{}
	cancel  context.CancelFunc // when the pod is gone
}

// StartKubelet starts a kubelet for one namespace. It ends with the context; behave is
// called once for each start of a pod. If it is nil, a pod that is to be restarted always
// stays, and any other succeeds at once.
func StartKubelet(ctx context.Context, cfg *rest.Config, namespace string, behave func(*corev1.Pod) Outcome) (*Kubelet, error) {
	// A mapper of its own would request all kinds from the API server.
	pods := meta.NewDefaultRESTMapper(nil)
	pods.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme, Mapper: pods})
	if err != nil {
		return nil, err
	}
	if behave == nil {
		behave = usual
	}
	k := &Kubelet{client: c, namespace: namespace, behave: behave, pods: map[types.UID]*podCare{}, logs: map[string]string{}, refusals: map[string]int{}}
	k.wg.Go(func() { k.watch(ctx) })
	return k, nil
}

// usual is what becomes of a pod: one that is to be restarted stays, and any other
// succeeds at once.
func usual(pod *corev1.Pod) Outcome {
	return Outcome{Forever: pod.Spec.RestartPolicy == corev1.RestartPolicyAlways}
}

// wait returns when the kubelet has ended, after its context.
func (k *Kubelet) wait() { k.wg.Wait() }

// Starts is the ledger so far, in the order of the starts.
func (k *Kubelet) Starts() []Start {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.starts)
}

// watch hands every change of a pod to the pod's carer. Without a resource
// version a watch begins with what is there, so a broken one is begun again.
func (k *Kubelet) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := k.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(k.namespace))
		if err != nil {
			sleep(ctx, pollEvery)
			continue
		}
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				k.see(ctx, event.Type, pod)
			}
		}
		w.Stop()
	}
}

func (k *Kubelet) see(ctx context.Context, what watch.EventType, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	care := k.pods[pod.UID]
	switch {
	case what == watch.Deleted:
		if care != nil {
			care.cancel()
			delete(k.pods, pod.UID)
		}
		return
	case care == nil:
		ctx, cancel := context.WithCancel(ctx)
		care = &podCare{pod: pod, changed: make(chan struct{}, 1), cancel: cancel}
		k.pods[pod.UID] = care
		k.wg.Go(func() { defer cancel(); k.care(ctx, care) })
	}
	care.pod = pod
	select {
	case care.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// care is a pod's life, from its node to its end.
func (k *Kubelet) care(ctx context.Context, care *podCare) {
	if !k.until(ctx, care, nil, isUngated) {
		return
	}
	pod := k.latest(care)
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return // whoever made it says that it is over
	}
	if !k.bind(ctx, pod) {
		return
	}
	for p, over := (past{}), false; !over; p.restarts++ {
		p.last, over = k.runOnce(ctx, care, p)
	}
	if k.until(ctx, care, nil, isDeleted) {
		k.remove(ctx, pod)
	}
}

// runOnce takes the containers from waiting to ended. It returns how they
// ended, and whether that was the end of the pod.
func (k *Kubelet) runOnce(ctx context.Context, care *podCare, p past) (end corev1.ContainerState, over bool) {
	pod := k.latest(care)
	o := k.behave(pod.DeepCopy())
	started := metav1.Now()
	report := func(at stage, o Outcome, p past) corev1.PodStatus {
		status := podStatus(pod, o, at, p, started, metav1.Now())
		k.report(ctx, pod, status)
		return status
	}
	isStopped := func(pod *corev1.Pod) bool { return exceeded(pod, started.Time, time.Now()) }
	broken := func(pod *corev1.Pod) bool { return isDeleted(pod) || isStopped(pod) }

	switch {
	case k.refuses(pod, o):
		report(refused, o, p)
		return end, true
	case o.Waiting != "":
		report(waiting, o, p)
		if k.until(ctx, care, nil, broken) && !isDeleted(k.latest(care)) {
			report(neverMade, o, p)
		}
		return end, true
	case p.restarts > 0:
		o.StartAfter = max(o.StartAfter, restartAfter)
		report(waiting, Stuck("CrashLoopBackOff"), past{restarts: p.restarts - 1, last: p.last})
	case o.StartAfter > 0:
		report(waiting, o, p)
	}
	if k.until(ctx, care, after(o.StartAfter), isDeleted) || ctx.Err() != nil {
		return end, true
	}

	started = metav1.Now()
	begun := started.Time
	waits := o.isWaiting(begun)
	if waits {
		report(running, o, p)
		if k.until(ctx, care, after(o.WaitsUntil.Sub(begun)), broken) || ctx.Err() != nil {
			how := stopped
			if isDeleted(k.latest(care)) {
				how = ended
			}
			report(how, o.endedWaiting(), p)
			return end, true
		}
		begun = time.Now()
	}
	k.mu.Lock()
	if !o.StandsIn {
		k.starts = append(k.starts, Start{Pod: pod.DeepCopy(), Time: begun, Restart: p.restarts})
	}
	k.logs[pod.Name] = o.Log
	k.mu.Unlock()
	if !waits {
		report(running, o, p)
	}

	var timeUp <-chan time.Time // never
	if !o.Forever {
		timeUp = after(o.RunsFor)
	}
	if !k.until(ctx, care, timeUp, broken) {
		status := report(ended, o, p)
		end = mainState(status)
		if restarts(pod, o) || status.Phase != corev1.PodRunning || !k.until(ctx, care, nil, broken) {
			return end, !restarts(pod, o) || ctx.Err() != nil
		}
	}
	if isDeleted(k.latest(care)) {
		report(ended, Fails(0, 143), p) // by SIGTERM
	} else {
		report(stopped, o, p)
	}
	return end, true
}

// refuses says whether the node refuses a pod that has arrived.
func (k *Kubelet) refuses(pod *corev1.Pod, o Outcome) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.Refused == "" || k.refusals[pod.Name] >= o.Refusals {
		return false
	}
	k.refusals[pod.Name]++
	return true
}

// until waits until the pod is as wanted. It is not if the time is up first,
// or the pod gone. What is wanted may be a matter of time, too.
func (k *Kubelet) until(ctx context.Context, care *podCare, timeUp <-chan time.Time, wanted func(*corev1.Pod) bool) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ctx.Err() == nil && wanted(k.latest(care)) {
			return true
		}
		select {
		case <-care.changed:
		case <-tick.C:
		case <-timeUp:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func isUngated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 0 }
func isDeleted(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func (k *Kubelet) latest(care *podCare) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return care.pod
}

// bind does the scheduler's part. A pod without a node is deleted at once, one
// with a node waits for its kubelet.
func (k *Kubelet) bind(ctx context.Context, pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return true
	}
	return k.insist(ctx, func() error {
		return k.client.SubResource("binding").Create(ctx, pod.DeepCopy(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
		})
	})
}

// report writes the status. The UID in the patch keeps it off a new pod of
// the same name.
func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) {
	k.insist(ctx, func() error {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": pod.UID},
			"status":   status,
		})
		if err != nil {
			return err
		}
		return k.client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	})
}

func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) {
	k.insist(ctx, func() error {
		return k.client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	})
}

// insist repeats a request until it is answered in a way that stays: done, or
// refused because the pod is another one by now.
func (k *Kubelet) insist(ctx context.Context, send func() error) bool {
	for ctx.Err() == nil {
		err := send()
		switch {
		case err == nil:
			return true
		case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
			return false
		}
		sleep(ctx, pollEvery)
	}
	return false
}

// await reports whether it happened before the time was up or the context was.
func await(ctx context.Context, happened <-chan struct{}, timeUp <-chan time.Time) bool {
	select {
	case <-happened:
		return true
	case <-timeUp:
		return false
	case <-ctx.Done():
		return false
	}
}

func after(d time.Duration) <-chan time.Time { return time.NewTimer(d).C }

func sleep(ctx context.Context, d time.Duration) { await(ctx, nil, after(d)) }
