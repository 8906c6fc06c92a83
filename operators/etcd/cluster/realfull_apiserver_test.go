//go:build apiserver

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// TestRealFull: a full database of a real etcd gets room by the operator's steps. That of BenchmarkRealFull is greater.
func TestRealFull(t *testing.T) { resolveReal(t, 64<<20) }

// BenchmarkRealFull resolves a full database of a real etcd by the operator's steps, and times them: the compaction, the
// defragmentation, all together, and the longest look of the operator, for which a worker is held. The databases are
// made offline. They need four times their size on the disk (TMPDIR), and some minutes:
//
//	go test -tags apiserver -run - -bench RealFull/8 -benchtime 1x -timeout 1h ./operators/etcd/cluster
func BenchmarkRealFull(b *testing.B) {
	for _, gib := range []int64{1, 4, 8} {
		b.Run(fmt.Sprintf("%dGiB", gib), func(b *testing.B) {
			for b.Loop() {
				for what, took := range resolveReal(b, gib<<30) {
					b.ReportMetric(took.Seconds(), what+"-s")
				}
			}
		})
	}
}

// resolveReal has the operator's steps make room in a full database of a real etcd, and returns how long they took.
func resolveReal(t testing.TB, bytes int64) map[string]time.Duration {
	t.Helper()
	ctx, ec := t.Context(), anEtcd(size(1))
	ec.Status.MemberList, ec.Status.Founders = ec.Status.MemberList[:1], ec.Status.Founders[:1]
	w := healthy(ec, 1)
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	w.seen.Pods[w.name(1)].Status.PodIP = ip
	fullMember(t, ec, w.name(1), ip, bytes)

	a := session.New(members.Dial, time.Now)
	if err := a.Renew(ec, objects.Certificates{}, members.User{}); err != nil {
		t.Fatal(err)
	}
	defer a.Forget(objects.Key(ec))
	client, err := members.Dial(nil, members.User{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	member := objects.EndpointOf(ec, w.seen.Pods[w.name(1)])
	is, err := client.Status(ctx, member)
	if err != nil || len(is.Alarms) != 1 || is.Alarms[0].Type != members.NoSpace {
		t.Fatalf("it is not full: %+v (%v)", is, err)
	}
	ec.Status.ClusterID, ec.Status.MemberList[0].ID = is.ClusterID.String(), is.ID.String()

	took, began, step := map[string]time.Duration{}, time.Now(), time.Now()
	for ec.Status.FullDatabase == nil || ec.Status.FullDatabase.ResolvedTime == nil {
		if ec.Status.Maintenance == nil && time.Since(began) > 2*members.DefragmentPatience(bytes) {
			t.Fatalf("there is no room: %+v", ec.Status)
		}
		was, looked := ec.Status.Maintenance, time.Now()
		wake := look(ctx, t, a, w)
		took["look"] = max(took["look"], time.Since(looked))
		if now := ec.Status.Maintenance; was != nil && (now == nil || now.Type != was.Type) {
			took[string(was.Type)], step = time.Since(step), time.Now()
		}
		time.Sleep(time.Until(wake))
	}
	took["all"] = time.Since(began)
	if took["look"] > 10*time.Second {
		t.Errorf("a worker was held for %s", took["look"])
	}
	after, err := client.Status(ctx, member)
	if err != nil || len(after.Alarms) != 0 || after.DBSize > is.DBSize*3/4 {
		t.Errorf("it had %d bytes, and is %+v (%v)", is.DBSize, after, err)
	}
	if err := write(ip); err != nil {
		t.Errorf("a write: %v", err)
	}
	t.Logf("%d bytes became %d: %v", is.DBSize, after.DBSize, took)
	return took
}

// look has the operator look once, and do what there is to do of etcd. It returns when it looks again.
func look(ctx context.Context, t testing.TB, a *session.Asker, w *world) time.Time {
	t.Helper()
	w.seen.Now = time.Now().Round(0)
	asked := a.Ask(ctx, w.ec, w.seen.Pods, w.seen.Now)
	w.seen.Answers, w.seen.Led, w.seen.Leaderless, w.seen.Maintenance = asked.Answers, asked.Led, asked.Leaderless, asked.Maintenance
	w.seen.Growth = asked.Growth
	p, err := (&observer{asker: a}).decide(w.ec, w.seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range p.Writes {
		if call, is := write.(loop.Call); is {
			err = errors.Join(err, call.Do(ctx, loop.Caller{}))
		}
	}
	if err != nil && !errors.Is(err, loop.ErrNotNow) {
		t.Logf("%s: %v", w.seen.Now, err)
	}
	w.ec.Status = summarize(w.ec, w.seen, p, err)
	return p.WakeAt
}

// fullMember is a member that serves at an address, and whose database is full.
func fullMember(t testing.TB, ec *v1beta2.EtcdCluster, name, ip string, bytes int64) *etcdtest.Member {
	t.Helper()
	m := etcdtest.New(t, name, "v3.6.16")
	m.Client = fmt.Sprintf("%s:%d", ip, members.ClientPort)
	m.Env = []string{"ETCD_INITIAL_CLUSTER=" + name + "=" + objects.PeerURLOf(ec, name), "ETCD_INITIAL_CLUSTER_STATE=new"}
	m.Flags = []string{"--initial-advertise-peer-urls=" + objects.PeerURLOf(ec, name), "--log-level=error"}
	m.Start(t)
	c, err := members.Dial(nil, members.User{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	serves := func() error { return c.Serves(t.Context(), members.Endpoint{Address: m.Client}) }
	etcdtest.Eventually(t, time.Minute, "serves", serves)
	m.Stop(t)
	m.Flags = append(m.Flags, fmt.Sprintf("--quota-backend-bytes=%d", etcdtest.Fill(t, m, bytes, 4<<10)))
	m.Start(t)
	etcdtest.Eventually(t, 10*time.Minute, "serves what it has", serves)
	if err := write(ip); grpcstatus.Code(err) != codes.ResourceExhausted {
		t.Fatalf("it is not full: %v", err)
	}
	return m
}

// write writes a key.
func write(ip string) error {
	return at(ip, 10*time.Second, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 8<<10)})
		return err
	})
}
