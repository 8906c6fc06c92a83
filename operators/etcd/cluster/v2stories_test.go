package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/reason"
)

// v2Tales are the stories of what etcd's API v2 has written, with which 3.6 does not start.
func v2Tales() []tale {
	const withV2 = `{"name":"ETCD_ENABLE_V2","value":"true"}`
	return []tale{
		{name: "v2-keys", spec: []ecOption{version("3.5.35"), stored, withEnv("ETCD_ENABLE_V2", "true")}, steps: []testkit.Step{
			putsV2(ready),
			whenReady(`{"version":"3.6.16"}`),
			{Name: "does what it says", When: stayed("3.5.35"), Do: patched(`{"version":"3.5.35","pod":{"etcdEnv":[` + withV2 + `,{"name":"ETCD_SNAPSHOT_COUNT","value":"1"}]}}`)},
			{Name: "deletes the key", When: ready, Do: func(_ context.Context, r *testkit.Run) error { return own(r).dropV2(r) }},
			whenReady(`{"version":"3.6.16","pod":{"etcdEnv":[]}}`),
		}},
		{name: "v2-keys-one-member", spec: []ecOption{version("3.5.35"), size(1)}, steps: []testkit.Step{
			putsV2(ready), whenReady(`{"version":"3.7.3"}`),
		}, settled: stayed("3.5.35")},
		{name: "v2-keys-in-upgrade", spec: []ecOption{version("3.5.35")}, steps: []testkit.Step{
			whenReady(`{"version":"3.6.16"}`), putsV2(oneIsAt("3.6.16")),
		}, settled: func(ctx context.Context, r *testkit.Run) error {
			if stayed("3.5.35")(ctx, r) == nil {
				return nil
			}
			return ready(ctx, r) // the last one had it before
		}},
		{name: "joins-with-v2-keys", joins: 3, joinsAt: "3.5.35", steps: []testkit.Step{
			putsV2(isInPhase(v1beta2.JoinJoining)), stopsNext(2), stopsNext(1), stopsNext(0),
		}, settled: stayed("3.5.35")},
	}
}

// withEnv gives etcd a variable.
func withEnv(name, value string) ecOption {
	return func(ec *v1beta2.EtcdCluster) {
		ec.Spec.Pod.EtcdEnv = append(ec.Spec.Pod.EtcdEnv, corev1.EnvVar{Name: name, Value: value})
	}
}

func putsV2(when func(context.Context, *testkit.Run) error) testkit.Step {
	return testkit.Step{Name: "puts a key of the API v2", When: when, Do: func(_ context.Context, r *testkit.Run) error { return own(r).putV2(r) }}
}

// stayed is nil when the version of the spec is refused, and all members serve with another one.
func stayed(version string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err := errors.Join(err, stalled(reason.VersionRefused)(ctx, r)); err != nil {
			return err
		}
		for _, m := range ec.Status.MemberList {
			if m.Version != version || !m.Ready {
				err = fmt.Errorf("not all members are at %s: %s", version, inShort(ec))
			}
		}
		if ec.Status.ReadyMembers != ec.Spec.Size || ec.Status.MemberBeingUpdated != "" || ec.Status.TargetVersion != "" {
			err = fmt.Errorf("something is changed: %s", inShort(ec))
		}
		return errors.Join(err, own(r).put(r))
	}
}

func (n *modelNodes) putV2(*testkit.Run) error  { return n.askV2(n.model.PutV2) }
func (n *modelNodes) dropV2(*testkit.Run) error { return n.askV2(n.model.DropV2) }

// askV2 makes a request to the API v2 of the first member that has it.
func (n *modelNodes) askV2(ask func(address string) error) error {
	defer n.world.Changed()
	err := errors.New("no pod runs")
	sim.Each(n.world.Server, func(pod *corev1.Pod) {
		if p := n.pods[pod.UID]; err != nil && p != nil && p.runs && isServed(pod) {
			err = ask(p.ip + ":2379")
		}
	})
	for _, m := range n.elsewhere {
		if err != nil {
			err = ask(m.Address)
		}
	}
	return err
}
