package memcached

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/obstacles"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// TestObstacles: whatever keeps a server from starting is in Ready, whatever is under way.
func TestObstacles(t *testing.T) {
	for identity, of := range map[string]mcOption{"random": func(*v1alpha1.Memcached) {}, "stable": stable, "warm": warm} {
		now, old := aPool(of), aPool(of, version("1.6.18"))
		changing := aPool(of, announced(v1alpha1.Cold, ""))
		for phase, tc := range map[string]struct {
			mc      *v1alpha1.Memcached
			of      *v1alpha1.Memcached // what the server is as that does not start
			healthy []seenOption
		}{
			"creating":              {now, now, nil},
			"scaling":               {aPool(of, size(4)), now, []seenOption{aServer(now, 0), aServer(now, 1), aServer(now, 2)}},
			"changing":              {changing, now, []seenOption{aServer(old, 0), aServer(old, 1)}},
			"changing, an old one":  {changing, old, []seenOption{aServer(old, 0), aServer(now, 1)}},
			"changing it warm":      {aPool(of, announced(v1alpha1.Warm, "cache-3")), now, []seenOption{aServer(old, 0), aServer(old, 1), aPull(now, pulled(""))}},
			"changing the identity": {now, now, []seenOption{aServer(otherIdentity(now), 7), aServer(otherIdentity(now), 8)}},
			"healing":               {now, now, []seenOption{aServer(now, 0), aServer(now, 1)}},
		} {
			cell := func(what string, put func(seen *pool.Observation) (says []string)) (reason string) {
				seen := somethingSeen(slices.Concat([]seenOption{aWorkload(tc.mc)}, tc.healthy, []seenOption{aServer(tc.of, 3, unready)})...)
				says := put(&seen)
				next, err := decide(tc.mc, seen)
				if err != nil {
					t.Fatal(err)
				}
				st := summarize(tc.mc, seen, next, nil)
				isSaid(t, identity+", "+phase+", "+what, st, says)
				return meta.FindStatusCondition(st.Conditions, status.Ready).Reason
			}
			for what, put := range obstacles.Of {
				reason := cell(what, func(seen *pool.Observation) []string {
					return put(&seen.Pods[len(seen.Pods)-1], objects.ServerContainer)
				})
				if isSilent := what == obstacles.SilentNode && phase == "healing"; isSilent && reason != pods.NodeNotResponding {
					t.Errorf("%s, %s, %s: the reason is %s", identity, phase, what, reason)
				}
			}
			cell("a quota", func(seen *pool.Observation) []string {
				seen.Pods = seen.Pods[:len(seen.Pods)-1]
				return refusesPods(tc.mc, seen)
			})
		}
	}
}

func otherIdentity(mc *v1alpha1.Memcached) *v1alpha1.Memcached {
	if objects.IsStable(mc) {
		return aPool()
	}
	return aPool(stable)
}

func aWorkload(mc *v1alpha1.Memcached) seenOption {
	if objects.IsStable(mc) {
		return aStatefulSet(mc, func(s *appsv1.StatefulSet) { s.Status.Replicas = 2 })
	}
	return aDeployment(mc, 2)
}

// refusesPods is what is to be seen, and said, of a quota that refuses the next pod of a workload.
func refusesPods(mc *v1alpha1.Memcached, seen *pool.Observation) (says []string) {
	if objects.IsStable(mc) {
		seen.Missing, seen.MissingSince = pool.MissingServers(mc, *seen), noon.Add(-pool.MissingLasts)
		return []string{"the StatefulSet has fewer pods than spec.size: kubectl describe statefulset cache says why"}
	}
	seen.Deployment().Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: obstacles.QuotaSays,
	}}
	return []string{"pods cannot be created", obstacles.QuotaSays}
}

func isSaid(t *testing.T, cell string, st v1alpha1.MemcachedStatus, says []string) {
	t.Helper()
	for _, words := range says {
		if c := meta.FindStatusCondition(st.Conditions, status.Ready); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) {
			t.Errorf("%s: Ready is %s %s: %s; want %q", cell, c.Status, c.Reason, c.Message, words)
		}
	}
}

// TestObstaclesOfPulls: so is whatever keeps an image from being pulled before a warm change.
func TestObstaclesOfPulls(t *testing.T) {
	old, now := aPool(warm, version("1.6.18")), aPool(warm)
	cell := func(what string, failure error, put func(pod *corev1.Pod) (says []string), pull ...seenOption) {
		seen := somethingSeen(append(pull, aStatefulSet(now), aServer(old, 0), aServer(old, 1), aServer(old, 2))...)
		var says []string
		if len(seen.Pulls) > 0 {
			says = put(&seen.Pulls[0])
		} else {
			says = put(nil)
		}
		next, err := decide(now, seen)
		if err != nil {
			t.Fatal(err)
		}
		isSaid(t, what, summarize(now, seen, next, failure), says)
	}
	for what, put := range obstacles.Of {
		switch what {
		case "no node", "no volume", obstacles.Unprepared, obstacles.Crashes:
			continue // it has its node from the operator, no volume, and is not started again
		}
		cell(what, nil, func(pod *corev1.Pod) []string { return put(pod, objects.PullContainer) }, aPull(now))
	}
	cell("its node has no room", nil, func(pod *corev1.Pod) []string {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
		return []string{"Node didn't have enough resource: cpu"}
	}, aPull(now))
	cell("it ends", nil, func(pod *corev1.Pod) []string {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.PullContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127}}}}
		return []string{"it needs memcached and /bin/sh", "exit code 127"}
	}, aPull(now))
	cell("a quota", obstacles.ErrQuota, func(*corev1.Pod) []string { return []string{obstacles.QuotaSays} })
}
