package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// crashing reports the first server that is crash-looping, in words that change
// only when it has crashed again.
func crashing(seen pool.Observation, next *change.Plan) *status.Problem {
	for i := range seen.Pods {
		crash, is := pool.Crash(&seen.Pods[i], seen)
		if !is {
			continue
		}
		p := &status.Problem{Reason: pods.CrashLoopBackOff, Message: fmt.Sprintf("Server %s: %s", seen.Pods[i].Name, crash), Retriable: true}
		if up := next.Upgrade; up != nil {
			p.Message += fmt.Sprintf("; %s: %s. %d updated", up.Kind, up.Message, up.Updated)
		}
		return p
	}
	return nil
}

// The reasons in status and in events that are not Kubernetes' own.
const (
	reasonReady       = "Ready"
	reasonUpgrading   = "Upgrading"
	reasonOverdue     = "RestartOverdue"
	reasonNoSecret    = "SecretNotFound"
	reasonBadSecret   = "InvalidSecret"
	reasonUnavailable = "ServersNotReady"
	reasonEvicted     = "ServerEvicted"
	reasonNotTaken    = "MemoryNotTaken"
	reasonServing     = "Serving"
	reasonNoServers   = "NoServerReady"
	reasonStopped     = "ScaledToZero"
)

// summarize is the status of a Memcached after a step. failure is what went
// wrong with the step's writes, if something did.
func summarize(mc *v1alpha1.Memcached, seen pool.Observation, next *change.Plan, failure error) v1alpha1.MemcachedStatus {
	st := *mc.Status.DeepCopy()
	st.ObservedGeneration = mc.Generation
	st.Selector = k8slabels.SelectorFromSet(objects.Selector(mc)).String()
	st.Nodes, st.Servers = []string{}, []string{}
	st.Replicas, st.ReadyReplicas = 0, 0
	for _, pod := range seen.Pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		st.Nodes = append(st.Nodes, pod.Name)
		st.Replicas++
		if pods.IsReady(&pod) && seen.Reached[pod.UID] {
			st.ReadyReplicas++
		}
		// Another operator's pods, which are being taken over, have no identity label.
		identity := v1alpha1.Identity(pod.Labels[objects.IdentityLabel])
		if host := hostOf(mc, &pod); host != "" && (identity == next.Serving || identity == "") {
			st.Servers = append(st.Servers, fmt.Sprintf("%s:%d", host, PortOf(mc, &pod)))
		}
	}
	if next.Serving == v1alpha1.StableIdentity {
		slices.SortFunc(st.Servers, byOrdinal)
	} else {
		slices.Sort(st.Servers)
	}
	st.Upgrade = next.Upgrade
	if next.Upgrade == nil && failure == nil {
		is := cmp.Or(next.Requested.Memcached, mc)
		st.Image, st.Version, st.Memory = objects.ImageOf(is), pool.VersionOf(objects.ImageOf(is)), memoryOf(is, seen)
	}

	conditions := status.Conditions{List: &st.Conditions, Generation: mc.Generation}
	if p := firstProblem(mc, seen, next, &st, failure); p != nil {
		conditions.MarkProblem(p)
	} else {
		conditions.MarkReady(reasonReady, readyMessage(mc, seen)+next.Note)
	}
	reportFaults(mc, &st, conditions)
	switch {
	case st.ReadyReplicas > 0:
		conditions.Set(v1alpha1.ConditionAvailable, true, reasonServing, "At least one server is ready")
	case *mc.Spec.Size == 0:
		conditions.Set(v1alpha1.ConditionAvailable, false, reasonStopped, "spec.size is 0")
	default:
		conditions.Set(v1alpha1.ConditionAvailable, false, reasonNoServers, "No server is ready")
	}
	return st
}

// hostOf is where a client finds a server: by a name that stays, if it has one.
func hostOf(mc *v1alpha1.Memcached, pod *corev1.Pod) string {
	if pod.Labels[objects.IdentityLabel] == string(v1alpha1.StableIdentity) {
		return fmt.Sprintf("%s.%s.%s.svc", pod.Name, objects.PoolName(mc), mc.Namespace)
	}
	if ip := pod.Status.PodIP; strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return pod.Status.PodIP
}

// PortOf is the port that a server listens on, which may be that of an older
// spec.
func PortOf(mc *v1alpha1.Memcached, pod *corev1.Pod) int32 {
	for _, port := range podtemplate.Container(&pod.Spec, objects.ServerContainer).Ports {
		if port.Name == objects.PortName {
			return port.ContainerPort
		}
	}
	return mc.Spec.Port
}

// byOrdinal sorts pool-2 before pool-10: where a client uses the place in the list, a new
// server must not move the others.
func byOrdinal(a, b string) int {
	hostA, _, _ := strings.Cut(a, ".")
	hostB, _, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(len(hostA), len(hostB)), strings.Compare(a, b))
}

// firstProblem goes through what may be wrong, the worst first. The list is
// the specification of the condition Ready.
func firstProblem(mc *v1alpha1.Memcached, seen pool.Observation, next *change.Plan, st *v1alpha1.MemcachedStatus, failure error) *status.Problem {
	return status.First(
		func() *status.Problem { return apply.Problem(failure, objects.MemcachedKind) },
		func() *status.Problem { return seen.Inputs.Problem },
		func() *status.Problem { return blocked(mc, seen) },
		func() *status.Problem { return next.Problem },
		func() *status.Problem { return crashing(seen, next) },
		func() *status.Problem { return upgrading(mc, seen, next) },
		func() *status.Problem { return unavailable(mc, seen, st) },
		func() *status.Problem { return notTaken(seen) },
	)
}

