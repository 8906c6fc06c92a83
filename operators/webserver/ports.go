package webserver

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
)

const (
	// theGuidePort is the node port of the guide's WebServer.
	theGuidePort = 30010
	// guidePortPause is how long it counts as taken after the API server said
	// so.
	guidePortPause = 2 * time.Second
	// guidePortIndex is an index of the Services that have it.
	guidePortIndex = "guidePort"
)

// guidePort knows whether it is worth asking for port 30010.
type guidePort struct {
	mu         sync.Mutex
	takenUntil time.Time
}

func (p *guidePort) seemsFree(ctx context.Context, cache client.Reader, now time.Time) (bool, error) {
	p.mu.Lock()
	taken := now.Before(p.takenUntil)
	p.mu.Unlock()
	if taken {
		return false, nil
	}
	var holders corev1.ServiceList
	err := cache.List(ctx, &holders, client.MatchingFields{guidePortIndex: "yes"})
	return len(holders.Items) == 0, err
}

// isTaken notes that the port is not free, whoever has it.
func (p *guidePort) isTaken(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takenUntil = now.Add(guidePortPause)
}

func hasGuidePort(obj client.Object) []string {
	for _, port := range obj.(*corev1.Service).Spec.Ports {
		if port.NodePort == theGuidePort {
			return []string{"yes"}
		}
	}
	return nil
}

// nodePort is the port to ask for: the user's; or the one that the Service has
// had so far, so that it stays; or the guide's, while it is free. 0 leaves the
// choice to the API server.
func nodePort(ws *webv1.WebServer, seen observation) int32 {
	s := serviceSpec(ws)
	live := currentNodePort(seen.service())
	switch {
	case s.Type == corev1.ServiceTypeClusterIP:
		return 0
	case s.NodePort != 0:
		return s.NodePort
	case ws.Status.NodePort != 0:
		return ws.Status.NodePort
	case live != 0:
		return live
	case seen.guidePort && s.Type == corev1.ServiceTypeNodePort && seen.service().UID == "":
		return theGuidePort
	}
	return 0
}

// currentNodePort is the node port that a Service has for HTTP.
func currentNodePort(s *corev1.Service) int32 {
	for _, port := range s.Spec.Ports {
		if port.Name == "http" || len(s.Spec.Ports) == 1 {
			return port.NodePort
		}
	}
	return 0
}

// isPortTaken says whether the API server refuses a Service because somebody
// else has its node port.
func isPortTaken(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "provided port is already allocated")
}
