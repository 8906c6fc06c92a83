package memcached

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// restartingKubelet is the part of a simulated kubelet that the testkit's does not play; see
// restarts.
type restartingKubelet struct {
	world *sim.World
	run   *testkit.Run

	starts      int                  // that are known of the other part
	started     map[types.UID]string // what the server was last started with
	ended       map[types.UID]time.Time
	names       []string // of servers that were restarted
	unavailable int      // the most at the same time
	cold        []string // the revisions of which status has announced that servers lose their items
}

// newRestarting makes it for a run.
func newRestarting(w *sim.World, r *testkit.Run) *restartingKubelet {
	rs := &restartingKubelet{world: w, run: r, started: map[types.UID]string{}, ended: map[types.UID]time.Time{}}
	r.Own = rs
	return rs
}

// stopLasts is how long a container takes from its end to its next start.
const stopLasts = 60 * time.Millisecond

// simulatedRestarts are the restarts of simulated runs.
type simulatedRestarts struct{}

func (simulatedRestarts) begin(context.Context, *testkit.Run) {}

func (simulatedRestarts) of(r *testkit.Run) (names []string, unavailable int) {
	rs := r.Own.(*restartingKubelet)
	return slices.Clone(rs.names), rs.unavailable
}

func (*restartingKubelet) Name() string { return "kubelet in place" }

// Act does the first thing that is to be done in a running pod.
func (rs *restartingKubelet) Act() (did bool, wake time.Time) {
	rs.learn()
	sim.Each(rs.world.Server, func(pod *corev1.Pod) {
		if did || pod.Labels[objects.AppLabel] != "memcached" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			return
		}
		ended, isEnded := rs.ended[pod.UID]
		started, hasStarted := rs.started[pod.UID]
		switch limits := podtemplate.Container(&pod.Spec, objects.ServerContainer).Resources.Limits; {
		case isEnded && rs.world.Now().Before(ended.Add(stopLasts)):
			if at := ended.Add(stopLasts); wake.IsZero() || at.Before(wake) {
				wake = at
			}
		case isEnded:
			rs.start(pod)
			did = true
		case hasStarted && started != startedWith(pod):
			rs.end(pod)
			did = true
		case pod.Annotations[objects.MemoryAnnotation] != "" && pods.IsReady(pod) && !hasLimit(pod, limits):
			rs.reportLimits(pod)
			did = true
		}
	})
	return did, wake
}

// startedWith is what makes a difference for a container at its start.
func startedWith(pod *corev1.Pod) string {
	return podtemplate.Container(&pod.Spec, objects.ServerContainer).Image + " " + pod.Annotations[objects.SettingsAnnotation]
}

// learn takes over what the servers were first started with.
func (rs *restartingKubelet) learn() {
	starts := rs.run.Kubelet.Starts()
	for _, start := range starts[rs.starts:] {
		rs.started[start.Pod.UID] = startedWith(start.Pod)
	}
	rs.starts = len(starts)
}

func (rs *restartingKubelet) end(pod *corev1.Pod) {
	now := rs.world.Now()
	rs.started[pod.UID] = startedWith(pod)
	rs.ended[pod.UID] = now
	rs.names = append(rs.names, pod.Name)
	unavailable := 0
	sim.Each(rs.world.Server, func(other *corev1.Pod) {
		if _, isEnded := rs.ended[other.UID]; isEnded && other.DeletionTimestamp == nil {
			unavailable++
		}
	})
	rs.unavailable = max(rs.unavailable, unavailable)
	rs.report(pod, func(c *corev1.ContainerStatus) {
		end := &corev1.ContainerStateTerminated{
			Reason: "Completed", ContainerID: c.ContainerID, FinishedAt: metav1.NewTime(now.Truncate(time.Second)),
		}
		if c.State.Running != nil {
			end.StartedAt = c.State.Running.StartedAt
		}
		c.Ready, c.Started, c.State = false, new(false), corev1.ContainerState{Terminated: end}
	})
}

