package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/members/model"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/view"
)

// joinTales are the stories of a running etcd that is taken over.
func joinTales() []tale {
	return []tale{
		{name: "joins", joins: 3, spec: []ecOption{version("3.6.15")}, steps: []testkit.Step{
			{Name: "pauses", When: isInPhase(v1beta2.JoinJoining), Do: patched(`{"paused":true}`)}, whenIs(reason.Paused, `{"paused":false,"size":2}`),
			stopsNext(2), stopsNext(1), stopsNext(0),
		}, settled: tookOver},
		{name: "joins-one-with-volumes", joins: 1, spec: []ecOption{stored}, steps: []testkit.Step{stopsNext(0)}, settled: tookOver},
		{name: "joins-and-goes-back", joins: 3, steps: []testkit.Step{
			{Name: "goes back", When: isInPhase(v1beta2.JoinJoined), Do: patched(`{"joinFrom":{"goBack":true}}`)},
		}, settled: goneBack},
		{name: "joins-one-that-dies", joins: 3, steps: []testkit.Step{
			{Name: "my-etcd-1 dies", When: isInPhase(v1beta2.JoinJoining), Do: ends(1)},
			{Name: "upgrades and starts it", Do: func(_ context.Context, r *testkit.Run) error { return own(r).startElsewhere(r, 1, "3.6.16") }},
			stopsNext(2), stopsNext(1), stopsNext(0),
		}, settled: tookOver},
		{name: "joins-one-that-is-scaled", joins: 3, steps: []testkit.Step{
			{Name: "my-etcd-2 dies", When: isInPhase(v1beta2.JoinJoining), Do: ends(2)},
			{Name: "removes it by hand", When: removesElsewhere(2), Do: func(context.Context, *testkit.Run) error { return nil }},
			stopsNext(1), stopsNext(0),
		}, settled: tookOver},
		{name: "joins-one-whose-node-pauses", joins: 2, steps: []testkit.Step{
			{Name: "my-etcd-1 is silent", When: isInPhase(v1beta2.JoinJoined), Do: silences(1)}, {Name: "it is back", When: isSilentFor(2 * view.Lately), Do: cutOff(false)},
			stopsNext(1), stopsNext(0),
		}, settled: tookOver},
	}
}

// ends has the process of a member of before end, which may be started again.
func ends(n int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error { return own(r).endElsewhere(r, elsewhere(n)) }
}

// stops stops one for good.
func stops(n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return errors.Join(own(r).endElsewhere(r, elsewhere(n)), own(r).giveUpElsewhere(ctx, r, elsewhere(n)))
	}
}

// silences has no client reach one, which runs on.
func silences(member int) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		n.cut, n.offSince = elsewhere(member), n.world.Now()
		n.steady = n.offSince.Add(2 * view.Lately) // then it is looked again
		n.model.Unreachable(n.cut, true, false)
		n.world.Changed()
		return nil
	}
}

func isSilentFor(long time.Duration) func(context.Context, *testkit.Run) error {
	return func(_ context.Context, r *testkit.Run) error {
		n := r.Own.(*modelNodes)
		if is := n.world.Now().Sub(n.offSince); is < long {
			return fmt.Errorf("%s is silent for %s", n.cut, is)
		}
		return nil
	}
}

// removesElsewhere is nil when a user has removed a member of before from the member list.
func removesElsewhere(n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		c, at, err := own(r).byHand(r)
		if err != nil {
			return err
		}
		list, err := c.List(ctx, at)
		for _, m := range list.Members {
			if m.Name == elsewhere(n) {
				err = errors.Join(err, c.Send(ctx, members.Request{What: members.Remove, At: at, ID: m.ID}), errors.New("it is to be seen"))
			}
		}
		return err
	}
}

// elsewhere is the name of a member that no EtcdCluster has.
func elsewhere(n int) string { return fmt.Sprintf("my-etcd-%d", n) }

// hostElsewhere is where it is.
func hostElsewhere(r *testkit.Run, n int) string {
	return elsewhere(n) + ".my-etcd-headless." + r.Namespace + ".svc"
}

// otherHostElsewhere is where the first of them is as well: it has a second network.
func otherHostElsewhere(r *testkit.Run) string { return "second." + hostElsewhere(r, 0) }

