package status

// Problem is what keeps an object from being as requested.
type Problem struct {
	Reason, Message string
	// Retriable is true when the operator works on it, or tries again, and false when nothing will happen until a user
	// acts.
	Retriable bool
}

// First goes through what may be wrong, the worst first. The list is the specification of the condition Ready.
func First(checks ...func() *Problem) *Problem {
	for _, check := range checks {
		if p := check(); p != nil {
			return p
		}
	}
	return nil
}

// MarkProblem says why not all is as requested.
func (c Conditions) MarkProblem(p *Problem) {
	if p.Retriable {
		c.MarkReconciling(p.Reason, p.Message)
	} else {
		c.MarkStalled(p.Reason, p.Message)
	}
}
