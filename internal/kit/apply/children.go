package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Children applies the children of an operator's objects.
type Children struct {
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Manager is the operator's field manager.
	Manager string
	// Settled names fields of which the value is found out by the first write,
	// such as nodePort: that one comes to be wanted is no reason to write.
	Settled []string
	// Sound spares comparisons; nil if there is none to spare.
	Sound *Sound
}

// Outcome is what Apply found and did.
type Outcome struct {
	// Object is the child as it is now.
	Object client.Object
	// Created is true when it was not there.
	Created bool
	// Found is true when it was there, but the cache did not show it. Nothing
	// was written: what is wanted may depend on what is there.
	Found bool
	// Applied is true when it was there and not as wanted.
	Applied bool
	// Repaired is true when it was applied because somebody else had changed it: the last write wanted the same.
	Repaired bool
	// TakenBack is true when it was applied because it had lost its owner
	// reference, or the label by which the cache shows it.
	TakenBack bool
	// Changes are the fields that were not as wanted. There may be none,
	// although something was applied: fields that are not wanted any more.
	Changes []Change
	// Overruled are the paths of the fields that admission made otherwise when the child was last written. They are
	// left so, and known as long as Sound remembers the child.
	Overruled []string
}

// Apply makes a child as want has it, which carries a controller reference to
// owner. seen is the child as the cache has it, or an empty object of its type
// if it has none; it becomes the child as it is afterwards.
//
// It writes nothing when nothing differs: when the last write, of which the
// child has a hash in an annotation, wanted the same, and the child still has
// all of it, or what admission has made of it at once. Otherwise a child that is not there is created with a POST; one
// that is there gets a server-side apply, by force, that carries its UID and
// resource version: what was decided on a view of it that is not the present one
// is refused with a conflict, for another operator may be further on. What want
// does not mention is left to others, or removed if it was the operator's.
func (a Children) Apply(ctx context.Context, owner, seen client.Object, want runtime.ApplyConfiguration) (Outcome, error) {
	data, err := json.Marshal(want)
	if err != nil {
		return Outcome{}, fmt.Errorf("encode a child: %w", err)
	}
	digest := sha256.Sum256(data)
	if overruled, is := a.Sound.is(seen, digest); is && Owns(a.Manager, owner, seen) {
		return Outcome{Object: seen, Overruled: overruled}, nil
	}
	child, err := a.marked(data, digest)
	if err != nil {
		return Outcome{}, err
	}
	if seen.GetUID() == "" {
		fresh := child.DeepCopy()
		found, err := createOrFind(ctx, a, owner, fresh)
		if err != nil {
			return Outcome{}, err
		}
		outcome := Outcome{Object: seen, Created: !found, Found: found}
		if err := into(fresh, seen); err != nil || found {
			return outcome, err
		}
		outcome.Overruled, err = a.overruled(child, seen, digest)
		return outcome, err
	}
	if !Owns(a.Manager, owner, seen) {
		return Outcome{}, &ConflictError{Kind: child.GetKind(), Name: child.GetName(), Predecessor: BelongsToPredecessor(seen, owner)}
	}
	changes, err := Differences(child, seen)
	if err != nil {
		return Outcome{Object: seen}, err
	}
	if len(changes) == 0 {
		a.Sound.note(seen, digest, nil)
		return Outcome{Object: seen}, nil
	}
	if err := a.takeOver(ctx, seen); err != nil {
		return Outcome{}, err
	}
	wanted := child.DeepCopy()
	if err := a.sayCopied(seen, child, changes); err != nil {
		return Outcome{}, err
	}
	child.SetUID(seen.GetUID())
	child.SetResourceVersion(seen.GetResourceVersion())
	outcome := Outcome{Object: seen, Applied: true, TakenBack: lostMarks(a.Manager, owner, seen)}
	outcome.Repaired = outcome.TakenBack || seen.GetAnnotations()[a.mark()] == child.GetAnnotations()[a.mark()]
	if err := a.applyOver(ctx, seen, child); err != nil {
		return Outcome{}, err
	}
	outcome.Changes = slices.DeleteFunc(changes, func(c Change) bool { return c.Path == "metadata.annotations."+a.mark() })
	if err := into(child, seen); err != nil {
		return outcome, err
	}
	outcome.Overruled, err = a.overruled(wanted, seen, digest)
	return outcome, err
}

