package pool

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about a spec that cannot be carried out: its limit of memory is too low, or a
// Secret that it names is missing. The servers stay as they are, and all that does not need
// what was refused goes on: scaling, repairs, and a change that was begun before.

// ReasonLowLimit is the reason in status.
const ReasonLowLimit = "MemoryLimitTooLow"

// Request is what the next step works towards.
type Request struct {
	// Memcached is the one of the user or, while that cannot be carried out, as the servers
	// have it.
	*v1alpha1.Memcached
	Template objects.PodTemplate
	// Refused is why the user's cannot be carried out; a missing Secret is in the inputs.
	Refused *status.Problem
	// IsHeld is true if it cannot be, and the one before is not known: nothing is applied.
	IsHeld bool
}

// RequestOf is what is worked towards for a Memcached, as it is or as it was.
func RequestOf(mc *v1alpha1.Memcached, seen Observation) (Request, error) {
	t, err := NextTemplate(mc, seen)
	if err != nil {
		return Request{Memcached: mc}, err
	}
	r := Request{Memcached: mc, Template: t, Refused: LowLimit(mc, t)}
	if r.Refused == nil && len(seen.Inputs.Missing) == 0 {
		return r, nil
	}
	if before, t, ok := accepted(mc, seen); ok {
		r.Memcached, r.Template = before, t
	} else {
		r.IsHeld = true
	}
	return r, nil
}

// accepted is the Memcached by which the present servers were made. What it was is read from
// their template, and it is taken for that only if it renders to the very template.
func accepted(mc *v1alpha1.Memcached, seen Observation) (*v1alpha1.Memcached, objects.PodTemplate, bool) {
	w, ok := Workload(mc, seen)
	if !ok || objects.IsOwned(seen.Deployment(), mc) && objects.IsOwned(seen.StatefulSet(), mc) {
		// There are no servers, or it is in the middle of a change of identity.
		return nil, objects.PodTemplate{}, false
	}
	var made corev1.PodTemplateSpec
	switch w := w.(type) {
	case *appsv1.Deployment:
		made = w.Spec.Template
	case *appsv1.StatefulSet:
		made = w.Spec.Template
	}
	before := withFields(mc, fieldsOf(&corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}))
	for _, role := range objects.Roles(before) {
		if slices.Contains(seen.Inputs.Missing, role.Name) {
			return nil, objects.PodTemplate{}, false // not even the present servers could start
		}
	}
	has := podtemplate.Container(&made.Spec, objects.ServerContainer).Resources
	for _, r := range objects.Renderings {
		for _, own := range []corev1.ResourceRequirements{
			{}, {Limits: has.Limits}, {Requests: has.Requests}, {Limits: has.Limits, Requests: has.Requests},
		} {
			candidate := withOwnMemory(before, own)
			if t, err := objects.TemplateWith(candidate, r); err == nil && t.Revision == w.GetAnnotations()[objects.RevisionAnnotation] {
				return candidate, t, true
			}
		}
	}
	return nil, objects.PodTemplate{}, false
}

// withFields is a Memcached with the fields that a template was made from, as far as the
// template says them.
func withFields(mc *v1alpha1.Memcached, fields map[string]string) *v1alpha1.Memcached {
	before := mc.DeepCopy()
	spec := &before.Spec
	spec.Identity, spec.Upgrade = v1alpha1.Identity(fields["identity"]), v1alpha1.UpgradeStrategy(fields["upgrade"])
	spec.Image = fields["image"]
	for field, to := range map[string]*resource.Quantity{"memory": &spec.Memory, "maxItemSize": &spec.MaxItemSize} {
		if q, err := resource.ParseQuantity(fields[field]); err == nil {
			*to = q
		}
	}
	for field, to := range map[string]*int32{"maxConnections": &spec.MaxConnections, "threads": &spec.Threads, "port": &spec.Port} {
		if n, err := strconv.ParseInt(fields[field], 10, 32); err == nil {
			*to = int32(n)
		}
	}
	if fields["auth"] == "" {
		spec.Auth = nil
	}
	if fields["tls"] == "" {
		spec.TLS = nil
	}
	return before
}

