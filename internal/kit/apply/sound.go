package apply

import (
	"crypto/sha256"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sound remembers of each child what it was when it was last found to be as wanted, and
// what was wanted: to compare the same with the same again takes most of the time of a
// reconcile in which nothing is to be done. Nothing is wrong if it forgets everything. It
// is safe for concurrent use, and as nil it remembers nothing.
type Sound struct {
	mu    sync.Mutex
	known map[types.UID]finding
}

// mostSound bounds how many children are remembered.
const mostSound = 10_000

type finding struct {
	// version is the resource version of a child without a generation. One that has a
	// generation gets another one with each change of its spec, and the status that
	// its controller writes all the time is not compared.
	version     string
	generation  int64
	labels      map[string]string
	annotations map[string]string
	owners      []metav1.OwnerReference
	form        reflect.Type // some children are seen without their content
	want        [sha256.Size]byte
	overruled   []string // the fields that admission has otherwise
}

// NewSound returns an empty memory.
func NewSound() *Sound { return &Sound{known: map[types.UID]finding{}} }

func findingOf(seen client.Object, want [sha256.Size]byte) finding {
	f := finding{
		generation: seen.GetGeneration(), labels: seen.GetLabels(), annotations: seen.GetAnnotations(), owners: seen.GetOwnerReferences(),
		form: reflect.TypeOf(seen), want: want,
	}
	if f.generation == 0 {
		f.version = seen.GetResourceVersion()
	}
	return f
}

func (f finding) is(other finding) bool {
	return f.version == other.version && f.generation == other.generation && f.form == other.form && f.want == other.want &&
		maps.Equal(f.labels, other.labels) && maps.Equal(f.annotations, other.annotations) &&
		slices.EqualFunc(f.owners, other.owners, func(a, b metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(a, b) })
}

// is says whether this child, as it is seen, was found to be as wanted, but for the fields that admission has otherwise.
func (s *Sound) is(seen client.Object, want [sha256.Size]byte) (overruled []string, is bool) {
	if s == nil || seen.GetUID() == "" || seen.GetResourceVersion() == "" {
		return nil, false
	}
	s.mu.Lock()
	found, ok := s.known[seen.GetUID()]
	s.mu.Unlock()
	return found.overruled, ok && found.want == want && found.is(findingOf(seen, want))
}

// note remembers that this child is as wanted, but for these fields.
func (s *Sound) note(seen client.Object, want [sha256.Size]byte, overruled []string) {
	if s == nil || seen.GetUID() == "" || seen.GetResourceVersion() == "" {
		return
	}
	found := findingOf(seen, want)
	found.overruled = overruled
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostSound {
		clear(s.known)
	}
	s.known[seen.GetUID()] = found
}
