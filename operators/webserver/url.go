package webserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	webv1 "example.com/fairlead/api/web/v1"
)

// url is where to look at the WebServer: the host name that it has, or the
// port on a node that runs one of its pods. It keeps to its node.
func url(ws *webv1.WebServer, seen observation, st webv1.WebServerStatus) string {
	scheme := func(secure bool) string {
		if secure {
			return "https://"
		}
		return "http://"
	}
	switch {
	case ws.Spec.Ingress != nil:
		return scheme(ws.Spec.Ingress.TLSSecretName != "") + ws.Spec.Ingress.Host + strings.TrimSuffix(ws.Spec.Ingress.Path, "/")
	case ws.Spec.Route != nil && routeHost(seen) != "":
		return scheme(ws.Spec.Route.EdgeTLS) + routeHost(seen)
	case ws.Spec.Gateway != nil && len(ws.Spec.Gateway.Hostnames) > 0:
		if refusal(ws, seen, "Accepted") != nil {
			return "" // it leads nowhere
		}
		l := listenerFor(ws, seen)
		return scheme(l.isHTTPS) + l.address(ws.Spec.Gateway.Hostnames[0])
	}
	s := seen.service()
	if !isOwned(s, ws) {
		return "" // there is none, or another object owns it: its ports lead elsewhere
	}
	for _, at := range s.Status.LoadBalancer.Ingress {
		if host := at.Hostname + at.IP; host != "" {
			return scheme(false) + withPort(host, serviceSpec(ws).Port)
		}
	}
	if st.NodePort == 0 {
		return scheme(false) + withPort(serviceName(ws)+"."+ws.Namespace+".svc", serviceSpec(ws).Port)
	}
	var urls []string
	for _, host := range seen.hosts {
		urls = append(urls, scheme(false)+withPort(host, st.NodePort))
	}
	if len(urls) == 0 || slices.Contains(urls, st.URL) || st.ReadyReplicas == 0 || len(seen.reached) == 0 {
		return st.URL
	}
	return slices.Min(urls)
}

// hasURL says whether the status has a URL that is still the Service's: one with
// its node port, or one that is not of a node.
func hasURL(ws *webv1.WebServer, s *corev1.Service) bool {
	port := currentNodePort(s, httpName)
	return port == 0 || strings.HasSuffix(ws.Status.URL, fmt.Sprintf(":%d", port))
}

func withPort(host string, port int32) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == 80 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// routeHost is the host name that OpenShift has given to the Route.
func routeHost(seen observation) string {
	if route, ok := seen.children[routeKind].(*unstructured.Unstructured); ok {
		host, _, _ := unstructured.NestedString(route.Object, "spec", "host")
		return host
	}
	return ""
}
