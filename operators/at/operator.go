package at

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cnatv1alpha1 "example.com/fairlead/api/cnat/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/run"
)

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
		{Object: &atv1alpha1.At{}, SetUp: atExample.setUp},
		{Object: &cnatv1alpha1.At{}, SetUp: cnat.setUp},
	},
	Owns: []client.Object{&corev1.Pod{}},
}

const (
	name = "at"

	// workers is how many Ats are worked on at once. They wait for the API
	// server most of the time.
	workers = 32

	// Retries after an error of the API server start fast, and stay fast
	// enough that a run is not much later than the API server is back.
	firstRetry, slowestRetry = 50 * time.Millisecond, 10 * time.Second
)

// group is what differs between the two API groups that have the kind At.
type group struct {
	gvk        schema.GroupVersionKind
	newObject  func() client.Object
	view       func(client.Object) *atv1alpha1.At
	podNameFor func(at string) string
}

// The kinds have the same Go layout, so view is a conversion and shares memory
// with the object.
var (
	atExample = group{
		gvk:        atv1alpha1.GroupVersion.WithKind("At"),
		newObject:  func() client.Object { return &atv1alpha1.At{} },
		view:       func(o client.Object) *atv1alpha1.At { return o.(*atv1alpha1.At) },
		podNameFor: func(at string) string { return at },
	}
	cnat = group{
		gvk:        cnatv1alpha1.GroupVersion.WithKind("At"),
		newObject:  func() client.Object { return &cnatv1alpha1.At{} },
		view:       func(o client.Object) *atv1alpha1.At { return (*atv1alpha1.At)(o.(*cnatv1alpha1.At)) },
		podNameFor: func(at string) string { return at + "-pod" },
	}
)

// setUp adds the controller of the group's kind to the manager.
func (g group) setUp(mgr ctrl.Manager) error {
	if err := registerMetrics(g.gvk.Group); err != nil {
		return err
	}
	logs, err := newPodLogs(mgr)
	if err != nil {
		return err
	}
	alarms := newAlarms(time.Now)
	r := &reconciler{
		group:  g,
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		logs:   logs,
		events: events{mgr.GetEventRecorder(run.ManagedBy(name))},
		alarms: alarms,
		writes: apply.NewMemory(),
		now:    time.Now,

		refusals:  newRefusals(),
		takenBack: newRefusals(),
		hidden:    newHidden(),
	}
	c, err := controller.New(name+"/"+g.gvk.Group, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, slowestRetry),
	})
	if err != nil {
		return err
	}
	for _, src := range []source.Source{
		source.Kind(mgr.GetCache(), g.newObject(), atEvents()),
		source.Kind(mgr.GetCache(), client.Object(&corev1.Pod{}), podEvents(g.gvk)),
		alarms,
	} {
		if err := c.Watch(src); err != nil {
			return err
		}
	}
	return nil
}