// overruled are the fields of what was wanted that the answer to its write has otherwise: a policy of the cluster has
// changed them, and would again. So the child counts as wanted, as it is now.
func (a Children) overruled(want *unstructured.Unstructured, now client.Object, digest [sha256.Size]byte) ([]string, error) {
	changes, err := Differences(want, now)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, change := range changes {
		paths = append(paths, change.Path)
	}
	a.Sound.note(now, digest, paths)
	return paths, nil
}

// createOrFind creates a child, or reads the one that is there already, which
// must be this owner's.
func createOrFind(ctx context.Context, a Children, owner client.Object, child *unstructured.Unstructured) (found bool, err error) {
	err = a.Client.Create(ctx, child, client.FieldOwner(a.Manager))
	if !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return true, err
	}
	if !Owns(a.Manager, owner, child) {
		return true, &ConflictError{Kind: child.GetKind(), Name: child.GetName(), Predecessor: BelongsToPredecessor(child, owner)}
	}
	return true, nil
}

// takeOver moves the fields that a POST of this manager set to its server-side apply, so
// that a field which is not wanted any more is removed. It is done once for each object,
// under its resource version.
func (a Children) takeOver(ctx context.Context, seen client.Object) error {
	if !slices.ContainsFunc(seen.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == a.Manager && f.Operation == metav1.ManagedFieldsOperationUpdate
	}) {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(seen, sets.New(a.Manager), a.Manager)
	if err != nil || len(patch) == 0 {
		return err
	}
	return a.Client.Patch(ctx, seen, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.Manager))
}

// mostMarked bounds how many are remembered.
const mostMarked = 500

// marks has what [Children.marked] found out last, by its hash and the manager.
var marks = lru.New(mostMarked)

type markKey struct {
	digest  [sha256.Size]byte
	manager string
}

// marked is what is wanted, from its JSON with this hash, with its canonical hash as an
// annotation.
func (a Children) marked(data []byte, digest [sha256.Size]byte) (*unstructured.Unstructured, error) {
	key := markKey{digest, a.Manager}
	if known, ok := marks.Get(key); ok {
		return known.(*unstructured.Unstructured).DeepCopy(), nil
	}
	child := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &child.Object); err != nil {
		return nil, fmt.Errorf("decode a child: %w", err)
	}
	hashed, err := json.Marshal(without(child.Object, a.Settled))
	if err != nil {
		return nil, fmt.Errorf("encode a child: %w", err)
	}
	sum := sha256.Sum256(hashed)
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[a.mark()] = hex.EncodeToString(sum[:])[:16]
	child.SetAnnotations(annotations)
	marks.Add(key, child.DeepCopy())
	return child, nil
}

// without is a value without the fields of these names, wherever they are.
func without(value any, names []string) any {
	switch value := value.(type) {
	case map[string]any:
		rest := map[string]any{}
		for field, v := range value {
			if !slices.Contains(names, field) {
				rest[field] = without(v, names)
			}
		}
		return rest
	case []any:
		var rest []any
		for _, v := range value {
			rest = append(rest, without(v, names))
		}
		return rest
	}
	return value
}

func (a Children) mark() string { return appliedAnnotation(a.Manager) }

// into makes to, of any type, what from is.
func into(from *unstructured.Unstructured, to client.Object) error {
	if u, ok := to.(*unstructured.Unstructured); ok {
		u.Object = from.Object
		return nil
	}
	// Fields that from does not have must not stay.
	reflect.ValueOf(to).Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to)
}
