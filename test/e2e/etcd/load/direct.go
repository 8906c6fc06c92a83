package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// checkDirectly finds what is wrong in a way that can be told in a sentence. It does not find
// everything; the model does.
func checkDirectly(h History) error {
	revisions := few(checkRevisions(h))
	var errs []error
	keys := map[string][]*Op{}
	var order []string
	writers := map[string]*Op{}
	for i := range h.Ops {
		op := &h.Ops[i]
		if keys[op.Key] == nil {
			order = append(order, op.Key)
		}
		keys[op.Key] = append(keys[op.Key], op)
		if op.Value != "" {
			if other := writers[op.Value]; other != nil {
				return fmt.Errorf("the history is none of a load: two operations write the same value: %s and %s", other, op)
			}
			writers[op.Value] = op
		}
	}
	for _, key := range order {
		k := keyCheck{key: key, ops: keys[key], writers: writers}
		k.values()
		k.losses()
		k.updates()
		errs = append(errs, k.errs...)
	}
	return errors.Join(revisions, few(errs))
}

// checkRevisions holds the revisions of all keys, which are those of one store, against the
// times: they are unique, and none is below one that was acknowledged before.
func checkRevisions(h History) (errs []error) {
	var byReturn []*Op
	owner := map[int64]*Op{}
	for i := range h.Ops {
		op := &h.Ops[i]
		if !op.answered() {
			continue
		}
		byReturn = append(byReturn, op)
		if op.acknowledged() {
			if other := owner[op.Revision]; other != nil {
				errs = append(errs, fmt.Errorf("two acknowledged operations have revision %d:\n\tkey %s: %s\n\tkey %s: %s", op.Revision, other.Key, other, op.Key, op))
			}
			owner[op.Revision] = op
		}
	}
	byCall := slices.Clone(byReturn)
	slices.SortStableFunc(byReturn, func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	slices.SortStableFunc(byCall, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	var latest *Op // of those that returned before the call, the one with the highest revision
	next := 0
	for _, op := range byCall {
		for ; next < len(byReturn) && byReturn[next].Return < op.Call; next++ {
			if latest == nil || byReturn[next].Revision > latest.Revision {
				latest = byReturn[next]
			}
		}
		if latest != nil && (op.Revision < latest.Revision || op.acknowledged() && op.Revision == latest.Revision) {
			errs = append(errs, fmt.Errorf("the store's revision went back, from %d to %d:\n\tkey %s: %s\n\tand later key %s: %s", latest.Revision, op.Revision, latest.Key, latest, op.Key, op))
		}
	}
	return errs
}

// keyCheck is the check of one key.
type keyCheck struct {
	key     string
	ops     []*Op
	writers map[string]*Op
	errs    []error
}

func (k *keyCheck) fail(at time.Duration, format string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf("key %s: %s; the operations around:%s", k.key, fmt.Sprintf(format, args...), around(k.ops, at)))
}

// values: a value that is seen was written, to this key, not later, and with one revision.
func (k *keyCheck) values() {
	sightings := seen(k.ops)
	for _, op := range k.ops {
		if !op.answered() || op.Seen == (Version{}) {
			continue
		}
		first := sightings[op.Seen.Value]
		switch writer := k.writers[op.Seen.Value]; {
		case writer == nil || writer.Key != k.key:
			k.fail(op.Call, "%s: nobody wrote that value to it", op)
		case writer.Outcome == Refused || writer.Outcome == Differs:
			k.fail(op.Call, "%s: that value was not to be written: %s", op, writer)
		case writer.Call > op.Return:
			k.fail(op.Call, "%s: that is from the future, as the value was written later: %s", op, writer)
		case writer.Outcome == Done && writer.Revision != op.Seen.Revision:
			k.fail(op.Call, "%s: that value was written with revision %d", op, writer.Revision)
		case first.version.Revision != op.Seen.Revision:
			k.fail(op.Call, "%q was written twice, with revisions %d and %d, though sent once", op.Seen.Value, first.version.Revision, op.Seen.Revision)
		}
	}
}

// losses: an answer shows the last write that was acknowledged before, or a later one.
func (k *keyCheck) losses() {
	byCall := slices.Clone(k.ops)
	slices.SortStableFunc(byCall, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	byReturn := slices.Clone(k.ops)
	slices.SortStableFunc(byReturn, func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	var latest *Op
	next := 0
	for _, op := range byCall {
		for ; next < len(byReturn) && byReturn[next].Return < op.Call; next++ {
			if o := byReturn[next]; o.acknowledged() && (latest == nil || o.Revision > latest.Revision) {
				latest = o
			}
		}
		switch {
		case latest == nil || !op.answered():
		case op.Seen == Version{}:
			if latest.Kind != Delete && !k.deletedAfter(latest, op) {
				k.fail(op.Call, "an acknowledged write is %s: %s; but later %s, and nothing deleted it", k.missing(latest, op), latest, op)
			}
		case op.Seen.Revision < latest.Revision:
			k.fail(op.Call, "an acknowledged %s is %s: %s; but later %s", latest.Kind, k.missing(latest, op), latest, op)
		}
	}
}

// missing says whether a change is lost, or is seen later.
func (k *keyCheck) missing(change, by *Op) string {
	for _, op := range k.ops {
		if op.answered() && op.Call > by.Return && op.Seen == change.after() {
			return "missing in a stale answer"
		}
	}
	return "lost"
}

// deletedAfter says whether a delete may have come between a write and an answer.
func (k *keyCheck) deletedAfter(write, before *Op) bool {
	return slices.ContainsFunc(k.ops, func(op *Op) bool {
		return op.Kind == Delete && op.Call <= before.Return &&
			(op.Outcome == Unknown || op.acknowledged() && op.Revision > write.Revision)
	})
}

// updates: what a change replaced is what the change before it made, and a swap replaced what
// it expected.
func (k *keyCheck) updates() {
	var changes []*Op
	for _, op := range k.ops {
		if op.Kind == Swap && op.Outcome == Done && op.Seen.Revision != op.Expect {
			k.fail(op.Call, "%s: it replaced something else than it expected", op)
		}
		if op.Outcome == Differs && op.Seen.Revision == op.Expect {
			k.fail(op.Call, "%s: it found what it expected", op)
		}
		if op.acknowledged() {
			changes = append(changes, op)
		}
	}
	slices.SortStableFunc(changes, func(a, b *Op) int { return cmp.Compare(a.Revision, b.Revision) })
	for i, op := range changes[min(len(changes), 1):] {
		before := changes[i]
		if op.Seen.Revision < before.Revision && op.Seen != (Version{}) {
			k.fail(op.Call, "an acknowledged update is lost: %s; but the next, %s, replaced an older value", before, op)
		}
	}
}
