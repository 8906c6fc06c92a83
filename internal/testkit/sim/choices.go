package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Question is something that the scheduler decides. Its answer 0 is what happens when
// all goes well; whatever else happens in a history is a [Deviation].
type Question string

// The questions.
const (
	// Operators is how many operators there are, besides the first.
	Operators Question = "operators"
	// Turn is who acts next, of those who can.
	Turn Question = "turn"
	// Fate is what becomes of a request of an operator.
	Fate Question = "fate"
	// Pause is how long an operator stops before a request.
	Pause Question = "pause"
	// News is how late a watch is.
	News Question = "news"
	// Restart is how long an operator stays dead.
	Restart Question = "restart"
	// Delay is how late a controller of the cluster, or the user, is.
	Delay Question = "delay"
	// Meddling is what somebody does to the cluster meanwhile.
	Meddling Question = "meddling"
)

var questions = []Question{Operators, Turn, Fate, Pause, News, Restart, Delay, Meddling}

// Deviation is an answer that is not 0, to the n-th question of its sort.
type Deviation struct {
	Question Question
	N        int // from 1
	Answer   int
}

func (d Deviation) String() string { return fmt.Sprintf("%s%d=%d", d.Question, d.N, d.Answer) }

// Deviations are all of a history. They and the story make the history.
type Deviations []Deviation

func (d Deviations) String() string {
	var words []string
	for _, one := range d {
		words = append(words, one.String())
	}
	return strings.Join(words, ",")
}

// ParseDeviations reads what String writes.
func ParseDeviations(text string) (Deviations, error) {
	var all Deviations
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		what, answer, _ := strings.Cut(word, "=")
		question := strings.TrimRight(what, "0123456789")
		n, err := strconv.Atoi(what[len(question):])
		a, err2 := strconv.Atoi(answer)
		if err != nil || err2 != nil || !slices.Contains(questions, Question(question)) {
			return nil, fmt.Errorf("%q is no deviation, such as fate3=2", word)
		}
		all = append(all, Deviation{Question(question), n, a})
	}
	return all, nil
}

// choices answers questions: by a seed, or as told.
type choices struct {
	told    map[Deviation]int // by question and number
	random  *rand.Rand        // nil: as told
	chance  float64           // of a deviation
	most    int               // deviations
	asked   [8]int
	options [8][]int // for each question, how many answers it had
	record  bool
	made    Deviations
}

// told answers as these deviations say.
func told(deviations Deviations) *choices {
	c := &choices{told: map[Deviation]int{}}
	for _, d := range deviations {
		c.told[Deviation{Question: d.Question, N: d.N}] = d.Answer
	}
	return c
}

// seeded answers at random: most histories have a few deviations, some have many.
func seeded(seed uint64) *choices {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	chances := []float64{0.01, 0.02, 0.04, 0.1, 0.3}
	return &choices{random: r, chance: chances[r.IntN(len(chances))], most: 1 + r.IntN(16)}
}

// weights make up for how often a question is asked.
var weights = map[Question]float64{Turn: 0.5, Meddling: 0.2, Operators: 5}

func (c *choices) ask(q Question, answers int) int {
	i := slices.Index(questions, q)
	c.asked[i]++
	if c.record {
		c.options[i] = append(c.options[i], answers)
	}
	if answers < 2 {
		return 0
	}
	n, answer := c.asked[i], 0
	if c.random == nil {
		if len(c.told) == 0 {
			return 0
		}
		answer = c.told[Deviation{Question: q, N: n}] % answers
	} else if len(c.made) < c.most {
		chance := c.chance
		if factor, ok := weights[q]; ok {
			chance *= factor
		}
		if c.random.Float64() < chance {
			answer = 1 + c.random.IntN(answers-1)
		}
	}
	if answer != 0 {
		c.made = append(c.made, Deviation{q, n, answer})
	}
	return answer
}
