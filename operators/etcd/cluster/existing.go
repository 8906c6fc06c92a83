package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about pods and volumes that are there before the cluster is: of one whose EtcdCluster
// lost its status, was deleted without them, or came back with them from a backup of the Kubernetes
// cluster. They may have the only copy of its data, and pods with its labels serve its clients. So
// nothing is founded beside them: what is this EtcdCluster's own is taken in, and about the rest the
// user decides.

// observeExisting finds what may be of a cluster that status knows nothing of. It is read from the API
// server, all of the namespace, once when an EtcdCluster is new: what has lost its labels is in no cache.
func observeExisting(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) error {
	if ec.Spec.Paused || ec.Status.ClusterID != "" || len(ec.Status.Founders) > 0 || ec.Status.Restoring != nil {
		return nil
	}
	place := func(obj client.Object, isKnown bool, take func()) {
		switch {
		case isKnown || !mayBeOf(ec, obj):
		case objects.IsOwned(ec, obj):
			take()
			seen.Unmarked = append(seen.Unmarked, obj)
		case !isClaim(obj) || !objects.IsEnding(obj): // a claim that ends brings its data to nobody
			seen.Existing = append(seen.Existing, obj)
		}
	}
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(ec.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		place(pod, seen.Pods[pod.Name] != nil, func() { seen.Pods[pod.Name] = pod })
	}
	var claims corev1.PersistentVolumeClaimList
	if err := r.Live.List(ctx, &claims, client.InNamespace(ec.Namespace)); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		place(claim, seen.Claims[claim.Name] != nil, func() { seen.Claims[claim.Name] = claim })
	}
	return nil
}

// mayBeOf says whether an object may be of a cluster: it has its label, or the name of a member and
// nothing that owns it.
func mayBeOf(ec *v1beta2.EtcdCluster, obj client.Object) bool {
	if obj.GetLabels()[objects.ClusterLabel] != "" {
		return obj.GetLabels()[objects.ClusterLabel] == ec.Name
	}
	controller := metav1.GetControllerOf(obj)
	return objects.IsMemberName(ec, obj.GetName()) && (controller == nil || controller.Kind == objects.ClusterKind.Kind)
}

// settleExisting keeps a cluster from being founded beside what may be of it.
func settleExisting(ec *v1beta2.EtcdCluster, v *view.View) (s step) {
	var leaving, foreign, orphans []client.Object
	for _, obj := range v.Existing {
		switch controller := metav1.GetControllerOf(obj); {
		case objects.IsEnding(obj), controller != nil && controller.Kind == objects.ClusterKind.Kind:
			leaving = append(leaving, obj)
		case controller != nil || !objects.IsMemberName(ec, obj.GetName()):
			foreign = append(foreign, obj)
		default:
			orphans = append(orphans, obj)
		}
	}
	switch {
	case len(v.Existing) == 0:
		return s
	case len(foreign) > 0:
		s.stall(reason.Existing, "The labels of this cluster are on %s, which is not of it: clients would be led there. Delete it, or take its label %s", named(foreign), objects.ClusterLabel)
	case len(leaving) > 0:
		s.report(reason.Existing, "Waiting for what is left of an earlier EtcdCluster of this name to be gone: %s", named(leaving))
	case !ec.Spec.AdoptExisting:
		s.stall(reason.Existing, "%s may be of this cluster, and have its data. To take them in, set spec.adoptExisting to true; to begin with an empty cluster, delete them", named(orphans))
	case !objects.HasVolumes(ec) && slices.ContainsFunc(orphans, isClaim):
		s.stall(reason.Existing, "%s cannot be taken in: the members of this cluster have no volumes. An EtcdCluster with spec.pod.persistentVolumeClaimSpec can", named(orphans))
	default:
		s = adopt(ec, orphans...)
	}
	s.later()
	return s.last()
}

// adopt takes in what may be of the cluster, as the user wants it.
func adopt(ec *v1beta2.EtcdCluster, orphans ...client.Object) (s step) {
	for _, obj := range orphans {
		s.Do(mark(ec, obj, "taken in, as spec.adoptExisting requests"))
	}
	s.report(reason.Existing, "Taking in %s", named(orphans))
	s.later()
	return s
}

// isOrphan says whether an object may be of a cluster, and is nobody's.
func isOrphan(ec *v1beta2.EtcdCluster, obj client.Object) bool {
	return mayBeOf(ec, obj) && objects.IsMemberName(ec, obj.GetName()) && metav1.GetControllerOf(obj) == nil && !objects.IsEnding(obj)
}

func isClaim(obj client.Object) bool {
	_, is := obj.(*corev1.PersistentVolumeClaim)
	return is
}

// named are the kinds and names of objects, for a message.
func named(all []client.Object) string {
	const most = 6
	var names []string
	for i, obj := range all {
		if i == most {
			return fmt.Sprintf("%s and %d others", strings.Join(names, ", "), len(all)-most)
		}
		names = append(names, fmt.Sprintf("%s %s", loop.KindOf(obj), obj.GetName()))
	}
	return strings.Join(names, ", ")
}

// takeIn finds out which cluster it is whose members are there although status knows of none. What is
// there may have the only data, so nothing is deleted, and nothing created but members of volumes if the
// user wants that, until a member that has a leader says which cluster it is of.
func takeIn(ec *v1beta2.EtcdCluster, v *view.View, s *step) {
	var cluster members.ID
	for _, m := range v.Present {
		switch a := m.Answer; {
		case !a.HasList() || a.Status.Leader == 0 || a.Status.ClusterID == cluster:
		case cluster != 0:
			s.stall(reason.Forgotten, "Status was emptied, and the pods are members of different clusters: %s and %s. Delete the pods of one of them", cluster, a.Status.ClusterID)
			return
		default:
			cluster = a.Status.ClusterID
		}
	}
	s.soon()
	if cluster != 0 {
		s.remember(ec).ClusterID = cluster.String()
		s.claim("cluster")
		return
	}
	const nobody = "Status was emptied, and no member that has a leader says which cluster it is of. "
	if !ec.Spec.AdoptExisting || !objects.HasVolumes(ec) {
		s.stall(reason.Forgotten, nobody+"Nothing is created or deleted until one does, or status.clusterID is restored. "+
			"To start members for the volumes that have no pod, set spec.adoptExisting to true")
		return
	}
	for _, m := range v.Present {
		if m.Claim != nil && !objects.IsEnding(m.Claim) {
			s.Do(created(ec, v, m, v.Wanted, objects.Start{IsSealed: true, Token: string(ec.UID)})...)
		}
	}
	s.report(reason.Forgotten, nobody+"Waiting for the members of the volumes that are there")
}
