package sim

import "sync"

// memoSize is how many results of one kind are kept at most.
const memoSize = 20000

// memo keeps results by the hash of what they depend on, so that histories that
// are alike cost little. It is bounded: what was not asked for while half of
// memoSize others came is dropped. It is safe for concurrent use.
type memo[V any] struct {
	mu         sync.Mutex
	young, old map[uint64]V
}

// get returns the result that was put there by the same key, if it is still there.
func (m *memo[V]) get(key uint64) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.young[key]
	if !ok {
		if v, ok = m.old[key]; ok {
			m.add(key, v)
		}
	}
	return v, ok
}

// put keeps a result, which nobody may change from now on.
func (m *memo[V]) put(key uint64, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(key, v)
}

// add is put for those who hold the lock.
func (m *memo[V]) add(key uint64, v V) {
	if m.young == nil || len(m.young) >= memoSize/2 {
		m.old, m.young = m.young, make(map[uint64]V)
	}
	m.young[key] = v
}
