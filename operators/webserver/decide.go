package webserver

import (
	"encoding/json"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
)

// optionalPoll is how often the operator looks for a requested kind that is missing. A
// variable, so that tests need not wait.
var optionalPoll = 30 * time.Second

// plan is what is to be done.
type plan struct {
	loop.Plan

	// chosen is the pod template, and why that one.
	chosen choice
	// failed is the rollout that is given up. Only status is written then:
	// what follows from it is the next step.
	failed *webv1.FailedRollout
	// rollout is how far the pods are.
	rollout rollout
	// refusals are why what spec.adopt is about is not taken over.
	refusals []string
}

// choice is the pod template that the Deployment gets.
type choice struct {
	// template is empty when there is none to give.
	template podTemplate
	// desired is the template that the spec requests; empty when an input is missing.
	desired podTemplate
	// lastGood is the one to go back to; empty when there is none.
	lastGood podTemplate
	// rolledBack is true when template is lastGood because desired failed.
	rolledBack bool
	// adopted is true when another operator made the Deployment, and it keeps its
	// template, because the spec still requests the revision adoptedFor, as at the
	// takeover.
	adopted    bool
	adoptedFor string
}

// decide is the next step: pure, so that the tests need no cluster.
func decide(ws *webv1.WebServer, seen observation) (*plan, error) {
	next := &plan{}
	var desired podTemplate
	if seen.inputs.problem == nil {
		var err error
		if desired, err = requestedTemplate(ws, seen); err != nil {
			return next, err
		}
	}
	adopt(ws, seen, desired, next)
	if seen.adoptee.deployment != nil {
		next.chosen = choice{desired: desired}
		return next, nil // all else is for when it is the WebServer's
	}
	next.rollout = judge(ws, seen, desired)
	if failure := next.rollout.failure; failure != nil {
		next.failed = failure
		next.chosen = choice{desired: desired, template: currentTemplate(seen)}
		return next, nil
	}

	next.chosen = choose(ws, seen, desired)
	for _, s := range seen.inputs.all() {
		if s.data != nil && !slices.ContainsFunc(seen.copies, func(c metav1.PartialObjectMetadata) bool { return c.Name == s.name }) {
			next.Do(loop.Apply{Object: emptyCopy(s.kind), Want: copyOf(ws, s), Named: true})
		}
	}
	var unwanted []client.Object
	want := func(child client.Object, requested bool, config func() runtime.ApplyConfiguration) {
		switch {
		case child == nil: // the cluster has no such kind
		case requested:
			next.Do(loop.Apply{Object: child, Want: config(), Refused: tutorialPortRefused(ws, seen, child)})
		case isOwned(child, ws) && child.GetDeletionTimestamp() == nil:
			unwanted = append(unwanted, child)
		}
	}
	want(seen.service(), seen.adoptee.service == nil, func() runtime.ApplyConfiguration {
		return service(ws, nodePort(ws, seen), httpsNodePort(ws, seen), findsByName(ws, seen, next.chosen), staysUnnamed(ws, seen.service()))
	})
	if next.chosen.adopted || !next.chosen.template.isNone() {
		d, err := deployment(ws, next.chosen, replicas(ws, seen))
		if err != nil {
			return next, err
		}
		var write loop.Write = loop.Apply{Object: seen.deployment(), Want: d, IfCurrent: changesTemplate(seen, next.chosen)}
		if isForeign(seen.deployment()) && !next.chosen.adopted {
			if write, err = loop.ReplaceTemplate(seen.deployment(), managedBy, d); err != nil {
				return next, err
			}
			next.Again = true // status is about the Deployment as it is then
		}
		if good := next.chosen.lastGood; good.isNone() || isKept(seen, good) {
			next.Do(write)
		} else {
			// The template for a rollback is kept before the Deployment gets another one.
			next.Writes = append([]loop.Write{loop.Apply{Object: &appsv1.ControllerRevision{}, Want: kept(ws, seen, good), Named: true}}, next.Writes...)
			next.Then = append(next.Then, write)
		}
	}
	want(loop.The[*policyv1.PodDisruptionBudget](seen.children), hasBudget(ws), func() runtime.ApplyConfiguration { return disruptionBudget(ws) })
	want(loop.The[*autoscalingv2.HorizontalPodAutoscaler](seen.children), ws.Spec.Autoscaling != nil, func() runtime.ApplyConfiguration { return autoscaler(ws) })
	want(loop.The[*networkingv1.Ingress](seen.children), ws.Spec.Ingress != nil, func() runtime.ApplyConfiguration { return ingress(ws) })
	want(seen.children[httpRouteKind], ws.Spec.Gateway != nil, func() runtime.ApplyConfiguration { return httpRoute(ws) })
	want(seen.children[routeKind], ws.Spec.Route != nil, func() runtime.ApplyConfiguration { return openShiftRoute(ws) })
	for _, child := range append(unwanted, useless(seen, next)...) {
		next.Remove(child, loop.NotRequested)
	}
	if next.rollout.wakeAfter > 0 {
		next.Wake(seen.now.Add(next.rollout.wakeAfter))
	}
	if len(seen.missing) > 0 {
		next.Wake(seen.now.Add(optionalPoll))
	}
	return next, nil
}

