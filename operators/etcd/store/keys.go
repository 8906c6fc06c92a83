package store

import (
	"fmt"
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

// Choose is the object that is wanted, of those whose keys [KeyOf] made of the path: others are
// passed over, whatever they are called. Revisions are compared as numbers, and times as times. At
// or before a revision it is the one of the greatest revision, and of several the newest; otherwise it
// is the newest: after a restore, revisions begin again from an earlier one.
//
// The problem is of [task.ReasonObjectNotFound], and says what there is.
func Choose(objects []Object, path string, wanted task.Wanted) (Object, *task.Problem) {
	var best, first *parsed
	for _, o := range objects {
		p := &parsed{Object: o}
		var ok bool
		if p.revision, p.time, ok = ParseKey(path, o.Key); !ok {
			continue
		}
		if first == nil || p.before(first, wanted) {
			first = p
		}
		if p.allowed(wanted) && (best == nil || best.before(p, wanted)) {
			best = p
		}
	}
	switch {
	case best != nil:
		return best.Object, nil
	case first == nil:
		return Object{}, &task.Problem{Reason: task.ReasonObjectNotFound, Retriable: true, Message: fmt.Sprintf(
			"There is no backup named %s_v<revision>_<time>: check the path", path)}
	}
	return Object{}, &task.Problem{Reason: task.ReasonObjectNotFound, Message: fmt.Sprintf(
		"There is no backup of %s %s: the first one is %s", path, wanted, first.Key)}
}

// allowed says whether the object is not after what is wanted.
func (p *parsed) allowed(w task.Wanted) bool {
	return (w.Revision == nil || p.revision <= *w.Revision) && (w.Time == nil || !p.time.After(*w.Time))
}

// before says whether it comes before another one: by revision if one is wanted, and otherwise by time.
func (p *parsed) before(other *parsed, w task.Wanted) bool {
	if w.Revision != nil && p.revision != other.revision {
		return p.revision < other.revision
	}
	if !p.time.Equal(other.time) {
		return p.time.Before(other.time)
	}
	return p.revision < other.revision
}
