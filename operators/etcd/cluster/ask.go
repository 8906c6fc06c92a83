package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/pki"
)

// answer is what a member said when it was asked last.
type answer struct {
	status members.Status
	list   members.List
	// err is why it did not answer.
	err error
}

// isOf says whether the member answered, and as one of the cluster with that ID.
func (a *answer) isOf(cluster members.ID) bool {
	return a.err == nil && a.status.ClusterID == cluster && cluster != 0
}

// hasList says whether the answer has a member list, of the same cluster and by the same
// member as the rest of the answer, and with that member in it.
func (a *answer) hasList() bool {
	if a.err != nil || a.list.ClusterID != a.status.ClusterID || a.list.By != a.status.ID {
		return false
	}
	for _, m := range a.list.Members {
		if m.ID == a.status.ID {
			return true
		}
	}
	return false
}

// errNoAddress is the answer of a pod that has no address yet.
var errNoAddress = errors.New("its pod has no address yet")

// asker asks the members. It has one client for each cluster.
type asker struct {
	connect members.Connect
	now     func() time.Time

	mu          sync.Mutex
	clients     map[types.NamespacedName]connection
	last        map[types.NamespacedName]asked
	maintenance map[types.NamespacedName]*maintenance
}

// asked are the answers of a cluster that was asked before.
type asked struct {
	answers map[string]answer
	// listed is when the members were asked for their lists.
	listed time.Time
	// led is when each of them last said that there is a leader, and leaderless since when none does; zero
	// if one does.
	led        map[string]time.Time
	leaderless time.Time
	// waiting is what the cluster waits for, and since when.
	waiting waiting
	// maintenance is the last that this operator has decided on.
	maintenance maintenance
	// revision is the last that a member was seen to have of the cluster with that ID. Status has one
	// that may be much older: it is not written for a revision alone.
	revision  int64
	clusterID string
}

// connection is a client, and the hash of the certificates that it was made with.
type connection struct {
	client members.Client
	hash   string
}

func newAsker(connect members.Connect, now func() time.Time) *asker {
	return &asker{
		connect: connect, now: now,
		clients: map[types.NamespacedName]connection{}, last: map[types.NamespacedName]asked{}, maintenance: map[types.NamespacedName]*maintenance{},
	}
}

// renew makes the client of a cluster, unless it has one with the present certificates.
func (a *asker) renew(ec *v1beta2.EtcdCluster, certs objects.Certificates) (err error) {
	known, hash := a.known(objects.Key(ec)), contents.Hash(certs.Client)
	if known.client != nil && known.hash == hash {
		return nil
	}
	var config *tls.Config
	if certs.Client != nil {
		if config, err = pki.ClientConfig(certs.Client); err != nil {
			return err
		}
	}
	made, err := a.connect(config)
	if err != nil {
		return err
	}
	if known.client != nil {
		_ = known.client.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients[objects.Key(ec)] = connection{made, hash}
	return nil
}

// known is the client of a cluster.
func (a *asker) known(ec types.NamespacedName) connection {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clients[ec]
}

// forget drops the client of a cluster that is gone.
func (a *asker) forget(ec types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.clients[ec]; ok {
		_ = known.client.Close()
		delete(a.clients, ec)
	}
	delete(a.last, ec)
	delete(a.maintenance, ec)
}

// listsLast is how long member lists of a cluster at rest are taken for the present ones.
const listsLast = 5 * time.Minute

// ask asks the members of all pods at the same time, how they are, and whom they have for
// members. The second is left out where nothing hints at a change. One that is being defragmented is not asked.
func (a *asker) ask(ctx context.Context, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod, now time.Time) asked {
	client, names, own := a.known(objects.Key(ec)).client, sortedKeys(pods), a.decidedOn(objects.Key(ec))
	answers := make([]answer, len(names))
	outside.Each(ctx, len(names), func(ctx context.Context, i int) {
		pod := pods[names[i]]
		switch {
		case pod.Status.PodIP == "":
			answers[i].err = errNoAddress
			return
		case own.isDefragmenting(ec, pod, now):
			answers[i].err = errDefragmenting
			return
		}
		answers[i].status, answers[i].err = client.Status(ctx, objects.EndpointOf(ec, pod))
	})
	before := a.before(objects.Key(ec))
	before.maintenance = own
	ready := meta.FindStatusCondition(ec.Status.Conditions, status.Ready)
	rests := ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == ec.Generation &&
		now.Sub(before.listed) < listsLast && len(before.answers) == len(names)
	for i, name := range names {
		rests = rests && answers[i].isAs(before.answers[name])
	}
	if rests {
		for i, name := range names {
			answers[i].list = before.answers[name].list
		}
	} else {
		before.listed = now
		outside.Each(ctx, len(names), func(ctx context.Context, i int) {
			if answers[i].err != nil {
				return
			}
			list, err := client.List(ctx, objects.EndpointOf(ec, pods[names[i]]))
			if !errors.Is(err, members.ErrIsLearner) { // which has none to tell
				answers[i].list, answers[i].err = list, err
			}
		})
	}
	if before.clusterID != ec.Status.ClusterID {
		before.revision, before.clusterID = 0, ec.Status.ClusterID
	}
	before.note(names, answers, now)
	a.mu.Lock()
	a.last[objects.Key(ec)] = before
	a.mu.Unlock()
	return before
}

// note remembers what the members said.
func (k *asked) note(names []string, answers []answer, now time.Time) {
	led, isLed := make(map[string]time.Time, len(names)), false
	k.answers = make(map[string]answer, len(names))
	for i, name := range names {
		a := answers[i]
		k.answers[name] = a
		if at, ok := k.led[name]; ok {
			led[name] = at
		}
		if a.err == nil && a.status.Leader != 0 {
			led[name], isLed = now, true
		}
		if a.err == nil && a.status.ClusterID.String() == k.clusterID {
			k.revision = max(k.revision, a.status.Revision)
		}
	}
	k.led = led
	switch {
	case isLed:
		k.leaderless = time.Time{}
	case k.leaderless.IsZero():
		k.leaderless = now
	}
}

func (a *asker) before(ec types.NamespacedName) asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[ec]
}

// noteWaiting remembers what a cluster waits for.
func (a *asker) noteWaiting(ec types.NamespacedName, is waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[ec]
	last.waiting = is
	a.last[ec] = last
}

// isAs says whether a member is in the state that it was in before, as far as that hints at a
// change of the members, and has no part in one that is under way.
func (a *answer) isAs(before answer) bool {
	is, was := a.status, before.status
	return a.err == nil && before.hasList() && is.ID == was.ID && is.ClusterID == was.ClusterID &&
		is.Leader != 0 && is.Leader == was.Leader && is.RaftTerm == was.RaftTerm && !is.IsLearner && is.Version == was.Version
}