// start starts a server with what its pod says by now.
func (rs *restartingKubelet) start(pod *corev1.Pod) {
	delete(rs.ended, pod.UID)
	rs.started[pod.UID] = startedWith(pod)
	rs.report(pod, func(c *corev1.ContainerStatus) {
		c.RestartCount++
		c.LastTerminationState = c.State
		c.ContainerID = fmt.Sprintf("fake://%s-%d", pod.Name, c.RestartCount)
		c.Image = podtemplate.Container(&pod.Spec, objects.ServerContainer).Image
		c.Ready, c.Started = true, new(true)
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rs.world.Now().Truncate(time.Second))}}
	})
}

// reportLimits has the kubelet report what it enforces.
func (rs *restartingKubelet) reportLimits(pod *corev1.Pod) {
	told := pod.DeepCopy()
	for i := range told.Status.ContainerStatuses {
		c := &told.Status.ContainerStatuses[i]
		c.Resources = podtemplate.Container(&pod.Spec, c.Name).Resources.DeepCopy()
	}
	rs.world.Fail(rs.world.Server.Replace(told, rs.Name()))
}

// report changes the status of the server's container, and with it whether the pod is
// ready.
func (rs *restartingKubelet) report(pod *corev1.Pod, change func(*corev1.ContainerStatus)) {
	told, ready := pod.DeepCopy(), corev1.ConditionTrue
	for i := range told.Status.ContainerStatuses {
		c := &told.Status.ContainerStatuses[i]
		if c.Name == objects.ServerContainer {
			change(c)
		}
		if !c.Ready {
			ready = corev1.ConditionFalse
		}
	}
	rs.world.Server.SetPodCondition(&told.Status, corev1.ContainersReady, ready, "")
	rs.world.Server.SetPodCondition(&told.Status, corev1.PodReady, ready, "")
	rs.world.Fail(rs.world.Server.Replace(told, rs.Name()))
}

// oneAway is broken when two servers are away at the same time because they were changed
// in place: from the change on until they are ready again.
func oneAway(c sim.Change, r *testkit.Run) error {
	if c.Kind.Resource != "pods" {
		return nil
	}
	rs := r.Own.(*restartingKubelet)
	rs.learn()
	var away []string
	sim.Each(rs.world.Server, func(pod *corev1.Pod) {
		started, hasStarted := rs.started[pod.UID]
		_, isEnded := rs.ended[pod.UID]
		if pod.DeletionTimestamp == nil && (isEnded || hasStarted && started != startedWith(pod)) {
			away = append(away, pod.Name)
		}
	})
	if len(away) > 1 {
		return fmt.Errorf("%v are away at the same time", away)
	}
	return nil
}

// emptiedAsAnnounced is broken when a server is changed in place to a version that cannot read its items, and status has
// not announced a cold change to that revision before.
func emptiedAsAnnounced(c sim.Change, r *testkit.Run) error {
	switch now := c.New.(type) {
	case *v1alpha1.Memcached:
		if up := now.Status.Upgrade; up != nil && up.Kind == v1alpha1.Cold {
			rs := r.Own.(*restartingKubelet)
			rs.cold = append(rs.cold, up.Revision)
		}
	case *corev1.Pod:
		before, was := c.Old.(*corev1.Pod)
		if !was {
			return nil
		}
		from, to := podtemplate.Container(&before.Spec, objects.ServerContainer).Image, podtemplate.Container(&now.Spec, objects.ServerContainer).Image
		isAnnounced := slices.Contains(r.Own.(*restartingKubelet).cold, now.Annotations[objects.RevisionAnnotation])
		if from != to && !pool.KeepsCache(pool.VersionOf(from), pool.VersionOf(to)) && !isAnnounced {
			return fmt.Errorf("%s goes from %s to %s, which empties it, and that was not announced", now.Name, from, to)
		}
	}
	return nil
}

// hasLimit says whether the kubelet has reported this limit of memory.
func hasLimit(pod *corev1.Pod, limits corev1.ResourceList) bool {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == objects.ServerContainer })
	has := pod.Status.ContainerStatuses[i].Resources
	return has != nil && has.Limits.Memory().Equal(*limits.Memory())
}

// annotatedLimit stands for a query: no memcached runs in these pods, and each has what
// its annotation says.
func annotatedLimit(_ context.Context, _ client.Reader, _ *v1alpha1.Memcached, pod *corev1.Pod) (int64, error) {
	return strconv.ParseInt(pod.Annotations[objects.MemoryAnnotation], 10, 64)
}
