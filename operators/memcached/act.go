package memcached

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
)

// This file has every write, but for the status.

// errAgain says that what was decided rests on what was not so: decide again.
var errAgain = errors.New("something was otherwise than the cache had it")

// act does what the plan says. What fails does not keep the rest from being
// done, except that no pod is changed then.
func (r *reconciler) act(ctx context.Context, mc *v1alpha1.Memcached, next plan) error {
	if next.adopt != nil {
		if err := r.adopt(ctx, mc, next.adopt); err != nil {
			return fmt.Errorf("%s: %w", deploymentKind.kind, err)
		}
		return errAgain
	}
	var failures []error
	for _, c := range next.copies {
		if err := r.write(ctx, mc, secretKind, c.seen, secretCopy(mc, c.role, c.data)); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", secretKind, err))
		}
	}
	for _, child := range next.wanted {
		if err := r.write(ctx, mc, child.kind, child.seen, child.config); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", child.kind, err))
		}
	}
	for _, obj := range next.unwanted {
		failures = append(failures, r.remove(ctx, obj))
	}
	for _, pod := range next.pulls {
		failures = append(failures, r.pull(ctx, pod))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for _, pod := range next.lost {
		failures = append(failures, r.restore(ctx, pod, next.lostLabels))
	}
	for _, pod := range next.told {
		failures = append(failures, r.tell(ctx, pod, next.secretsHash))
	}
	if next.resize != nil {
		failures = append(failures, r.resize(ctx, *next.resize))
	}
	if next.change != nil {
		failures = append(failures, r.change(ctx, *next.change))
	}
	return errors.Join(failures...)
}

// write makes one child what it is to be, if it is not.
func (r *reconciler) write(ctx context.Context, mc *v1alpha1.Memcached, kind string, seen client.Object, config runtime.ApplyConfiguration) error {
	outcome, err := r.children.Apply(ctx, mc, seen, config)
	switch {
	case err != nil:
		return err
	case outcome.Found:
		return errAgain
	case outcome.Created, outcome.Applied:
		r.writes.Note(kind, seen)
		r.log(ctx, mc, kind, outcome)
	}
	if outcome.TakenBack {
		r.events.tookBack(mc, kind, seen)
	}
	return nil
}

// adopt gives another operator's Deployment the labels by which the cache shows
// it. Its pods stay as they are.
func (r *reconciler) adopt(ctx context.Context, mc *v1alpha1.Memcached, d *appsv1.Deployment) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": d.UID, "resourceVersion": d.ResourceVersion, "labels": labels(mc),
	}})
	if err != nil {
		return err
	}
	if err := r.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(managedBy)); err != nil {
		return err
	}
	r.writes.Note(deploymentKind.kind, d)
	log.FromContext(ctx).Info("Deployment of another operator is replaced by a StatefulSet", "child", d.Name)
	return nil
}

// remove deletes what is not needed any more.
func (r *reconciler) remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := r.client.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy("Background"))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	kind := kindOf(obj)
	if kind != podKind {
		r.writes.NoteDeleted(kind, obj)
		log.FromContext(ctx).Info("deleted, because it is not asked for any more", "kind", kind, "child", obj.GetName())
	}
	return nil
}

// pull makes a pod that pulls an image. Its name says which and where, so one
// that is there is that pod.
func (r *reconciler) pull(ctx context.Context, pod *corev1.Pod) error {
	err := r.client.Create(ctx, pod, client.FieldOwner(managedBy))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		log.FromContext(ctx).Info("pulling an image ahead", "image", pod.Spec.Containers[0].Image, "node", pod.Spec.NodeName)
	}
	return err
}

// tell makes a pod's kubelet look at the pod's Secrets at once.
func (r *reconciler) tell(ctx context.Context, pod *corev1.Pod, hash string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]any{secretsAnnotation: hash},
	}})
	if err != nil {
		return err
	}
	return r.patchPod(ctx, pod, patch)
}

// change changes a server in place: one write, in which the image, the settings
// and the revision come together.
func (r *reconciler) change(ctx context.Context, c change) error {
	changed, err := c.changed()
	if err != nil {
		return err
	}
	patch, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	if err := r.patchPod(ctx, c.pod, patch); err != nil {
		return err
	}
	serverChanges.Inc()
	log.FromContext(ctx).Info("server changed in place", "server", c.pod.Name, "image", c.template.server().Image)
	return nil
}

// resize gives a server's container more memory.
func (r *reconciler) resize(ctx context.Context, want resize) error {
	patch, err := json.Marshal(want.changed())
	if err != nil {
		return err
	}
	pod := want.pod.DeepCopy()
	err = r.client.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(managedBy))
	if apierrors.IsForbidden(err) {
		log.FromContext(ctx).Info("server cannot get more memory where it is", "server", pod.Name, "limit", want.memory.String(), "reason", err.Error())
		return r.refuse(ctx, want)
	}
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	r.writes.Note(podKind, pod)
	log.FromContext(ctx).Info("server gets more memory", "server", pod.Name, "limit", want.memory.String())
	return nil
}

// refuse notes with a pod that it cannot be given the memory.
func (r *reconciler) refuse(ctx context.Context, want resize) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": want.pod.UID, "annotations": map[string]any{refusedAnnotation: want.memory.String()},
	}})
	if err != nil {
		return err
	}
	return r.patchPod(ctx, want.pod, patch)
}

func (r *reconciler) patchPod(ctx context.Context, pod *corev1.Pod, patch []byte) error {
	// Of a copy: the plan goes by the pod as it was seen.
	pod = pod.DeepCopy()
	err := r.client.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(managedBy))
	if apierrors.IsNotFound(err) {
		return nil // the event that tells it is on its way
	}
	if err == nil {
		r.writes.Note(podKind, pod)
	}
	return err
}

func kindOf(obj client.Object) string {
	name := fmt.Sprintf("%T", obj)
	return name[strings.LastIndex(name, ".")+1:]
}

// log tells what was done to a child, in the words of its user.
func (r *reconciler) log(ctx context.Context, mc *v1alpha1.Memcached, kind string, outcome apply.Outcome) {
	logger := log.FromContext(ctx).WithValues("kind", kind, "child", outcome.Object.GetName())
	if outcome.Created {
		childWrites.WithLabelValues(kind, "create").Inc()
		if mc.Status.Selector != "" && kind != secretKind && mc.Status.ObservedGeneration == mc.Generation { // it has been there before
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
		case kind == secretKind: // its content is nobody's business
			others = []string{"data"}
		case change.Path == "spec.replicas":
			logger.Info(fmt.Sprintf("size changed from %v to %v", change.From, change.To), "from", change.From, "to", change.To)
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
