// Package memo has what operators keep in memory about objects, for as long as the process lives. Nothing may be wrong
// if it is forgotten.
package memo

import (
	"maps"
	"sync"
)

// Map is a map that is safe for concurrent use. The zero value is empty. Of one object there is one reconcile at a time:
// what is read under its key does not change before it is written.
type Map[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]V
}

// Get is the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.all[key]
	return value, ok
}

// Set gives a key a value.
func (m *Map[K, V]) Set(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[K]V{}
	}
	m.all[key] = value
}

// Forget drops a key.
func (m *Map[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// ForgetAll drops the keys that are of something.
func (m *Map[K, V]) ForgetAll(of func(K) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all, func(key K, _ V) bool { return of(key) })
}
