package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/operators/etcd/certificates"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// observation is all that decide reads, besides the EtcdCluster.
type observation struct {
	now      time.Time
	children loop.Children
	// peers and clients are the two Services; empty objects where there is none.
	peers, clients *corev1.Service
	// reached are the pods that the Service for clients leads to.
	reached services.Targets
	// pods and claims are those of the cluster, by name, also those that are ending, and of the seed of the restore
	// that is under way.
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// budgets are PodDisruptionBudgets of others that select pods, too.
	budgets []string
	// unmarked are pods and claims that have lost the label by which the cache shows them, or their owner
	// reference.
	unmarked []client.Object
	// existing are pods and claims that may be of a cluster of which nothing is known yet, and are not this
	// EtcdCluster's.
	existing []client.Object
	// seeds are pods and claims of all seeds that there were, as far as they are there.
	seeds []client.Object
	// restores are the EtcdRestores that name the cluster, and restore is the one that is next.
	restores []*v1beta2.EtcdRestore
	restore  *v1beta2.EtcdRestore
	// kept are the replaced volumes that were set aside for the restore that is under way.
	kept []string
	// agentImage is the image of what fetches backups.
	agentImage string
	// taken is a pod or claim that has the name of a member, and is another owner's.
	taken client.Object
	// answers are what the members of the pods say, by the pods' names.
	answers map[string]session.Answer
	// led is when each member last said that there is a leader, and leaderless since when none does; zero if
	// one does.
	led        map[string]time.Time
	leaderless time.Time
	// revision is the last revision that any member was seen to have.
	revision int64
	// waiting is what the cluster waited for when it was last decided, and since when.
	waiting session.Waiting
	// maintenance is the last that this operator has decided on.
	maintenance session.Maintenance
	// certs are the certificates of a cluster with TLS.
	certs objects.Certificates
}

func (o observation) budget() *policyv1.PodDisruptionBudget {
	return loop.The[*policyv1.PodDisruptionBudget](o.children)
}

// observer reads what the next step depends on.
type observer struct {
	asker        *session.Asker
	certificates *certificates.Reader
	agentImage   string
	now          func() time.Time
}

// forget drops what is kept in memory about an EtcdCluster that is gone.
func (o *observer) forget(ec types.NamespacedName) {
	o.asker.Forget(ec)
	o.certificates.Forget(ec)
	figures.Forget(ec)
}

func (o *observer) observe(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster) (observation, error) {
	seen := observation{
		now: o.now().Round(0), children: r.Children, agentImage: o.agentImage,
		peers: &corev1.Service{}, clients: &corev1.Service{},
		pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{},
	}
	for _, service := range []struct {
		name string
		into *corev1.Service
	}{{ec.Name, seen.peers}, {objects.ClientServiceName(ec), seen.clients}} {
		err := r.Get(ctx, client.ObjectKey{Namespace: ec.Namespace, Name: service.name}, service.into)
		if client.IgnoreNotFound(err) != nil {
			return seen, err
		}
	}
	var err error
	if seen.reached, err = services.Read(ctx, r, seen.clients); err != nil {
		return seen, err
	}
	if err := observeMembers(ctx, r, ec, &seen); err != nil {
		return seen, err
	}
	for _, observe := range []func(context.Context, *loop.Reader, *v1beta2.EtcdCluster, *observation) error{observeRestores, observeBudgets, observeSeed} {
		if err := observe(ctx, r, ec, &seen); err != nil {
			return seen, err
		}
	}
	if seen.certs, err = o.certificates.Observe(ctx, r, ec, seen.pods); err != nil {
		return seen, err
	}
	seen.waiting = o.asker.Before(objects.Key(ec)).Waiting
	if ec.Spec.TLS == nil || seen.certs.Client != nil {
		if err = o.asker.Renew(ec, seen.certs); err != nil {
			return seen, err
		}
		answered := o.asker.Ask(ctx, ec, seen.pods, seen.now)
		seen.revision, seen.led, seen.leaderless = answered.Revision, answered.Led, answered.Leaderless
		seen.answers, seen.maintenance = answered.Answers, answered.Maintenance
	}
	return seen, nil
}

// observeBudgets finds PodDisruptionBudgets of others, beside the operator's.
func observeBudgets(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *observation) (err error) {
	if !objects.HasBudget(ec) {
		return nil
	}
	var pods []corev1.Pod
	for _, pod := range seen.pods {
		pods = append(pods, *pod)
	}
	seen.budgets, err = disruption.Others(ctx, r, objects.ClusterKind.Kind, objects.Key(ec), pods)
	return err
}

// observeMembers reads the pods and volumes.
func observeMembers(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *observation) error {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(ec.Namespace), client.MatchingLabels{objects.ClusterLabel: ec.Name}); err != nil {
		return err
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; objects.IsOwned(ec, pod) {
			seen.pods[pod.Name] = pod
			seen.noteOrphan(ec, pod)
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.List(ctx, &claims, client.InNamespace(ec.Namespace), client.MatchingLabels{objects.ClusterLabel: ec.Name}); err != nil {
		return err
	}
	for i := range claims.Items {
		if claim := &claims.Items[i]; objects.IsOwned(ec, claim) {
			seen.claims[claim.Name] = claim
			seen.noteOrphan(ec, claim)
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
		isRecorded := slices.Contains(recorded, name)
		if seen.pods[name] == nil {
			pod := &corev1.Pod{}
			if found, err := observeHidden(ctx, r, ec, name, isRecorded, pod, seen); err != nil {
				return err
			} else if found {
				seen.pods[name] = pod
			}
		}
		if seen.claims[name] == nil && objects.HasVolumes(ec) {
			claim := &corev1.PersistentVolumeClaim{}
			if found, err := observeHidden(ctx, r, ec, name, isRecorded, claim, seen); err != nil {
				return err
			} else if found {
				seen.claims[name] = claim
			}
		}
	}
	return nil
}

// noteOrphan notes that an object of the cluster has lost its owner reference.
func (o *observation) noteOrphan(ec *v1beta2.EtcdCluster, obj client.Object) {
	if !metav1.IsControlledBy(obj, ec) {
		o.unmarked = append(o.unmarked, obj)
	}
}

// observeHidden reads an object that the list of the cache does not show. One that was just created
// the cache is given time for. A member is lost when its data is: before anybody concludes that
// of one that is recorded, the API server is asked, because what has lost its labels is in no cache.
func observeHidden(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, name string, isRecorded bool, obj client.Object, seen *observation) (bool, error) {
	found, err := observeNamed(ctx, r, ec, name, isRecorded, obj, seen)
	if found && (obj.GetLabels()[apply.ManagedByLabel] != objects.ManagedBy || obj.GetLabels()[objects.ClusterLabel] != ec.Name) {
		seen.unmarked = append(seen.unmarked, obj)
	}
	return found, err
}

// observeNamed reads an object of the cluster by its name.
func observeNamed(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, name string, isRecorded bool, obj client.Object, seen *observation) (bool, error) {
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
		seen.taken = obj
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
