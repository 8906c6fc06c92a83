package apply

import (
	"crypto/sha256"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sound remembers of each child the version that was last found to be as wanted, and what
// was wanted: to compare the same with the same again takes most of the time of a
// reconcile in which nothing is to be done. Nothing is wrong if it forgets everything. It
// is safe for concurrent use, and as nil it remembers nothing.
type Sound struct {
	mu    sync.Mutex
	known map[types.UID]finding
}

// mostSound bounds how many children are remembered.
const mostSound = 10_000

type finding struct {
	version string
	form    reflect.Type // some children are seen without their content
	want    [sha256.Size]byte
}

// NewSound returns an empty memory.
func NewSound() *Sound { return &Sound{known: map[types.UID]finding{}} }

func findingOf(seen client.Object, want []byte) finding {
	return finding{seen.GetResourceVersion(), reflect.TypeOf(seen), sha256.Sum256(want)}
}

// is says whether this version of a child was found to be as wanted.
func (s *Sound) is(seen client.Object, want []byte) bool {
	if s == nil || seen.GetUID() == "" || seen.GetResourceVersion() == "" {
		return false
	}
	found := findingOf(seen, want)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[seen.GetUID()] == found
}

// note remembers that this version of a child is as wanted.
func (s *Sound) note(seen client.Object, want []byte) {
	if s == nil || seen.GetUID() == "" || seen.GetResourceVersion() == "" {
		return
	}
	found := findingOf(seen, want)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostSound {
		clear(s.known)
	}
	s.known[seen.GetUID()] = found
}
