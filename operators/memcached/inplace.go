package memcached

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// This file has the steps of a change in place; doc.go has the order.

// turn is the server that is changed in place now, or is the next to be.
type turn struct {
	// server is the one that status is to name; nil for none.
	server *corev1.Pod
	// isDue says that status has named it, and that it waits for nothing but memory, and
	// that no other one can be evicted.
	isDue bool
	// isGuarded says that no other one may be evicted from now on.
	isGuarded bool
	// lost says why the server that was changed before has lost its cache.
	lost string
	// report is what is waited for, and when to look again.
	report plan
}

// wait is what a step waits for: in words, empty if for nothing, and after how long to look
// again although nothing happens; 0 for never.
type wait struct {
	words string
	after time.Duration
}

// await takes over what a step waits for.
func (p *plan) await(w wait) {
	p.waits = w.words
	p.WakeIn(w.after)
}

// turnOf is whose turn it is: that of the server that status names, until it is available
// again, and then that of the next one.
func turnOf(mc *v1alpha1.Memcached, v *view) (t turn) {
	if slices.ContainsFunc(v.pods, func(pod corev1.Pod) bool { return isRestarting(&pod, v.now) }) {
		t.report.WakeIn(restartLasts)
	}
	if named := namedServer(mc, v); named == nil || !t.staysWith(v, named) {
		t.goesTo(v)
	}
	return t
}

// namedServer is the server that status names for this very change.
func namedServer(mc *v1alpha1.Memcached, v *view) *corev1.Pod {
	if v.announced == nil || v.announced.Revision != v.template.revision || v.announced.Server == "" {
		return nil
	}
	for i := range v.pods {
		if pod := &v.pods[i]; isLive(mc, pod) && pod.Name == v.announced.Server {
			return pod
		}
	}
	return nil
}

// isLive says whether a pod is to stay, and of the requested identity.
func isLive(mc *v1alpha1.Memcached, pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Labels[identityLabel] == string(mc.Spec.Identity)
}

// staysWith says whether it is still the turn of the server that status names.
func (t *turn) staysWith(v *view, named *corev1.Pod) bool {
	switch isThere := isAvailable(named, v.now); {
	case !isUpdated(named, v.template) && isThere && len(v.unavailable) > 0:
		t.report.waits = v.awaitsOthers()
	case !isUpdated(named, v.template):
		w, isHeld := beforeChange(v.observation, named, v.template)
		t.report.await(w)
		if isHeld {
			return false
		}
		t.isDue = w.words == ""
		t.isGuarded = t.isDue && hasRoom(v.observation, named, v.template)
	case !isThere:
		restart := restartOf(named, v.now)
		t.report.await(wait{restart.words(named, v.now), restart.after})
		t.report.overdue, t.isGuarded = restart.isOverdue, !restart.isOverdue
	default:
		if v.planned.Kind == v1alpha1.Warm {
			t.lost = lostCache(named)
		}
		return t.lost != "" // that is reported before another server is touched
	}
	t.server = named
	return true
}

// goesTo gives the turn to a server that is unavailable anyway, so that no further one becomes
// so or, if all are available, to the highest. One whose start Kubernetes would delay waits,
// and no other one waits for it.
func (t *turn) goesTo(v *view) {
	highestFirst := func(a, b *corev1.Pod) int { return ordinal(b) - ordinal(a) }
	for _, pod := range slices.SortedFunc(slices.Values(v.outdated), highestFirst) {
		if len(v.unavailable) > 0 && isAvailable(pod, v.now) {
			t.report.waits = v.awaitsOthers()
			continue
		}
		w, isHeld := beforeChange(v.observation, pod, v.template)
		t.report.await(w)
		if w.words == "" {
			t.server, t.isGuarded = pod, hasRoom(v.observation, pod, v.template)
		}
		if !isHeld {
			return
		}
	}
}

// awaitsOthers says which servers one that is available waits for.
func (v *view) awaitsOthers() string {
	return "waiting for unavailable servers: " + strings.Join(v.unavailable, ", ")
}

// beforeChange is what the restart of a server waits for: that it is not being restarted,
// that its image is on its node, or that Kubernetes does not hold it back. No other server
// waits for one that is held back.
func beforeChange(seen observation, pod *corev1.Pod, t podTemplate) (w wait, isHeld bool) {
	restart, image := restartOf(pod, seen.now), t.server().Image
	w.after = restart.after
	switch until := heldUntil(pod, t, seen.now); {
	case restart.isBusy:
		w.words = restart.words(pod, seen.now)
	case !restartsServer(pod, t) || pod.Spec.NodeName == "":
	case requestedImage(pod, serverContainer) != image && !isPulled(seen, pod.Spec.NodeName, image):
		w.words = fmt.Sprintf("image %s is being pulled on node %s", image, pod.Spec.NodeName)
	case until.After(seen.now) && isAvailable(pod, seen.now):
		return wait{
			fmt.Sprintf("server %s was restarted lately: Kubernetes would hold back its next start for 10 s or more, until %s",
				pod.Name, until.UTC().Format(time.TimeOnly)),
			until.Sub(seen.now),
		}, true
	}
	return w, false
}

