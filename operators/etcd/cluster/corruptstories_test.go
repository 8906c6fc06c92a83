package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/reason"
)

// This file has members whose data is wrong without their knowing it. Etcd's leader accuses whoever has other data than
// itself.

func corruptTales() []tale {
	return []tale{
		{name: "corrupt", spec: []ecOption{stored}, steps: []testkit.Step{corrupts(aFollower)}, settled: keeps(1)},
		{name: "corrupt-leader", spec: []ecOption{stored}, steps: []testkit.Step{corrupts(theLeader)}, settled: keeps(1)},
		{name: "corrupt-leader-without-volumes", spec: []ecOption{size(5)}, steps: []testkit.Step{corrupts(theLeader)}},
		{name: "corrupt-one-of-two", spec: []ecOption{size(2), stored}, steps: []testkit.Step{corrupts(theLeader)}, lossy: true, settled: undecidedWith(2)},
		{name: "corrupt-two-of-three", spec: []ecOption{stored}, steps: []testkit.Step{corrupts(theLeader), corruptsAnother}, lossy: true, settled: undecidedWith(3)},
		{name: "corrupt-two-of-five", spec: []ecOption{size(5), stored}, steps: []testkit.Step{corrupts(theLeader), corruptsAnother}, settled: keeps(2)},
		{name: "corrupt-two-by-hand", spec: []ecOption{stored}, steps: []testkit.Step{
			corrupts(theLeader), corruptsAnother, {Name: "says which are wrong", When: stalled(reason.DataDiffers), Do: replaceCorrupt},
		}, settled: keeps(2)},
	}
}

func corrupts(whom func(*testkit.Run) string) testkit.Step {
	return testkit.Step{Name: "corrupts a member", When: ready, Do: func(_ context.Context, r *testkit.Run) error {
		return own(r).corrupt(r, whom(r))
	}}
}

// corruptsAnother corrupts one that is not corrupt yet.
var corruptsAnother = testkit.Step{Name: "corrupts another", Do: func(ctx context.Context, r *testkit.Run) error {
	ec, err := currently(ctx, r)
	if err != nil {
		return err
	}
	for _, m := range ec.Status.MemberList {
		if !slices.Contains(r.Own.(*modelNodes).rotten, m.Name) {
			return own(r).corrupt(r, m.Name)
		}
	}
	return errors.New("all members are corrupt")
}}

func theLeader(r *testkit.Run) string {
	ec, err := currently(context.Background(), r)
	if err != nil {
		return ""
	}
	return ec.Status.Leader
}

func aFollower(r *testkit.Run) string {
	ec, err := currently(context.Background(), r)
	if err != nil {
		return ""
	}
	for _, m := range ec.Status.MemberList {
		if m.Name != ec.Status.Leader {
			return m.Name
		}
	}
	return ""
}

// replaceCorrupt is the user's word on whose data is wrong.
func replaceCorrupt(ctx context.Context, r *testkit.Run) (err error) {
	for _, name := range r.Own.(*modelNodes).rotten {
		err = errors.Join(err, replace(ctx, r, name))
	}
	return err
}

// keeps is nil when the cluster is as its spec requests, and so many volumes of replaced members are kept, and in status as
// far as they have their labels.
func keeps(n int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		var claims corev1.PersistentVolumeClaimList
		err = errors.Join(err, r.Client.List(ctx, &claims, client.InNamespace(r.Namespace)))
		kept := 0
		for _, claim := range claims.Items {
			if claim.Annotations[annotation.Suspect] == "" {
				continue
			}
			kept++
			isShown := slices.ContainsFunc(ec.Status.KeptVolumes, func(is v1beta2.KeptVolume) bool { return is.PersistentVolumeClaim == claim.Name })
			if !isShown && claim.Labels[apply.ManagedByLabel] != "" {
				err = errors.Join(err, fmt.Errorf("%s is kept, and not in status: %v", claim.Name, ec.Status.KeptVolumes))
			}
		}
		if kept != n {
			err = errors.Join(err, fmt.Errorf("%d volumes are kept, want %d; %s", kept, n, inShort(ec)))
		}
		return errors.Join(err, ready(ctx, r))
	}
}

// undecidedWith is nil when the members that there were are there still, and status asks the user whose data is right.
func undecidedWith(members int32) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ec, err := currently(ctx, r)
		if err == nil && ec.Status.Size != members {
			err = fmt.Errorf("%d members are left of %d: %s", ec.Status.Size, members, inShort(ec))
		}
		return errors.Join(err, sameMembers(ctx, r), stalled(reason.DataDiffers)(ctx, r))
	}
}
