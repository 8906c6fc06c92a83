package at

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/memo"
)

// pauses are Ats for which something is not to be done again until a time.
type pauses struct {
	memo.Map[types.NamespacedName, pause]
}

type pause struct {
	uid        types.UID
	generation int64 // another one need not wait
	until      time.Time
}

func (p *pauses) note(at *atv1alpha1.At, until time.Time) {
	p.Set(key(at), pause{at.UID, at.Generation, until})
}

// until is zero for an At that need not wait.
func (p *pauses) until(at *atv1alpha1.At) time.Time {
	if last, _ := p.Get(key(at)); last.uid == at.UID && last.generation == at.Generation {
		return last.until
	}
	return time.Time{}
}
