package cluster

import (
	"context"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/docs"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about nodes that take no more pods, and volumes that cannot leave theirs. The right to see them is in a
// role of its own, which an install may leave out: config/rbac/nodes.yaml.

// withoutNodes is what is not done without that right.
var withoutNodes = "no member of etcd is replaced before a drain takes it, see " + docs.Page("nodes.md#members-that-cannot-take-their-data-along")

// nodeWatch wakes the clusters with a pod on a node that was cordoned or uncordoned. Nodes change every few minutes otherwise.
var nodeWatch = loop.Watch[*v1beta2.EtcdCluster]{
	Object: &corev1.Node{}, Without: withoutNodes,
	If: []predicate.Predicate{predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return isCordoned(e.ObjectOld) != isCordoned(e.ObjectNew) },
	}},
	Handler: func(cached client.Reader) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, node client.Object) (woken []reconcile.Request) {
			var all corev1.PodList
			if cached.List(ctx, &all, client.HasLabels{objects.ClusterLabel}) != nil {
				return nil // the cache is being filled: all are looked at anyway
			}
			for _, pod := range all.Items {
				if pod.Spec.NodeName == node.GetName() {
					woken = append(woken, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[objects.ClusterLabel]}})
				}
			}
			return woken
		})
	},
}

// volumeWatch wakes nothing: claims do.
var volumeWatch = loop.Watch[*v1beta2.EtcdCluster]{
	Object: &corev1.PersistentVolume{}, Without: withoutNodes,
	If:      []predicate.Predicate{predicate.NewPredicateFuncs(func(client.Object) bool { return false })},
	Handler: func(client.Reader) handler.EventHandler { return handler.Funcs{} },
}

func isCordoned(obj client.Object) bool {
	node, is := obj.(*corev1.Node)
	return is && node.Spec.Unschedulable
}

// observeNodes finds out whether members cannot take their data to other nodes, and what counts of those that they are on.
func observeNodes(ctx context.Context, r *loop.Reader, ec *v1beta2.EtcdCluster, seen *view.Observation) (err error) {
	if !r.Sees[loop.KindOf(nodeWatch.Object)] || !r.Sees[loop.KindOf(volumeWatch.Object)] {
		return nil
	}
	seen.IsFixed = !objects.HasVolumes(ec)
	for _, claim := range seen.Claims {
		volume := &corev1.PersistentVolume{}
		if seen.IsFixed || claim.Spec.VolumeName == "" {
			continue
		}
		if err := r.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume); client.IgnoreNotFound(err) != nil {
			return err
		}
		seen.IsFixed = isOfOneNode(volume)
	}
	seen.Nodes = map[string]view.Node{}
	isShared := false
	for _, pod := range seen.Pods {
		node := &corev1.Node{}
		if pod.Spec.NodeName == "" {
			continue
		}
		if err := r.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); client.IgnoreNotFound(err) != nil {
			return err
		}
		_, isTaken := seen.Nodes[pod.Spec.NodeName]
		isShared = isShared || isTaken
		seen.Nodes[pod.Spec.NodeName] = view.Node{IsCordoned: node.Spec.Unschedulable, Zone: node.Labels[corev1.LabelTopologyZone]}
	}
	if !isShared {
		return nil
	}
	var all corev1.NodeList
	if err := r.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil { // there may be thousands, and they are only read
		return err
	}
	seen.HasPlace = slices.ContainsFunc(all.Items, func(node corev1.Node) bool {
		_, isTaken := seen.Nodes[node.Name]
		return !isTaken && takesPods(ec, &node)
	})
	return nil
}

// takesPods says whether the scheduler may place a member on a node, if there is room.
func takesPods(ec *v1beta2.EtcdCluster, node *corev1.Node) bool {
	isReady := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	isTainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
	isWanted := ec.Spec.Pod == nil || labels.SelectorFromSet(ec.Spec.Pod.NodeSelector).Matches(labels.Set(node.Labels))
	return isReady && isWanted && !isTainted && !node.Spec.Unschedulable && node.Labels[corev1.LabelOSStable] == string(corev1.Linux)
}

// isOfOneNode says whether a volume names the one node that has it: by its host name, or as drivers of local disks do, by
// labels such as topology.topolvm.io/node.
func isOfOneNode(volume *corev1.PersistentVolume) bool {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return false
	}
	terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 {
		return false
	}
	for _, is := range terms[0].MatchExpressions {
		label := path.Base(is.Key)
		if is.Operator == corev1.NodeSelectorOpIn && len(is.Values) == 1 && (label == "hostname" || label == "node" || label == "nodename") {
			return true
		}
	}
	return false
}
