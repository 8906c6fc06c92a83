package loop

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/metrics"
)

var (
	writes = metrics.Counter("fairlead_writes_total",
		"Writes of the operators, by the name that the log has, and result: done, conflict (something was otherwise than the operator saw it, which it looks at again), refused (by the API server, admission or another server; the object says it) or failed (tried again).",
		"group", "kind", "write", "result")
	repairs = metrics.Counter("fairlead_repairs_total",
		"Children that somebody else had deleted or changed, and that were put right, by their kind.", "group", "kind", "child")
)

// results are what becomes of a write.
var results = []result{asDone, asConflict, asRefused, asFailed}

type result string

const (
	asDone     result = "done"
	asConflict result = "conflict"
	asRefused  result = "refused"
	asFailed   result = "failed"
)

// counts counts the writes of a kind of objects.
type counts struct{ kind schema.GroupKind }

// newCounts begins with zeros, so that the first write of a name, and the first repair of a kind, is an increase.
func newCounts(kind schema.GroupKind, names, children []string) counts {
	c := counts{kind}
	for _, name := range names {
		for _, r := range results {
			writes.WithLabelValues(kind.Group, kind.Kind, name, string(r))
		}
	}
	for _, child := range children {
		repairs.WithLabelValues(kind.Group, kind.Kind, child)
	}
	return c
}

// resultOf is that of a write that was not done.
func resultOf(err error) result {
	switch {
	case apply.AnyOf(err, apierrors.IsConflict):
		return asConflict
	case isReported(err):
		return asRefused
	}
	return asFailed
}

func (c counts) write(name string, r result) {
	writes.WithLabelValues(c.kind.Group, c.kind.Kind, name, string(r)).Inc()
}

func (c counts) repair(child string) {
	repairs.WithLabelValues(c.kind.Group, c.kind.Kind, child).Inc()
}
