package restore

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
)

// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdrestores;etcdclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdrestores/status;etcdrestores/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Kind is the kind EtcdRestore.
var Kind = loop.Declare(Static, func(parts run.Parts) (loop.Kind[*v1beta2.EtcdRestore, observation, *loop.Plan], error) {
	made := Static
	o := &observer{now: parts.Now}
	made.Observe = o.observe
	return made, registerMetrics()
})

// Static is what the loop has to know about EtcdRestores, but for the function that has a state.
var Static = loop.Kind[*v1beta2.EtcdRestore, observation, *loop.Plan]{
	Operator: "etcd",
	Empty:    &v1beta2.EtcdRestore{},
	Watches: []loop.Watch[*v1beta2.EtcdRestore]{{
		Object: &v1beta2.EtcdCluster{},
		Index:  "cluster",
		Value:  client.Object.GetName,
		Values: func(er *v1beta2.EtcdRestore) []string { return []string{er.Spec.EtcdCluster.Name} },
	}},
	Writes: []string{"status EtcdRestore"},
	Decide: func(*v1beta2.EtcdRestore, observation) (*loop.Plan, error) { return &loop.Plan{}, nil },
	Summarize: func(er *v1beta2.EtcdRestore, seen observation, _ *loop.Plan, _ loop.Did) {
		er.Status = summarize(er, seen)
	},
	Conditions: func(er *v1beta2.EtcdRestore) *[]metav1.Condition { return &er.Status.Conditions },
	Announce:   announce,
	Retry:      loop.Backoff{First: 100 * time.Millisecond, Longest: 10 * time.Second},
	Refusals:   loop.Backoff{First: time.Second, Longest: time.Minute},
}

// observation is all that the status depends on, besides the EtcdRestore.
type observation struct {
	now time.Time
	// cluster is the EtcdCluster that has the name which the spec has; nil if there is none.
	cluster *v1beta2.EtcdCluster
}

// isGone says that the EtcdCluster of a restore is not there any more, whatever has its name now.
func (seen observation) isGone(er *v1beta2.EtcdRestore) bool {
	of := er.Status.EtcdClusterUID
	if seen.cluster == nil {
		return hasCluster(er)
	}
	return of != "" && seen.cluster.UID != of
}

type observer struct{ now func() time.Time }

func (o *observer) observe(ctx context.Context, r *loop.Reader, er *v1beta2.EtcdRestore) (observation, error) {
	seen := observation{now: o.now().Round(0)}
	if isDone(er) {
		return seen, nil
	}
	var err error
	seen.cluster, err = clusterOf(ctx, r, er)
	isKnown := seen.cluster == nil && !hasCluster(er) || seen.cluster != nil && seen.cluster.UID == er.Status.EtcdClusterUID
	if err == nil && !isKnown {
		// Which one it is of is written once, and that it is gone is the end: a late cache may show another one.
		seen.cluster, err = clusterOf(ctx, r.Live, er)
	}
	return seen, err
}

// clusterOf reads the EtcdCluster that the spec names; nil if there is none.
func clusterOf(ctx context.Context, from client.Reader, er *v1beta2.EtcdRestore) (*v1beta2.EtcdCluster, error) {
	ec := &v1beta2.EtcdCluster{}
	if err := from.Get(ctx, client.ObjectKey{Namespace: er.Namespace, Name: er.Spec.EtcdCluster.Name}, ec); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return ec, nil
}

// hasCluster says whether the EtcdCluster of a restore was there. Operators of before did not write which one it is, but
// how far it was.
func hasCluster(er *v1beta2.EtcdRestore) bool {
	isUnderWay := er.Status.Phase != "" && er.Status.Phase != v1beta2.RestoreWaiting && !isDone(er)
	return er.Status.EtcdClusterUID != "" || isUnderWay
}

// isDone says whether a restore has come to its end.
func isDone(er *v1beta2.EtcdRestore) bool {
	return er.Status.Phase == v1beta2.RestoreComplete || er.Status.Phase == v1beta2.RestoreFailed
}
