package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/fairlead/operators/etcd/store"
)

// prune removes the backups of this EtcdBackup that are not kept.
func (a *agent) prune(ctx context.Context, t Task) (pruned, left int, err error) {
	in, err := a.open(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = in.Close() }() // all was answered
	var own []store.Object
	for object, err := range in.Owned(ctx, t.Place.Key, t.Owner) {
		if err != nil {
			return 0, 0, err
		}
		own = append(own, object)
	}
	left = len(own)
	for _, object := range expired(own, *t.Keep, a.now()) {
		if err := in.Delete(ctx, object.Key, t.Owner); err != nil {
			return pruned, left, err
		}
		a.say("Removed %s", t.Place.Of(object.Key))
		pruned, left = pruned+1, left-1
	}
	return pruned, left, nil
}

// alwaysKept is how many of the last backups are kept whatever their age.
const alwaysKept = 2

// expired are the backups that are not kept, the oldest first. Which was made last is told by the
// numbers of the tries, which a clock that jumps does not change.
func expired(own []store.Object, keep Retention, now time.Time) []store.Object {
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
