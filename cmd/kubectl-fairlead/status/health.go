package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// Health is whether an object is well, and what is said of that.
type Health struct {
	// IsWell says whether the condition Ready is true of what is wanted now.
	IsWell bool

	kind, namespace, name string
	object                client.Object
	reason, message       string
	since                 metav1.Time
}

// Of goes by the condition Ready, if that is of what is wanted now.
func Of(k cli.Kind, o client.Object) Health {
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	h := Health{kind: k.Name(), namespace: o.GetNamespace(), name: o.GetName(), object: o, since: o.GetCreationTimestamp()}
	ready := meta.FindStatusCondition(conditionsOf(o), "Ready")
	switch {
	case ready == nil:
		h.reason, h.message = "NotSeen", "its operator has not seen it: is it running?"
	case ready.ObservedGeneration != o.GetGeneration():
		h.reason, h.message, h.since = "NotSeen", "its operator has not seen the last change: is it running?", ready.LastTransitionTime
	default:
		h.IsWell, h.since = ready.Status == metav1.ConditionTrue, ready.LastTransitionTime
		h.reason, h.message = ready.Reason, ready.Message
	}
	return h
}

// sortByHealth has those first that are not well.
func sortByHealth(all []Health) {
	slices.SortStableFunc(all, func(a, b Health) int {
		return map[bool]int{true: 1}[a.IsWell] - map[bool]int{true: 1}[b.IsWell]
	})
}

// conditionsOf are those of an object of one of the kinds.
func conditionsOf(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *etcdv1beta2.EtcdCluster:
		return o.Status.Conditions
	case *etcdv1beta2.EtcdBackup:
		return o.Status.Conditions
	case *etcdv1beta2.EtcdRestore:
		return o.Status.Conditions
	case *cachev1alpha1.Memcached:
		return o.Status.Conditions
	case *webv1.WebServer:
		return o.Status.Conditions
	case *atv1alpha1.At:
		return o.Status.Conditions
	}
	return nil
}
