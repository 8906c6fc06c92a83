package webserver

import (
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/names"
)

const (
	// maxName leaves room for what Kubernetes and this operator append.
	maxName = 230

	serviceSuffix = "-service"
)

// childName is the name of the Deployment and of the other children, but for
// the Service.
func childName(ws *webv1.WebServer) string { return names.Bounded(ws.Name, maxName) }

// serviceName is that of the Service to adopt, or <name>-service, if a Service may have
// that name.
func serviceName(ws *webv1.WebServer) string {
	if adoptsService(ws) {
		return ws.Spec.Adopt.Service
	}
	return names.Bounded(names.Host("w-", ws.Name), names.MaxLabel-len(serviceSuffix)) + serviceSuffix
}

func adoptsService(ws *webv1.WebServer) bool {
	return ws.Spec.Adopt != nil && ws.Spec.Adopt.Service != ""
}

func key(ws *webv1.WebServer) types.NamespacedName {
	return types.NamespacedName{Namespace: ws.Namespace, Name: ws.Name}
}
