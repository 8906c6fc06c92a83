package memcached

import (
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/names"
)

const (
	// maxName leaves room for what Kubernetes appends to a Deployment's name.
	maxName = 230
	// maxPoolName leaves room for what Kubernetes makes labels of: the name of
	// a StatefulSet with a hash.
	maxPoolName = 48
)

// childName is the name of the Deployment and of the PodDisruptionBudget.
func childName(mc *v1alpha1.Memcached) string { return names.Bounded(mc.Name, maxName) }

// poolName is the name of the Service, of the StatefulSet, and the beginning of
// its pods' names: the name of the Memcached, if a host may be called that.
func poolName(mc *v1alpha1.Memcached) string {
	return names.Bounded(names.Host("m-", mc.Name), maxPoolName)
}

func key(mc *v1alpha1.Memcached) types.NamespacedName {
	return types.NamespacedName{Namespace: mc.Namespace, Name: mc.Name}
}
