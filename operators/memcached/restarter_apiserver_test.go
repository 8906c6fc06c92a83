//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// restarter does what a kubelet does when a running pod is given another image or other
// settings: a while later it ends the container and starts it again, in the same pod. It
// counts the servers that are unavailable at the same time. It also gives containers the
// memory that is requested while they run.
type restarter struct {
	run *testkit.Run

	mu          sync.Mutex
	started     map[types.UID]startedAs // what the server was last started with
	busy        map[types.UID]bool
	restarts    []string // names of servers
	unavailable int
	most        int
}

// startedAs is what makes a difference for a server at its start, and the generation of the pod that had it.
type startedAs struct {
	image, settings string
	generation      int64
}

// restarters are those of the runs, by namespace.
var restarters sync.Map

func startRestarter(ctx context.Context, r *testkit.Run) {
	rs := &restarter{run: r, started: map[types.UID]startedAs{}, busy: map[types.UID]bool{}}
	restarters.Store(r.Namespace, rs)
	go rs.watch(ctx)
}

// restartersOfRuns are the restarts of runs on a real API server.
type restartersOfRuns struct{}

func (restartersOfRuns) begin(ctx context.Context, r *testkit.Run) { startRestarter(ctx, r) }

func (restartersOfRuns) of(r *testkit.Run) (names []string, unavailable int) {
	all, _ := restarters.Load(r.Namespace)
	rs := all.(*restarter)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.Clone(rs.restarts), rs.most
}

func (rs *restarter) watch(ctx context.Context) {
	for ctx.Err() == nil {
		var pods corev1.PodList
		if err := rs.run.Client.List(ctx, &pods, client.InNamespace(rs.run.Namespace), client.MatchingLabels{objects.AppLabel: "memcached"}); err == nil {
			for i := range pods.Items {
				rs.see(ctx, &pods.Items[i])
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (rs *restarter) see(ctx context.Context, pod *corev1.Pod) {
	want := startedAs{podtemplate.Container(&pod.Spec, objects.ServerContainer).Image, pod.Annotations[objects.SettingsAnnotation], pod.Generation}
	if limits := podtemplate.Container(&pod.Spec, objects.ServerContainer).Resources.Limits; pod.Annotations[objects.MemoryAnnotation] != "" && pods.IsReady(pod) && !hasLimit(pod, limits) {
		rs.report(ctx, pod, func(status *corev1.PodStatus) {
			status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Limits: limits}
		})
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	have := rs.started[pod.UID]
	// What was changed back between two looks, a kubelet may have seen all the same.
	isAnother := have.image != want.image || have.settings != want.settings || have.generation < want.generation && len(pool.YetToEnd(pod, time.Now())) > 0
	switch {
	case pod.DeletionTimestamp != nil || rs.busy[pod.UID]:
	case have.image == "" && pods.IsReady(pod):
		rs.started[pod.UID] = want
	case have.image != "" && isAnother:
		rs.busy[pod.UID] = true
		rs.unavailable++
		rs.most = max(rs.most, rs.unavailable)
		rs.restarts = append(rs.restarts, pod.Name)
		go rs.restart(ctx, pod, want)
	}
}

func (rs *restarter) restart(ctx context.Context, pod *corev1.Pod, want startedAs) {
	defer func() {
		rs.mu.Lock()
		rs.started[pod.UID], rs.busy[pod.UID] = want, false
		rs.mu.Unlock()
	}()
	rs.report(ctx, pod, func(status *corev1.PodStatus) {
		setReady(status, corev1.ConditionFalse)
	})
	time.Sleep(60 * time.Millisecond)
	rs.mu.Lock()
	rs.unavailable--
	id := fmt.Sprintf("fake://%s-%d", pod.Name, len(rs.restarts))
	rs.mu.Unlock()
	rs.report(ctx, pod, func(status *corev1.PodStatus) {
		setReady(status, corev1.ConditionTrue)
		for i := range status.ContainerStatuses {
			if status.ContainerStatuses[i].Name == objects.ServerContainer {
				status.ContainerStatuses[i].ContainerID = id
			}
		}
	})
}

func setReady(status *corev1.PodStatus, value corev1.ConditionStatus) {
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.PodReady {
			status.Conditions[i].Status = value
		}
	}
}

// report changes the status, whoever else writes to the pod.
func (rs *restarter) report(ctx context.Context, pod *corev1.Pod, change func(*corev1.PodStatus)) {
	for ctx.Err() == nil {
		var now corev1.Pod
		if err := rs.run.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil || now.UID != pod.UID {
			return
		}
		change(&now.Status)
		if err := rs.run.Client.Status().Update(ctx, &now); err == nil {
			return
		}
	}
}
