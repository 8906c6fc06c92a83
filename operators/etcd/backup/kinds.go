package backup

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/job"
)

// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdbackups;etcdclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdbackups/status;etcdbackups/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// name is that of the operator.
const name = "etcd"

var managedBy = run.ManagedBy(name)

// Kind is the kind EtcdBackup.
var Kind = loop.Declare(Static, func(parts run.Parts) (loop.Kind[*v1beta2.EtcdBackup, observation, *plan], error) {
	made := Static
	o := &observer{now: parts.Now}
	d := &decider{image: job.Image()}
	made.Observe, made.Decide, made.Forget = o.observe, d.decide, figures.Forget
	return made, registerMetrics()
})

// Static is what the loop has to know about EtcdBackups, but for the functions that have a state.
var Static = loop.Kind[*v1beta2.EtcdBackup, observation, *plan]{
	Operator: name,
	Empty:    &v1beta2.EtcdBackup{},
	Children: []loop.Child[*v1beta2.EtcdBackup]{{Empty: &corev1.Pod{}}},
	Watches: []loop.Watch[*v1beta2.EtcdBackup]{
		{
			Object: &v1beta2.EtcdCluster{},
			Index:  "clusters",
			Value:  client.Object.GetName,
			Values: func(b *v1beta2.EtcdBackup) []string { return []string{b.Spec.EtcdCluster} },
		},
		{
			Object: contents.Metadata(contents.Secret),
			Index:  "secrets",
			Value:  client.Object.GetName,
			Values: secretsOf,
		},
	},
	Writes: []string{
		"create Pod", "patch Pod/gate", "patch Pod/marks", "delete Pod",
		"status EtcdBackup", "status EtcdBackup/claim", "status EtcdBackup/result",
	},
	Summarize: func(b *v1beta2.EtcdBackup, seen observation, next *plan, did loop.Did) {
		b.Status = summarize(b, seen, next, did.Failure)
	},
	Conditions: func(b *v1beta2.EtcdBackup) *[]metav1.Condition { return &b.Status.Conditions },
	Announce:   announce,
	Note:       noteFigure,
	Owns:       isOwned,
	Retry:      loop.Backoff{First: 100 * time.Millisecond, Longest: 10 * time.Second},
	Refusals:   loop.Backoff{First: time.Second, Longest: time.Minute},
}
