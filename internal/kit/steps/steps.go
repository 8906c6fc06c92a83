// Package steps adds up what the steps of a kind do. A step is a function of what is known that returns what it does,
// as a value: nothing is done until all have been added up. A kind has its steps in a table, in their order, and
// describes them in its package comment. A test compares the two (testkit.RequireSteps).
package steps

import (
	"fmt"
	"time"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// Step is what a step does; the zero value is nothing. S is the type of the kind's status. What only the steps of one
// kind have is in a struct of that kind, which embeds a Step.
type Step[S any] struct {
	// Plan has the writes, and a claim: the name of status' write, which is made before the others where later steps
	// depend on what it remembers.
	loop.Plan
	// IsLast says that the steps after it have no turn.
	IsLast bool
	// WakeAfter is how soon to look again although no event comes; 0 for never.
	WakeAfter time.Duration
	// After is status after the step; nil if it is as before.
	After *S
	// Problem is what keeps the object from being as requested.
	Problem *status.Problem
	// Err is why it cannot be decided, of an object that cannot be encoded for example. The kind's Decide returns it, and
	// nothing is done then.
	Err error
}

// Remember is status after the step, to be changed. It was before as it is given.
func (s *Step[S]) Remember(before interface{ DeepCopy() *S }) *S {
	if s.After == nil {
		s.After = before.DeepCopy()
	}
	return s.After
}

// Report reports a problem that ends by itself, unless there is one already.
func (s *Step[S]) Report(reason, format string, args ...any) {
	s.Note(status.Problem{Reason: reason, Retriable: true, Message: fmt.Sprintf(format, args...)})
}

// Stall reports what only the user can end.
func (s *Step[S]) Stall(reason, format string, args ...any) {
	s.Note(status.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Note notes a problem, unless there is one already.
func (s *Step[S]) Note(what status.Problem) {
	if s.Problem == nil {
		s.Problem = &what
	}
}

// WakeIn looks again after a time, unless that is to be sooner anyway. 0 or less is never.
func (s *Step[S]) WakeIn(after time.Duration) {
	if after > 0 && (s.WakeAfter == 0 || after < s.WakeAfter) {
		s.WakeAfter = after
	}
}

// Add adds what the next step does. What status remembers is not added up: [Take] hands it to the steps that follow.
func (s *Step[S]) Add(next Step[S]) {
	s.Do(next.Writes...)
	s.Then = append(s.Then, next.Then...)
	s.Again = s.Again || next.Again
	if next.Claim != "" {
		s.Claim = next.Claim
	}
	if !next.WakeAt.IsZero() {
		s.Wake(next.WakeAt)
	}
	s.WakeIn(next.WakeAfter)
	if next.Problem != nil {
		s.Note(*next.Problem)
	}
	if s.Err == nil {
		s.Err = next.Err
	}
}

func (s *Step[S]) common() *Step[S] { return s }

// of is the step of a kind: a struct that embeds a Step, and adds up its own fields, too.
type of[K, S any] interface {
	*K
	Add(next K)
	common() *Step[S]
}

// Take takes the steps of a table until one is the last, and adds up in sum what they do. A step is a function of the
// object and of what else is known. The status of the object, which now points to, is what the steps before have left.
func Take[O, V, K, S any, P of[K, S]](sum P, table []func(O, V) K, obj O, known V, now *S) {
	for _, step := range table {
		did := step(obj, known)
		sum.Add(did)
		is := P(&did).common()
		if is.After != nil {
			*now = *is.After
		}
		if is.IsLast || is.Err != nil {
			return
		}
	}
}