// ordinal is the number at the end of a server's name.
func ordinal(pod *corev1.Pod) int {
	n := 0
	if i := strings.LastIndex(pod.Name, "-"); i >= 0 {
		_, _ = fmt.Sscanf(pod.Name[i+1:], "%d", &n) // 0 where there is none
	}
	return n
}

// chooseServer names in status the server whose turn it is: only the one that status has named
// before is changed, by the steps that follow.
func chooseServer(mc *v1alpha1.Memcached, v *view) plan {
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

// changeServer changes the server whose turn it is, if it has room to grow, and no other one
// can be evicted.
func changeServer(mc *v1alpha1.Memcached, v *view) (p plan) {
	pod := v.turn.server
	if !v.turn.isDue || !hasRoom(v.observation, pod, v.template) {
		return p
	}
	if p.waits = unguarded(mc, v.observation, pod); p.waits != "" {
		return p
	}
	image := pulledAs(v.observation, pod.Spec.NodeName, v.template.server().Image)
	patch, err := change{pod, v.template, image, revisionOf(mc, v.observation), v.now}.patch()
	if err != nil {
		p.Err = err
		return p
	}
	p.Then = append(p.Then, patch)
	return p
}

// change is a server, and what it is to become in place.
type change struct {
	pod      *corev1.Pod
	template podTemplate
	image    string // of the server: what admission makes of the template's
	revision string // the StatefulSet's name for the template, if it is of one
	now      time.Time
}

// revisionOf is the StatefulSet's name for the template; "" for a Deployment.
func revisionOf(mc *v1alpha1.Memcached, seen observation) string {
	if !isStable(mc) {
		return ""
	}
	return seen.statefulSet().Status.UpdateRevision
}

// patch makes a running pod what its template is, and whose it is. It is refused when
// the pod has changed since it was seen.
func (c change) patch() (loop.Patch, error) {
	annotations := map[string]any{}
	metadata := map[string]any{"annotations": annotations}
	p := loop.Patch{
		Object: c.pod, Part: "change", Why: "server changed in place: image " + c.template.server().Image, IfSame: true,
		Metadata: metadata, Done: serverChanges.WithLabelValues().Inc,
	}
	if c.revision != "" {
		metadata["labels"] = map[string]any{revisionLabel: c.revision}
	}
	for name, value := range c.template.Annotations {
		if c.pod.Annotations[name] != value {
			annotations[name] = value
		}
	}
	var containers []any
	var replaced []string
	for _, want := range c.template.Spec.Containers {
		image := requestedImage(c.pod, want.Name) != want.Image
		switch {
		case image && want.Name == serverContainer:
			containers = append(containers, map[string]any{"name": want.Name, "image": c.image})
		case image:
			containers = append(containers, map[string]any{"name": want.Name, "image": want.Image})
		}
		if image || want.Name == serverContainer && changesSettings(c.pod, c.template) {
			for _, s := range c.pod.Status.ContainerStatuses {
				if s.Name == want.Name && s.ContainerID != "" {
					replaced = append(replaced, s.ContainerID)
				}
			}
		}
	}
	annotations[replacedAnnotation] = strings.Join(replaced, ",")
	annotations[changedAnnotation] = c.now.UTC().Format(time.RFC3339)
	starts, err := startsAfter(c)
	switch {
	case err != nil:
		return p, err
	case starts != "":
		annotations[startsAnnotation] = starts
	case c.pod.Annotations[startsAnnotation] != "":
		annotations[startsAnnotation] = nil
	}
	switch isImage := requestedImage(c.pod, serverContainer) != c.template.server().Image; {
	case !isImage && changesSettings(c.pod, c.template):
		annotations[endedAnnotation] = c.now.UTC().Format(time.RFC3339)
	case isImage && c.pod.Annotations[endedAnnotation] != "":
		annotations[endedAnnotation] = nil // the kubelet ends it
	}
	if len(containers) > 0 {
		p.Spec = map[string]any{"containers": containers}
	}
	return p, nil
}

// countChanged has the StatefulSet's controller count servers that were changed before another writer changed the
// template, as kubectl rollout restart does: it would wait for them without an end.
func countChanged(mc *v1alpha1.Memcached, v *view) (p plan) {
	s := v.statefulSet()
	if v.isHeld || v.planned == nil || !isStable(mc) || !isAsApplied(s, v.template) {
		return p
	}
	for i := range v.pods {
		pod := &v.pods[i]
		has := pod.Labels[revisionLabel]
		isOthers := has != "" && has != s.Status.UpdateRevision && pod.Labels[identityLabel] == string(v1alpha1.StableIdentity)
		if isOthers && pod.DeletionTimestamp == nil && isUpdated(pod, v.template) && isAvailable(pod, v.now) {
			p.Then = append(p.Then, loop.Patch{
				Object: pod, Part: "change", IfSame: true, Why: "server counted as changed: the template was changed meanwhile",
				Metadata: map[string]any{"labels": map[string]any{revisionLabel: s.Status.UpdateRevision}},
			})
		}
	}
	return p
}
