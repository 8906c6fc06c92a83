package webserver

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
)

const name = "webserver"

// Operator is the WebServer operator.
var Operator = run.Operator{
	Name:        name,
	AddToScheme: webv1.AddToScheme,
	Kinds:       []run.Kind{loop.Declare(kind, newKind)},
}

// kind is what the loop has to know about WebServers, but for the functions that
// have a state.
var kind = loop.Kind[*webv1.WebServer, observation, *plan]{
	Operator: name,
	Empty:    &webv1.WebServer{},
	Children: children,
	Watches:  watches,
	Writes: []string{
		"apply Deployment", "apply Service", "apply PodDisruptionBudget", "apply HorizontalPodAutoscaler", "apply Ingress",
		"apply HTTPRoute", "apply Route", "apply ControllerRevision", "apply ConfigMap", "apply Secret",
		"delete PodDisruptionBudget", "delete HorizontalPodAutoscaler", "delete Ingress", "delete HTTPRoute", "delete Route", "delete ControllerRevision", "delete ConfigMap", "delete Secret",
		"patch Deployment/adopt", "patch Deployment/template", "patch Service/adopt",
		"status WebServer",
	},
	Decide: decide,
	Summarize: func(ws *webv1.WebServer, seen observation, next *plan, did loop.Did) {
		seen.children = did.Children
		ws.Status = summarize(ws, seen, next, did.Failure)
	},
	Conditions: func(ws *webv1.WebServer) *[]metav1.Condition { return &ws.Status.Conditions },
	Announce:   announce,
	Note:       func(ws *webv1.WebServer, _ observation) { figures.Note(key(ws), figureOf(ws)) },
	Settled:    []string{"nodePort", "replicas"}, // by the API server, by an autoscaler
	Words: map[string]string{
		"spec.replicas": "replicas",
		"spec.template.spec.containers[" + serverContainer + "].image": "image",
	},
	// Retries stay fast enough that a port or a name that was taken is noticed to
	// be free.
	Retry:    loop.Backoff{First: 50 * time.Millisecond, Longest: 15 * time.Second},
	Refusals: loop.Backoff{First: time.Second, Longest: 15 * time.Second},
}

// newKind makes what a manager runs.
func newKind(parts run.Parts) (loop.Kind[*webv1.WebServer, observation, *plan], error) {
	made := kind
	o := &observer{digests: &contents.Digests{}, tutorialPort: &tutorialPort{}, ipv6: parts.IPv6, now: parts.Now}
	made.Observe, made.Forget = o.observe, o.forget
	if err := registerMetrics(); err != nil {
		return made, err
	}
	if err := disruption.Index(parts, webServerKind); err != nil {
		return made, err
	}
	return made, parts.Index(&corev1.Service{}, tutorialPortIndex, hasTutorialPort)
}
