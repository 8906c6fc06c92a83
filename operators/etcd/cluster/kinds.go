package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/operators/etcd/certificates"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters;etcdrestores,verbs=get;list;watch
// +kubebuilder:rbac:groups=etcd.database.coreos.com,resources=etcdclusters/status;etcdclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Kind is the kind EtcdCluster, with members that are reached by network.
var Kind = Declare(members.Dial)

// Declare is the kind EtcdCluster, whose members are reached by a connect of the caller's.
func Declare(connect members.Connect) run.Kind {
	return loop.Declare(kind, func(parts run.Parts) (loop.Kind[*v1beta2.EtcdCluster, view.Observation, *plan], error) {
		made := kind
		o := &observer{
			asker: session.New(connect, parts.Now), certificates: certificates.New(parts.ClusterDomain, parts.Now), agentImage: job.Image(), now: parts.Now,
		}
		made.Observe, made.Decide, made.Forget = o.observe, o.decide, o.forget
		if err := disruption.Index(parts, objects.ClusterKind.Kind); err != nil {
			return made, err
		}
		return made, registerMetrics()
	})
}

// kind is what the loop has to know about EtcdClusters, but for the functions that have a state.
var kind = loop.Kind[*v1beta2.EtcdCluster, view.Observation, *plan]{
	Operator: objects.Operator,
	Empty:    &v1beta2.EtcdCluster{},
	Children: []loop.Child[*v1beta2.EtcdCluster]{
		{Empty: &policyv1.PodDisruptionBudget{}, Name: func(ec *v1beta2.EtcdCluster) string { return ec.Name }, Among: true},
		{Empty: &corev1.Service{}},
		{Empty: &corev1.Pod{}},
		{Empty: &corev1.PersistentVolumeClaim{}},
	},
	Watches: []loop.Watch[*v1beta2.EtcdCluster]{
		services.Watch(objects.ClientServiceName),
		disruption.Watch[*v1beta2.EtcdCluster](objects.ClusterKind.Kind),
		{
			Object: contents.Metadata(contents.Secret),
			Index:  "secrets",
			Value:  client.Object.GetName,
			Values: objects.SecretNames,
		},
		{
			Object: &v1beta2.EtcdRestore{},
			Index:  "name",
			Value:  func(changed client.Object) string { return changed.(*v1beta2.EtcdRestore).Spec.EtcdCluster.Name },
			Values: func(ec *v1beta2.EtcdCluster) []string { return []string{ec.Name} },
		},
		nodeWatch, volumeWatch,
	},
	Writes: []string{
		"apply Service", "apply PodDisruptionBudget", "apply Secret",
		"create Pod", "create PersistentVolumeClaim", "delete Pod", "delete PersistentVolumeClaim", "delete PodDisruptionBudget",
		"patch Pod/gate", "patch Pod/image", "patch Pod/marks", "patch Pod/force", "patch Pod/sealed", "patch Pod/restart",
		"patch Pod/stop", "patch Pod/start", "patch Pod/voter",
		"patch PersistentVolumeClaim/marks", "patch PersistentVolumeClaim/grow", "patch PersistentVolumeClaim/kept", "patch PersistentVolumeClaim/suspect",
		"call/etcd add", "call/etcd promote", "call/etcd rewrite", "call/etcd remove", "call/etcd move leader", "call/etcd downgrade",
		"call/etcd defragment", "call/etcd compact", "call/etcd drop history", "call/etcd disarm", "call/etcd enable authentication", "call/etcd set password",
		"status EtcdCluster", "status EtcdCluster/founders", "status EtcdCluster/cluster", "status EtcdCluster/member", "status EtcdCluster/change",
		"status EtcdCluster/survivor", "status EtcdCluster/recovered", "status EtcdCluster/anew", "status EtcdCluster/prepared", "status EtcdCluster/refusal", "status EtcdCluster/maintenance",
		"status EtcdCluster/seed", "status EtcdCluster/seeded", "status EtcdCluster/switching", "status EtcdCluster/switched", "status EtcdCluster/restored",
	},
	Summarize: func(ec *v1beta2.EtcdCluster, seen view.Observation, next *plan, did loop.Did) {
		ec.Status = summarize(ec, seen, next, did.Failure)
	},
	Conditions: func(ec *v1beta2.EtcdCluster) *[]metav1.Condition { return &ec.Status.Conditions },
	Announce:   announce,
	Note:       noteFigure,
	Retry:      loop.Backoff{First: 100 * time.Millisecond, Longest: 10 * time.Second},
	Refusals:   loop.Backoff{First: time.Second, Longest: 15 * time.Second},
	AsksOthers: true,
}

// Static is what the operator's role has to allow for EtcdClusters, among other things.
var Static = kind
