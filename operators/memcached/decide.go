package memcached

import (
	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/steps"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/pool"
)

// table has the steps of the package comment.
var table = []func(*v1alpha1.Memcached, *change.View) change.Plan{
	change.Adopt,
	change.CopySecrets,
	change.PlanUpgrade,
	change.Serve,
	change.Explain,
	change.ApplyServers,
	change.RemoveUnused,
	change.CountChanged,
	change.RestoreLabels,
	change.ReloadSecrets,
	change.PullImage,
	change.ChooseServer,
	change.Guard,
	change.GrowServer,
	change.UpdateServer,
	change.RemovePulls,
	change.AwaitRecovery,
	change.AwaitMemory,
}

// decide adds up the steps: pure, so that the tests need no cluster.
func decide(mc *v1alpha1.Memcached, seen pool.Observation) (*change.Plan, error) {
	next := &change.Plan{}
	var err error
	if next.Requested, err = pool.RequestOf(mc, seen); err != nil {
		return next, err
	}
	next.Problem = next.Requested.Refused // before all that steps report
	now := next.Requested.DeepCopy()
	now.Status.Upgrade = nil // the steps remember it as it is now; what was announced is in the view
	steps.Take(next, table, now, change.ViewOf(next.Requested, seen), &now.Status)
	next.Upgrade = now.Status.Upgrade
	if next.WakeAfter > 0 {
		next.Wake(seen.Now.Add(next.WakeAfter))
	}
	return next, next.Err
}
