package change

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/metrics"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file has the steps that announce a change of servers, choose one and change it, and that
// give servers the labels that they lack.

// PlanUpgrade announces in status the change that the servers need.
func PlanUpgrade(mc *v1alpha1.Memcached, v *View) (p Plan) {
	p.Remember(&mc.Status).Upgrade = v.planned
	return p
}

// ChooseServer names in status the server whose turn it is: only the one that status has named
// before is changed, by the steps that follow.
func ChooseServer(mc *v1alpha1.Memcached, v *View) Plan {
	p := v.turn.report
	if v.turn.server != nil {
		p.Remember(&mc.Status).Upgrade.Server = v.turn.server.Name
	}
	if v.turn.lost != "" {
		up := p.Remember(&mc.Status).Upgrade
		up.Kind, up.Message = v1alpha1.Cold, up.Message+"; but "+v.turn.lost
	}
	return p
}

// GrowServer requests the memory that the container of the server lacks whose turn it is, or
// waits for it.
func GrowServer(_ *v1alpha1.Memcached, v *View) (p Plan) {
	pod := v.turn.server
	switch {
	case !v.turn.isDue || pool.HasRoom(v.Observation, pod, v.template):
	case !pool.RequestsEnough(pod, v.template):
		p.Then = append(p.Then, resized(pod, v.template))
	case pool.IsPending(pod, corev1.PodReasonDeferred):
		p.Waits = fmt.Sprintf("server %s waits for room on node %s to get more memory", pod.Name, pod.Spec.NodeName)
	default:
		p.Waits = fmt.Sprintf("the container of server %s is getting more memory", pod.Name)
	}
	return p
}

// UpdateServer changes the server whose turn it is, if it has room to grow, and no other one
// can be evicted.
func UpdateServer(mc *v1alpha1.Memcached, v *View) (p Plan) {
	pod := v.turn.server
	if !v.turn.isDue || !pool.HasRoom(v.Observation, pod, v.template) {
		return p
	}
	if p.Waits = unguarded(mc, v.Observation, pod); p.Waits != "" {
		return p
	}
	image := pool.PulledAs(v.Observation, pod.Spec.NodeName, v.template.Server().Image)
	patch, err := ServerChange{pod, v.template, image, revisionOf(mc, v.Observation), v.Now}.Patch()
	if err != nil {
		p.Err = err
		return p
	}
	p.Then = append(p.Then, patch)
	return p
}

// resized gives the container of a server the memory that the template has. It is of the
// subresource, and refused when the pod has changed since it was seen.
func resized(pod *corev1.Pod, t objects.PodTemplate) loop.Patch {
	server := t.Server().Resources
	size := server.Limits.Memory().String()
	return loop.Patch{
		Object: pod, Part: "resize", Subresource: "resize", Why: "server gets more memory: " + size, IfSame: true,
		Spec: map[string]any{"containers": []any{map[string]any{
			"name": objects.ServerContainer, "resources": map[string]any{
				"limits": map[string]any{"memory": size}, "requests": map[string]any{"memory": server.Requests.Memory().String()},
			},
		}}},
		Otherwise: annotate(pod, "refused", objects.RefusedAnnotation, size),
	}
}

// ServersChanged counts the servers that were changed in place.
var ServersChanged = metrics.Counter("fairlead_memcached_server_changes_total",

	"Servers that were changed in place.")

// ServerChange is a server, and what it is to become in place.
type ServerChange struct {
	Pod      *corev1.Pod
	Template objects.PodTemplate
	Image    string // of the server: what admission makes of the template's
	Revision string // the StatefulSet's name for the template, if it is of one
	Now      time.Time
}

// revisionOf is the StatefulSet's name for the template; "" for a Deployment.
func revisionOf(mc *v1alpha1.Memcached, seen pool.Observation) string {
	if !objects.IsStable(mc) {
		return ""
	}
	return seen.StatefulSet().Status.UpdateRevision
}

