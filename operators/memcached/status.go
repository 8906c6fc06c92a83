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
)

// The reasons in status and in events that are not Kubernetes' own.
const (
	reasonReady       = "Ready"
	reasonUpgrading   = "Upgrading"
	reasonOverdue     = "RestartOverdue"
	reasonPullFailed  = "ImagePullFailed"
	reasonNoSecret    = "SecretNotFound"
	reasonBadSecret   = "InvalidSecret"
	reasonUnavailable = "ServersNotReady"
	reasonEvicted     = "ServerEvicted"
	reasonNotTaken    = "MemoryNotTaken"
	reasonLowLimit    = "MemoryLimitTooLow"
	reasonServing     = "Serving"
	reasonNoServers   = "NoServerReady"
	reasonStopped     = "ScaledToZero"
)

// summarize is the status of a Memcached after a step. failure is what went
// wrong with the step's writes, if something did.
func summarize(mc *v1alpha1.Memcached, seen observation, next *plan, failure error) v1alpha1.MemcachedStatus {
	st := *mc.Status.DeepCopy()
	st.ObservedGeneration = mc.Generation
	st.Selector = k8slabels.SelectorFromSet(selector(mc)).String()
	st.Nodes, st.Servers = []string{}, []string{}
	st.Replicas, st.ReadyReplicas = 0, 0
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		st.Nodes = append(st.Nodes, pod.Name)
		st.Replicas++
		if pods.IsReady(&pod) && seen.reached[pod.UID] {
			st.ReadyReplicas++
		}
		// Another operator's pods, which are being taken over, have no identity label.
		identity := v1alpha1.Identity(pod.Labels[identityLabel])
		if host := hostOf(mc, &pod); host != "" && (identity == next.serving || identity == "") {
			st.Servers = append(st.Servers, fmt.Sprintf("%s:%d", host, PortOf(mc, &pod)))
		}
	}
	if next.serving == v1alpha1.StableIdentity {
		slices.SortFunc(st.Servers, byOrdinal)
	} else {
		slices.Sort(st.Servers)
	}
	st.Upgrade = next.upgrade
	if next.upgrade == nil && failure == nil {
		is := cmp.Or(next.requested.Memcached, mc)
		st.Image, st.Version, st.Memory = imageOf(is), versionOf(imageOf(is)), memoryOf(is, seen)
	}

	conditions := status.Conditions{List: &st.Conditions, Generation: mc.Generation}
	if p := firstProblem(mc, seen, next, &st, failure); p != nil {
		conditions.MarkProblem(p)
	} else {
		conditions.MarkReady(reasonReady, readyMessage(mc, seen)+next.note)
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
	if pod.Labels[identityLabel] == string(v1alpha1.StableIdentity) {
		return fmt.Sprintf("%s.%s.%s.svc", pod.Name, poolName(mc), mc.Namespace)
	}
	if ip := pod.Status.PodIP; strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return pod.Status.PodIP
}

