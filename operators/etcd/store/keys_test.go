package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/fairlead/operators/etcd/task"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestKeyOf(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	got := KeyOf("etcd/prod", 99, noon.In(berlin))
	if want := "etcd/prod_v99_2026-01-02-12:00:00"; got != want {
		t.Errorf("KeyOf() = %q, want %q", got, want)
	}
	revision, at, ok := ParseKey("etcd/prod", got)
	if !ok || revision != 99 || !at.Equal(noon) {
		t.Errorf("ParseKey() = %d, %v, %v", revision, at, ok)
	}
}

// TestParseKey has names under the same prefix that are not of the path: nobody may count, restore
// or delete those.
func TestParseKey(t *testing.T) {
	for _, key := range []string{
		"prod", "prod_v", "prod_v1", "prod_v1_", "prod_v_2026-01-02-12:00:00", "prod_v-1_2026-01-02-12:00:00", "prod_v+1_2026-01-02-12:00:00",
		"prod_v01_2026-01-02-12:00:00", "prod_v1_2026-01-02-12:00", "prod_v1_2026-13-02-12:00:00", "prod_v1_2026-02-30-12:00:00",
		"prod_v1_2026-01-02-12:00:00.5", "prod_v1_2026-01-02-12:00:00-old", "prod_v1_2026-01-02-12:00:00/x", "prod_v1_2026-1-2-12:00:00",
		"prod_v99999999999999999999_2026-01-02-12:00:00", "prod-2_v1_2026-01-02-12:00:00", "prod_v1_x_v1_2026-01-02-12:00:00",
		"other_v1_2026-01-02-12:00:00", "a/prod_v1_2026-01-02-12:00:00", " prod_v1_2026-01-02-12:00:00", "prod_v1_2026-01-02-12:00:00 ",
	} {
		if revision, at, ok := ParseKey("prod", key); ok {
			t.Errorf("ParseKey(%q) = %d, %v: it is of no backup of this path", key, revision, at)
		}
	}
}

