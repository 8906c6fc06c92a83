package webserver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/podtemplate"
)

const (
	// tutorialNodePort is the node port of the tutorial's WebServer.
	tutorialNodePort = 30010
	// tutorialPortPause is how long one WebServer has to get it, and how long it
	// counts as taken after the API server said so. Of many that come at once,
	// so few are refused.
	tutorialPortPause = 2 * time.Second
	// tutorialPortIndex is an index of the Services that have it.
	tutorialPortIndex = "tutorialPort"
)

// tutorialPort knows whether it is worth requesting port 30010: one WebServer at a time
// does.
type tutorialPort struct {
	mu        sync.Mutex
	requester types.NamespacedName // nobody, when the port is known to be taken
	until     time.Time
}

// mayRequest says whether a WebServer may request the port.
func (p *tutorialPort) mayRequest(ctx context.Context, cache client.Reader, ws *webv1.WebServer, now time.Time) (bool, error) {
	var holders corev1.ServiceList
	if err := cache.List(ctx, &holders, client.MatchingFields{tutorialPortIndex: "yes"}); err != nil || len(holders.Items) > 0 {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.until) && p.requester != key(ws) {
		return false, nil
	}
	p.requester, p.until = key(ws), now.Add(tutorialPortPause)
	return true, nil
}

// isTaken notes that the port is not free, whoever has it.
func (p *tutorialPort) isTaken(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requester, p.until = types.NamespacedName{}, now.Add(tutorialPortPause)
}

// wantsTutorialPort says whether a WebServer is one for the tutorial's port: it has no
// port, and requests none.
func wantsTutorialPort(ws *webv1.WebServer, s *corev1.Service) bool {
	return serviceSpec(ws).Type == corev1.ServiceTypeNodePort && serviceSpec(ws).NodePort == 0 && ws.Status.NodePort == 0 && s.UID == ""
}

func hasTutorialPort(obj client.Object) []string {
	for _, port := range obj.(*corev1.Service).Spec.Ports {
		if port.NodePort == tutorialNodePort {
			return []string{"yes"}
		}
	}
	return nil
}

// nodePort is the port to request: the user's; or the one that the Service has had so
// far, so that it stays; or the tutorial's, while it is free. 0 leaves the choice to the
// API server.
func nodePort(ws *webv1.WebServer, seen observation) int32 {
	s := serviceSpec(ws)
	live := currentNodePort(seen.service(), httpName)
	switch {
	case s.Type == corev1.ServiceTypeClusterIP:
		return 0
	case s.NodePort != 0:
		return s.NodePort
	case ws.Status.NodePort != 0:
		return ws.Status.NodePort
	case live != 0:
		return live
	case seen.tutorialPort && wantsTutorialPort(ws, seen.service()):
		return tutorialNodePort
	}
	return 0
}

// httpsNodePort is the same for HTTPS, but nobody can request one.
func httpsNodePort(ws *webv1.WebServer, seen observation) int32 {
	switch {
	case serviceSpec(ws).Type == corev1.ServiceTypeClusterIP:
		return 0
	case ws.Status.HTTPSNodePort != 0:
		return ws.Status.HTTPSNodePort
	}
	return currentNodePort(seen.service(), httpsName)
}

// currentNodePort is the node port that a Service has for the port of a name.
// The only one that another operator's Service has is for HTTP.
func currentNodePort(s *corev1.Service, name string) int32 {
	for _, port := range s.Spec.Ports {
		if port.Name == name || name == httpName && len(s.Spec.Ports) == 1 {
			return port.NodePort
		}
	}
	return 0
}

// findsByName says whether the Service can find the ports of all pods by their names.
// Then pods that listen on two ports, during a rollout that changes spec.port, serve side
// by side. The Service uses port numbers while pods of another operator's template serve,
// or may have to return: their ports have no names.
func findsByName(ws *webv1.WebServer, seen observation, chosen choice) bool {
	d, current := seen.deployment(), currentTemplate(seen)
	if d.UID == "" && hasPortByNumber(seen.service()) {
		// There may be another operator's Deployment, which the cache does not show until
		// it has this operator's label.
		return false
	}
	if current.isNone() && d.UID != "" {
		current = templateOf(d.Spec.Template)
	}
	isGood := current.is(chosen.template) && current.revision == ws.Status.LastGoodRevision
	return current.namesPorts() && chosen.template.namesPorts() && (isGood || chosen.lastGood.namesPorts())
}

// hasPortByNumber says whether a Service is there that finds a port by its number.
func hasPortByNumber(s *corev1.Service) bool {
	return s.UID != "" && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.TargetPort.StrVal == "" })
}

// namesPorts says whether the names of the ports lead to the server, as Kubernetes
// follows them: to the first container that has such a port.
func (t podTemplate) namesPorts() bool {
	if t.isNone() {
		return true // there are no pods of it
	}
	template, err := podtemplate.Read(t.json)
	if err != nil {
		return false
	}
	first := map[string]string{}
	for _, container := range template.Spec.Containers {
		for _, port := range container.Ports {
			if _, ok := first[port.Name]; !ok {
				first[port.Name] = container.Name
			}
		}
	}
	https, ok := first[httpsName]
	return first[httpName] == serverContainer && (!ok || https == serverContainer)
}

// isPortOutOfRange says whether the API server refuses a Service because its node
// port is none that the cluster gives, which only the cluster knows.
func isPortOutOfRange(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "provided port is not in the valid range")
}

// isPortTaken says whether the API server refuses a Service because another Service has
// its node port.
func isPortTaken(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "provided port is already allocated")
}
