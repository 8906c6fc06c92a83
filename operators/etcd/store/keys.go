package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/fairlead/operators/etcd/task"
)

// Object is one that is stored.
type Object struct {
	Key  string
	Size int64
	// Time is when it was stored, by the storage's clock.
	Time time.Time
	// Meta is what was stored with it; empty in what List gives, and for one that was not written by
	// [Store.Write].
	Meta Meta
}

// timeLayout is how the keys of periodic backups have their time.
const timeLayout = "2006-01-02-15:04:05"

// KeyOf is the key of a periodic backup: <path>_v<revision>_2006-01-02-15:04:05, in UTC.
func KeyOf(path string, revision int64, t time.Time) string {
	return fmt.Sprintf("%s_v%d_%s", path, revision, t.UTC().Format(timeLayout))
}

// ParseKey is the revision and the time of a key that [KeyOf] made of the path; ok is false for
// any other.
func ParseKey(path, key string) (revision int64, t time.Time, ok bool) {
	rest, ok := strings.CutPrefix(key, path+"_v")
	if !ok {
		return 0, time.Time{}, false
	}
	number, date, ok := strings.Cut(rest, "_")
	if !ok {
		return 0, time.Time{}, false
	}
	revision, err := strconv.ParseInt(number, 10, 64)
	if err != nil || revision < 0 {
		return 0, time.Time{}, false
	}
	t, err = time.Parse(timeLayout, date)
	if err != nil || KeyOf(path, revision, t) != key { // such as v007, which nobody here wrote
		return 0, time.Time{}, false
	}
	return revision, t, true
}

// parsed is an object with what its key says.
type parsed struct {
	Object
	revision int64
	time     time.Time
}

// Choose is the object that is wanted, of those whose keys [KeyOf] made of the path, with their Meta: others are passed over,
// whatever they are called. Revisions are compared as numbers, and times as times. At or before a revision it is the one of
// the greatest revision, and of several the newest; otherwise it is the newest.
//
// The backups of the wanted cluster come first: others may have been written to the same path. Without them, it is not
// guessed what is meant if clusters have written there by turns or if, for a revision, more than one history has it: that of
// another cluster, or of one whose revisions have gone back. Restores do that no more: they begin above all revisions.
//
// The problem is of [task.ReasonObjectNotFound], and says what there is, or of [task.ReasonObjectAmbiguous].
func Choose(objects []Object, path string, wanted task.Wanted) (Object, *task.Problem) {
	var all []*parsed
	for _, o := range objects {
		p := &parsed{Object: o}
		var ok bool
		if p.revision, p.time, ok = ParseKey(path, o.Key); ok {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return Object{}, &task.Problem{Reason: task.ReasonObjectNotFound, Retriable: true, Message: fmt.Sprintf(
			"There is no backup named %s_v<revision>_<time>: check the path", path)}
	}
	allowed := slices.DeleteFunc(slices.Clone(all), func(p *parsed) bool { return !p.allowed(wanted) })
	if len(allowed) == 0 {
		first := slices.MinFunc(all, comparing(wanted))
		return Object{}, &task.Problem{Reason: task.ReasonObjectNotFound, Message: fmt.Sprintf(
			"There is no backup of %s %s: the first one is %s", path, wanted, first.Key)}
	}
	isOwn := func(p *parsed) bool { return wanted.ClusterID != "" && p.Meta.ClusterID == wanted.ClusterID }
	isOthers := func(p *parsed) bool { return !isOwn(p) }
	// A revision that the wanted cluster has no backup of, and another one comes nearer to, may be of that one.
	hasReached := wanted.Revision == nil || isOwn(slices.MaxFunc(allowed, comparing(wanted))) ||
		slices.ContainsFunc(all, func(p *parsed) bool { return isOwn(p) && p.revision >= *wanted.Revision })
	if hasReached && slices.ContainsFunc(allowed, isOwn) {
		all, allowed = slices.DeleteFunc(all, isOthers), slices.DeleteFunc(allowed, isOthers)
	}
	best := slices.MaxFunc(allowed, comparing(wanted))
	if other := rival(all, allowed, best, wanted); other != nil {
		return Object{}, &task.Problem{Reason: task.ReasonObjectAmbiguous, Message: fmt.Sprintf(
			"%s has backups of more than one history of etcd, and more than one may be meant: %s, or %s. Set path to the whole name of one of them, without newest, revision and time",
			path, best.described(), other.described())}
	}
	return best.Object, nil
}

// rival is a backup of another history than the best one that may be the one that is meant; nil if there is none.
func rival(all, allowed []*parsed, best *parsed, wanted task.Wanted) *parsed {
	slices.SortFunc(all, comparing(task.Wanted{}))
	of, histories := map[*parsed]*history{}, map[string]*history{}
	for _, p := range all {
		h := histories[p.Meta.ClusterID]
		if h == nil || p.revision < h.last.revision {
			h = &history{first: p}
			histories[p.Meta.ClusterID] = h
		}
		h.last, of[p] = p, h
	}
	its := of[best]
	for _, p := range slices.SortedFunc(slices.Values(allowed), func(a, b *parsed) int { return comparing(wanted)(b, a) }) {
		other := of[p]
		isBefore := other.last.time.Before(its.first.time)
		isKnown := p.Meta.ClusterID != "" && best.Meta.ClusterID != "" // agents of before have not stored it
		switch {
		case other == its:
		case wanted.Revision == nil && (isBefore || !isKnown || p.Meta.ClusterID == best.Meta.ClusterID):
		case wanted.Revision != nil && isBefore && other.last.revision < its.first.revision: // it goes on in that of the best
		case wanted.Revision != nil && isBefore && other.last.revision == its.first.revision && !isKnown:
		default:
			return p
		}
	}
	return nil
}

// history is backups of a cluster whose revisions grow.
type history struct{ first, last *parsed }

// described names an object and the cluster that it is from.
func (p *parsed) described() string {
	if p.Meta.ClusterID == "" {
		return p.Key
	}
	return fmt.Sprintf("%s of cluster %s", p.Key, p.Meta.ClusterID)
}

// allowed says whether the object is not after what is wanted.
func (p *parsed) allowed(w task.Wanted) bool {
	return (w.Revision == nil || p.revision <= *w.Revision) && (w.Time == nil || !p.time.After(*w.Time))
}

// comparing compares by revision if one is wanted, and otherwise by time.
func comparing(w task.Wanted) func(a, b *parsed) int {
	return func(a, b *parsed) int {
		if byRevision := cmp.Compare(a.revision, b.revision); w.Revision != nil && byRevision != 0 {
			return byRevision
		}
		return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.revision, b.revision))
	}
}
