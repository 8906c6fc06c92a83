package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/internal/kit/status"
)

// MostProblems is how many objects of a kind have a series of their own.
const MostProblems = 500

var (
	objects = Gauge("fairlead_objects",
		"Objects by what their conditions say.", "group", "kind", "condition", "status")
	problem = Gauge("fairlead_object_problem",
		"Since when an object is not Ready (a Unix time). An object that is well has no series, nor has an At that waits or runs; of each kind there are at most 500, the worst first. The label available is what its condition Available says: True, False, Unknown, or nothing for a kind without it.",
		"group", "kind", "namespace", "name", "reason", "available")
	omitted = Gauge("fairlead_object_problems_omitted",
		"Objects in trouble that have no series in fairlead_object_problem, because there are too many of them.", "group", "kind")
)

// Objects has of each object what its conditions say. It is safe for concurrent use. At a scrape an
// object that is well costs nothing.
type Objects struct {
	mu    sync.Mutex
	kinds map[schema.GroupKind]*kindOfObjects
}

// Known are the objects of this process.
var Known = &Objects{kinds: map[schema.GroupKind]*kindOfObjects{}}

type kindOfObjects struct {
	all map[types.NamespacedName]said
	// counts says how many have which conditions.
	counts map[said]int
	// problems are those in trouble.
	problems map[types.NamespacedName]trouble
}

// said is what the conditions of an object say, as Ready=True,Available=True.
type said = unique.Handle[string]

// trouble is why an object is not well.
type trouble struct {
	rank              int // 0 is the worst
	since             float64
	reason, available string
}

// Note keeps what an object's conditions say. Reasons in fine are of objects that are not Ready and
// not in trouble.
func (o *Objects) Note(kind schema.GroupKind, object types.NamespacedName, conditions []metav1.Condition, fine []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.kinds[kind]
	if k == nil {
		k = &kindOfObjects{all: map[types.NamespacedName]said{}, counts: map[said]int{}, problems: map[types.NamespacedName]trouble{}}
		o.kinds[kind] = k
	}
	k.forget(object)
	words := make([]string, 0, len(conditions))
	for _, c := range conditions {
		words = append(words, c.Type+"="+string(c.Status))
	}
	slices.Sort(words) // what is said does not depend on the order
	now := unique.Make(strings.Join(words, ","))
	k.all[object] = now
	k.counts[now]++
	if t, bad := troubleOf(conditions, fine); bad {
		k.problems[object] = t
	}
}

// Forget drops an object that is gone, or about to go.
func (o *Objects) Forget(kind schema.GroupKind, object types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := o.kinds[kind]; k != nil {
		k.forget(object)
	}
}

func (k *kindOfObjects) forget(object types.NamespacedName) {
	before, known := k.all[object]
	if !known {
		return
	}
	delete(k.all, object)
	delete(k.problems, object)
	if k.counts[before]--; k.counts[before] == 0 {
		delete(k.counts, before)
	}
}

// troubleOf is worst if the object does not serve, then if it waits for its user.
func troubleOf(conditions []metav1.Condition, fine []string) (trouble, bool) {
	ready := meta.FindStatusCondition(conditions, status.Ready)
	if ready == nil || ready.Status == metav1.ConditionTrue || slices.Contains(fine, ready.Reason) {
		return trouble{}, false
	}
	t := trouble{rank: 2, since: float64(ready.LastTransitionTime.Unix()), reason: ready.Reason}
	if available := meta.FindStatusCondition(conditions, status.Available); available != nil {
		t.available = string(available.Status)
	}
	switch {
	case t.available == string(metav1.ConditionFalse):
		t.rank = 0
	case meta.IsStatusConditionTrue(conditions, status.Stalled):
		t.rank = 1
	}
	return t, true
}

// Describe implements prometheus.Collector.
func (o *Objects) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range []*Family{objects, problem, omitted} {
		descs <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (o *Objects) Collect(series chan<- prometheus.Metric) {
	say := func(f *Family, value float64, labels ...string) {
		series <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, value, labels...)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for kind, k := range o.kinds {
		k.sayCounts(kind, say)
		k.sayProblems(kind, say)
	}
}

func (k *kindOfObjects) sayCounts(kind schema.GroupKind, say Say) {
	type one struct{ condition, status string }
	sums := map[one]int{}
	for words, count := range k.counts {
		for word := range strings.SplitSeq(words.Value(), ",") {
			if condition, is, ok := strings.Cut(word, "="); ok {
				sums[one{condition, is}] += count
			}
		}
	}
	for c, sum := range sums {
		say(objects, float64(sum), kind.Group, kind.Kind, c.condition, c.status)
	}
}

func (k *kindOfObjects) sayProblems(kind schema.GroupKind, say Say) {
	worst := make([]types.NamespacedName, 0, len(k.problems))
	for object := range k.problems {
		worst = append(worst, object)
	}
	slices.SortFunc(worst, func(a, b types.NamespacedName) int {
		x, y := k.problems[a], k.problems[b]
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.since, y.since), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, object := range worst[:min(len(worst), MostProblems)] {
		t := k.problems[object]
		say(problem, t.since, kind.Group, kind.Kind, object.Namespace, object.Name, t.reason, t.available)
	}
	say(omitted, float64(max(0, len(worst)-MostProblems)), kind.Group, kind.Kind)
}
