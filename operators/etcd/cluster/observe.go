package cluster

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/operators/etcd/certificates"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// observer reads what the next step depends on.
type observer struct {
	asker        *session.Asker
	certificates *certificates.Reader
	agentImage   string
	now          func() time.Time
	users        memo.Map[types.NamespacedName, user]
	gone         memo.Map[types.NamespacedName, map[string]time.Time] // see view.Observation
}

// forget drops what is kept in memory about an EtcdCluster that is gone.
func (o *observer) forget(ec types.NamespacedName) {
	o.asker.Forget(ec)
	o.certificates.Forget(ec)
	o.users.Forget(ec)
	o.gone.Forget(ec)
	figures.Forget(ec)
}

func (o *observer) observe(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster) (view.Observation, error) {
	seen := view.Observation{
		Now: o.now().Round(0), Children: r.Children, AgentImage: o.agentImage,
		Peers: &corev1.Service{}, Clients: &corev1.Service{},
		Pods: map[string]*corev1.Pod{}, Claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	for _, service := range []struct {
		name string
		into *corev1.Service
	}{{ec.Name, seen.Peers}, {objects.ClientServiceName(ec), seen.Clients}} {
		err := r.Get(ctx, client.ObjectKey{Namespace: ec.Namespace, Name: service.name}, service.into)
		if client.IgnoreNotFound(err) != nil {
			return seen, err
		}
	}
	var err error
	if seen.Reached, err = services.Read(ctx, r, seen.Clients); err != nil {
		return seen, err
	}
	if err := observeMembers(ctx, r, ec, &seen); err != nil {
		return seen, err
	}
	for _, observe := range []func(context.Context, *loop.Reader, *v1beta2.EtcdCluster, *view.Observation) error{observeRestores, observeBudgets, observeSeed, observeNodes} {
		if err := observe(ctx, r, ec, &seen); err != nil {
			return seen, err
		}
	}
	if seen.Certs, err = o.certificates.Observe(ctx, r, ec, seen.Pods); err != nil {
		return seen, err
	}
	seen.Waiting = o.asker.Before(objects.Key(ec)).Waiting
	if ec.Spec.TLS == nil || seen.Certs.Client != nil {
		as, wrong, err := o.user(ctx, r, ec)
		if err != nil {
			return seen, err
		}
		if err = o.asker.Renew(ec, seen.Certs, as); err != nil {
			return seen, err
		}
		if err = o.observeJoin(ctx, r, ec, as, &seen); err != nil {
			return seen, err
		}
		answered := o.asker.Ask(ctx, ec, seen.Pods, seen.Now)
		seen.Revision, seen.Led, seen.Leaderless = answered.Revision, answered.Led, answered.Leaderless
		seen.Answers, seen.Maintenance, seen.Rewritten = answered.Answers, answered.Maintenance, answered.Rewritten
		seen.Growth = answered.Growth
		seen.Auth = view.Auth{Problem: wrong, LoggedIn: answered.LoggedIn}
		return seen, o.observeGone(ctx, r, ec, &seen)
	}
	return seen, nil
}

// observeBudgets finds PodDisruptionBudgets of others, beside the operator's.
func observeBudgets(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) (err error) {
	if !objects.HasBudget(ec) {
		return nil
	}
	var pods []corev1.Pod
	for _, pod := range seen.Pods {
		pods = append(pods, *pod)
	}
	seen.Budgets, err = disruption.Others(ctx, r, objects.ClusterKind.Kind, objects.Key(ec), pods)
	return err
}

// observeMembers reads the pods and volumes.
func observeMembers(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	of, err := podsAndClaims(ctx, r, client.InNamespace(ec.Namespace), client.MatchingLabels{objects.ClusterLabel: ec.Name})
	if err != nil {
		return err
	}
	for _, obj := range of {
		if objects.IsOwned(ec, obj) {
			take(seen, obj)
			seen.NoteOrphan(ec, obj)
		}
	}
	if err := observeReplaced(ctx, r, ec, seen); err != nil {
		return err
	}
	if err := observeExisting(ctx, r, ec, seen); err != nil {
		return err
	}
	recorded := remembered(ec)
	for _, name := range slices.Concat(recorded, ec.Status.Founders) {
		for _, obj := range missing(ec, seen, name) {
			found, err := observeHidden(ctx, r, ec, name, slices.Contains(recorded, name), obj, seen)
			if err != nil {
				return err
			} else if found {
				take(seen, obj)
			}
		}
	}
	return nil
}

// podsAndClaims lists both.
func podsAndClaims(ctx context.Context, from client.Reader, in ...client.ListOption) ([]client.Object, error) {
	var pods corev1.PodList
	if err := from.List(ctx, &pods, in...); err != nil {
		return nil, err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &claims, in...); err != nil {
		return nil, err
	}
	var all []client.Object
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	for i := range claims.Items {
		all = append(all, &claims.Items[i])
	}
	return all, nil
}

// take notes a pod or a claim as one of the cluster.
func take(seen *view.Observation, obj client.Object) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		seen.Pods[obj.Name] = obj
	case *corev1.PersistentVolumeClaim:
		seen.Claims[obj.Name] = obj
	}
}

// missing are the kinds of objects that a member has, and that were not seen of it.
func missing(ec *v1beta2.EtcdCluster, seen *view.Observation, name string) (all []client.Object) {
	if seen.Pods[name] == nil {
		all = append(all, &corev1.Pod{})
	}
	if seen.Claims[name] == nil && objects.HasVolumes(ec) {
		all = append(all, &corev1.PersistentVolumeClaim{})
	}
	return all
}

// observeHidden reads an object that the list of the cache does not show. One that was just created
// the cache is given time for. A member is lost when its data is: before anybody concludes that
// of one that is recorded, the API server is asked, because what has lost its labels is in no cache.
func observeHidden(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, name string, isRecorded bool, obj client.Object, seen *view.Observation) (bool, error) {
	found, err := observeNamed(ctx, r, ec, name, isRecorded, obj, seen)
	if found && (obj.GetLabels()[apply.ManagedByLabel] != objects.ManagedBy || obj.GetLabels()[objects.ClusterLabel] != ec.Name) {
		seen.Unmarked = append(seen.Unmarked, obj)
	}
	return found, err
}

// observeNamed reads an object of the cluster by its name.
func observeNamed(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, name string, isRecorded bool, obj client.Object, seen *view.Observation) (bool, error) {
	at := client.ObjectKey{Namespace: ec.Namespace, Name: name}
	err := r.Get(ctx, at, obj)
	if apierrors.IsNotFound(err) && isRecorded {
		err = r.Live.Get(ctx, at, obj)
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	case !objects.IsOwned(ec, obj):
		seen.Taken = obj
		return false, nil
	}
	return true, nil
}

// remembered are the members that status has, also the one that is being added.
func remembered(ec *v1beta2.EtcdCluster) []string {
	var all []string
	for _, m := range ec.Status.MemberList {
		if objects.IsOurs(ec, m.Name) {
			all = append(all, m.Name)
		}
	}
	if ec.Status.MemberBeingAdded != "" {
		all = append(all, ec.Status.MemberBeingAdded)
	}
	return all
}
