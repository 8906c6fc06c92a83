package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/test/e2e/etcd/load"
)

const (
	upgradeBound = 30 * time.Second
	// writeGapBound is for a leader that hands over before it stops, as it does in every upgrade.
	writeGapBound = 500 * time.Millisecond
	// writers each write over a connection of their own, together writeRate times a second.
	writers, writeRate = 10, 200
)

// upgradeMembers upgrades clusters of three, by a patch release and by a minor version, while
// clients write.
func upgradeMembers(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-upgrade"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, from := range []string{etcdPatch, etcdMinor} {
		var took, gaps, alone []time.Duration
		acknowledged, unknown := 0, 0
		what := fmt.Sprintf("%s to %s, three members", from, etcdVersion)
		for round := range b.rounds {
			ec := newEtcd(namespace, fmt.Sprintf("etcd-%d", round), etcdMembers)
			ec.Spec.Version = from
			made, err := b.upgradeEtcd(ctx, ec)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			b.say("%s: %s, longest write gap %s, of one client %s; %d writes acknowledged, %d without an answer", what,
				inSeconds(made.took), inMillis(made.gap), inMillis(made.alone), made.acknowledged, made.unknown)
			took, gaps, alone = append(took, made.took), append(gaps, made.gap), append(alone, made.alone)
			acknowledged, unknown = acknowledged+made.acknowledged, unknown+made.unknown
		}
		longest := percentile(gaps, 100)
		figures = append(figures,
			etcdFigure("etcd upgrade", what, took, upgradeBound, ""),
			figure{
				measure: "etcd upgrade", what: what + ": longest time without an acknowledged write", value: inMillis(longest),
				spread: fmt.Sprintf("each: %s; of one client: %s; %d writes, all there afterwards, and %d without an answer",
					spread(gaps, inMillis), spread(alone, inMillis), acknowledged, unknown),
				bound: "≤ " + inMillis(writeGapBound), missed: longest > writeGapBound,
			})
	}
	return figures, remove(ctx)
}

// upgraded is what became of an upgrade.
type upgraded struct {
	took time.Duration
	// gap is the longest time without an acknowledged write of any client, and alone that of the
	// client which had the longest.
	gap, alone            time.Duration
	acknowledged, unknown int
}

// upgradeEtcd makes a cluster, and upgrades it under a load of writes.
func (b *bench) upgradeEtcd(ctx context.Context, ec *v1beta2.EtcdCluster) (made upgraded, err error) {
	if _, err := b.etcd(ctx, ec); err != nil {
		return made, err
	}
	var began, whole time.Time
	history, err := b.underLoad(ctx, ec, func() (err error) {
		began, whole, err = b.upgrade(ctx, ec)
		return err
	})
	if err != nil {
		return made, err
	}
	report := load.NewReport(history)
	made = upgraded{
		took: whole.Sub(began), gap: report.Gap(began, whole), alone: longestOfOne(history, began, whole),
		acknowledged: report.Acknowledged(), unknown: report.Unknown(),
	}
	return made, b.endEtcd(ctx, ec)
}

// underLoad does something to a cluster while clients write to it, and has the history of that, in which no write is
// lost.
func (b *bench) underLoad(ctx context.Context, ec *v1beta2.EtcdCluster, do func() error) (load.History, error) {
	address, err := b.etcdOutside(ctx, ec)
	if err != nil {
		return load.History{}, err
	}
	if err := b.quiet(ctx); err != nil {
		return load.History{}, err
	}
	l, err := load.Start(ctx, load.Config{
		Endpoints: func() []string { return []string{address} },
		Rate:      writeRate, Writers: writers, Probes: 20,
	})
	if err != nil {
		return load.History{}, err
	}
	// Clients have connected by the end of the pause.
	failure := sleep(ctx, 2*time.Second)
	if failure == nil {
		failure = do()
	}
	// The history tells whether a write was lost; the load is stopped whatever happens.
	history, err := l.Stop(context.WithoutCancel(ctx))
	if failure != nil {
		return history, failure
	}
	if err != nil {
		return history, err
	}
	return history, load.Check(history)
}

func (b *bench) upgrade(ctx context.Context, ec *v1beta2.EtcdCluster) (began, whole time.Time, err error) {
	began = time.Now()
	if err := b.client.Patch(ctx, ec, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"`+etcdVersion+`"}}`))); err != nil {
		return began, whole, err
	}
	whole, err = b.etcdWhole(ctx, ec, func(map[string]*corev1.Pod) bool {
		for _, m := range ec.Status.MemberList {
			if m.Version != etcdVersion {
				return false
			}
		}
		return true
	})
	if err != nil {
		return began, whole, err
	}
	for _, m := range ec.Status.MemberList {
		if err := b.runsEtcd(ctx, ec.Namespace, m.Name, etcdVersion); err != nil {
			return began, whole, err
		}
	}
	return began, whole, sleep(ctx, time.Second)
}

// runsEtcd asks a member for its version, so that the operator's word is not all there is.
func (b *bench) runsEtcd(ctx context.Context, namespace, member, version string) error {
	body, err := b.kube.CoreV1().Pods(namespace).ProxyGet("http", member, "2379", "version", nil).DoRaw(ctx)
	if err != nil {
		return err
	}
	var says struct{ Etcdserver string }
	if err := json.Unmarshal(body, &says); err != nil {
		return fmt.Errorf("member %s says about its version %q: %w", member, body, err)
	}
	if says.Etcdserver != version {
		return fmt.Errorf("member %s has version %s, want %s", member, says.Etcdserver, version)
	}
	return nil
}

// longestOfOne is the longest time that one of the writers was without an acknowledged write.
func longestOfOne(history load.History, from, to time.Time) time.Duration {
	begin, end := from.Sub(history.Start), to.Sub(history.Start)
	last := map[int]time.Duration{}
	for client := range writers {
		last[client] = begin
	}
	var longest time.Duration
	for i := range history.Ops { // by return
		op := &history.Ops[i]
		before, isWriter := last[op.Client]
		if !isWriter || op.Kind != load.Write || op.Outcome != load.Done || op.Return < begin {
			continue
		}
		longest = max(longest, min(op.Return, end)-before)
		last[op.Client] = min(op.Return, end)
	}
	return longest
}

// etcdOutside makes a Service through which a client here gets to any member that serves, and
// returns where.
func (b *bench) etcdOutside(ctx context.Context, ec *v1beta2.EtcdCluster) (string, error) {
	return b.nodePort(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ec.Namespace, Name: ec.Name + "-outside",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ec, v1beta2.GroupVersion.WithKind("EtcdCluster"))},
		},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"etcd_cluster": ec.Name}, Ports: []corev1.ServicePort{{Port: 2379}}},
	})
}
