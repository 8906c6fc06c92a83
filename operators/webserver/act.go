package webserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	was := child.seen.DeepCopyObject().(client.Object)
	var outcome apply.Outcome
	var err error
	for range 2 {
		outcome, err = r.children.Apply(ctx, ws, child.seen, child.config)
		if !outcome.Found || !isCopy(child.kind) {
			break
		}
		// The name of a copy says what is in it: it may only lack a label.
	}
	switch {
	case isPortTaken(err):
		return r.whoHasThePort(ctx, ws, seen, was, err)
	case apierrors.IsNotFound(err):
		return r.whatIsGone(ctx, seen, child.kind, err)
	case err != nil:
		return err
	}
	switch {
	case outcome.Found:
		return errAgain
	case outcome.Created, outcome.Applied:
		r.writes.Note(child.kind, child.seen)
		r.log(ctx, ws, child.kind, outcome)
	}
	if outcome.TakenBack {
		r.events.tookBack(ws, child.kind, child.seen)
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