func TestChoose(t *testing.T) {
	at := func(revision int64, hours int) string {
		return KeyOf("prod", revision, noon.Add(time.Duration(hours)*time.Hour))
	}
	foreign := []string{
		"prod", "prod_v100", "prod_v9999_2030-01-01-00:00:00.bak", "prod-2_v5000_2029-01-01-00:00:00", "prod_v5000_zzzz",
		"prod_v7000_2028-01-01-00:00:00/readme", "prod_v2_v5000_2029-01-01-00:00:00",
	}
	growing := []string{at(8, 0), at(9, 1), at(10, 2), at(11, 3), at(98, 4), at(99, 5), at(100, 6), at(101, 7), at(999, 8), at(1000, 9)}
	restored := []string{at(50, 0), at(120, 1), at(60, 2), at(70, 3)} // after the second one it was restored to the first
	idle := []string{at(50, 0), at(50, 1), at(50, 2)}
	hours := func(n float64) *time.Time { return new(noon.Add(time.Duration(n * float64(time.Hour)))) }

	cases := map[string]struct {
		keys   []string
		wanted task.Wanted
		want   string
		reason string
	}{
		"the newest of all":                            {keys: growing, want: at(1000, 9)},
		"a revision that is one of them":               {keys: growing, wanted: task.Wanted{Revision: new(int64(10))}, want: at(10, 2)},
		"9 before 10":                                  {keys: growing, wanted: task.Wanted{Revision: new(int64(9))}, want: at(9, 1)},
		"99 before 100":                                {keys: growing, wanted: task.Wanted{Revision: new(int64(99))}, want: at(99, 5)},
		"100 after 99":                                 {keys: growing, wanted: task.Wanted{Revision: new(int64(100))}, want: at(100, 6)},
		"between 11 and 98":                            {keys: growing, wanted: task.Wanted{Revision: new(int64(97))}, want: at(11, 3)},
		"after the last":                               {keys: growing, wanted: task.Wanted{Revision: new(int64(1 << 62))}, want: at(1000, 9)},
		"before the first":                             {keys: growing, wanted: task.Wanted{Revision: new(int64(7))}, reason: task.ReasonObjectNotFound},
		"a time that is one of them":                   {keys: growing, wanted: task.Wanted{Time: hours(6)}, want: at(100, 6)},
		"a time just before 99 became 100":             {keys: growing, wanted: task.Wanted{Time: hours(5.9)}, want: at(99, 5)},
		"a time in another zone":                       {keys: growing, wanted: task.Wanted{Time: new(hours(6).In(time.FixedZone("", -9*3600)))}, want: at(100, 6)},
		"a time before the first":                      {keys: growing, wanted: task.Wanted{Time: hours(-1)}, reason: task.ReasonObjectNotFound},
		"after a restore, the newest is by time":       {keys: restored, want: at(70, 3)},
		"after a restore, a time before it":            {keys: restored, wanted: task.Wanted{Time: hours(1.5)}, want: at(120, 1)},
		"after a restore, a revision of before it":     {keys: restored, wanted: task.Wanted{Revision: new(int64(200))}, reason: task.ReasonObjectAmbiguous},
		"of several of one revision, the newest":       {keys: idle, wanted: task.Wanted{Revision: new(int64(50))}, want: at(50, 2)},
		"of several of one revision, by time":          {keys: idle, wanted: task.Wanted{Time: hours(1)}, want: at(50, 1)},
		"at one time, the greatest revision":           {keys: []string{at(10, 0), at(9, 0)}, want: at(10, 0)},
		"nothing but foreign ones":                     {reason: task.ReasonObjectNotFound},
		"nothing but foreign ones, before a revision ": {wanted: task.Wanted{Revision: new(int64(5))}, reason: task.ReasonObjectNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []Object
			for _, key := range append(append([]string{}, foreign...), tc.keys...) {
				all = append(all, Object{Key: key})
			}
			for range 10 { // storage lists them by their text, or not at all in order
				rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				got, p := Choose(all, "prod", tc.wanted)
				if got.Key != tc.want || (p == nil) != (tc.reason == "") || p != nil && p.Reason != tc.reason {
					t.Fatalf("Choose() = %q, %v, want %q, %q", got.Key, p, tc.want, tc.reason)
				}
			}
		})
	}
}

