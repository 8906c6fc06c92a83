package at

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// refusals are the Ats for which the API server has refused something, and when
// it is to be asked again. Status alone does not hold that back: to write it is an
// event, and the words of a refusal may differ each time.
type refusals struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]refusal
}

type refusal struct {
	uid        types.UID
	generation int64 // another one may not be refused
	what       action
	until      time.Time
}

func newRefusals() *refusals {
	return &refusals{byKey: map[types.NamespacedName]refusal{}}
}

func (r *refusals) note(at *atv1alpha1.At, what action, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[key(at)] = refusal{at.UID, at.Generation, what, until}
}

// until is what was refused to an At, and when to ask for it again; zero for now.
func (r *refusals) until(at *atv1alpha1.At) (what action, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.byKey[key(at)]; last.uid == at.UID && last.generation == at.Generation {
		return last.what, last.until
	}
	return hold, time.Time{}
}

func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}
