package testkit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCoverage(t *testing.T) {
	names := []string{"apply Pod", "delete secrets"}
	create := Write{Request: Request{Verb: "create", Resource: "pods"}, Part: "apply Pod"}
	patch := Write{Request: Request{Verb: "patch", Resource: "pods"}, Part: "apply Pod"}
	remove := Write{Request: Request{Verb: "delete", Resource: "secrets"}}
	status := Write{Request: Request{Verb: "update", Resource: "pods", Subresource: "status"}}
	cut := func(c *coverage, w Write, how ...string) {
		for _, h := range how {
			c.add(playing{}, result{hit: &w, writes: []Write{w}}, h)
		}
	}

	cases := map[string]struct {
		runs func(*coverage)
		want []string // what the error says, line by line
	}{
		"all cut": {func(c *coverage) {
			cut(c, create, before, afterwards)
			cut(c, remove, before, afterwards)
		}, nil},
		"only before": {func(c *coverage) {
			cut(c, create, before)
			cut(c, remove, before, afterwards)
		}, []string{"apply Pod: create: never cut after the write"}},
		"made, not cut": {func(c *coverage) {
			c.add(playing{}, result{writes: []Write{create}}, before)
			cut(c, remove, afterwards, before)
		}, []string{"apply Pod: create: never cut"}},
		"one verb of a write does not stand for the other": {func(c *coverage) {
			cut(c, create, before, afterwards)
			c.add(playing{}, result{writes: []Write{patch}}, before)
			cut(c, remove, before, afterwards)
		}, []string{"apply Pod: patch: never cut"}},
		"never made": {func(c *coverage) {
			cut(c, create, before, afterwards)
		}, []string{"delete secrets: no scenario gets there"}},
		"not named": {func(c *coverage) {
			cut(c, create, before, afterwards)
			cut(c, remove, before, afterwards)
			cut(c, status, before, afterwards)
		}, []string{"update pods/status: not one of the writes that the operator says it has"}},
		"made sometimes": {func(c *coverage) {
			cut(c, create, before, afterwards)
			cut(c, remove, before, afterwards)
			c.add(playing{}, result{writes: []Write{{Request: Request{Verb: "patch", Resource: "secrets"}}}}, before)
		}, nil},
		"a fault is not a cut": {func(c *coverage) {
			cut(c, create, "")
			cut(c, remove, before, afterwards)
		}, []string{"apply Pod: create: never cut"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &coverage{}
			tc.runs(c)
			var got []string
			if err := c.judge(names, []string{"patch secrets"}); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("judge() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGaps: what was not cut is made up for where it was made most often.
func TestGaps(t *testing.T) {
	w := Write{Request: Request{Verb: "create", Resource: "pods"}}
	often, seldom := playing{scenario: &Scenario{Name: "often"}}, playing{scenario: &Scenario{Name: "seldom"}}
	c := &coverage{}
	for _, in := range []playing{often, often, seldom} {
		c.add(in, result{hit: &w, writes: []Write{w, w}}, afterwards)
	}
	if gaps := c.gaps(); len(gaps) != 1 || gaps[0].scenario != often.scenario || gaps[0].cut != before {
		t.Errorf("gaps() = %+v, want one before the write, in the scenario where it was made most often", gaps)
	}
}