// TestHistories: backups of several clusters, or of several histories of one, under the same path.
func TestHistories(t *testing.T) {
	type saved struct {
		revision int64
		cluster  string
	}
	key := func(all []saved, n int) string {
		return KeyOf("prod", all[n].revision, noon.Add(time.Duration(n)*time.Hour))
	}
	revision := func(n int64) task.Wanted { return task.Wanted{Revision: &n} }
	since := func(n int) task.Wanted { return task.Wanted{Time: new(noon.Add(time.Duration(n) * time.Hour))} }
	of := func(w task.Wanted, cluster string) task.Wanted {
		w.ClusterID = cluster
		return w
	}
	const (
		ahead     = task.RevisionsAhead
		ambiguous = -1
	)
	restored := []saved{{50, "a"}, {120, "a"}, {ahead + 130, "b"}, {ahead + 140, "b"}}
	setBack := []saved{{50, "a"}, {120, "a"}, {60, "b"}, {70, "b"}} // as restores did before
	byTurns := []saved{{500, "a"}, {7, "x"}, {510, "a"}, {9, "x"}}
	created := []saved{{500, "a"}, {510, "a"}, {7, "x"}, {9, "x"}}
	recovered := []saved{{50, "a"}, {120, "a"}, {110, "a"}, {130, "a"}}
	older := []saved{{50, ""}, {60, ""}, {60, "a"}, {60, "a"}, {70, "a"}}
	for name, tc := range map[string]struct {
		saved  []saved
		wanted task.Wanted
		want   int
	}{
		"restored: the newest":                               {restored, task.Wanted{}, 3},
		"restored: a revision of before":                     {restored, revision(125), 1},
		"restored: one of before, of the present cluster":    {restored, of(revision(125), "b"), 1},
		"restored: a revision of after":                      {restored, revision(ahead + 135), 2},
		"restored: a revision between":                       {restored, revision(ahead), 1},
		"restored: a time of before":                         {restored, of(since(1), "b"), 1},
		"set back: the newest":                               {setBack, task.Wanted{}, 3},
		"set back: a revision that both have":                {setBack, revision(65), ambiguous},
		"set back: a revision after both":                    {setBack, revision(1000), ambiguous},
		"set back: a revision that the present one has":      {setBack, of(revision(65), "b"), 2},
		"set back: a revision that only the first has":       {setBack, of(revision(55), "b"), 0},
		"by turns: the newest":                               {byTurns, task.Wanted{}, ambiguous},
		"by turns: the newest of the present one":            {byTurns, of(task.Wanted{}, "a"), 2},
		"by turns: a time":                                   {byTurns, since(2), ambiguous},
		"by turns: a time before the other":                  {byTurns, since(0), 0},
		"by turns: a revision":                               {byTurns, revision(505), ambiguous},
		"by turns: a revision of the present one":            {byTurns, of(revision(505), "a"), 0},
		"by turns: the newest, of a cluster that has none":   {byTurns, of(task.Wanted{}, "c"), ambiguous},
		"created anew: the newest":                           {created, task.Wanted{}, 3},
		"created anew: the newest, of the one before":        {created, of(task.Wanted{}, "a"), 1},
		"created anew: a revision":                           {created, revision(505), ambiguous},
		"created anew: a revision that it has not reached":   {created, of(revision(505), "x"), ambiguous},
		"created anew: a revision that it has reached":       {created, of(revision(8), "x"), 2},
		"recovered, gone back: the newest":                   {recovered, of(task.Wanted{}, "a"), 3},
		"recovered, gone back: a revision that both have":    {recovered, of(revision(125), "a"), ambiguous},
		"recovered, gone back: a revision of the first only": {recovered, of(revision(100), "a"), 0},
		"of an agent of before: the newest":                  {older, task.Wanted{}, 4},
		"of an agent of before: a revision of both":          {older, revision(60), 3},
		"of an agent of before: a revision of it":            {older, of(revision(55), "a"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var all []Object
			for n, s := range tc.saved {
				all = append(all, Object{Key: key(tc.saved, n), Meta: Meta{ClusterID: s.cluster}})
			}
			for range 10 {
				rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				got, p := Choose(all, "prod", tc.wanted)
				switch {
				case tc.want == ambiguous && (p == nil || p.Reason != task.ReasonObjectAmbiguous || p.Retriable):
					t.Fatalf("Choose() = %q, %v, want %s", got.Key, p, task.ReasonObjectAmbiguous)
				case tc.want != ambiguous && (p != nil || got.Key != key(tc.saved, tc.want)):
					t.Fatalf("Choose() = %q, %v, want %q", got.Key, p, key(tc.saved, tc.want))
				}
			}
		})
	}
}

func TestMeta(t *testing.T) {
	for name, meta := range map[string]Meta{
		"empty": {},
		"full": {
			Owner: "8ae2a7a0-9ea3-4a4b-a8f6-2a1a1a3d9d0a", Number: 7, Revision: 1 << 40, Time: noon.Add(time.Nanosecond), EtcdVersion: "3.6.16", ClusterID: "cafe",
		},
	} {
		if diff := cmp.Diff(meta, metaOf(meta.metadata())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := metaOf(map[string]string{"owner": "x", "Fairleadrevision": "many", "FairleadOwner": "me"}); got != (Meta{Owner: "me"}) {
		t.Errorf("somebody else's metadata are read as %+v", got)
	}
}
