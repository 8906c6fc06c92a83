package view

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// Node is what counts of a node.
type Node struct {
	IsCordoned bool   // it takes no more pods
	Zone       string // empty if it says none
}

// Observation is all that decide reads, besides the EtcdCluster.
type Observation struct {
	Now      time.Time
	Children loop.Children
	// Peers and clients are the two Services; empty objects where there is none.
	Peers, Clients *corev1.Service
	// Reached are the pods that the Service for clients leads to.
	Reached services.Targets
	// Pods and claims are those of the cluster, by name, also those that are ending, and of the seed of the restore
	// that is under way.
	Pods   map[string]*corev1.Pod
	Claims map[string]*corev1.PersistentVolumeClaim
	// Nodes are those of the pods, by name; none if nodes cannot be seen. IsFixed says that they can, and that members
	// cannot take their data to another one.
	Nodes   map[string]Node
	IsFixed bool
	// HasPlace says that there is a node that takes pods, and has no member: only where members share one.
	HasPlace bool
	// Budgets are PodDisruptionBudgets of others that select pods, too.
	Budgets []string
	// Unmarked are pods and claims that have lost the label by which the cache shows them, or their owner
	// reference.
	Unmarked []client.Object
	// Existing are pods and claims that may be of a cluster of which nothing is known yet, and are not this
	// EtcdCluster's.
	Existing []client.Object
	// Seeds are pods and claims of all seeds that there were, as far as they are there.
	Seeds []client.Object
	// Restores are the EtcdRestores that name the cluster, and restore is the one that is next. One is undecided that may
	// be next, and does not say yet of which EtcdCluster it is.
	Restores           []*v1beta2.EtcdRestore
	Restore, Undecided *v1beta2.EtcdRestore
	// Kept are the replaced volumes that were set aside for the restore that is under way.
	Kept []string
	// AgentImage is the image of what fetches backups.
	AgentImage string
	// Taken is a pod or claim that has the name of a member, and is another owner's.
	Taken client.Object
	// Answers are what the members of the pods say, by the pods' names.
	Answers map[string]session.Answer
	// Led is when each member last said that there is a leader, and leaderless since when none does; zero if
	// one does.
	Led        map[string]time.Time
	Leaderless time.Time
	// Revision is the last revision that any member was seen to have.
	Revision int64
	// Growth is how the databases of the members grow.
	Growth session.Growth
	// Waiting is what the cluster waited for when it was last decided, and since when.
	Waiting session.Waiting
	// Maintenance is the last that this operator has decided on.
	Maintenance session.Maintenance
	// Rewritten are the voters about which this operator has had etcd write anew what it keeps.
	Rewritten []members.ID
	// Gone are the URLs of members that the operator does not run, and whose pods are gone, with the time since when that
	// was seen. That one does not answer says nothing.
	Gone map[string]time.Time
	// ElsewhereProblem is what keeps the operator from asking members that it does not run.
	ElsewhereProblem *status.Problem
	// Certs are the certificates of a cluster with TLS.
	Certs objects.Certificates
	// Auth is what is known of the authentication that spec.auth requests.
	Auth Auth
}

// Auth is what is known of authentication.
type Auth struct {
	// Problem is what is wrong with the Secret. The operator goes on as the user that it was.
	Problem *status.Problem
	// LoggedIn is what etcd says to the operator's user: nil if authentication is on and it is root.
	LoggedIn error
}

// Budget is the operator's own PodDisruptionBudget.
func (o Observation) Budget() *policyv1.PodDisruptionBudget {
	return loop.The[*policyv1.PodDisruptionBudget](o.Children)
}

// HasRestore says whether there is an EtcdRestore with that UID.
func (o Observation) HasRestore(id string) bool {
	return slices.ContainsFunc(o.Restores, func(er *v1beta2.EtcdRestore) bool { return string(er.UID) == id })
}

// NoteOrphan notes that an object of the cluster has lost its owner reference.
func (o *Observation) NoteOrphan(ec *v1beta2.EtcdCluster, obj client.Object) {
	if !metav1.IsControlledBy(obj, ec) {
		o.Unmarked = append(o.Unmarked, obj)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
