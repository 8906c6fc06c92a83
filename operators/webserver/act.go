package webserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
)

// This file has every write, but for the status.

// webServerKind is the kind under which status writes are remembered.
const webServerKind = "WebServer"

// errAgain says that what was decided rests on what was not so: decide again.
var errAgain = errors.New("something was otherwise than the cache had it")

// act makes the children what the plan says. What fails does not keep the
// others from being written. The observation has them as they are afterwards.
func (r *reconciler) act(ctx context.Context, ws *webv1.WebServer, seen *observation, next plan) error {
	var failures []error
	for _, child := range next.wanted {
		if err := r.write(ctx, ws, seen, child); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", child.kind, err))
		}
	}
	for _, child := range next.unwanted {
		if err := r.remove(ctx, child); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// write makes one child what it is to be, if it is not.
func (r *reconciler) write(ctx context.Context, ws *webv1.WebServer, seen *observation, child wanted) error {
	if s, ok := child.seen.(*corev1.Service); ok {
		if err := r.clearPorts(ctx, ws, s, child.config.(*corev1ac.ServiceApplyConfiguration).Spec.Ports); err != nil {
			return err
		}
	}
	was := child.seen.DeepCopyObject().(client.Object)
	outcome, err := r.children.Apply(ctx, ws, child.seen, child.config)
	switch {
	case isPortTaken(err):
		return r.whoHasThePort(ctx, ws, seen, was, err)
	case apierrors.IsNotFound(err):
		return r.whatIsGone(ctx, seen, child.kind, err)
	case err != nil:
		return err
	}
	switch {
	case outcome.Found && isCopy(child.kind):
		return nil // it cannot be otherwise: its name says what is in it
	case outcome.Found:
		return errAgain
	case outcome.Created, outcome.Applied:
		r.writes.Note(child.kind, child.seen)
		r.log(ctx, ws, child.kind, outcome)
	}
	return nil
}

func isCopy(kind string) bool { return kind == configMapKind || kind == secretKind }

// whoHasThePort settles a refusal because of the node port. It may be this
// very Service that has it, without the label by which the cache shows it: the
// API server looks at the port before it looks at the name. And if only the
// guide's port is taken, the next try asks for any.
func (r *reconciler) whoHasThePort(ctx context.Context, ws *webv1.WebServer, seen *observation, was client.Object, refusal error) error {
	if was.GetUID() != "" {
		return refusal
	}
	hidden, err := get(ctx, r.live, ws, serviceKind)
	if err != nil {
		return err
	}
	if hidden.GetUID() != "" {
		seen.children[serviceKind.kind] = hidden
		return errAgain
	}
	if serviceSpec(ws).NodePort != 0 || ws.Status.NodePort != 0 || !seen.guidePort {
		return refusal
	}
	seen.guidePort = false
	r.guidePort.isTaken(seen.now)
	return errAgain
}

// whatIsGone settles a write that found nothing: the cluster may not have the kind
// any more.
func (r *reconciler) whatIsGone(ctx context.Context, seen *observation, kind string, failure error) error {
	for _, optional := range r.optional {
		if optional.kind != kind {
			continue
		}
		gone, err := optional.isGone(ctx)
		if err != nil {
			return err
		}
		if gone {
			delete(seen.children, kind)
			seen.missing = append(seen.missing, optional)
			return errAgain
		}
	}
	return failure
}

// clearPorts takes away the ports of a Service of which somebody has changed
// the number. An apply would add ours to theirs, and two cannot have one name.
// They keep the node port that they have: another one is the apply's business.
func (r *reconciler) clearPorts(ctx context.Context, ws *webv1.WebServer, s *corev1.Service, want []corev1ac.ServicePortApplyConfiguration) error {
	if s.UID == "" || !metav1.IsControlledBy(s, ws) || !portsReplaced(want, s) {
		return nil
	}
	ports := slices.Clone(want)
	for i := range ports {
		ports[i].NodePort = nil
		if live := currentNodePort(s, *ports[i].Name); live != 0 && serviceSpec(ws).Type != corev1.ServiceTypeClusterIP {
			ports[i].NodePort = &live
		}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": s.UID},
		{"op": "test", "path": "/metadata/resourceVersion", "value": s.ResourceVersion},
		{"op": "replace", "path": "/spec/ports", "value": ports},
	})
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, s, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(managedBy))
}

// portsReplaced says whether a port of ours is not there, while another one
// has its name.
func portsReplaced(ports []corev1ac.ServicePortApplyConfiguration, s *corev1.Service) bool {
	for _, want := range ports {
		for _, have := range s.Spec.Ports {
			if *want.Port == have.Port && *want.Protocol == have.Protocol {
				continue
			}
			if *want.Name == have.Name {
				return true
			}
		}
	}
	return false
}

// remove deletes a child that is not asked for any more.
func (r *reconciler) remove(ctx context.Context, child client.Object) error {
	uid := child.GetUID()
	err := r.client.Delete(ctx, child, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	log.FromContext(ctx).Info("deleted, because it is not asked for any more", "kind", kindOf(child), "child", child.GetName())
	return nil
}

func kindOf(obj client.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	name := fmt.Sprintf("%T", obj)
	return name[strings.LastIndex(name, ".")+1:]
}

// log tells what was done to a child, in the words of its user.
func (r *reconciler) log(ctx context.Context, ws *webv1.WebServer, kind string, outcome apply.Outcome) {
	logger := log.FromContext(ctx).WithValues("kind", kind, "child", outcome.Object.GetName())
	if outcome.Created {
		childWrites.WithLabelValues(kind, "create").Inc()
		if ws.Status.Selector != "" && !isCopy(kind) { // it has been there before
			logger.Info(kind + " created again")
			return
		}
		logger.Info(kind + " created")
		return
	}
	childWrites.WithLabelValues(kind, "apply").Inc()
	const image = "spec.template.spec.containers[" + serverContainer + "].image"
	var others []string
	for _, change := range outcome.Changes {
		switch {
		case change.Path == "spec.replicas":
			logger.Info(fmt.Sprintf("replicas changed from %v to %v", change.From, change.To), "from", change.From, "to", change.To)
		case change.Path == image:
			logger.Info(fmt.Sprintf("image changed from %v to %v", change.From, change.To), "from", change.From, "to", change.To)
		case !strings.Contains(change.Path, "annotations."+managedBy):
			others = append(others, change.Path)
		}
	}
	if len(others) > 0 {
		logger.Info(kind+" changed", "fields", others)
	}
}
