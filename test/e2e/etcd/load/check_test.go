package load

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
)

const ms = time.Millisecond

// op is an operation on the key "k" from call to return, in milliseconds.
func op(kind Kind, call, ret time.Duration, with ...func(*Op)) Op {
	o := Op{Kind: kind, Key: "k", Call: call * ms, Return: ret * ms, Outcome: Done}
	for _, w := range with {
		w(&o)
	}
	return o
}

func writes(value string, as int64) func(*Op) {
	return func(o *Op) { o.Value, o.Revision = value, as }
}
func sees(value string, revision int64) func(*Op) {
	return func(o *Op) { o.Seen = Version{value, revision} }
}
func at(revision int64) func(*Op) { return func(o *Op) { o.Revision = revision } }
func expects(rev int64) func(*Op) { return func(o *Op) { o.Expect = rev } }
func unknown(o *Op)               { o.Outcome = Unknown }
func refused(o *Op)               { o.Outcome = Refused }
func differs(o *Op)               { o.Outcome = Differs }
func on(key string) func(*Op)     { return func(o *Op) { o.Key = key } }
func history(ops ...Op) History   { return History{Ops: ops} }
func isOrdered(h History) bool    { return len(Suspects(h, 1)) == 0 }
func explains(err error, w string) bool {
	return err != nil && strings.Contains(err.Error(), w)
}

