package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/fairlead/internal/testkit/pace"
)

// Patience is how long the search for an order of the operations may take in all, of machine time.
const Patience = time.Minute

// Check returns why no etcd that keeps what it acknowledges can have given the answers of the
// history; nil if one can.
func Check(h History) error { return check(h, pace.Scale(Patience)) }

func check(h History, patience time.Duration) error {
	direct := checkDirectly(h)
	keys := map[string][]*Op{}
	for i := range h.Ops {
		keys[h.Ops[i].Key] = append(keys[h.Ops[i].Key], &h.Ops[i])
	}
	names := make([]string, 0, len(keys))
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	deadline := time.Now().Add(patience)
	var errs []error
	for _, key := range names {
		ops := operations(keys[key])
		left := time.Until(deadline)
		if left <= 0 { // which to porcupine would be no limit
			errs = append(errs, fmt.Errorf("the check took longer than %v: key %s and those after it are not checked", patience, key))
			break
		}
		switch porcupine.CheckOperationsTimeout(model, ops, left) {
		case porcupine.Ok:
		case porcupine.Illegal:
			errs = append(errs, fmt.Errorf("key %s: there is no order of its %d operations in which every answer is right, and none is before its call or after its return", key, len(ops)))
		case porcupine.Unknown:
			errs = append(errs, fmt.Errorf("the check took longer than %v, with key %s of %d operations", patience, key, len(ops)))
		}
	}
	return errors.Join(direct, few(errs))
}

// few joins the first errors, and says how many more there are.
func few(errs []error) error {
	const enough = 5
	if len(errs) > enough {
		errs = append(errs[:enough:enough], fmt.Errorf("and %d more", len(errs)-enough))
	}
	return errors.Join(errs...)
}

// Visualize writes a page on the operations of a key to a file, with the longest orders that
// porcupine found.
func Visualize(h History, key, path string) error {
	var ops []*Op
	for i := range h.Ops {
		if h.Ops[i].Key == key {
			ops = append(ops, &h.Ops[i])
		}
	}
	_, info := porcupine.CheckOperationsVerbose(model, operations(ops), Patience)
	return porcupine.VisualizePath(model, info, path)
}

// Suspects are the keys that have no order, for Visualize; at most some.
func Suspects(h History, most int) []string {
	keys := map[string][]*Op{}
	var order []string
	for i := range h.Ops {
		key := h.Ops[i].Key
		if keys[key] == nil {
			order = append(order, key)
		}
		keys[key] = append(keys[key], &h.Ops[i])
	}
	var suspects []string
	for _, key := range order {
		if len(suspects) == most {
			break
		}
		if porcupine.CheckOperationsTimeout(model, operations(keys[key]), Patience) != porcupine.Ok {
			suspects = append(suspects, key)
		}
	}
	return suspects
}

// operations are those that the answers for one key tell something of.
func operations(ops []*Op) []porcupine.Operation {
	sightings := seen(ops)
	var last time.Duration
	clients := 0
	for _, op := range ops {
		last, clients = max(last, op.Return), max(clients, op.Client+1)
	}
	var result []porcupine.Operation
	for _, op := range ops {
		o := porcupine.Operation{ClientId: op.Client, Input: op, Output: op, Call: int64(op.Call), Return: int64(op.Return)}
		switch {
		case op.answered():
		case op.Outcome == Refused, !op.Kind.changes():
			continue
		case op.Kind == Delete:
			o.ClientId, o.Return = op.Client+clients, int64(last)+1
		default:
			by, ok := sightings[op.Value]
			if !ok {
				continue // it may be last, after all that is known
			}
			// It was carried out before it was seen.
			known := *op
			known.Revision = by.version.Revision
			o.Input, o.Output, o.ClientId, o.Return = &known, &known, op.Client+clients, int64(max(by.first.Return, op.Call))
		}
		result = append(result, o)
	}
	return result
}

// sighting is a value that an answer showed, and the answer that returned first.
type sighting struct {
	version Version
	first   *Op
}

func seen(ops []*Op) map[string]sighting {
	result := map[string]sighting{}
	for _, op := range ops {
		if !op.answered() || op.Seen == (Version{}) {
			continue
		}
		if before, ok := result[op.Seen.Value]; !ok || op.Return < before.first.Return {
			result[op.Seen.Value] = sighting{op.Seen, op}
		}
	}
	return result
}

// model is one key of an etcd. Its state is a Version.
var model = porcupine.Model{
	Init: func() any { return Version{} },
	Step: func(state, input, _ any) (bool, any) {
		before, op := state.(Version), input.(*Op)
		if op.answered() {
			right := before == op.Seen
			switch {
			case op.Kind == Swap && op.Outcome == Done:
				right = right && before.Revision == op.Expect
			case op.Kind == Swap:
				right = right && before.Revision != op.Expect
			}
			if op.acknowledged() {
				right = right && op.Revision > before.Revision
			}
			return right, op.after()
		}
		switch op.Kind {
		case Delete:
			return true, Version{}
		case Swap:
			return before.Revision == op.Expect && op.Revision > before.Revision, Version{op.Value, op.Revision}
		default:
			return op.Revision > before.Revision, Version{op.Value, op.Revision}
		}
	},
	DescribeOperation: func(input, _ any) string { return input.(*Op).String() },
	DescribeState:     func(state any) string { return state.(Version).String() },
}

// around tells of the operations on a key nearest to a time, for the message of an error.
func around(ops []*Op, at time.Duration) string {
	const enough = 6
	near := slices.Clone(ops)
	distance := func(op *Op) time.Duration { return max(op.Call-at, at-op.Return, 0) }
	slices.SortStableFunc(near, func(a, b *Op) int { return cmp.Compare(distance(a), distance(b)) })
	near = near[:min(len(near), enough)]
	slices.SortStableFunc(near, func(a, b *Op) int { return cmp.Compare(a.Call, b.Call) })
	var lines strings.Builder
	for _, op := range near {
		fmt.Fprintf(&lines, "\n\t%s", op)
	}
	return lines.String()
}
