package loop

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/internal/kit/status"
)

// overruled remembers which fields admission has made otherwise than they were written, by object and child. It is safe
// for concurrent use.
type overruled struct {
	mu  sync.Mutex
	all map[client.ObjectKey]map[string]string
}

func newOverruled() *overruled { return &overruled{all: map[client.ObjectKey]map[string]string{}} }

// note has what was found out about a child that was applied; without fields it is as wanted.
func (o *overruled) note(owner client.ObjectKey, child string, fields []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[owner] == nil {
		o.all[owner] = map[string]string{}
	}
	o.all[owner][child] = strings.Join(fields, ", ")
}

// drop is for a child that is deleted.
func (o *overruled) drop(owner client.ObjectKey, child string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all[owner], child)
}

// forget is for an object that is gone.
func (o *overruled) forget(owner client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, owner)
}

// message is empty if nothing is overruled. It is not known before a child was applied.
func (o *overruled) message(owner client.ObjectKey) (message string, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	children, known := o.all[owner]
	var all []string
	for _, child := range slices.Sorted(maps.Keys(children)) {
		if fields := children[child]; fields != "" {
			all = append(all, child+": "+fields)
		}
	}
	if len(all) == 0 {
		return "", known
	}
	return status.Shortened("Admission changes what the operator writes, and that is left: " + strings.Join(all, "; ")), known
}

// summarize sets the status, with the condition Overruled, which no operator has to know of. An operator that starts
// leaves it as the last one had it until it has applied a child.
func (l *loop[T, S, P]) summarize(obj T, seen S, plan P, did *round) {
	conditions := status.Conditions{List: l.kind.Conditions(obj), Generation: obj.GetGeneration()}
	message, known := l.executor.overruled.message(client.ObjectKeyFromObject(obj))
	if before := meta.FindStatusCondition(*conditions.List, status.Overruled); before != nil && !known {
		message = before.Message
	}
	// It is the last one, whether the operator sorts the conditions or makes them anew.
	meta.RemoveStatusCondition(conditions.List, status.Overruled)
	l.kind.Summarize(obj, seen, plan, did.did)
	if message != "" {
		conditions.List = l.kind.Conditions(obj)
		conditions.Set(status.Overruled, true, "Admission", message)
	}
}

// announceOverruled reports what a stored status says of admission, and the one before did not.
func (l *loop[T, S, P]) announceOverruled(ctx context.Context, before, after T) {
	was, is := meta.FindStatusCondition(*l.kind.Conditions(before), status.Overruled), meta.FindStatusCondition(*l.kind.Conditions(after), status.Overruled)
	if is == nil || was != nil && was.Message == is.Message {
		return
	}
	log.FromContext(ctx).Info("admission changes what the operator writes", "message", is.Message)
	emit(l.executor.events, after, Event{Type: corev1.EventTypeWarning, Reason: status.Overruled, Action: "Apply", Note: is.Message})
}
