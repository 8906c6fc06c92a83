package apply

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// MemoryLasts is how long a write is remembered. A cache that has not shown it by then is
// not merely late, and the operator trusts the cache.
const MemoryLasts = 10 * time.Second

// Memory remembers which versions this process wrote, so that an operator can distinguish
// a cache that does not show them yet from one that does, and waits for the watch event
// instead of doing the same again. It only saves requests: nothing may be wrong if it
// forgets everything.
//
// It relies on resource versions of one kind being comparable (KEP-5504). It is
// safe for concurrent use.
type Memory struct {
	now func() time.Time

	mu    sync.Mutex
	notes map[noteKey]note
	// gone are the deletions that a watch reported lately: the answer to a write may come
	// after the event that its object was deleted.
	gone map[noteKey]note
	// swept is when those that lasted long enough were dropped.
	swept time.Time
}

type noteKey struct {
	kind string
	types.NamespacedName
}

type note struct {
	version string    // that was written, or
	gone    types.UID // that was deleted
	until   time.Time
}

// NewMemory returns an empty Memory with a clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, notes: map[noteKey]note{}, gone: map[noteKey]note{}}
}

// Note remembers a write of the named kind, after it was answered: obj has the
// resource version that the API server gave it.
func (m *Memory) Note(kind string, obj client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := noteKey{kind, client.ObjectKeyFromObject(obj)}
	written := note{version: obj.GetResourceVersion(), until: m.now().Add(MemoryLasts)}
	if gone, ok := m.gone[k]; ok && written.isAtMost(gone.version) {
		return
	}
	m.notes[k] = written
}

// NoteDeleted remembers that an object of the named kind was deleted: the cache
// shows it once the object is gone, or is ending.
func (m *Memory) NoteDeleted(kind string, obj client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes[noteKey{kind, client.ObjectKeyFromObject(obj)}] = note{gone: obj.GetUID(), until: m.now().Add(MemoryLasts)}
}

// Behind says whether the cache is behind a write of this process. cached is
// the object as the cache has it, nil if it has none. The watch event that is
// still to come wakes the operator; should it never come, wait is how long
// until the write is forgotten.
func (m *Memory) Behind(kind string, key types.NamespacedName, cached client.Object) (wait time.Duration, behind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := noteKey{kind, key}
	written, ok := m.notes[k]
	if !ok {
		return 0, false
	}
	if wait = written.until.Sub(m.now()); wait > 0 && !written.shownBy(cached) {
		return wait, true
	}
	delete(m.notes, k)
	return 0, false
}

// WentLately says whether a watch has reported lately that an object of this name was
// deleted.
func (m *Memory) WentLately(kind string, key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone, ok := m.gone[noteKey{kind, key}]
	return ok && m.now().Before(gone.until)
}

// Forget drops what is remembered of an object: it is gone, or about to be.
func (m *Memory) Forget(kind string, key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, noteKey{kind, key})
}

// Deleted drops what is remembered of an object that is gone, as a watch reports, unless
// it has been written again since. An earlier write whose answer is still to come is not
// remembered either.
func (m *Memory) Deleted(kind string, gone client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if now.Sub(m.swept) >= MemoryLasts { // not each time: a namespace with thousands of objects may be ending
		m.swept = now
		maps.DeleteFunc(m.gone, func(_ noteKey, gone note) bool { return !now.Before(gone.until) })
	}
	k := noteKey{kind, client.ObjectKeyFromObject(gone)}
	m.gone[k] = note{version: gone.GetResourceVersion(), until: now.Add(MemoryLasts)}
	if written, ok := m.notes[k]; ok && (written.gone != "" && written.gone == gone.GetUID() || written.gone == "" && written.shownBy(gone)) {
		delete(m.notes, k)
	}
}

// Deletions is for the watch of a kind: it reports each object that is gone to
// [Memory.Deleted], before the operator is woken, and lets all events through.
func (m *Memory) Deletions(kind string) predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		m.Deleted(kind, e.Object)
		return true
	}}
}

func (n note) shownBy(cached client.Object) bool {
	switch {
	case n.gone != "":
		return cached == nil || cached.GetUID() != n.gone || cached.GetDeletionTimestamp() != nil
	case cached == nil:
		return false
	}
	return n.isAtMost(cached.GetResourceVersion())
}

// isAtMost says whether the write is part of a version, or cannot be compared
// with it.
func (n note) isAtMost(version string) bool {
	order, err := resourceversion.CompareResourceVersion(n.version, version)
	return err != nil || order <= 0
}