func TestCheck(t *testing.T) {
	first := op(Write, 0, 10, writes("a", 2))
	cases := map[string]struct {
		ops []Op
		// direct is what the direct check says; empty if nothing.
		direct string
		// isIllegal says that there is no order.
		isIllegal bool
	}{
		"a write is read": {ops: []Op{first, op(Read, 20, 30, sees("a", 2), at(2))}},
		"an unknown write is never seen": {ops: []Op{first, op(Write, 20, 30, writes("b", 0), unknown),
			op(Read, 40, 50, sees("a", 2), at(2))}},
		"an unknown write is seen late": {ops: []Op{first, op(Write, 20, 30, writes("b", 0), unknown),
			op(Read, 40, 50, sees("a", 2), at(2)), op(Read, 60, 70, sees("b", 3), at(3))}},
		"an unknown delete takes effect late": {ops: []Op{first, op(Delete, 20, 30, unknown),
			op(Read, 40, 50, sees("a", 2), at(2)), op(Read, 60, 70, at(3))}},
		"an unknown swap is seen": {ops: []Op{first, op(Swap, 20, 30, writes("b", 0), expects(2), unknown),
			op(Read, 40, 50, sees("b", 3), at(3))}},
		"a read overlaps a write": {ops: []Op{first, op(Write, 20, 60, writes("b", 3), sees("a", 2)),
			op(Read, 25, 35, sees("a", 2), at(2)), op(Read, 40, 50, sees("b", 3), at(3))}},
		"an unknown write comes back": {ops: []Op{first, op(Write, 20, 30, writes("b", 0), unknown), op(Read, 40, 50, sees("b", 3), at(3)),
			op(Write, 60, 70, writes("c", 4), sees("b", 3)), op(Read, 80, 90, sees("b", 5), at(5))},
			direct: "written twice", isIllegal: true},
		"an acknowledged write is lost": {ops: []Op{first, op(Write, 20, 30, writes("b", 3), sees("a", 2)),
			op(Read, 40, 50, sees("a", 2), at(3))}, direct: `key k: an acknowledged write is lost: write of "b"`, isIllegal: true},
		"the only write is lost": {ops: []Op{first, op(Read, 40, 50, at(3))},
			direct: "nothing deleted it", isIllegal: true},
		"a delete is lost": {ops: []Op{first, op(Delete, 20, 30, sees("a", 2), at(3)), op(Read, 40, 50, sees("a", 2), at(3))},
			direct: "an acknowledged delete is lost", isIllegal: true},
		"a stale read": {ops: []Op{first, op(Write, 20, 30, writes("b", 3), sees("a", 2)),
			op(Read, 40, 50, sees("a", 2), at(3)), op(Read, 60, 70, sees("b", 3), at(3))},
			direct: "missing in a stale answer", isIllegal: true},
		"a swap loses an update": {ops: []Op{first, op(Write, 20, 40, writes("b", 3), sees("a", 2)),
			op(Swap, 20, 50, writes("c", 4), expects(2), sees("a", 2))}, direct: "an acknowledged update is lost", isIllegal: true},
		"a swap replaces what it did not expect": {ops: []Op{first, op(Swap, 20, 30, writes("c", 3), expects(1), sees("a", 2))},
			direct: "something else than it expected", isIllegal: true},
		"a swap finds what it expected": {ops: []Op{first, op(Swap, 20, 30, writes("c", 2), expects(2), sees("a", 2), differs)},
			direct: "it found what it expected", isIllegal: true},
		"an unknown swap overwrites what it did not expect": {ops: []Op{first, op(Write, 20, 30, writes("b", 3), sees("a", 2)),
			op(Swap, 40, 50, writes("c", 0), expects(2), unknown), op(Read, 60, 70, sees("c", 4), at(4))}, isIllegal: true},
		"a read from the future": {ops: []Op{op(Read, 0, 10, sees("a", 2), at(2)), op(Write, 20, 30, writes("a", 2))},
			direct: "from the future", isIllegal: true},
		"a refused write is seen": {ops: []Op{op(Write, 0, 10, writes("a", 0), refused), op(Read, 20, 30, sees("a", 2), at(2))},
			direct: "not to be written", isIllegal: true},
		"a value from nowhere": {ops: []Op{op(Read, 20, 30, sees("x", 2), at(2))},
			direct: "nobody wrote", isIllegal: true},
		"a revision twice": {ops: []Op{first, op(Write, 5, 15, writes("b", 2), on("other"))},
			direct: "have revision 2"},
		"the revision goes back": {ops: []Op{op(Write, 0, 10, writes("a", 7)), op(Write, 20, 30, writes("b", 5), on("other"))},
			direct: "went back, from 7 to 5"},
		// Only the model sees that the second read goes back behind the first.
		"a write under way is seen and then not": {ops: []Op{first, op(Write, 20, 90, writes("b", 3), sees("a", 2)),
			op(Read, 30, 40, sees("b", 3), at(3)), op(Read, 50, 60, sees("a", 2), at(3))}, isIllegal: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := history(tc.ops...)
			if err := checkDirectly(h); (err != nil) != (tc.direct != "") || err != nil && !explains(err, tc.direct) {
				t.Errorf("the direct check says %v, want %q", err, tc.direct)
			}
			if isOrdered(h) == tc.isIllegal {
				t.Errorf("there is an order: %t, want %t", isOrdered(h), !tc.isIllegal)
			}
			if err := Check(h); (err != nil) != (tc.isIllegal || tc.direct != "") {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}

// TestPlanted: one answer among ten thousand is made wrong, in several places of a good history.
func TestPlanted(t *testing.T) {
	var good History
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(5)
		m.failing = 20
		good = run(t, m, Config{}, 50*time.Second)
	})
	if err := Check(good); err != nil {
		t.Fatal(err)
	}
	// byKey are the answers for the key of an operation, in the order of its revisions.
	find := func(h History, nth int, matches func(o *Op) bool) *Op {
		for i := range h.Ops {
			if o := &h.Ops[i]; o.Outcome == Done && matches(o) {
				if nth--; nth < 0 {
					return o
				}
			}
		}
		return nil
	}
	change := func(h History, key string, revision int64) *Op {
		return find(h, 0, func(o *Op) bool { return o.Key == key && o.acknowledged() && o.Revision == revision })
	}
	// older is what was there before the change that an operation sees, if that is known.
	older := func(h History, o *Op) *Op {
		if c := change(h, o.Key, o.Seen.Revision); c != nil && c.Return < o.Call && c.Seen != (Version{}) {
			return c
		}
		return nil
	}
	plants := map[string]struct {
		matches func(h History, o *Op) bool
		spoil   func(h History, o *Op)
	}{
		"a lost write": {
			func(h History, o *Op) bool { return o.Final && older(h, o) != nil },
			func(h History, o *Op) { o.Seen = older(h, o).Seen }},
		"a stale read": {
			func(h History, o *Op) bool { return o.Kind == Read && !o.Final && older(h, o) != nil },
			func(h History, o *Op) { o.Seen = older(h, o).Seen }},
		"a lost update of a swap": {
			func(h History, o *Op) bool { return o.Kind == Swap && older(h, o) != nil },
			func(h History, o *Op) { o.Seen = older(h, o).Seen; o.Expect = o.Seen.Revision }},
		"a read from the future": {
			func(h History, o *Op) bool { return o.Kind == Read && later(h, o) != nil },
			func(h History, o *Op) { o.Seen = later(h, o).after() }},
		"a revision twice": {
			func(_ History, o *Op) bool { return o.Kind == Write },
			func(h History, o *Op) {
				o.Revision = find(h, 99, func(o *Op) bool { return o.Kind == Swap }).Revision
			}},
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			for _, nth := range []int{0, 5, 10} {
				h := History{good.Start, slices.Clone(good.Ops)}
				o := find(h, nth, func(o *Op) bool { return plant.matches(h, o) })
				if o == nil {
					t.Fatalf("the history has no place %d for it", nth)
				}
				was := o.String()
				plant.spoil(h, o)
				if err := Check(h); err == nil {
					t.Errorf("not found: %s, which was: %s", o, was)
				} else if !strings.Contains(err.Error(), o.Key) {
					t.Errorf("found, but key %s is not named: %v", o.Key, err)
				}
			}
		})
	}
}

