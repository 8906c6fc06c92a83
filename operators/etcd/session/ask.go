package session

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"slices"
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

// Answer is what a member said when it was asked last.
type Answer struct {
	Status members.Status
	List   members.List
	// Err is why it did not answer.
	Err error
	// Hash is that of its data, while members are compared: zero if it is not known, or HashErr why it cannot be had.
	Hash    members.Hash
	HashErr error
}

// IsOf says whether the member answered, and as one of the cluster with that ID.
func (a *Answer) IsOf(cluster members.ID) bool {
	return a.Err == nil && a.Status.ClusterID == cluster && cluster != 0
}

// HasList says whether the answer has a member list, of the same cluster and by the same
// member as the rest of the answer, and with that member in it.
func (a *Answer) HasList() bool {
	if a.Err != nil || a.List.ClusterID != a.Status.ClusterID || a.List.By != a.Status.ID {
		return false
	}
	for _, m := range a.List.Members {
		if m.ID == a.Status.ID {
			return true
		}
	}
	return false
}

// ErrNoAddress is the answer of a pod that has no address yet.
var ErrNoAddress = errors.New("its pod has no address yet")

// Asker asks the members. It has one client for each cluster.
type Asker struct {
	connect members.Connect
	now     func() time.Time

	mu          sync.Mutex
	clients     map[types.NamespacedName]connection
	elsewhere   map[types.NamespacedName]connection // to members that the operator does not run
	last        map[types.NamespacedName]asked
	maintenance map[types.NamespacedName]*Maintenance
	hashes      map[types.NamespacedName]map[string]*hashing
}

// asked are the answers of a cluster that was asked before.
type asked struct {
	Answers map[string]Answer
	// listed is when the members were asked for their lists.
	listed time.Time
	// Led is when each of them last said that there is a leader, and leaderless since when none does; zero
	// if one does.
	Led        map[string]time.Time
	Leaderless time.Time
	// Waiting is what the cluster waits for, and since when.
	Waiting Waiting
	// Maintenance is the last that this operator has decided on.
	Maintenance Maintenance
	// Rewritten are the voters about which this operator has had etcd write anew what it keeps.
	Rewritten []members.ID
	// Revision is the last that a member was seen to have of the cluster with that ID. Status has one
	// that may be much older: it is not written for a revision alone.
	Revision  int64
	clusterID string
	// Growth is how the databases of that cluster have grown.
	Growth Growth
	// LoggedIn is what etcd says to the operator's user, and at when it was asked.
	LoggedIn   error
	loggedInAt time.Time
}

// connection is a client, and what it was made with: the hash of the certificates, and the user.
type connection struct {
	client members.Client
	hash   string
	as     members.User
}

// New is an asker that reaches members by connect.
func New(connect members.Connect, now func() time.Time) *Asker {
	return &Asker{
		connect: connect, now: now,
		clients: map[types.NamespacedName]connection{}, elsewhere: map[types.NamespacedName]connection{}, last: map[types.NamespacedName]asked{}, maintenance: map[types.NamespacedName]*Maintenance{},
		hashes: map[types.NamespacedName]map[string]*hashing{},
	}
}

// Renew makes the client of a cluster, unless it has one with the present certificates and as that user.
func (a *Asker) Renew(ec *v1beta2.EtcdCluster, certs objects.Certificates, as members.User) (err error) {
	return a.renew(a.clients, objects.Key(ec), certs.Client, as)
}

// RenewElsewhere makes the client for the members of a cluster that the operator does not run, like Renew.
func (a *Asker) RenewElsewhere(ec *v1beta2.EtcdCluster, certificate map[string][]byte, as members.User) error {
	return a.renew(a.elsewhere, objects.Key(ec), certificate, as)
}

func (a *Asker) renew(of map[types.NamespacedName]connection, ec types.NamespacedName, certificate map[string][]byte, as members.User) (err error) {
	a.mu.Lock()
	known, hash := of[ec], contents.Hash(certificate)
	a.mu.Unlock()
	if known.client != nil && known.hash == hash && known.as == as {
		return nil
	}
	var config *tls.Config
	if certificate != nil {
		if config, err = pki.ClientConfig(certificate); err != nil {
			return err
		}
	}
	made, err := a.connect(config, as)
	if err != nil {
		return err
	}
	if known.client != nil {
		_ = known.client.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	of[ec] = connection{made, hash, as}
	if last, ok := a.last[ec]; ok {
		last.loggedInAt = time.Time{}
		a.last[ec] = last
	}
	return nil
}

// clientFor is the client for the members of a cluster that the operator runs, or for those elsewhere.
func (a *Asker) clientFor(ec types.NamespacedName, isElsewhere bool) members.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isElsewhere {
		return a.elsewhere[ec].client
	}
	return a.clients[ec].client
}

// Forget drops the client of a cluster that is gone.
func (a *Asker) Forget(ec types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range []map[types.NamespacedName]connection{a.clients, a.elsewhere} {
		if known, ok := of[ec]; ok {
			_ = known.client.Close()
			delete(of, ec)
		}
	}
	delete(a.last, ec)
	delete(a.maintenance, ec)
	delete(a.hashes, ec)
}

// listsLast is how long member lists of a cluster at rest are taken for the present ones.
const listsLast = 5 * time.Minute