func upgrading(mc *v1alpha1.Memcached, seen pool.Observation, next *change.Plan) *status.Problem {
	up := next.Upgrade
	if up == nil {
		return nil
	}
	message := fmt.Sprintf("%s: %s. %d updated", up.Kind, up.Message, up.Updated)
	if next.Waits != "" {
		message += "; " + next.Waits
	}
	reason, words := problemOf(mc, seen)
	if words != "" {
		message += "; " + words
	}
	if next.Overdue {
		reason = reasonOverdue
	}
	return &status.Problem{Reason: cmp.Or(reason, reasonUpgrading), Message: message, Retriable: true}
}

// unavailable reports what keeps the servers from being as requested.
func unavailable(mc *v1alpha1.Memcached, seen pool.Observation, st *v1alpha1.MemcachedStatus) *status.Problem {
	size := *mc.Spec.Size
	if st.Replicas == size && st.ReadyReplicas == size {
		return nil
	}
	reason, words := problemOf(mc, seen)
	p := &status.Problem{Reason: cmp.Or(reason, reasonUnavailable), Message: fmt.Sprintf("%d of %d servers are ready", st.ReadyReplicas, size), Retriable: true}
	if words != "" {
		p.Message += ": " + words
	} else if name := unreached(seen); name != "" {
		p.Message += fmt.Sprintf(": Service %q does not lead to %s yet", objects.PoolName(mc), name)
	}
	return p
}

// unreached is the first server that is ready, and that clients do not find yet.
func unreached(seen pool.Observation) string {
	for _, pod := range seen.Pods {
		if pod.DeletionTimestamp == nil && pods.IsReady(&pod) && !seen.Reached[pod.UID] {
			return pod.Name
		}
	}
	return ""
}

// lacksPods says whether a StatefulSet has had fewer pods than it is to have for a
// while, although its controller has seen that: it says why in its events only.
func lacksPods(mc *v1alpha1.Memcached, seen pool.Observation) bool {
	s := seen.StatefulSet()
	return objects.IsStable(mc) && objects.IsOwned(s, mc) && s.Status.ObservedGeneration >= s.Generation && s.Status.Replicas < *mc.Spec.Size &&
		len(seen.Missing) > 0 && pool.UntilReported(seen) <= 0
}

// problemOf is what keeps the first pod with a problem from serving, or from being made: a reason, and words that do
// not change with every try. It has no reason if it ends by itself, as part of a change.
func problemOf(mc *v1alpha1.Memcached, seen pool.Observation) (reason, words string) {
	for _, condition := range seen.Deployment().Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return reasonUnavailable, "pods cannot be created: " + status.Shortened(condition.Message)
		}
	}
	for _, pod := range seen.Pods {
		for _, c := range pods.Statuses(&pod) {
			switch reason, words := pods.CannotStart(&pod, c); {
			case reason == pods.NoImage: // which is that of all pods
				return reasonUnavailable, words
			case reason != "":
				return reasonUnavailable, fmt.Sprintf("pod %q: %s", pod.Name, words)
			case c.State.Waiting != nil && c.State.Waiting.Reason == pods.CrashLoopBackOff:
				return "", fmt.Sprintf("Kubernetes holds back the next start of container %q of %s", c.Name, pod.Name)
			}
		}
		if words := pods.Unschedulable(&pod); words != "" {
			return reasonUnavailable, fmt.Sprintf("pod %q %s", pod.Name, words)
		}
		if words, _ := pods.Unprepared(&pod, seen.Unmounted, seen.Now); words != "" {
			return reasonUnavailable, fmt.Sprintf("pod %q: %s", pod.Name, words)
		}
	}
	if words := pods.OnSilentNodes(seen.Pods...); words != "" {
		return pods.NodeNotResponding, words
	}
	if words := evicted(seen); words != "" {
		return reasonEvicted, words
	}
	if lacksPods(mc, seen) {
		return reasonUnavailable, fmt.Sprintf("the StatefulSet has fewer pods than spec.size: kubectl describe statefulset %s says why", objects.PoolName(mc))
	}
	return "", ""
}

// evicted says which server is leaving because the cluster ends it, and what that costs.
func evicted(seen pool.Observation) string {
	for _, pod := range seen.Pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp != nil {
				return fmt.Sprintf("server %s is leaving node %q (%s), and its items are lost; those of the other servers stay", pod.Name, pod.Spec.NodeName, c.Reason)
			}
		}
	}
	return ""
}

func readyMessage(mc *v1alpha1.Memcached, seen pool.Observation) string {
	if *mc.Spec.Size == 0 {
		return "spec.size is 0"
	}
	for i := range seen.Pods {
		if name := seen.Pods[i].Name; seen.Limits[name].Wanted > 0 {
			return fmt.Sprintf("All servers are ready. The operator cannot connect to server %s, so it cannot say whether that has %dMi for items", name, seen.Limits[name].Wanted) + disruption.Sentence(seen.Budgets)
		}
	}
	return "All servers are ready" + disruption.Sentence(seen.Budgets)
}
