package sim

import (
	"slices"
	"strings"
	"testing"
)

// TestParseDeviations: what a finding prints is read again as it was.
func TestParseDeviations(t *testing.T) {
	var all Deviations
	for i, q := range questions {
		all = append(all, Deviation{q, 1, 1}, Deviation{q, 10*i + 7, i + 12})
	}
	for _, d := range []Deviations{nil, {{Fate, 3, 2}}, all} {
		read, err := ParseDeviations(d.String())
		if err != nil || !slices.Equal(read, d) {
			t.Errorf("%s is read as %s (%v)", d, read, err)
		}
	}
	if len(choices{}.asked) != len(questions) {
		t.Errorf("%d questions are counted, there are %d", len(choices{}.asked), len(questions))
	}
}

func TestParseDeviationsRefuses(t *testing.T) {
	for _, text := range []string{"fate", "fate3", "fate3=", "fate=2", "=2", "3=2", "fate3=x", "fate3=2=1", "luck3=2", "fate3=2,,luck1=1", "fate3=2 news1=1", "Fate3=2"} {
		if d, err := ParseDeviations(text); err == nil {
			t.Errorf("%q is read as %s", text, d)
		} else if !strings.Contains(err.Error(), "such as fate3=2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestChoicesAsTold: the answers are those told, and 0 otherwise; what was asked is known.
func TestChoicesAsTold(t *testing.T) {
	deviations := Deviations{{Fate, 2, 3}, {News, 1, 1}}
	c := told(deviations)
	c.record = true
	var answers []int
	for range 3 {
		answers = append(answers, c.ask(Fate, 4), c.ask(News, 2), c.ask(Turn, 1))
	}
	if want := []int{0, 1, 0, 3, 0, 0, 0, 0, 0}; !slices.Equal(answers, want) {
		t.Errorf("answers %v, want %v", answers, want)
	}
	if !slices.Equal(c.made, Deviations{{News, 1, 1}, {Fate, 2, 3}}) {
		t.Errorf("made %s", c.made)
	}
	// An answer that is no longer possible is another one, not none at all.
	if got := told(Deviations{{Fate, 1, 5}}).ask(Fate, 3); got != 2 {
		t.Errorf("answer %d, want 2", got)
	}
}

// TestChoicesAtRandom: the same seed answers the same, and made has what it takes to have
// the same answers told.
func TestChoicesAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		a, b := seeded(seed), seeded(seed)
		ask := func(c *choices) (answers []int) {
			for i := range 300 {
				answers = append(answers, c.ask(questions[i%len(questions)], 1+i%5))
			}
			return answers
		}
		first := ask(a)
		if !slices.Equal(first, ask(b)) {
			t.Fatalf("seed %d answers otherwise the second time", seed)
		}
		if len(a.made) > a.most {
			t.Errorf("seed %d: %d deviations, want %d at most", seed, len(a.made), a.most)
		}
		if !slices.Equal(first, ask(told(a.made))) {
			t.Fatalf("seed %d: %s tells other answers", seed, a.made)
		}
	}
}