// errNotAsked is the answer of a member elsewhere for which there is no client: its certificate is not there.
var errNotAsked = errors.New("there is no certificate to ask it with")

// Ask asks the members of all pods, and those elsewhere, at the same time, how they are, and whom they have for
// members. The second is left out where nothing hints at a change. One that is being defragmented is not asked.
func (a *Asker) Ask(ctx context.Context, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod, now time.Time) asked {
	elsewhere, own := objects.Elsewhere(ec), a.decidedOn(objects.Key(ec))
	names := slices.Concat(slices.Sorted(maps.Keys(pods)), slices.Sorted(maps.Keys(elsewhere)))
	answers := make([]Answer, len(names))
	to := func(name string) (members.Client, members.Endpoint) {
		at, isElsewhere := elsewhere[name]
		if !isElsewhere {
			at = objects.EndpointOf(ec, pods[name])
		}
		return a.clientFor(objects.Key(ec), isElsewhere), at
	}
	outside.Each(ctx, len(names), func(ctx context.Context, i int) {
		pod := pods[names[i]]
		if pod != nil && pod.Status.PodIP == "" {
			answers[i].Err = ErrNoAddress
			return
		}
		if pod != nil && own.isDefragmenting(ec, pod, now) {
			answers[i].Err = ErrDefragmenting
			return
		}
		client, at := to(names[i])
		if client == nil {
			answers[i].Err = errNotAsked
			return
		}
		answers[i].Status, answers[i].Err = client.Status(ctx, at)
	})
	before := a.Before(objects.Key(ec))
	before.Maintenance = own
	ready := meta.FindStatusCondition(ec.Status.Conditions, status.Ready)
	rests := ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == ec.Generation &&
		now.Sub(before.listed) < listsLast && len(before.Answers) == len(names)
	for i, name := range names {
		rests = rests && answers[i].isAs(before.Answers[name])
	}
	if rests {
		for i, name := range names {
			answers[i].List = before.Answers[name].List
		}
	} else {
		before.listed = now
		outside.Each(ctx, len(names), func(ctx context.Context, i int) {
			if answers[i].Err != nil {
				return
			}
			client, at := to(names[i])
			list, err := client.List(ctx, at)
			if !errors.Is(err, members.ErrIsLearner) { // which has none to tell
				answers[i].List, answers[i].Err = list, err
			}
		})
	}
	if before.clusterID != ec.Status.ClusterID {
		before.Revision, before.clusterID, before.loggedInAt, before.Rewritten = 0, ec.Status.ClusterID, time.Time{}, nil
		before.Growth = Growth{}
	}
	before.note(names, answers, now)
	before.noteGrowth(pods, now)
	a.compare(ctx, ec, to, before.Answers)
	a.mu.Lock()
	as := a.clients[objects.Key(ec)].as
	a.mu.Unlock()
	if as != (members.User{}) && (before.LoggedIn != nil || now.Sub(before.loggedInAt) >= listsLast) {
		before.LoggedIn, before.loggedInAt = logIn(ctx, to, before.Answers), now
	}
	a.mu.Lock()
	a.last[objects.Key(ec)] = before
	a.mu.Unlock()
	return before
}

// ErrNotAsked says that no member could be asked whether authentication is on.
var ErrNotAsked = errors.New("no voter answers that has a leader")

// logIn asks a voter whether authentication is on, and knows the client's user.
func logIn(ctx context.Context, to func(string) (members.Client, members.Endpoint), answers map[string]Answer) error {
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if a := answers[name]; a.Err == nil && a.Status.Leader != 0 && !a.Status.IsLearner {
			client, at := to(name)
			return client.LogIn(ctx, at)
		}
	}
	return ErrNotAsked
}

// note remembers what the members said.
func (k *asked) note(names []string, answers []Answer, now time.Time) {
	led, isLed := make(map[string]time.Time, len(names)), false
	k.Answers = make(map[string]Answer, len(names))
	for i, name := range names {
		a := answers[i]
		k.Answers[name] = a
		if at, ok := k.Led[name]; ok {
			led[name] = at
		}
		if a.Err == nil && a.Status.Leader != 0 {
			led[name], isLed = now, true
		}
		if a.Err == nil && a.Status.ClusterID.String() == k.clusterID {
			k.Revision = max(k.Revision, a.Status.Revision)
		}
	}
	k.Led = led
	switch {
	case isLed:
		k.Leaderless = time.Time{}
	case k.Leaderless.IsZero():
		k.Leaderless = now
	}
}

// Before is what was known of a cluster when it was asked last.
func (a *Asker) Before(ec types.NamespacedName) asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[ec]
}

// isAs says whether a member is in the state that it was in before, as far as that hints at a
// change of the members, and has no part in one that is under way.
func (a *Answer) isAs(before Answer) bool {
	is, was := a.Status, before.Status
	return a.Err == nil && before.HasList() && is.ID == was.ID && is.ClusterID == was.ClusterID &&
		is.Leader != 0 && is.Leader == was.Leader && is.RaftTerm == was.RaftTerm && !is.IsLearner && is.Version == was.Version
}

// Waiting is what a cluster was seen to wait for, and since when.
type Waiting struct {
	What  string
	Since time.Time
}
