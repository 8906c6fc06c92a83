package at

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// pauses are Ats for which something is not to be done again until a time.
type pauses struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]pause
}

type pause struct {
	uid        types.UID
	generation int64 // another one need not wait
	until      time.Time
}

func newPauses() *pauses { return &pauses{byKey: map[types.NamespacedName]pause{}} }

func (p *pauses) note(at *atv1alpha1.At, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[key(at)] = pause{at.UID, at.Generation, until}
}

// until is zero for an At that need not wait.
func (p *pauses) until(at *atv1alpha1.At) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.byKey[key(at)]; last.uid == at.UID && last.generation == at.Generation {
		return last.until
	}
	return time.Time{}
}

func (p *pauses) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}
