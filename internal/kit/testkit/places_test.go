package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindPlaces(t *testing.T) {
	const dir = "testdata/manners"
	text, err := os.ReadFile(filepath.Join(dir, "manners.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, "// write") {
			want = append(want, i+1)
		}
	}
	places, err := findPlaces(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, p := range places {
		got = append(got, p.First)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines with writes (-want +got):\n%s", diff)
	}
}

func TestFindPlacesRefusesWhatItCannotFollow(t *testing.T) {
	_, err := findPlaces(t.Context(), "testdata/rude")
	expect(t, err, "rude.go:12 c.Create is used as a value")
	expect(t, err, "rude.go:13 c.Update and rude.go:13 c.Delete share a line")
}

func TestCoverage(t *testing.T) {
	places := []place{
		{File: "act.go", First: 10, Last: 10, Call: "c.Create"},
		{File: "act.go", First: 20, Last: 26, Call: "controllerutil.CreateOrUpdate"},
		{File: "act.go", First: 22, Last: 22, Call: "c.Delete"},
	}
	at := func(lines ...int) Write {
		w := Write{Request: Request{Verb: "create", Resource: "pods"}}
		for _, line := range lines {
			w.Sites = append(w.Sites, Site{File: "act.go", Line: line})
		}
		return w
	}
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
			cut(c, at(10), before, afterwards)
			cut(c, at(22, 24, 99), before, afterwards) // within the call's function
		}, nil},
		"only before": {func(c *coverage) {
			cut(c, at(10), before)
			cut(c, at(22, 20), before, afterwards)
		}, []string{"act.go:10 c.Create: never cut after the write"}},
		"reached, not cut": {func(c *coverage) {
			c.add(playing{}, result{writes: []Write{at(10)}}, before)
			cut(c, at(22, 20), afterwards, before)
		}, []string{"act.go:10 c.Create: never cut"}},
		"the outer call does not stand for the inner": {func(c *coverage) {
			cut(c, at(10), before, afterwards)
			cut(c, at(20), before, afterwards)
		}, []string{"act.go:22 c.Delete: no scenario gets there"}},
		"a write that the search missed": {func(c *coverage) {
			cut(c, at(10), before, afterwards)
			cut(c, at(22, 20), before, afterwards)
			c.add(playing{}, result{writes: []Write{at(40)}}, "")
		}, []string{"act.go:40 sends create pods, but nothing there looks like a write (see writeNames)"}},
		"a fault is not a cut": {func(c *coverage) {
			cut(c, at(10), "")
			cut(c, at(22, 20), before, afterwards)
		}, []string{"act.go:10 c.Create: never cut"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &coverage{}
			tc.runs(c)
			var got []string
			if err := c.judge(places); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("judge() (-want +got):\n%s", diff)
			}
		})
	}
}
