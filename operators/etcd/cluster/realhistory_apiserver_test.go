//go:build apiserver

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/etcdtest"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
)

// TestRealHistory: one key of 4 KiB that is overwritten at full speed does not fill a database of 64 MiB.
func TestRealHistory(t *testing.T) { overwriteReal(t, 20*time.Second, 8) }

// BenchmarkRealHistory overwrites one key of 4 KiB of a real etcd with a quota of 64 MiB at full speed, while the operator's
// steps drop the history, and counts the writes, those that failed, the longest time without one that was acknowledged,
// the most that the file had, and how often the operator looked and had the history dropped. By one client, or by 16:
//
//	go test -tags apiserver -run - -bench RealHistory/1x10m -benchtime 1x -timeout 1h ./operators/etcd/cluster
func BenchmarkRealHistory(b *testing.B) {
	for _, lasts := range []time.Duration{time.Minute, 10 * time.Minute} {
		for _, clients := range []int{1, 16} {
			b.Run(fmt.Sprintf("%dx%.0fm", clients, lasts.Minutes()), func(b *testing.B) {
				for b.Loop() {
					for what, is := range overwriteReal(b, lasts, clients) {
						b.ReportMetric(is, what)
					}
				}
			})
		}
	}
}

// overwriteReal has clients overwrite a key of a real etcd for some time, under the operator's steps.
func overwriteReal(t testing.TB, lasts time.Duration, clients int) map[string]float64 {
	t.Helper()
	const quota = 64 << 20
	ec := anEtcd(size(1))
	ec.Status.MemberList, ec.Status.Founders = ec.Status.MemberList[:1], ec.Status.Founders[:1]
	w := healthy(ec, 1)
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	w.seen.Pods[w.name(1)].Status.PodIP = ip
	m := etcdtest.New(t, w.name(1), "v3.6.16")
	m.Client = fmt.Sprintf("%s:%d", ip, members.ClientPort)
	m.Env = []string{"ETCD_INITIAL_CLUSTER=" + m.Name + "=" + objects.PeerURLOf(ec, m.Name), "ETCD_INITIAL_CLUSTER_STATE=new"}
	m.Flags = []string{"--initial-advertise-peer-urls=" + objects.PeerURLOf(ec, m.Name), "--log-level=error", fmt.Sprintf("--quota-backend-bytes=%d", quota)}
	m.Start(t)
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
	etcdtest.Eventually(t, time.Minute, "serves", func() error { return client.Serves(t.Context(), member) })
	is, err := client.Status(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	ec.Status.ClusterID, ec.Status.MemberList[0].ID = is.ClusterID.String(), is.ID.String()
	dropped := session.Requests.WithLabelValues(string(members.DropHistory))
	before := testutil.ToFloat64(dropped)

	// The cluster is at rest when the writes begin.
	wake := look(t.Context(), t, a, w)
	end, writers := time.Now().Add(lasts), sync.WaitGroup{}
	wrote := make([]overwritten, clients)
	for i := range wrote {
		writers.Go(func() { wrote[i] = overwrite(t.Context(), ip, end) })
	}
	looks, largest := 0.0, int64(0)
	for time.Now().Before(end) {
		time.Sleep(time.Until(wake))
		wake = look(t.Context(), t, a, w)
		looks, largest = looks+1, max(largest, w.seen.Answers[m.Name].Status.DBSize)
	}
	writers.Wait()
	all := map[string]float64{"looks": looks, "drops": testutil.ToFloat64(dropped) - before, "MiB": float64(largest >> 20)}
	for _, did := range wrote {
		if did.err != nil {
			t.Errorf("a write failed: %v", did.err)
		}
		all["writes"] += float64(did.writes)
		all["failed"] += float64(did.failed)
		all["gap-ms"] = max(all["gap-ms"], float64(did.gap.Milliseconds()))
	}
	if all["failed"] > 0 || all["drops"] == 0 && all["writes"]*4096 > quota { // a slow machine does not fill it
		t.Errorf("%.0f writes failed, and history was dropped %.0f times", all["failed"], all["drops"])
	}
	t.Logf("%v", all)
	return all
}

// overwritten is what became of a client's writes: the gap is the longest time without one that was acknowledged.
type overwritten struct {
	writes, failed int
	gap            time.Duration
	err            error
}

// overwrite overwrites a key with 4 KiB, again and again.
func overwrite(ctx context.Context, ip string, end time.Time) (did overwritten) {
	did.err = at(ip, time.Until(end)+time.Minute, func(_ context.Context, conn grpc.ClientConnInterface) error {
		var last error
		kv, value, acked := pb.NewKVClient(conn), make([]byte, 4<<10), time.Now()
		for time.Now().Before(end) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("key"), Value: value})
			cancel()
			if err != nil {
				did.failed, last = did.failed+1, err
				continue
			}
			did.writes++
			did.gap, acked = max(did.gap, time.Since(acked)), time.Now()
		}
		return last
	})
	return did
}