// changesTemplate says whether a Deployment that is there gets another template. An operator
// that does not see the present spec, or that the template has failed, must not: another
// one may lead by now, and would have to undo it.
func changesTemplate(seen observation, chosen choice) bool {
	return seen.deployment().UID != "" && !chosen.adopted && !currentTemplate(seen).is(chosen.template)
}

// tutorialPortRefused is for a Service that requests the tutorial's port and does not get
// it: the next try requests any port.
func tutorialPortRefused(ws *webv1.WebServer, seen observation, child client.Object) func(error) bool {
	if _, isService := child.(*corev1.Service); !isService || !seen.tutorialPort || nodePort(ws, seen) != tutorialNodePort {
		return nil
	}
	return func(err error) bool {
		if isPortTaken(err) {
			seen.tutorialPortTaken()
			return true
		}
		return false
	}
}

// choose finds the pod template. The template to roll back to is in a ControllerRevision,
// and which revision is good is in status. A Deployment that is created again
// starts with the good template: one that is not yet proven follows as a rollout.
func choose(ws *webv1.WebServer, seen observation, desired podTemplate) choice {
	d := seen.deployment()
	current, good := currentTemplate(seen), seen.good
	c := choice{desired: desired, template: desired, lastGood: good}
	adoptedFor := d.Annotations[adoptedAnnotation]
	foreign := isForeign(d)
	switch {
	case foreign && (desired.isNone() || adoptedFor == "" || adoptedFor == desired.revision):
		c.template, c.adopted, c.adoptedFor = podTemplate{}, true, adoptedFor
		if adoptedFor == "" {
			c.adoptedFor = desired.revision
		}
	case foreign:
		c.lastGood = templateOf(d.Spec.Template)
	case d.UID == "" && !good.isNone() && good.revision == ws.Status.LastGoodRevision:
		c.template = good
		c.rolledBack = isFailed(ws, seen, desired)
	case desired.isNone():
		c.template = current
	case isFailed(ws, seen, desired) && !good.isNone():
		c.template, c.rolledBack = good, true
	case !current.is(desired) && !current.isNone() && current.revision == ws.Status.LastGoodRevision:
		c.lastGood = current
	}
	return c
}

// isForeign says whether a Deployment has the template that another operator gave it.
// Without the annotation it may still be this operator's: its pods have a revision.
func isForeign(d *appsv1.Deployment) bool {
	return d.UID != "" && d.Annotations[templateAnnotation] == "" && d.Spec.Template.Annotations[revisionAnnotation] == ""
}

// currentTemplate is the template that the Deployment was last given.
func currentTemplate(seen observation) podTemplate {
	return templateFrom(seen.deployment().Annotations[templateAnnotation])
}

// isKept says whether a ControllerRevision has a template.
func isKept(seen observation, t podTemplate) bool {
	return slices.ContainsFunc(seen.revisions, func(r appsv1.ControllerRevision) bool { return r.Annotations[revisionAnnotation] == t.revision })
}

// templateOf makes a template to go back to of one that another operator made.
func templateOf(template corev1.PodTemplateSpec) podTemplate {
	data, err := json.Marshal(template)
	if err != nil {
		return podTemplate{}
	}
	return templateFrom(string(data))
}

// replicas are those of the spec. With an autoscaler they are the autoscaler's: nil once
// it has set them, and until then the present ones, within its bounds. The operator's own
// autoscaler never sets 0, and does nothing while they are 0; another one, such as KEDA,
// may have good reason to. An apply without a field that the operator still owns would
// remove it, so those are applied as they are.
func replicas(ws *webv1.WebServer, seen observation) *int32 {
	live := seen.deployment().Spec.Replicas
	if auto := ws.Spec.Autoscaling; auto != nil {
		if isScaled(seen.deployment()) && *live != 0 {
			return nil
		}
		have := auto.MinReplicas
		if live != nil {
			have = *live
		}
		return new(min(max(have, auto.MinReplicas), auto.MaxReplicas))
	}
	switch {
	case !seen.autoscaled || live == nil:
		return ws.Spec.Replicas
	case ownsReplicas(seen.deployment()):
		return live
	}
	return nil
}

// useless are the copies that no pod can need any more, and the templates that no
// rollback needs.
func useless(seen observation, next *plan) []client.Object {
	if !next.rollout.complete || next.chosen.adopted || !currentTemplate(seen).is(next.chosen.template) {
		return nil
	}
	var useless []client.Object
	for i, r := range seen.revisions {
		if r.Annotations[revisionAnnotation] != next.chosen.lastGood.revision {
			useless = append(useless, &seen.revisions[i])
		}
	}
	for i, c := range seen.copies {
		if !next.chosen.template.uses(c.Name) && !next.chosen.lastGood.uses(c.Name) && !next.chosen.desired.uses(c.Name) {
			useless = append(useless, &seen.copies[i])
		}
	}
	return useless
}

func emptyCopy(kind string) client.Object {
	if kind == secretKind {
		return &corev1.Secret{}
	}
	return &corev1.ConfigMap{}
}
