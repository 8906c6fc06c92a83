package pods

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NodeNotResponding is the reason of a condition that reports pods on a node that does not answer.
const NodeNotResponding = "NodeNotResponding"

// namedPods is how many pods of a node are named.
const namedPods = 3

// OnSilentNodes says which of the pods are on nodes that do not answer, since when, and what a user may do; empty if
// none is. The words stay the same until the node is back, or the pods are gone.
func OnSilentNodes(all ...corev1.Pod) string {
	var nodes []string
	on, since := map[string][]string{}, map[string]time.Time{}
	for i := range all {
		at, is := silentSince(&all[i])
		if !is {
			continue
		}
		node := all[i].Spec.NodeName
		if before, isKnown := since[node]; !isKnown {
			nodes = append(nodes, node)
			since[node] = at
		} else if at.Before(before) {
			since[node] = at
		}
		on[node] = append(on[node], all[i].Name)
	}
	slices.Sort(nodes)
	for i, node := range nodes {
		nodes[i] = fmt.Sprintf("node %q has not answered since %s, and may still run %s: bring it back or, if it is gone for good, kubectl delete node %s",
			node, since[node].UTC().Format(time.RFC3339), named(on[node]), node)
	}
	return strings.Join(nodes, "; ")
}

// named are pods by their names, or some of many.
func named(pods []string) string {
	slices.Sort(pods)
	words := "pod "
	if len(pods) > 1 {
		words = "pods "
	}
	words += strings.Join(pods[:min(len(pods), namedPods)], ", ")
	if more := len(pods) - namedPods; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words
}

// silentSince is since when the node of a pod is known not to answer, if it is.
//
// The pod says so itself, and nobody needs the right to see Nodes: when a node has sent nothing for as long as
// --node-monitor-grace-period of kube-controller-manager (50 s), its pods are marked as not ready, and all else is left
// as the kubelet wrote it last. The kubelet itself gives a reason with each pod that is not ready, whether because of a
// container or of a readiness gate. A pod that was not ready before has no such mark.
func silentSince(pod *corev1.Pod) (time.Time, bool) {
	ready, containers := condition(pod, corev1.PodReady), condition(pod, corev1.ContainersReady)
	is := ready.Status == corev1.ConditionFalse && ready.Reason == "" && containers.Status == corev1.ConditionTrue && pod.Spec.NodeName != ""
	return ready.LastTransitionTime.Time, is
}

// condition is a condition of a pod, empty if it is not there.
func condition(pod *corev1.Pod, of corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == of {
			return c
		}
	}
	return corev1.PodCondition{}
}