// Patch makes a running pod what its template is, and whose it is. It is refused when
// the pod has changed since it was seen.
func (c ServerChange) Patch() (loop.Patch, error) {
	annotations := map[string]any{}
	metadata := map[string]any{"annotations": annotations}
	p := loop.Patch{
		Object: c.Pod, Part: "change", Why: "server changed in place: image " + c.Template.Server().Image, IfSame: true,
		Metadata: metadata, Done: ServersChanged.WithLabelValues().Inc,
	}
	if c.Revision != "" {
		metadata["labels"] = map[string]any{objects.RevisionLabel: c.Revision}
	}
	for name, value := range c.Template.Annotations {
		if c.Pod.Annotations[name] != value {
			annotations[name] = value
		}
	}
	var containers []any
	var replaced []string
	for _, want := range c.Template.Spec.Containers {
		image := pool.RequestedImage(c.Pod, want.Name) != want.Image
		switch {
		case image && want.Name == objects.ServerContainer:
			containers = append(containers, map[string]any{"name": want.Name, "image": c.Image})
		case image:
			containers = append(containers, map[string]any{"name": want.Name, "image": want.Image})
		}
		if image || want.Name == objects.ServerContainer && pool.ChangesSettings(c.Pod, c.Template) {
			for _, s := range c.Pod.Status.ContainerStatuses {
				if s.Name == want.Name && s.ContainerID != "" {
					replaced = append(replaced, s.ContainerID)
				}
			}
		}
	}
	annotations[objects.ReplacedAnnotation] = strings.Join(replaced, ",")
	annotations[objects.ChangedAnnotation] = c.Now.UTC().Format(time.RFC3339)
	starts, err := pool.StartsAfter(c.Pod, c.Template, c.Now)
	switch {
	case err != nil:
		return p, err
	case starts != "":
		annotations[objects.StartsAnnotation] = starts
	case c.Pod.Annotations[objects.StartsAnnotation] != "":
		annotations[objects.StartsAnnotation] = nil
	}
	switch isImage := pool.RequestedImage(c.Pod, objects.ServerContainer) != c.Template.Server().Image; {
	case !isImage && pool.ChangesSettings(c.Pod, c.Template):
		annotations[objects.EndedAnnotation] = c.Now.UTC().Format(time.RFC3339)
	case isImage && c.Pod.Annotations[objects.EndedAnnotation] != "":
		annotations[objects.EndedAnnotation] = nil // the kubelet ends it
	}
	if len(containers) > 0 {
		p.Spec = map[string]any{"containers": containers}
	}
	return p, nil
}

// CountChanged has the StatefulSet's controller count servers that were changed before another writer changed the
// template, as kubectl rollout restart does: it would wait for them without an end.
func CountChanged(mc *v1alpha1.Memcached, v *View) (p Plan) {
	s := v.StatefulSet()
	if v.isHeld || v.planned == nil || !objects.IsStable(mc) || !pool.IsAsApplied(s, v.template) {
		return p
	}
	for i := range v.Pods {
		pod := &v.Pods[i]
		has := pod.Labels[objects.RevisionLabel]
		isOthers := has != "" && has != s.Status.UpdateRevision && pod.Labels[objects.IdentityLabel] == string(v1alpha1.StableIdentity)
		if isOthers && pod.DeletionTimestamp == nil && pool.IsUpdated(pod, v.template) && pool.IsAvailable(pod, v.Now) {
			p.Then = append(p.Then, loop.Patch{
				Object: pod, Part: "change", IfSame: true, Why: "server counted as changed: the template was changed meanwhile",
				Metadata: map[string]any{"labels": map[string]any{objects.RevisionLabel: s.Status.UpdateRevision}},
			})
		}
	}
	return p
}

// LostPause is how often the operator looks for servers that are missing.
const LostPause = time.Minute

// RestoreLabels gives servers that were found without them their labels: their StatefulSet then
// takes them back. While servers are missing, it wakes when it is time to look for them.
func RestoreLabels(_ *v1alpha1.Memcached, v *View) (p Plan) {
	if len(v.Missing) == 0 {
		return p
	}
	if p.WakeIn(pool.UntilReported(v.Observation)); p.WakeAfter == 0 {
		p.WakeIn(LostPause)
	}
	for _, pod := range v.Lost {
		p.Then = append(p.Then, loop.Patch{Object: pod, Part: "labels", Why: "restoring the labels of a server",
			IfSame: true, Metadata: map[string]any{"labels": v.StatefulSet().Spec.Template.Labels}})
	}
	return p
}
