package loop

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"regexp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// held are the writes that the API server has refused, and until when they are not
// sent again. Status alone does not hold them back: to write it is an event, and
// the words of a refusal may differ each time.
type held struct {
	first, longest time.Duration // of a wait

	mu      sync.Mutex
	byOwner map[types.NamespacedName]map[string]refusal // by owner and write
}

type refusal struct {
	err   error
	wait  time.Duration
	until time.Time
	// of is what was refused. Anything else is not.
	of refused
}

type refused struct {
	owner      types.UID
	generation int64
	want       [sha256.Size]byte
}

func newHeld(first, longest time.Duration) *held {
	return &held{first: first, longest: longest, byOwner: map[types.NamespacedName]map[string]refusal{}}
}

func refusedFor(owner client.Object, w Write) refused {
	of := refused{owner: owner.GetUID(), generation: owner.GetGeneration()}
	if data, err := json.Marshal(content(w)); err == nil {
		of.want = sha256.Sum256(instant.ReplaceAll(data, nil))
	}
	return of
}

// instant is a time of day in RFC 3339, as writes have it that note when they were made: each try would be another one.
var instant = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})`)

// content is what a write would bring about, and to which object; without its version and its managed fields, which
// others change.
func content(w Write) []any {
	var all []any
	if obj := ObjectOf(w); obj != nil {
		all = append(all, obj.GetUID())
	}
	switch w := w.(type) {
	case Create:
		all = append(all, w.Object)
	case Apply:
		all = append(all, w.Want)
	case Patch:
		metadata := maps.Clone(w.Metadata)
		delete(metadata, "managedFields")
		all = append(all, w.Subresource, metadata, w.Spec)
	}
	return all
}

// back is the last refusal of a write, while it is held back for that.
func (h *held) back(owner client.Object, w Write, now time.Time) (refusal, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.byOwner[client.ObjectKeyFromObject(owner)][keyOf(w)]
	return last, ok && now.Before(last.until) && last.of == refusedFor(owner, w)
}

// note remembers a refusal, and returns it with the time when to try again, and
// whether it is the first of its kind.
func (h *held) note(owner client.Object, w Write, err error, now time.Time) (r refusal, isFirst bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := client.ObjectKeyFromObject(owner)
	r = refusal{err: err, wait: h.first, of: refusedFor(owner, w)}
	last, ok := h.byOwner[key][keyOf(w)]
	isFirst = !ok || last.of != r.of
	if ok && last.of.owner == r.of.owner && last.of.generation == r.of.generation { // the same write, in whatever words
		r.wait = min(2*last.wait, h.longest)
	}
	r.until = now.Add(r.wait)
	if h.byOwner[key] == nil {
		h.byOwner[key] = map[string]refusal{}
	}
	h.byOwner[key][keyOf(w)] = r
	return r, isFirst
}

// done forgets the refusals of a write.
func (h *held) done(owner client.Object, w Write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byOwner[client.ObjectKeyFromObject(owner)], keyOf(w))
}

// forget forgets those of an owner, or all but those of the writes that are still
// wanted of it.
func (h *held) forget(owner types.NamespacedName, wanted ...Write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byOwner[owner] == nil {
		return
	}
	still := map[string]bool{}
	for _, w := range wanted {
		still[keyOf(w)] = true
	}
	maps.DeleteFunc(h.byOwner[owner], func(name string, _ refusal) bool { return !still[name] })
	if len(h.byOwner[owner]) == 0 {
		delete(h.byOwner, owner)
	}
}

// keyOf tells writes apart: objects of one name in several namespaces are not the same.
func keyOf(w Write) string {
	if _, isApply := w.(Apply); isApply || ObjectOf(w) == nil { // applied are only children, in the owner's namespace
		return described(w)
	}
	return described(w) + " " + ObjectOf(w).GetNamespace()
}
