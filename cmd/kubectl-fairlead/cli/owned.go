package cli

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ownable are the kinds that objects of Fairlead's may own, also through others: each behind its owners.
func Ownable() (all []schema.GroupVersionKind) {
	for _, name := range strings.Fields(`Deployment.v1.apps StatefulSet.v1.apps Job.v1.batch ReplicaSet.v1.apps ControllerRevision.v1.apps Pod.v1.
		Service.v1. EndpointSlice.v1.discovery.k8s.io PersistentVolumeClaim.v1. ConfigMap.v1. Secret.v1. PodDisruptionBudget.v1.policy
		HorizontalPodAutoscaler.v2.autoscaling Ingress.v1.networking.k8s.io HTTPRoute.v1.gateway.networking.k8s.io Route.v1.route.openshift.io`) {
		kind, _ := schema.ParseKindArg(name)
		all = append(all, *kind)
	}
	return all
}

// Owned is an object, and what it owns.
type Owned struct {
	metav1.PartialObjectMetadata
	Owns []*Owned
}

// OwnedBy finds what an object owns in its namespace, of some kinds, and what that owns. The error is about kinds that
// could not be listed; the others are there.
func OwnedBy(ctx context.Context, k client.Client, o client.Object, kinds []schema.GroupVersionKind) (*Owned, error) {
	all := map[types.UID]*Owned{o.GetUID(): {}}
	var found []*Owned
	var errs []error
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := k.List(ctx, list, client.InNamespace(o.GetNamespace())); client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
		for _, item := range list.Items {
			item.SetGroupVersionKind(kind)
			all[item.UID] = &Owned{PartialObjectMetadata: item}
			found = append(found, all[item.UID])
		}
	}
	for _, one := range found {
		if owner := metav1.GetControllerOf(one); owner != nil && all[owner.UID] != nil {
			all[owner.UID].Owns = append(all[owner.UID].Owns, one)
		}
	}
	return all[o.GetUID()], errors.Join(errs...)
}

// Each visits all that is owned, each with how deep it is.
func (o *Owned) Each(depth int, visit func(one *Owned, depth int)) {
	for _, one := range o.Owns {
		visit(one, depth)
		one.Each(depth+1, visit)
	}
}

// Object reads the object that KIND NAME or KIND/NAME means.
func (c *CLI) Object(ctx context.Context, args []string) (Kind, client.Object, client.WithWatch, error) {
	kind, name, err := ObjectCalled(strings.Join(args, "/"))
	if err != nil {
		return kind, nil, nil, err
	}
	k, namespace, err := c.Client()
	if err != nil {
		return kind, nil, nil, err
	}
	object, err := kind.Get(ctx, k, client.ObjectKey{Namespace: namespace, Name: name})
	return kind, object, k, err
}
