package at

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cnatv1alpha1 "example.com/fairlead/api/cnat/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
)

// +kubebuilder:rbac:groups=at.example.com;cnat.programming-kubernetes.info,resources=ats,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=at.example.com;cnat.programming-kubernetes.info,resources=ats/status,verbs=update
// +kubebuilder:rbac:groups=at.example.com;cnat.programming-kubernetes.info,resources=ats/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const name = "at"

// Operator is the At operator, for both API groups.
var Operator = run.Operator{
	Name: name,
	AddToScheme: func(scheme *runtime.Scheme) error {
		if err := atv1alpha1.AddToScheme(scheme); err != nil {
			return err
		}
		return cnatv1alpha1.AddToScheme(scheme)
	},
	Kinds: []run.Kind{
		loop.Declare(atExample.kind(), atExample.newKind),
		loop.Declare(cnat.kind(), cnat.newKind),
	},
}

// group is what differs between the two API groups that have the kind At.
type group struct {
	gvk        schema.GroupVersionKind
	newObject  func() client.Object
	newList    func() client.ObjectList
	view       func(client.Object) *atv1alpha1.At
	podNameFor func(at string) string
}

// The kinds have the same Go layout, so view is a conversion and shares memory
// with the object.
var (
	atExample = group{
		gvk:        atv1alpha1.GroupVersion.WithKind("At"),
		newObject:  func() client.Object { return &atv1alpha1.At{} },
		newList:    func() client.ObjectList { return &atv1alpha1.AtList{} },
		view:       func(o client.Object) *atv1alpha1.At { return o.(*atv1alpha1.At) },
		podNameFor: func(at string) string { return at },
	}
	cnat = group{
		gvk:        cnatv1alpha1.GroupVersion.WithKind("At"),
		newObject:  func() client.Object { return &cnatv1alpha1.At{} },
		newList:    func() client.ObjectList { return &cnatv1alpha1.AtList{} },
		view:       func(o client.Object) *atv1alpha1.At { return (*atv1alpha1.At)(o.(*cnatv1alpha1.At)) },
		podNameFor: func(at string) string { return at + "-pod" },
	}
)

// kind is what the loop has to know about the group's Ats, but for the functions
// that have a state.
func (g group) kind() loop.Kind[client.Object, observation, *step] {
	return loop.Kind[client.Object, observation, *step]{
		Operator: name,
		Empty:    g.newObject(),
		Watches: []loop.Watch[client.Object]{{
			Object: &corev1.Pod{}, Labelled: true,
			Handler: func(client.Reader) handler.EventHandler { return podEvents(g.gvk) },
		}},
		Writes: []string{
			"create Pod", "call Pod/early", "call Pod/placeholder", "call Pod/release", "call Pod/marks", "patch Pod/withdraw", "patch Pod/stop", "delete Pod",
			"delete At", "status At", "status At/prepare", "status At/claim", "status At/reject",
		},
		Summarize: func(obj client.Object, seen observation, next *step, did loop.Did) {
			at := g.view(obj)
			at.Status = summarize(at, seen, *next, did.Failure)
		},
		Conditions: func(obj client.Object) *[]metav1.Condition { return &g.view(obj).Status.Conditions },
		Fine:       []string{reasonScheduled, reasonPrepared, reasonSuspended, reasonRunning, reasonChangedTooLate},
		Announce: func(ctx context.Context, before, after client.Object) []loop.Event {
			return announce(ctx, g.gvk.Group, &g.view(before).Status, &g.view(after).Status)
		},
		Owns: func(obj, child client.Object) bool {
			pod, ok := child.(*corev1.Pod)
			return ok && isOwn(pod, g.view(obj), g.gvk)
		},
		// Retries after an error of the API server start fast, and stay fast enough that
		// a run is not much later than the API server is available again. A pod that was
		// refused, or whose name is taken, is another matter.
		Retry:         loop.Backoff{First: 50 * time.Millisecond, Longest: 10 * time.Second},
		Refusals:      loop.Backoff{First: firstRefusal, Longest: longestRefusal},
		Handler:       atEvents(),
		RetryPriority: new(retryPriority),
	}
}

// newKind makes what a manager runs.
func (g group) newKind(parts run.Parts) (loop.Kind[client.Object, observation, *step], error) {
	kind := g.kind()
	o := &observer{group: g, logs: parts.Logs, takenBack: &pauses{}, known: &known{}, withheld: &sightings{}, arrivals: &sightings{}, latest: &latest{}, readings: &readings{byNamespace: map[string]*reading{}}, now: parts.Now}
	kind.Observe = func(ctx context.Context, r *loop.Reader, obj client.Object) (observation, error) {
		return o.observe(ctx, r, g.view(obj))
	}
	kind.Decide = func(obj client.Object, seen observation) (*step, error) {
		next := decide(g.view(obj), seen)
		return &next, o.write(obj, seen, &next)
	}
	kind.Note = func(obj client.Object, _ observation) {
		figures.Note(figureKey{g.gvk.Group, client.ObjectKeyFromObject(obj)}, figureOf(g.view(obj)))
	}
	kind.Forget = func(at types.NamespacedName) {
		o.forget(at)
		figures.Forget(figureKey{g.gvk.Group, at})
	}
	return kind, registerMetrics(g.gvk.Group)
}
