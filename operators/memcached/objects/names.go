package objects

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/run"
)

// Name is the name of the operator.
const Name = "memcached"

// ManagedBy is the value of the label by which the operator knows its objects.
var ManagedBy = run.ManagedBy(Name)

// The kinds of children by name.
const (
	MemcachedKind   = "Memcached"
	DeploymentKind  = "Deployment"
	StatefulSetKind = "StatefulSet"
	BudgetKind      = "PodDisruptionBudget"
	SecretKind      = "Secret"
)

const (
	// maxName leaves room for what Kubernetes appends to a Deployment's name.
	maxName = 230
	// MaxPoolName leaves room for what Kubernetes makes labels of: the name of
	// a StatefulSet with a hash.
	MaxPoolName = 48
)

// ChildName is the name of the Deployment and of the PodDisruptionBudget.
func ChildName(mc *v1alpha1.Memcached) string { return names.Bounded(mc.Name, maxName) }

// PoolName is the name of the Service, of the StatefulSet, and the beginning of
// its pods' names: the name of the Memcached, if a host may be called that.
func PoolName(mc *v1alpha1.Memcached) string {
	return names.Bounded(names.Host("m-", mc.Name), MaxPoolName)
}

// IsOwned says whether an object belongs to this Memcached.
func IsOwned(obj client.Object, mc *v1alpha1.Memcached) bool {
	return obj.GetUID() != "" && apply.Owns(ManagedBy, mc, obj)
}