// peersElsewhere are the peer URLs of one.
func peersElsewhere(r *testkit.Run, n int) []string {
	all := []string{"http://" + hostElsewhere(r, n) + ":2380"}
	if n == 0 {
		all = append(all, "http://"+otherHostElsewhere(r)+":2380")
	}
	return all
}

// initialElsewhere is the list of members that they start with.
func initialElsewhere(r *testkit.Run, size int) string {
	var all []string
	for i := range size {
		for _, url := range peersElsewhere(r, i) {
			all = append(all, elsewhere(i)+"="+url)
		}
	}
	return strings.Join(all, ",")
}

// stopsNext stops a member of before when status says that it is to be stopped.
func stopsNext(n int) testkit.Step {
	return testkit.Step{
		Name: "stops " + elsewhere(n),
		When: func(ctx context.Context, r *testkit.Run) error {
			ec, err := currently(ctx, r)
			if err != nil {
				return err
			}
			if j := ec.Status.Join; j == nil || j.NextToStop != elsewhere(n) {
				return fmt.Errorf("status.join is %+v: %s", j, inShort(ec))
			}
			return own(r).put(r)
		},
		Do: stops(n),
	}
}

func isInPhase(phase v1beta2.JoinPhase) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err != nil {
			return err
		}
		if j := ec.Status.Join; j == nil || j.Phase != phase {
			return fmt.Errorf("status.join is %+v: %s", j, inShort(ec))
		}
		return own(r).put(r)
	}
}

// tookOver is nil when the cluster is as its spec requests, and there are no other members.
func tookOver(ctx context.Context, r *testkit.Run) error {
	return errors.Join(isInPhase(v1beta2.JoinComplete)(ctx, r), ready(ctx, r))
}

// goneBack is nil when the members have left, and the etcd of before serves.
func goneBack(ctx context.Context, r *testkit.Run) error {
	if err := stalled(reason.JoinUndone)(ctx, r); err != nil {
		return err
	}
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	all, err := podsOf(ctx, r)
	if len(all) > 0 || len(ec.Status.MemberList) != 3 {
		return errors.Join(err, fmt.Errorf("%d pods are there: %s", len(all), inShort(ec)))
	}
	return own(r).put(r)
}

// versionElsewhere is that of an etcd that is taken over, unless a story says another one.
const versionElsewhere = "3.6.15"

func (n *modelNodes) beginElsewhere(ctx context.Context, r *testkit.Run, size int, version string) (urls []string, err error) {
	for i := range size {
		if err := r.Client.Create(ctx, podElsewhere(r, elsewhere(i))); err != nil {
			return nil, err
		}
		host := hostElsewhere(r, i)
		n.elsewhere = append(n.elsewhere, model.Config{
			Name: elsewhere(i), PeerURL: "http://" + host + ":2380", Address: host + ":2379",
			InitialCluster: initialElsewhere(r, size), Token: "etcd-cluster-k8s", Disk: n.model.NewDisk(), Quota: 256 << 10,
		})
		if err := n.startElsewhere(r, i, version); err != nil {
			return nil, err
		}
		urls = append(urls, "http://"+host+":2379")
	}
	return urls, nil
}

func (n *modelNodes) startElsewhere(_ *testkit.Run, member int, version string) error {
	config := n.elsewhere[member]
	config.Version = version
	if running, exit := n.model.Start(config); !running {
		return errors.New(exit)
	}
	n.world.Changed()
	return nil
}

func (n *modelNodes) endElsewhere(_ *testkit.Run, member string) error {
	n.model.Stop(member)
	n.world.Changed()
	return nil
}

// giveUpElsewhere has the StatefulSet of a member scaled down.
func (n *modelNodes) giveUpElsewhere(ctx context.Context, r *testkit.Run, member string) error {
	return r.Client.Delete(ctx, podElsewhere(r, member))
}

// podElsewhere is the pod of a member that no EtcdCluster has. What the nodes see of it is its gate: it runs without them.
func podElsewhere(r *testkit.Run, member string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: member},
		Spec: corev1.PodSpec{
			Containers:      []corev1.Container{{Name: "etcd", Image: "bitnami/etcd"}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/runs-elsewhere"}},
		},
	}
}
