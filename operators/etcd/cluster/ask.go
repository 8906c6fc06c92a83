package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/members"
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

	mu      sync.Mutex
	clients map[types.NamespacedName]connection
}

// connection is a client, and the hash of the certificates that it was made with.
type connection struct {
	client members.Client
	hash   string
}

func newAsker(connect members.Connect) *asker {
	return &asker{connect: connect, clients: map[types.NamespacedName]connection{}}
}

// client is the client of a cluster, with the present certificates.
func (a *asker) client(ec *v1beta2.EtcdCluster, certs certificates) (members.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.clients[key(ec)]
	if ok && known.hash == certs.clientHash {
		return known.client, nil
	}
	if ok {
		_ = known.client.Close()
		delete(a.clients, key(ec))
	}
	made, err := a.connect(certs.client)
	if err != nil {
		return nil, err
	}
	a.clients[key(ec)] = connection{made, certs.clientHash}
	return made, nil
}

// forget drops the client of a cluster that is gone.
func (a *asker) forget(ec types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.clients[ec]; ok {
		_ = known.client.Close()
		delete(a.clients, ec)
	}
}

// ask asks the members of all pods at the same time.
func ask(ctx context.Context, client members.Client, ec *v1beta2.EtcdCluster, pods map[string]*corev1.Pod) map[string]answer {
	names := sortedKeys(pods)
	answers := make([]answer, len(names))
	outside.Each(ctx, len(names), func(ctx context.Context, i int) {
		pod := pods[names[i]]
		if pod.Status.PodIP == "" {
			answers[i].err = errNoAddress
			return
		}
		at := endpointOf(ec, pod)
		if answers[i].status, answers[i].err = client.Status(ctx, at); answers[i].err == nil {
			answers[i].list, answers[i].err = client.List(ctx, at)
		}
	})
	byName := make(map[string]answer, len(names))
	for i, name := range names {
		byName[name] = answers[i]
	}
	return byName
}

// How soon a cluster is looked at again.
const (
	// restingWake is for one that is as it should be.
	restingWake = 30 * time.Second
	// busyWake is for one in which something is under way, and waitingWake for one that waits for
	// something that may take long.
	busyWake    = 250 * time.Millisecond
	waitingWake = 2 * time.Second
)
