package at

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/at/starter"
)

// This file is about runs whose node is found before their instant (spec.prepare: Node): by a placeholder, which is a
// pod of the same template with the start program in place of all commands.

const (
	// placeholderLead is how long before its time the placeholder is made, if prepareSeconds does not say.
	placeholderLead = time.Minute
	// clearance is how long before the instant the placeholder ends. The kubelet and the scheduler take most of that
	// time to notice that its room is free.
	clearance = time.Second
)

// placeholderGate is a condition of readiness that no controller sets: no Service sends anything to a placeholder.
var placeholderGate = corev1.PodReadinessGate{ConditionType: "at.example.com/placeholder"}

// placeholderFor is the pod that finds a node for the first attempt, and pulls its images there. It requests what the
// attempt's pod will, and nothing of the user's runs in it.
func placeholderFor(at *atv1alpha1.At, gvk schema.GroupVersionKind, name string, now time.Time) *corev1.Pod {
	pod := desiredPod(at, gvk, name, now)
	due, _ := scheduledTime(at) // there is none without
	spec := &pod.Spec
	spec.SchedulingGates = slices.Delete(spec.SchedulingGates, gateIndex(pod), gateIndex(pod)+1)
	spec.ReadinessGates = append(spec.ReadinessGates, placeholderGate)
	spec.ActiveDeadlineSeconds = nil
	spec.TerminationGracePeriodSeconds = new(int64(1)) // nothing is to be brought to an end

	mount := installStart(spec, podtemplate.Container(spec, commandContainer))
	standIn := func(c *corev1.Container, until time.Time) {
		c.Command, c.Args = []string{starter.Program, "--at", until.UTC().Format(time.RFC3339Nano)}, nil
		c.Lifecycle, c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil, nil
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	end := due.Add(-clearance)
	for i := range spec.InitContainers[1:] {
		if c := &spec.InitContainers[i+1]; c.RestartPolicy == nil {
			standIn(c, time.Unix(0, 0)) // at once: the next one waits for its end
		} else {
			standIn(c, end)
		}
	}
	for i := range spec.Containers {
		standIn(&spec.Containers[i], end)
	}
	return pod
}

// isPlaceholder says whether a pod of the operator is one that finds a node.
func isPlaceholder(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.ReadinessGates, placeholderGate)
}

// needsPlaceholder says whether the run of an At is one that a node is found for, and from when on.
func needsPlaceholder(at *atv1alpha1.At) (from, due time.Time, needs bool) {
	st := &at.Status
	isFirst := (st.Phase == atv1alpha1.Pending || st.Phase == "") && st.Attempts == 0 && st.NextAttemptTime == nil
	due, err := scheduledTime(at)
	if at.Spec.Prepare != atv1alpha1.PrepareNode || !isFirst || at.Spec.Suspend || err != nil {
		return from, due, false
	}
	lead := placeholderLead
	if own := at.Spec.PrepareSeconds; own != nil {
		lead = seconds(*own)
	}
	return due.Add(-lead), due, true
}

// withPlaceholder adds to a step what there is to do about the placeholder, and to say. All else comes first, for
// nothing depends on it: a run whose placeholder could not be made, or has lost its node, starts at its time like any
// other.
func withPlaceholder(at *atv1alpha1.At, seen observation, next step) step {
	pod := seen.placeholder
	from, due, needs := needsPlaceholder(at)
	wakes := earliest{next.wakeAt}
	switch {
	case pod != nil && !pod.DeletionTimestamp.IsZero(): // its deletion is an event
	case pod != nil && (!needs || !isMadeFrom(pod, at) || seen.now.Before(from)):
		if next.action == hold {
			next.action = removePlaceholder
		}
	case !needs, !seen.now.Before(due):
	case seen.now.Before(from):
		wakes.add(from)
	case pod == nil && cannotPrepare(at):
		if next.action == hold {
			next.news = news{} // it is said
		}
	case pod == nil:
		if next.action == hold {
			next.action = createPlaceholder
		}
	case next.action == hold, next.action == prepare:
		next.news = foundBy(pod, seen.now, next.news, &wakes)
	}
	next.wakeAt = wakes.time
	return next
}

// foundBy is what there is to say of a placeholder before the instant, beside or in place of what else there is.
func foundBy(pod *corev1.Pod, now time.Time, otherwise news, wakes *earliest) news {
	if pod.Status.Phase == corev1.PodFailed {
		return withoutPlaceholder("its placeholder was ended: " + cmp.Or(podReasonOf(pod), initFailure(pod)))
	}
	if words := pods.OnSilentNodes(*pod); words != "" {
		return withoutPlaceholder(words)
	}
	if started(pod) {
		otherwise.message += fmt.Sprintf(". Node %q has its images, and its placeholder %s keeps room there", pod.Spec.NodeName, pod.Name)
		return otherwise
	}
	say, look := slow(pod, now)
	if wakes.add(look); say.phase == "" {
		return otherwise
	}
	say.phase = atv1alpha1.Pending
	say.message += fmt.Sprintf(" (in its placeholder %s, before the run is due)", pod.Name)
	return say
}

// withoutPlaceholder is what there is to say when no node could be found before the instant.
func withoutPlaceholder(why string) news {
	return news{phase: atv1alpha1.Pending, reason: reasonNotPrepared,
		message: status.Shortened("No node is prepared for the run: "+why) + ". It still starts at its time, on any node that has room then"}
}

// nodeFor is the node that a placeholder has found; empty if it has found none, or for what the At was before.
func nodeFor(at *atv1alpha1.At, placeholder *corev1.Pod) string {
	if placeholder == nil || placeholder.Status.Phase == corev1.PodFailed || !isMadeFrom(placeholder, at) {
		return ""
	}
	return placeholder.Spec.NodeName
}

// preferNode has the scheduler take a node if it can: the node may have become unfit, which must not cost the run. Of a
// gated pod, preferences are what may be changed whatever they were.
func preferNode(spec *corev1.PodSpec, node string) {
	if node == "" {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	preferred := &spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}})
}