// withOwnMemory is a Memcached whose template says this about the memory of the server's
// container.
func withOwnMemory(mc *v1alpha1.Memcached, own corev1.ResourceRequirements) *v1alpha1.Memcached {
	if mc.Spec.PodTemplate == nil {
		return mc
	}
	mc = mc.DeepCopy()
	server := podtemplate.Container(&mc.Spec.PodTemplate.Spec, objects.ServerContainer)
	set := func(list *corev1.ResourceList, own corev1.ResourceList) {
		memory, ok := own[corev1.ResourceMemory]
		if !ok {
			delete(*list, corev1.ResourceMemory)
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceMemory] = memory
	}
	set(&server.Resources.Limits, own.Limits)
	set(&server.Resources.Requests, own.Requests)
	return mc
}

// NextTemplate is the template that the servers are to have: of the rendering by
// which servers that are there need not be replaced.
func NextTemplate(mc *v1alpha1.Memcached, seen Observation) (objects.PodTemplate, error) {
	for _, r := range objects.Renderings {
		if t, err := objects.TemplateWith(mc, r); err != nil || isInUse(mc, seen, t) {
			return t, err
		}
	}
	return objects.DesiredTemplate(mc)
}

// isInUse says whether servers, or the object that makes them, are of a template,
// or of one that differs from it only in what is changed in place.
func isInUse(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) bool {
	d, s := seen.Deployment(), seen.StatefulSet()
	revision, template := d.Annotations[objects.RevisionAnnotation], d.Spec.Template.Annotations
	if objects.IsStable(mc) {
		revision, template = s.Annotations[objects.RevisionAnnotation], s.Spec.Template.Annotations
	}
	if revision == t.Revision || template[objects.ReplaceAnnotation] == t.Annotations[objects.ReplaceAnnotation] {
		return true
	}
	for _, pod := range seen.Pods {
		if pod.DeletionTimestamp == nil && pod.Annotations[objects.ReplaceAnnotation] == t.Annotations[objects.ReplaceAnnotation] {
			return true
		}
	}
	return false
}

// LowLimit reports a limit of the user's own that cannot hold what the spec allows: the
// kernel would end the servers, with their items, when clients use it.
func LowLimit(mc *v1alpha1.Memcached, t objects.PodTemplate) *status.Problem {
	needed, limit := objects.NeededMemory(mc, t.Rendering), t.Server().Resources.Limits[corev1.ResourceMemory]
	if limit.Cmp(needed) >= 0 {
		return nil
	}
	clients := "connections"
	if mc.Spec.TLS != nil {
		clients += " with TLS"
	}
	return &status.Problem{Reason: ReasonLowLimit, Message: fmt.Sprintf(
		"spec.podTemplate limits container %q to %s of memory, which is too little for %s of items and %d %s: set limits.memory to %s or more, or leave it out. The servers stay as they are",
		objects.ServerContainer, limit.String(), mc.Spec.Memory.String(), mc.Spec.MaxConnections, clients, needed.String())}
}

// IgnoredLimit says that servers as 0.0.2 made them do not have the limit of the user's own.
func IgnoredLimit(mc *v1alpha1.Memcached, t objects.PodTemplate) string {
	own, limit := objects.OwnMemory(mc, objects.Renderings[0]).Limits, t.Server().Resources.Limits[corev1.ResourceMemory]
	if !t.IsOf002 || own == nil || limit.Cmp(own[corev1.ResourceMemory]) == 0 {
		return ""
	}
	return fmt.Sprintf(". The container of each server is limited to %s of memory, as an earlier version of the operator did it, and to the %s of spec.podTemplate from the next cold change on",
		limit.String(), own.Memory())
}
