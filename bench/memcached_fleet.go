package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

var memcacheds = fleet{
	operator: memcachedOperator,
	kind:     v1alpha1.GroupVersion.WithKind("Memcached"),
	resource: "memcacheds",
	spec:     map[string]any{"version": newVersion},
	children: []fleetChild{
		{kind: corev1.SchemeGroupVersion.WithKind("Service"), resource: "services"},
		{kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), resource: "deployments"},
		{kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), resource: "poddisruptionbudgets"},
	},
	times: 1.5, childWrites: 1, statusWrites: 3,
}
