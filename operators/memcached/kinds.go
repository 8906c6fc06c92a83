package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/operators/memcached/objects"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status;memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// children are the kinds of objects that belong to a Memcached.
var children = []loop.Child[*v1alpha1.Memcached]{
	{Empty: &appsv1.Deployment{}, Name: objects.ChildName},
	{Empty: &appsv1.StatefulSet{}, Name: objects.PoolName},
	{Empty: &corev1.Service{}, Name: objects.PoolName},
	{Empty: &policyv1.PodDisruptionBudget{}, Name: objects.ChildName, Among: true},
	{Empty: contents.Metadata(contents.Secret)}, // the copies
}

// watches are the other kinds of which a change is news.
var watches = []loop.Watch[*v1alpha1.Memcached]{
	services.Watch(objects.PoolName),
	disruption.Watch[*v1alpha1.Memcached](objects.MemcachedKind),
	{
		Object: &corev1.Pod{}, Labelled: true,
		Index:  "pods",
		Value:  func(pod client.Object) string { return pod.GetLabels()[objects.PodsOf] },
		Values: func(mc *v1alpha1.Memcached) []string { return []string{names.LabelValue(mc.Name)} },
	},
	{
		Object: contents.Metadata(contents.Secret),
		Index:  "secrets",
		Value:  client.Object.GetName,
		Values: objects.SecretsOf,
	},
}

func key(mc *v1alpha1.Memcached) types.NamespacedName {
	return types.NamespacedName{Namespace: mc.Namespace, Name: mc.Name}
}
