package memo

import (
	"strings"
	"sync"
	"testing"
)

func TestMap(t *testing.T) {
	var m Map[string, int]
	if value, ok := m.Get("a"); ok || value != 0 {
		t.Errorf("an empty map has %d, %v", value, ok)
	}
	m.Forget("a")
	var all sync.WaitGroup
	for i, key := range []string{"a", "b/1", "b/2"} {
		all.Go(func() { m.Set(key, i+1) })
	}
	all.Wait()
	m.ForgetAll(func(key string) bool { return strings.HasPrefix(key, "b/") })
	if value, ok := m.Get("a"); !ok || value != 1 {
		t.Errorf("a is %d, %v", value, ok)
	}
	m.Set("a", 7)
	m.Forget("a")
	for _, key := range []string{"a", "b/1", "b/2"} {
		if value, ok := m.Get(key); ok {
			t.Errorf("%s is still %d", key, value)
		}
	}
}
