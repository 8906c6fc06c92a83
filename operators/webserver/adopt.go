package webserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// This file is about spec.adopt. What it is about is read from the API server, because
// the cache does not show it, until it is taken over: one write for each object, of
// metadata only, so that no pod restarts. What follows is as with the Deployment of
// another operator: its template stays until the spec changes.

// adoptPoll is how often a Deployment or Service that is refused is looked at again: no
// watch shows it.
const adoptPoll = 5 * time.Second

// adoptee has the objects that spec.adopt is about and that the WebServer does not own;
// nil where there is none.
type adoptee struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	// budgets are the PodDisruptionBudgets of others for the Deployment's pods.
	budgets []string
}

func observeAdoptee(ctx context.Context, r *loop.Reader, ws *webv1.WebServer, seen observation) (adoptee, error) {
	var a adoptee
	if ws.Spec.Adopt == nil {
		return a, nil
	}
	isThere := func(child, live client.Object, name string) (bool, error) {
		if isOwned(child, ws) {
			return false, nil
		}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: ws.Namespace, Name: name}, live)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && !isOwned(live, ws), err
	}
	d, s := &appsv1.Deployment{}, &corev1.Service{}
	if is, err := isThere(seen.deployment(), d, childName(ws)); err != nil {
		return a, err
	} else if is {
		a.deployment = d
		pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Labels: d.Spec.Template.Labels}}}
		if a.budgets, err = disruption.Others(ctx, r, webServerKind, client.ObjectKey{Namespace: ws.Namespace}, pods); err != nil {
			return a, err
		}
	}
	if !adoptsService(ws) {
		return a, nil
	}
	is, err := isThere(seen.service(), s, serviceName(ws))
	if is {
		a.service = s
	}
	return a, err
}

// adopt takes over what spec.adopt is about, all of it or nothing.
func adopt(ws *webv1.WebServer, seen observation, desired podTemplate, next *plan) {
	a := seen.adoptee
	if a.deployment == nil && a.service == nil || desired.isNone() {
		return
	}
	if a.deployment != nil {
		next.refusals = deploymentRefusals(ws, seen, desired)
	}
	if a.service != nil {
		next.refusals = append(next.refusals, serviceRefusals(ws, seen)...)
	}
	if len(next.refusals) > 0 {
		next.Wake(seen.now.Add(adoptPoll))
		return
	}
	owned := map[string]any{"labels": labels(ws), "ownerReferences": []any{ownedBy(ws)}}
	take := func(obj client.Object, metadata map[string]any) {
		next.Do(loop.Patch{Object: obj, Part: "adopt", Metadata: metadata, IfCurrent: true, IfSame: true, Why: "adopted, as spec.adopt requests"})
	}
	if a.deployment != nil {
		marked := maps.Clone(owned)
		marked["annotations"] = map[string]string{adoptedAnnotation: desired.revision}
		take(a.deployment, marked)
	}
	if a.service != nil {
		take(a.service, owned)
	}
	next.Again = true // on what the cache shows then
}

// deploymentRefusals are why the Deployment cannot be adopted: what it is besides its
// pods, and then what of its pods the spec does not have.
func deploymentRefusals(ws *webv1.WebServer, seen observation, desired podTemplate) []string {
	d := seen.adoptee.deployment
	all := ownerRefusals(ws, d, deploymentKind)
	refuse := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(d.Spec.Selector.MatchExpressions) > 0 {
		refuse("the Deployment's selector has matchExpressions, which a WebServer's cannot have")
	}
	if !maps.Equal(d.Spec.Selector.MatchLabels, ws.Spec.Adopt.Selector) {
		refuse("spec.adopt.selector must be %s", inJSON(d.Spec.Selector.MatchLabels))
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		refuse("the Deployment's strategy is Recreate, and a WebServer starts a new pod before it stops an old one")
	}
	if d.Spec.Paused {
		refuse("the Deployment is paused: resume it, and wait until it is complete")
	} else if !isComplete(d) {
		refuse("the Deployment is not complete: wait until all its pods have its template and are available")
	}
	as := seen
	as.children = seen.children.With(d)
	if n := replicas(ws, as); n != nil && d.Spec.Replicas != nil && *n != *d.Spec.Replicas {
		refuse("spec.replicas must be %d", *d.Spec.Replicas)
	}
	if len(seen.adoptee.budgets) > 0 && hasBudget(ws) {
		refuse("spec.disruption.enabled must be false, or PodDisruptionBudget %q be deleted", seen.adoptee.budgets[0])
	}
	template := *d.Spec.Template.DeepCopy()
	for label := range d.Spec.Selector.MatchLabels { // if the selector is the right one, the pods keep them
		delete(template.Labels, label)
	}
	return append(all, undescribed(ws, template, desired)...)
}

// ownerRefusals are about whose an object is.
func ownerRefusals(ws *webv1.WebServer, obj client.Object, kind string) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []string{fmt.Sprintf("the %s is controlled by %s %q", kind, owner.Kind, owner.Name)}
	}
	if obj.GetDeletionTimestamp() != nil {
		return []string{fmt.Sprintf("the %s is being deleted", kind)}
	}
	if obj.GetAnnotations()[webv1.AnnotationAdoptBy] != ws.Name {
		return []string{fmt.Sprintf("the %s does not say that it may be adopted: kubectl annotate %s %s %s=%s",
			kind, strings.ToLower(kind), obj.GetName(), webv1.AnnotationAdoptBy, ws.Name)}
	}
	return nil
}

