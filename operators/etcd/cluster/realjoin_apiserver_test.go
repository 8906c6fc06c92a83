//go:build apiserver

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	for _, story := range onMachine(m, "joins", "joins-one-that-dies", "joins-and-goes-back") {
		t.Run(story.Name, func(t *testing.T) { t.Parallel(); newSweep().Trace(t, story) })
	}
}

// This file runs an etcd that no EtcdCluster has, with the names of a chart's.

// memberElsewhere is a member of it; no process if it is stopped.
type memberElsewhere struct {
	ip, initial string
	process     *process
}

func (n *realNodes) beginElsewhere(_ context.Context, r *testkit.Run, size int, version string) (urls []string, err error) {
	n.mu.Lock()
	n.elsewhere = map[string]memberElsewhere{}
	for i := range size {
		ip := n.newAddress()
		n.hosts[hostElsewhere(r, i)] = ip
		n.elsewhere[elsewhere(i)] = memberElsewhere{ip: ip, initial: initialElsewhere(r, size)}
		urls = append(urls, fmt.Sprintf("http://%s:%d", ip, members.ClientPort))
	}
	n.hosts[otherHostElsewhere(r)] = n.hosts[hostElsewhere(r, 0)]
	err = n.writeHosts()
	n.mu.Unlock()
	for i := range size {
		err = errors.Join(err, n.startElsewhere(r, i, version))
	}
	return urls, err
}

func (n *realNodes) startElsewhere(r *testkit.Run, member int, version string) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.elsewhere[elsewhere(member)]
	client := fmt.Sprintf("http://%s:%d", m.ip, members.ClientPort)
	m.process, err = startProcess(n.programs[version], n.hostsFile(), []string{
		"PATH=" + os.Getenv("PATH"), "HTTP_PROXY=" + n.proxy, "ETCD_UNSAFE_NO_FSYNC=true", "GOMAXPROCS=1",
		"ETCD_NAME=" + elsewhere(member), "ETCD_DATA_DIR=" + filepath.Join(n.folder, elsewhere(member)),
		fmt.Sprintf("ETCD_LISTEN_PEER_URLS=http://%s:%d", m.ip, members.PeerPort), "ETCD_INITIAL_ADVERTISE_PEER_URLS=" + strings.Join(peersElsewhere(r, member), ","),
		"ETCD_LISTEN_CLIENT_URLS=" + client, "ETCD_ADVERTISE_CLIENT_URLS=" + client,
		"ETCD_INITIAL_CLUSTER=" + m.initial, "ETCD_INITIAL_CLUSTER_STATE=new", "ETCD_INITIAL_CLUSTER_TOKEN=etcd-cluster-k8s",
	}, client+"/health")
	n.elsewhere[elsewhere(member)] = m
	n.publish(elsewhere(member), n.namespace, m.ip)
	return err
}

func (n *realNodes) endElsewhere(_ *testkit.Run, member string) error {
	n.mu.Lock()
	m := n.elsewhere[member]
	n.elsewhere[member] = memberElsewhere{ip: m.ip, initial: m.initial}
	n.mu.Unlock()
	if m.process == nil {
		return fmt.Errorf("member %s does not run", member)
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

// giveUpElsewhere has the user remove a member that is no pod, as soon as etcd lets that be.
func (n *realNodes) giveUpElsewhere(ctx context.Context, r *testkit.Run, member string) error {
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(lookEvery) {
		err := removesByHand(ctx, r, member)
		if !errors.Is(err, members.ErrUnhealthy) || time.Now().After(until) {
			return err
		}
	}
}

// removesByHand has a user remove a member from the member list.
func removesByHand(ctx context.Context, r *testkit.Run, member string) error {
	c, at, err := own(r).byHand(r)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.List(ctx, at)
	for _, m := range list.Members {
		if m.Name == member {
			err = errors.Join(err, c.Send(ctx, members.Request{What: members.Remove, At: at, ID: m.ID}))
		}
	}
	return err
}

// clearElsewhere ends what is left of it.
func (n *realNodes) clearElsewhere() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.elsewhere {
		if m.process != nil {
			m.process.signal(syscall.SIGKILL)
			<-m.process.done
		}
	}
}

// atElsewhere makes requests to the first of its members that answers.
func (n *realNodes) atElsewhere(timeout time.Duration, do func(ctx context.Context, conn grpc.ClientConnInterface) error) error {
	n.mu.Lock()
	var ips []string
	for _, m := range n.elsewhere {
		if m.process != nil {
			ips = append(ips, m.ip)
		}
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
