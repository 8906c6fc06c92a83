package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	webv1 "example.com/fairlead/api/web/v1"
)

const webImage = "nginx:1.26.3"

var webServers = fleet{
	operator: webServerOperator,
	kind:     webv1.GroupVersion.WithKind("WebServer"),
	resource: "webservers",
	spec:     map[string]any{"image": webImage, "replicas": int64(1)},
	children: []fleetChild{
		{kind: corev1.SchemeGroupVersion.WithKind("Service"), resource: "services", suffix: "-service"},
		{kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), resource: "deployments"},
		{kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), resource: "poddisruptionbudgets"},
	},
	times: 1.5, childWrites: 1, statusWrites: 2,
}
