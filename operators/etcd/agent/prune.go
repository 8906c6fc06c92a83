package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

// prune removes the backups of this EtcdBackup that are not kept. Those that the storage has a retention for stay until
// a later time; the others are removed all the same.
func (a *agent) prune(ctx context.Context, t task.Task) (result task.Result, err error) {
	in, err := a.open(ctx, t)
	if err != nil {
		return result, err
	}
	defer func() { _ = in.Close() }() // all was answered
	var own []store.Object
	for object, err := range in.Owned(ctx, t.Place.Key, t.Owner) {
		if err != nil {
			return result, err
		}
		own = append(own, object)
	}
	result.Left = len(own)
	for _, object := range expired(own, *t.Keep, a.now()) {
		err := in.Delete(ctx, object.Key, t.Owner)
		if p, ok := errors.AsType[*task.Problem](err); ok && p.Reason == task.ReasonObjectRetained {
			a.say("Left for later: %s", p.Message)
			result.Retained++
			continue
		}
		if err != nil {
			return result, err
		}
		a.say("Removed %s", t.Place.Of(object.Key))
		result.Pruned, result.Left = result.Pruned+1, result.Left-1
	}
	return result, nil
}

// alwaysKept is how many of the last backups are kept whatever their age.
const alwaysKept = 2

// expired are the backups that are not kept, the oldest first. Which was made last is told by the
// numbers of the tries, which a clock that jumps does not change.
func expired(own []store.Object, keep task.Retention, now time.Time) []store.Object {
	newestFirst := slices.SortedStableFunc(slices.Values(own), func(a, b store.Object) int {
		return cmp.Or(
			cmp.Compare(b.Meta.Number, a.Meta.Number),
			b.Meta.Time.Compare(a.Meta.Time),
			cmp.Compare(b.Meta.Revision, a.Meta.Revision),
		)
	})
	var all []store.Object
	for i, object := range newestFirst {
		tooMany := keep.Max > 0 && i >= int(keep.Max)
		tooOld := keep.MaxAge > 0 && i >= alwaysKept && now.Sub(object.Meta.Time) > keep.MaxAge
		if (tooMany || tooOld) && object.Key != keep.Last && object.Key != keep.Proved {
			all = append(all, object)
		}
	}
	slices.Reverse(all)
	return all
}