// later is the first write to the key of an operation after it.
func later(h History, o *Op) *Op {
	for i := range h.Ops {
		if w := &h.Ops[i]; w.Kind == Write && w.Outcome == Done && w.Key == o.Key && w.Call > o.Return {
			return w
		}
	}
	return nil
}

// TestCheckTakesTooLong: a check that does not come to its end is an error.
func TestCheckTakesTooLong(t *testing.T) {
	h := history(op(Write, 0, 10, writes("a", 2)))
	if err := check(h, 0); !explains(err, "longer than 0s") {
		t.Errorf("check() = %v, want that it took too long", err)
	}
}

// TestOperations: what is not known is left out or bounded, so that the search is short.
func TestOperations(t *testing.T) {
	ops := []Op{
		op(Write, 0, 10, writes("unseen", 0), unknown), op(Write, 0, 10, writes("seen", 0), unknown), op(Read, 0, 10, unknown),
		op(Write, 0, 10, writes("refused", 0), refused), op(Read, 20, 30, sees("seen", 4), at(4)), op(Delete, 20, 30, unknown),
	}
	var pointers []*Op
	for i := range ops {
		pointers = append(pointers, &ops[i])
	}
	got := operations(pointers)
	if len(got) != 3 {
		t.Fatalf("%d operations are left, want 3: %v", len(got), got)
	}
	if got[0].Return != int64(30*ms) || got[0].Input.(*Op).Revision != 4 {
		t.Errorf("an unknown write that is seen ends at %v with revision %d, want the end of the read and its revision", got[0].Return, got[0].Input.(*Op).Revision)
	}
	if got[2].Return <= int64(30*ms) {
		t.Errorf("an unknown delete ends at %v, want after everything", got[2].Return)
	}
	if porcupine.CheckOperations(model, got) != true {
		t.Error("there is no order")
	}
}

func TestReport(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	h := history(
		op(Write, 0, 100, writes("a", 2)),
		op(Write, 200, 5000, writes("b", 0), unknown),
		op(Write, 300, 3000, writes("c", 3), sees("a", 2)),
		op(Write, 60_000, 60_100, writes("d", 4), sees("c", 3)), // the load had paused
		op(Write, 60_200, 62_200, writes("e", 0), unknown),
	)
	h.Start = start
	slices.SortFunc(h.Ops, func(a, b Op) int { return int(a.Return - b.Return) })
	r := NewReport(h)
	if r.LongestGap != 2900*ms || !r.GapStart.Equal(start.Add(100*ms)) {
		t.Errorf("the longest gap is %v from %v, want 2.9s from 100ms after the start", r.LongestGap, r.GapStart)
	}
	if r.Acknowledged() != 3 || r.Unknown() != 2 {
		t.Errorf("%d acknowledged, %d unknown, want 3 and 2", r.Acknowledged(), r.Unknown())
	}
	for _, tc := range []struct{ from, to, want time.Duration }{
		{0, 1000, 900}, {1000, 2000, 1000}, {10_000, 50_000, 0}, {60_000, 70_000, 2100}, {70_000, 80_000, 0},
	} {
		if got := r.Gap(start.Add(tc.from*ms), start.Add(tc.to*ms)); got != tc.want*ms {
			t.Errorf("Gap(%v, %v) = %v, want %v", tc.from*ms, tc.to*ms, got, tc.want*ms)
		}
	}
}
