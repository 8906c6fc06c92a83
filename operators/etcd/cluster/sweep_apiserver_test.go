//go:build apiserver

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	kindrestore "example.com/fairlead/operators/etcd/restore"
)

// operator is the one whose members are reached by network.
var operator = run.Operator{Name: objects.Operator, AddToScheme: v1beta2.AddToScheme, Kinds: []run.Kind{Kind, kindrestore.Kind}}

// newSweep plays stories on the real API server.
func newSweep() *testkit.Sweep {
	return &testkit.Sweep{
		Start:  standalone.Start(operator),
		Writes: slices.Concat(kind.Writes, kindrestore.Static.Writes),
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(operator),
		Kinds:  []client.Object{&v1beta2.EtcdCluster{}, &v1beta2.EtcdRestore{}},

		Sometimes: []string{atOnce, setAgain},
		Simulated: true,
		EachSort:  true,
	}
}

// onMachine are stories with members that really run.
func onMachine(m *machine, names ...string) []testkit.Scenario {
	var all []testkit.Scenario
	for _, t := range slices.Concat(tales(), corruptTales(), restoreTales(), joinTales(), v2Tales()) {
		if !slices.Contains(names, t.name) {
			continue
		}
		sc := t.scenario()
		quota := map[string]string{"database-full": "4194304", "history-takes-room": "16777216"}[t.name]
		sc.Timeout = 2 * time.Minute
		if t.name == "database-full" { // what an operator has begun that dies, the next one waits for
			sc.Timeout += 2 * members.DefragmentPatience(0)
		}
		sc.Before = func(ctx context.Context, r *testkit.Run) error { return m.run(ctx, r, quota) }
		settled := sc.Settled
		sc.Settled = func(ctx context.Context, r *testkit.Run) error {
			if err := settled(ctx, r); err != nil {
				return errors.Join(err, fmt.Errorf("the nodes: %s", own(r).(*realNodes).state()))
			}
			return nil
		}
		all = append(all, sc)
	}
	return all
}

const (
	// atOnce is made if a seed is lost while members stop for it.
	atOnce = "patch Pod/start"
	// setAgain is made if the operator died when root was there, and authentication was not on.
	setAgain = "call/etcd enable authentication: set"
)

// isLeftOut are the writes that no story of the sweep makes. All of them are made in the simulation
// or, where certificates are needed for them, in tests of their own.
func isLeftOut(write string) bool {
	return slices.Contains([]string{
		"apply Secret", "patch Pod/restart", "call/etcd set password", // with TLS
		"patch PersistentVolumeClaim/grow", // which needs a storage class
		"status EtcdCluster/refusal",       // TestUpgradeRefusedForV2
		atOnce,
	}, write)
}

// TestSweep kills the operator at writes of all sorts to the API server and at changes of the
// members, with real members.
func TestSweep(t *testing.T) {
	m := newMachine(t, "3.5.35", versionElsewhere, "3.6.16", "3.7.3")
	sweep := newSweep()
	sweep.Writes = slices.DeleteFunc(slices.Clone(sweep.Writes), isLeftOut)
	sweep.Run(t, onMachine(m,
		"one-member", "three-members", "scales", "pod-deleted", "pod-deleted-with-volumes", "all-pods-deleted",
		"volume-deleted", "volume-deleted-in-downgrade", "volume-deleted-after-downgrade", "quorum-lost", "quorum-lost-with-volumes", "upgrades", "removed-by-hand", "history-takes-room", "database-full",
		"all-lost", "corrupt", "corrupt-leader", "damaged", "scales-with-volumes", "owners-removed", "come-back-bare", "come-back-as-volumes",
		"joins", "joins-and-goes-back", "authentication", "restored", "restored-keeps-old", "restore-fails", "seed-lost-switching", "quorum-lost-restored",
	)...)
	sweep.RequireAllWritesCut(t)
}

// TestUpgradesPromoted: members that an etcd of before 3.5.20 has promoted are upgraded to 3.6, which does not start with
// two learners.
func TestUpgradesPromoted(t *testing.T) {
	newSweep().Trace(t, onMachine(newMachine(t, "3.5.9", "3.5.35", "3.6.16"), "upgrades-promoted")[0])
}

// TestUpgradeRefusedForV2: the first member that is given 3.6 finds a key of the API v2, and is taken back; what the operator
// says then helps.
func TestUpgradeRefusedForV2(t *testing.T) {
	newSweep().Trace(t, onMachine(newMachine(t, "3.5.35", "3.6.16"), "v2-keys")[0])
}

// TestUnderPolicies plays stories where admission changes or refuses what is written, with real members.
func TestUnderPolicies(t *testing.T) {
	newSweep().Under(t, onMachine(newMachine(t, "3.5.35", "3.6.16", "3.7.3"), "three-members", "upgrades", "restored")...)
}
