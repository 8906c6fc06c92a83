package membership

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about pods and volumes that are there before the cluster is: of one whose EtcdCluster
// lost its status, was deleted without them, or came back with them from a backup of the Kubernetes
// cluster. They may have the only copy of its data, and pods with its labels serve its clients. So
// nothing is founded beside them: what is this EtcdCluster's own is taken in, and about the rest the
// user decides.

// SettleExisting keeps a cluster from being founded beside what may be of it.
func SettleExisting(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
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
		s.Stall(reason.Existing, "The labels of this cluster are on %s, which is not of it: clients would be led there. Delete it, or take its label %s", named(foreign), objects.ClusterLabel)
	case len(leaving) > 0:
		s.Report(reason.Existing, "Waiting for what is left of an earlier EtcdCluster of this name to be gone: %s", named(leaving))
	case !ec.Spec.AdoptExisting:
		s.Stall(reason.Existing, "%s may be of this cluster, and have its data. To take them in, set spec.adoptExisting to true; to begin with an empty cluster, delete them", named(orphans))
	case !objects.HasVolumes(ec) && slices.ContainsFunc(orphans, IsClaim):
		s.Stall(reason.Existing, "%s cannot be taken in: the members of this cluster have no volumes. An EtcdCluster with spec.pod.persistentVolumeClaimSpec can", named(orphans))
	default:
		s = Adopt(ec, orphans...)
	}
	s.Later()
	return s.Last()
}

// Adopt takes in what may be of the cluster, as the user wants it.
func Adopt(ec *v1beta2.EtcdCluster, orphans ...client.Object) (s step.Step) {
	for _, obj := range orphans {
		s.Do(step.Mark(ec, obj, "taken in, as spec.adoptExisting requests"))
	}
	s.Report(reason.Existing, "Taking in %s", named(orphans))
	s.Later()
	return s
}

// IsOrphan says whether an object may be of a cluster, and is nobody's.
func IsOrphan(ec *v1beta2.EtcdCluster, obj client.Object) bool {
	return MayBeOf(ec, obj) && objects.IsMemberName(ec, obj.GetName()) && metav1.GetControllerOf(obj) == nil && !objects.IsEnding(obj)
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
func takeIn(ec *v1beta2.EtcdCluster, v *view.View, s *step.Step) {
	var cluster members.ID
	for _, m := range v.Present {
		switch a := m.Answer; {
		case !a.HasList() || a.Status.Leader == 0 || a.Status.ClusterID == cluster:
		case cluster != 0:
			s.Stall(reason.Forgotten, "Status was emptied, and the pods are members of different clusters: %s and %s. Delete the pods of one of them", cluster, a.Status.ClusterID)
			return
		default:
			cluster = a.Status.ClusterID
		}
	}
	s.Soon()
	if cluster != 0 {
		s.Remember(ec).ClusterID = cluster.String()
		s.Claim = "cluster"
		return
	}
	const nobody = "Status was emptied, and no member that has a leader says which cluster it is of. "
	if !ec.Spec.AdoptExisting || !objects.HasVolumes(ec) {
		s.Stall(reason.Forgotten, nobody+"Nothing is created or deleted until one does, or status.clusterID is restored. "+
			"To start members for the volumes that have no pod, set spec.adoptExisting to true")
		return
	}
	for _, m := range v.Present {
		if m.Claim != nil && !objects.IsEnding(m.Claim) {
			s.Do(step.Created(ec, v, m, v.Wanted, objects.Start{IsSealed: true, Token: string(ec.UID)})...)
		}
	}
	s.Report(reason.Forgotten, nobody+"Waiting for the members of the volumes that are there")
}

// MayBeOf says whether an object may be of a cluster: it has its label, or the name of a member and
// nothing that owns it.
func MayBeOf(ec *v1beta2.EtcdCluster, obj client.Object) bool {
	if obj.GetAnnotations()[annotation.KeptSince] != "" {
		return false // its member was replaced
	}
	if obj.GetLabels()[objects.ClusterLabel] != "" {
		return obj.GetLabels()[objects.ClusterLabel] == ec.Name
	}
	controller := metav1.GetControllerOf(obj)
	return objects.IsMemberName(ec, obj.GetName()) && (controller == nil || controller.Kind == objects.ClusterKind.Kind)
}

// IsClaim says whether an object is a volume's PersistentVolumeClaim.
func IsClaim(obj client.Object) bool {
	_, is := obj.(*corev1.PersistentVolumeClaim)
	return is
}
