//go:build apiserver

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/members"
)

// TestTakesOver: members of real etcd are taken over from the names and addresses of a chart, or left as they were.
func TestTakesOver(t *testing.T) {
	m := newMachine(t, "3.6.15", "3.6.16")
	for _, story := range onMachine(m, "joins", "joins-and-goes-back") {
		t.Run(story.Name, func(t *testing.T) { t.Parallel(); newSweep().Trace(t, story) })
	}
}

// This file runs an etcd that no EtcdCluster has, with the names of a chart's.

// memberElsewhere is a member of it.
type memberElsewhere struct {
	ip      string
	process *process
}

const versionElsewhere = "3.6.15"

func (n *realNodes) beginElsewhere(r *testkit.Run, size int) (urls []string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.elsewhere = map[string]memberElsewhere{}
	ips := make([]string, size)
	for i := range size {
		ips[i] = n.newAddress()
		n.hosts[hostElsewhere(r, i)] = ips[i]
	}
	if err := n.writeHosts(); err != nil {
		return nil, err
	}
	for i, ip := range ips {
		client := fmt.Sprintf("http://%s:%d", ip, members.ClientPort)
		peer := fmt.Sprintf("http://%s:%d", hostElsewhere(r, i), members.PeerPort)
		p, err := startProcess(n.programs[versionElsewhere], n.hostsFile(), []string{
			"PATH=" + os.Getenv("PATH"), "HTTP_PROXY=" + n.proxy, "ETCD_UNSAFE_NO_FSYNC=true", "GOMAXPROCS=1",
			"ETCD_NAME=" + elsewhere(i), "ETCD_DATA_DIR=" + filepath.Join(n.folder, elsewhere(i)),
			fmt.Sprintf("ETCD_LISTEN_PEER_URLS=http://%s:%d", ip, members.PeerPort), "ETCD_INITIAL_ADVERTISE_PEER_URLS=" + peer,
			"ETCD_LISTEN_CLIENT_URLS=" + client, "ETCD_ADVERTISE_CLIENT_URLS=" + client,
			"ETCD_INITIAL_CLUSTER=" + initialElsewhere(r, size), "ETCD_INITIAL_CLUSTER_STATE=new", "ETCD_INITIAL_CLUSTER_TOKEN=etcd-cluster-k8s",
		}, client+"/health")
		if err != nil {
			return nil, err
		}
		n.elsewhere[elsewhere(i)] = memberElsewhere{ip, p}
		n.publish(elsewhere(i), n.namespace, ip)
		urls = append(urls, client)
	}
	return urls, nil
}

func (n *realNodes) stopElsewhere(_ *testkit.Run, member string) error {
	n.mu.Lock()
	m, ok := n.elsewhere[member]
	delete(n.elsewhere, member)
	n.mu.Unlock()
	if !ok {
		return fmt.Errorf("there is no member %s", member)
	}
	m.process.signal(syscall.SIGTERM)
	select {
	case <-m.process.done:
	case <-time.After(20 * time.Second):
		return fmt.Errorf("member %s does not stop", member)
	}
	n.publish(member, n.namespace, "")
	return nil
}

// endElsewhere ends what is left of it.
func (n *realNodes) endElsewhere() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.elsewhere {
		m.process.signal(syscall.SIGKILL)
		<-m.process.done
	}
}

// atElsewhere makes requests to the first of its members that answers.
func (n *realNodes) atElsewhere(timeout time.Duration, do func(ctx context.Context, conn grpc.ClientConnInterface) error) error {
	n.mu.Lock()
	var ips []string
	for _, m := range n.elsewhere {
		ips = append(ips, m.ip)
	}
	n.mu.Unlock()
	err := fmt.Errorf("no member runs elsewhere")
	for _, ip := range ips {
		if err = at(ip, timeout, do); err == nil {
			return nil
		}
	}
	return err
}

// putElsewhere has a client write that goes to the members of before.
func (n *realNodes) putElsewhere(key string) (cluster uint64, err error) {
	err = n.atElsewhere(2*time.Second, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		done, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte(key), Value: []byte("x")})
		cluster = done.GetHeader().GetClusterId()
		return err
	})
	return cluster, err
}
