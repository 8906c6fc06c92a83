package memcached

import (
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// dnsLabels are the names that a Service, and the host of a pod, may have.
var dnsLabels = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// childName is the name of the Deployment and of the PodDisruptionBudget.
func childName(mc *v1alpha1.Memcached) string { return names.Bounded(mc.Name, maxName) }

// poolName is the name of the Service, of the StatefulSet, and the beginning of
// its pods' names: the name of the Memcached, if a host may be called that.
func poolName(mc *v1alpha1.Memcached) string {
	name := mc.Name
	if !dnsLabels.MatchString(name) {
		name = "m-" + strings.ReplaceAll(name, ".", "-") + "-" + names.Hash(name)
	}
	return names.Bounded(name, maxPoolName)
}

func key(mc *v1alpha1.Memcached) types.NamespacedName {
	return types.NamespacedName{Namespace: mc.Namespace, Name: mc.Name}
}

// childKind is a kind of which a Memcached has one child at most.
type childKind struct {
	kind  string
	empty func() client.Object
	name  func(*v1alpha1.Memcached) string
}

var (
	deploymentKind  = childKind{"Deployment", func() client.Object { return &appsv1.Deployment{} }, childName}
	statefulSetKind = childKind{"StatefulSet", func() client.Object { return &appsv1.StatefulSet{} }, poolName}
	serviceKind     = childKind{"Service", func() client.Object { return &corev1.Service{} }, poolName}
	budgetKind      = childKind{"PodDisruptionBudget", func() client.Object { return &policyv1.PodDisruptionBudget{} }, childName}
)

// childKinds are those that are watched as a whole.
var childKinds = []childKind{deploymentKind, statefulSetKind, serviceKind, budgetKind}

// The other kinds under which writes are remembered.
const (
	memcachedKind = "Memcached"
	podKind       = "Pod"
	secretKind    = "Secret"
)