// serviceRefusals are why the Service cannot be adopted: it must lead its clients to the
// same pods before and after.
func serviceRefusals(ws *webv1.WebServer, seen observation) []string {
	s, want := seen.adoptee.service, serviceSpec(ws)
	all := ownerRefusals(ws, s, "Service")
	refuse := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.Spec.Type != want.Type {
		refuse("spec.service.type must be %s", s.Spec.Type)
	}
	pods := ws.Spec.Adopt.Selector
	if d := seen.adoptee.deployment; d != nil {
		pods = d.Spec.Selector.MatchLabels
	}
	if !maps.Equal(s.Spec.Selector, pods) {
		refuse("the Service's selector is %s, and must be the Deployment's", inJSON(s.Spec.Selector))
	}
	var port *corev1.ServicePort
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.Port == want.Port && p.Protocol == corev1.ProtocolTCP {
			port = p
		}
	}
	if port == nil {
		if len(s.Spec.Ports) > 0 {
			refuse("spec.service.port must be %d", s.Spec.Ports[0].Port)
		} else {
			refuse("the Service has no port")
		}
		return all
	}
	if port.Name != "" && port.Name != httpName {
		refuse("port %d of the Service has the name %q, by which an Ingress may know it, and a WebServer's has the name %q: "+
			"leave spec.adopt.service out, and the Service stays as it is", port.Port, port.Name, httpName)
	}
	if want.NodePort != 0 && port.NodePort != want.NodePort {
		refuse("spec.service.nodePort must be %d, or left out", port.NodePort)
	}
	if n := targetOf(seen, port.TargetPort); n != ws.Spec.Port {
		refuse("spec.port must be the one that the Service leads to, %s (%d)", port.TargetPort.String(), n)
	}
	return all
}

// targetOf is the number of the port that a Service leads to; 0 if the pods have none of
// that name.
func targetOf(seen observation, target intstr.IntOrString) int32 {
	if target.Type == intstr.Int {
		return target.IntVal
	}
	d := seen.adoptee.deployment
	if d == nil {
		d = seen.deployment()
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == target.StrVal {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// staysUnnamed says whether the only port of an adopted Service has no name, and keeps none:
// with a new name it would lead nowhere until its EndpointSlices have that, too.
func staysUnnamed(ws *webv1.WebServer, s *corev1.Service) bool {
	return adoptsService(ws) && ws.Spec.TLS == nil && len(s.Spec.Ports) == 1 && s.Spec.Ports[0].Name == ""
}

// adoptionRefused reports that spec.adopt cannot be carried out.
func adoptionRefused(next *plan) *status.Problem {
	if len(next.refusals) == 0 {
		return nil
	}
	return &status.Problem{Reason: reasonNotAdopted, Message: notAdopted(next)}
}

func notAdopted(next *plan) string {
	return "Nothing was adopted, and nothing was changed: " + strings.Join(next.refusals, "; ")
}

// adoptedMessage says what else the next change of the spec will change, and what no change will.
func adoptedMessage(ws *webv1.WebServer, seen observation, desired podTemplate) string {
	message := "The Deployment was made by another operator or a user: its pods stay as they are until the spec changes."
	if !drains(seen.deployment()) {
		message += " They do not drain: the first change may fail some requests."
	}
	if kept := serviceKeeps(ws, seen); kept != "" {
		message += " " + kept
	}
	if desired.isNone() {
		return message
	}
	fields := templateDifferences(desired, seen.deployment())
	if len(fields) == 0 {
		return message
	}
	return fmt.Sprintf("%s Then they get, too: %s%s", message, strings.Join(fields[:min(len(fields), differencesShown)], ", "), tooMany(fields))
}

// serviceKeeps says what no change of the spec will change of an adopted Service; empty if that is nothing.
func serviceKeeps(ws *webv1.WebServer, seen observation) string {
	s := seen.service()
	if !adoptsService(ws) || !isOwned(s, ws) || len(staying(ws, s)) == 0 {
		return ""
	}
	return fmt.Sprintf("The Service keeps, also later, what its former owner has set: %s.", strings.Join(staying(ws, s), ", "))
}

// differencesShown is how many fields of an adopted template are named.
const differencesShown = 20

func tooMany(fields []string) string {
	if more := len(fields) - differencesShown; more > 0 {
		return fmt.Sprintf(" and %d more", more)
	}
	return ""
}

// templateDifferences are the fields that the pods do not have as desired.
func templateDifferences(desired podTemplate, d *appsv1.Deployment) []string {
	live, _ := asServer(d.Spec.Template, desired)
	changes, err := apply.Differences(json.RawMessage(desired.json), live)
	if err != nil {
		return nil
	}
	var fields []string
	for _, change := range changes {
		fields = append(fields, change.Path)
	}
	return fields
}

func inJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
