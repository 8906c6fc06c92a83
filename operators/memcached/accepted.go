package memcached

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
)

// This file is about a spec that cannot be carried out: its limit of memory is too low, or a
// Secret that it names is missing. The servers stay as they are, and all that does not need
// what was refused goes on: scaling, repairs, and a change that was begun before.

// request is what the next step works towards.
type request struct {
	// Memcached is the one of the user or, while that cannot be carried out, as the servers
	// have it.
	*v1alpha1.Memcached
	template podTemplate
	// refused is why the user's cannot be carried out; a missing Secret is in the inputs.
	refused *status.Problem
	// isHeld is true if it cannot be, and the one before is not known: nothing is applied.
	isHeld bool
}

func requestOf(mc *v1alpha1.Memcached, seen observation) (request, error) {
	t, err := nextTemplate(mc, seen)
	if err != nil {
		return request{Memcached: mc}, err
	}
	r := request{Memcached: mc, template: t, refused: lowLimit(mc, t)}
	if r.refused == nil && len(seen.inputs.missing) == 0 {
		return r, nil
	}
	if before, t, ok := accepted(mc, seen); ok {
		r.Memcached, r.template = before, t
	} else {
		r.isHeld = true
	}
	return r, nil
}

// accepted is the Memcached by which the present servers were made. What it was is read from
// their template, and it is taken for that only if it renders to the very template.
func accepted(mc *v1alpha1.Memcached, seen observation) (*v1alpha1.Memcached, podTemplate, bool) {
	w, ok := workload(mc, seen)
	if !ok || isOwned(seen.deployment(), mc) && isOwned(seen.statefulSet(), mc) { // or in the middle of a change of identity
		return nil, podTemplate{}, false
	}
	var made corev1.PodTemplateSpec
	switch w := w.(type) {
	case *appsv1.Deployment:
		made = w.Spec.Template
	case *appsv1.StatefulSet:
		made = w.Spec.Template
	}
	before := withFields(mc, fieldsOf(&corev1.Pod{ObjectMeta: made.ObjectMeta, Spec: made.Spec}))
	for _, role := range roles(before) {
		if slices.Contains(seen.inputs.missing, role.name) {
			return nil, podTemplate{}, false // not even the present servers could start
		}
	}
	has := podtemplate.Container(&made.Spec, serverContainer).Resources
	for _, r := range renderings {
		for _, own := range []corev1.ResourceRequirements{
			{}, {Limits: has.Limits}, {Requests: has.Requests}, {Limits: has.Limits, Requests: has.Requests},
		} {
			candidate := withOwnMemory(before, own)
			if t, err := templateWith(candidate, r); err == nil && t.revision == w.GetAnnotations()[revisionAnnotation] {
				return candidate, t, true
			}
		}
	}
	return nil, podTemplate{}, false
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
	server := podtemplate.Container(&mc.Spec.PodTemplate.Spec, serverContainer)
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