// PortOf is the port that a server listens on, which may be that of an older
// spec.
func PortOf(mc *v1alpha1.Memcached, pod *corev1.Pod) int32 {
	for _, port := range podtemplate.Container(&pod.Spec, serverContainer).Ports {
		if port.Name == portName {
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
func firstProblem(mc *v1alpha1.Memcached, seen observation, next *plan, st *v1alpha1.MemcachedStatus, failure error) *status.Problem {
	return status.First(
		func() *status.Problem { return apply.Problem(failure, memcachedKind) },
		func() *status.Problem { return seen.inputs.problem },
		func() *status.Problem { return blocked(mc, seen) },
		func() *status.Problem { return next.Problem },
		func() *status.Problem { return crashing(seen, next) },
		func() *status.Problem { return upgrading(mc, seen, next) },
		func() *status.Problem { return unavailable(mc, seen, st) },
		func() *status.Problem { return notTaken(seen) },
	)
}

func upgrading(mc *v1alpha1.Memcached, seen observation, next *plan) *status.Problem {
	up := next.upgrade
	if up == nil {
		return nil
	}
	message := fmt.Sprintf("%s: %s. %d updated", up.Kind, up.Message, up.Updated)
	if next.waits != "" {
		message += "; " + next.waits
	}
	reason, words := problemOf(mc, seen)
	if words != "" {
		message += "; " + words
	}
	if next.overdue {
		reason = reasonOverdue
	}
	return &status.Problem{Reason: cmp.Or(reason, reasonUpgrading), Message: message, Retriable: true}
}

// unavailable reports what keeps the servers from being as requested.
func unavailable(mc *v1alpha1.Memcached, seen observation, st *v1alpha1.MemcachedStatus) *status.Problem {
	size := *mc.Spec.Size
	if st.Replicas == size && st.ReadyReplicas == size {
		return nil
	}
	reason, words := problemOf(mc, seen)
	p := &status.Problem{Reason: cmp.Or(reason, reasonUnavailable), Message: fmt.Sprintf("%d of %d servers are ready", st.ReadyReplicas, size), Retriable: true}
	if words != "" {
		p.Message += ": " + words
	} else if name := unreached(seen); name != "" {
		p.Message += fmt.Sprintf(": Service %q does not lead to %s yet", poolName(mc), name)
	}
	return p
}

// unreached is the first server that is ready, and that clients do not find yet.
func unreached(seen observation) string {
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp == nil && pods.IsReady(&pod) && !seen.reached[pod.UID] {
			return pod.Name
		}
	}
	return ""
}

// lacksPods says whether a StatefulSet has had fewer pods than it is to have for a
// while, although its controller has seen that: it says why in its events only.
func lacksPods(mc *v1alpha1.Memcached, seen observation) bool {
	s := seen.statefulSet()
	return isStable(mc) && isOwned(s, mc) && s.Status.ObservedGeneration >= s.Generation && s.Status.Replicas < *mc.Spec.Size &&
		len(seen.missing) > 0 && untilReported(seen) <= 0
}

// problemOf is what keeps the first pod with a problem from serving, or from being made: a reason, and words that do not
// change with every try. It has no reason if it ends by itself, as part of a change.
func problemOf(mc *v1alpha1.Memcached, seen observation) (reason, words string) {
	for _, condition := range seen.deployment().Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return reasonUnavailable, "pods cannot be created: " + status.Shortened(condition.Message)
		}
	}
	for _, pod := range seen.pods {
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
		if words, _ := pods.Unprepared(&pod, seen.unmounted, seen.now); words != "" {
			return reasonUnavailable, fmt.Sprintf("pod %q: %s", pod.Name, words)
		}
	}
	if words := pods.OnSilentNodes(seen.pods...); words != "" {
		return pods.NodeNotResponding, words
	}
	if words := evicted(seen); words != "" {
		return reasonEvicted, words
	}
	if lacksPods(mc, seen) {
		return reasonUnavailable, fmt.Sprintf("the StatefulSet has fewer pods than spec.size: kubectl describe statefulset %s says why", poolName(mc))
	}
	return "", ""
}

// evicted says which server is leaving because the cluster ends it, and what that costs.
func evicted(seen observation) string {
	for _, pod := range seen.pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp != nil {
				return fmt.Sprintf("server %s is leaving node %q (%s), and its items are lost; those of the other servers stay", pod.Name, pod.Spec.NodeName, c.Reason)
			}
		}
	}
	return ""
}

func readyMessage(mc *v1alpha1.Memcached, seen observation) string {
	if *mc.Spec.Size == 0 {
		return "spec.size is 0"
	}
	for i := range seen.pods {
		if name := seen.pods[i].Name; seen.limits[name].wanted > 0 {
			return fmt.Sprintf("All servers are ready. The operator cannot connect to server %s, so it cannot say whether that has %dMi for items", name, seen.limits[name].wanted) + disruption.Sentence(seen.budgets)
		}
	}
	return "All servers are ready" + disruption.Sentence(seen.budgets)
}
