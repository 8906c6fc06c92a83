package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/services"
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

// The kinds of children by name.
const (
	memcachedKind   = "Memcached"
	deploymentKind  = "Deployment"
	statefulSetKind = "StatefulSet"
	budgetKind      = "PodDisruptionBudget"
	secretKind      = "Secret"
)

// children are the kinds of objects that belong to a Memcached.
var children = []loop.Child[*v1alpha1.Memcached]{
	{Empty: &appsv1.Deployment{}, Name: childName},
	{Empty: &appsv1.StatefulSet{}, Name: poolName},
	{Empty: &corev1.Service{}, Name: poolName},
	{Empty: &policyv1.PodDisruptionBudget{}, Name: childName, Among: true},
	{Empty: contents.Metadata(contents.Secret)}, // the copies
}

// watches are the other kinds of which a change is news.
var watches = []loop.Watch[*v1alpha1.Memcached]{
	services.Watch(poolName),
	disruption.Watch[*v1alpha1.Memcached](memcachedKind),
	{
		Object: &corev1.Pod{}, Labelled: true,
		Index:  "pods",
		Value:  func(pod client.Object) string { return pod.GetLabels()[podsOf] },
		Values: func(mc *v1alpha1.Memcached) []string { return []string{names.LabelValue(mc.Name)} },
	},
	{
		Object: contents.Metadata(contents.Secret),
		Index:  "secrets",
		Value:  client.Object.GetName,
		Values: secretsOf,
	},
}

// secretsOf are the Secrets whose change is news for a Memcached.
func secretsOf(mc *v1alpha1.Memcached) []string {
	var names []string
	for _, role := range roles(mc) {
		names = append(names, role.secret)
	}
	return names
}
