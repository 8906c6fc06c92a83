package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/testkit/draw"
)

// Fields is the test of a CRD's promise at the door: whatever a field of the spec is
// changed to, the API server refuses it with a message, or the operator converges or
// explains. When the old value is restored, so is the old state.
type Fields struct {
	// CRD is the file of the definition.
	CRD   string
	Start func(ctx context.Context, cfg *rest.Config, namespace string) error
	// Object is a sound object of the kind with that name, which becomes Ready. It
	// says its kind and API version.
	Object func(namespace, name string) client.Object
	// Sample is a file with an object of the kind that has every field, and with
	// what that refers to. A third of the edits, drawn by chance, is made to
	// objects like that, too.
	Sample string
	// Exclusive is the path of a field of the sample that one object at a time can
	// have, such as spec, service, nodePort: it is left out.
	Exclusive []string
	// Once is for a kind whose objects run to an end: every edit gets an object of its
	// own, and nothing is restored.
	Once bool
	// FromTemplates is how many edits below a pod template are drawn, 40 by default.
	FromTemplates int
}

const (
	// fieldsWorkers is how many objects are edited side by side.
	fieldsWorkers = 6
	// fieldsTimeout is for an operator on a machine that is busy.
	fieldsTimeout = 90 * time.Second
)

// Run makes every edit. FIELDS_SEED draws others, and FIELDS_ALL=1 makes all of
// them, also below pod templates and to the sample.
func (f *Fields) Run(t *testing.T) {
	t.Helper()
	seed, fromTemplates := uint64(1), max(f.FromTemplates, 40)
	if text := os.Getenv("FIELDS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FIELDS_SEED: %v", err)
		}
	}
	if os.Getenv("FIELDS_ALL") != "" {
		fromTemplates = 1 << 20
	}
	edits, err := Edits(f.CRD, seed, fromTemplates)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("few fields", func(t *testing.T) { f.edit(t, seed, drawnEdits(edits), f.Object, f.Once) })
	t.Run("all fields", func(t *testing.T) {
		others, sample, err := f.sample()
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("FIELDS_ALL") == "" {
			edits = thirdOf(edits, seed)
		}
		f.edit(t, seed, drawnEdits(edits), func(namespace, name string) client.Object {
			obj := sample.DeepCopy()
			obj.SetNamespace(namespace)
			obj.SetName(name)
			return obj
		}, true, others...)
	})
}

// drawnEdits are those that this landing makes.
func drawnEdits(edits []Edit) []Edit {
	return slices.DeleteFunc(slices.Clone(edits), func(e Edit) bool { return !draw.Takes(e.String()) })
}

func thirdOf(edits []Edit, seed uint64) []Edit {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable, not secret
	random.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
	return edits[:len(edits)/3]
}

// sample reads the object of the kind from the sample's file, and the others.
func (f *Fields) sample() (others []*unstructured.Unstructured, sample *unstructured.Unstructured, err error) {
	data, err := os.ReadFile(f.Sample)
	if err != nil {
		return nil, nil, err
	}
	kind := f.Object("", "").GetObjectKind().GroupVersionKind()
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Sample, err)
		}
		if obj.GroupVersionKind() == kind {
			sample = obj
		} else {
			others = append(others, obj)
		}
	}
	if sample == nil {
		return nil, nil, fmt.Errorf("%s has no %s", f.Sample, kind.Kind)
	}
	if len(f.Exclusive) > 0 {
		if _, found, err := unstructured.NestedFieldNoCopy(sample.Object, f.Exclusive...); err != nil || !found {
			return nil, nil, fmt.Errorf("%s has no %s: %w", f.Sample, strings.Join(f.Exclusive, "."), err)
		}
		unstructured.RemoveNestedField(sample.Object, f.Exclusive...)
	}
	return others, sample, nil
}

// edit makes the edits in a namespace of their own, which has the others.
func (f *Fields) edit(t *testing.T, seed uint64, edits []Edit, object func(namespace, name string) client.Object, once bool, others ...*unstructured.Unstructured) {
	server := Server(t)
	namespace := server.NewNamespace(t)
	for _, other := range others {
		other.SetNamespace(namespace)
		if err := server.client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	kubelet, err := StartKubelet(ctx, server.Config, namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	counter, ended := &Counter{}, make(chan error, 1)
	go func() { ended <- f.Start(ctx, counter.Wrap(server.Config), namespace) }()
	defer func() {
		cancel()
		kubelet.wait()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	}()

	var accepted, refused atomic.Int32
	queue, subjects := make(chan Edit), make([]*fieldsWorker, fieldsWorkers)
	var workers sync.WaitGroup
	for number := range subjects {
		w := &fieldsWorker{make: object, once: once, client: server.client, namespace: namespace, name: fmt.Sprintf("subject-%d", number)}
		subjects[number] = w
		workers.Go(func() {
			for edit := range queue {
				taken, err := w.try(ctx, edit)
				switch {
				case err != nil:
					t.Errorf("seed %d: %s: %v", seed, edit, err)
				case taken:
					accepted.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	for _, edit := range edits {
		queue <- edit
	}
	close(queue)
	workers.Wait()
	t.Logf("%d edits: %d accepted, %d refused", len(edits), accepted.Load(), refused.Load())
	for _, w := range subjects {
		// The last edit of one may have been refused: it is there still.
		if once && w.object != nil {
			if err := client.IgnoreNotFound(server.client.Delete(ctx, w.object)); err != nil {
				t.Error(err)
			}
		}
	}
	if err := counter.Silence(ctx, 2*time.Second); err != nil {
		t.Errorf("after all is restored: %v", err)
	}
}

// fieldsWorker edits one object after another edit of it was taken back.
type fieldsWorker struct {
	make      func(namespace, name string) client.Object
	once      bool
	client    client.Client
	namespace string
	name      string
	object    *unstructured.Unstructured
	sound     []byte // the patch that makes the spec what it was
	tries     int
}

// try makes one edit, and says whether it was accepted.
func (w *fieldsWorker) try(ctx context.Context, edit Edit) (accepted bool, err error) {
	if w.object == nil {
		if err := w.begin(ctx); err != nil {
			return false, fmt.Errorf("before the edit: %w", err)
		}
	}
	data, err := json.Marshal(edit.patch)
	if err != nil {
		return false, err
	}
	err = w.client.Patch(ctx, w.object, client.RawPatch(types.MergePatchType, data))
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err):
		if strings.TrimSpace(err.Error()) == "" {
			return false, errors.New("refused without a message")
		}
		return false, nil
	case err != nil:
		return false, err
	}
	if err := w.until(ctx, isExplained); err != nil {
		return true, err
	}
	if w.once {
		err = client.IgnoreNotFound(w.client.Delete(ctx, w.object))
		w.object = nil
		return true, err
	}
	if err := w.client.Patch(ctx, w.object, client.RawPatch(types.JSONPatchType, w.sound)); err != nil {
		w.object = nil // the next edit gets another object
		return true, fmt.Errorf("the old value is refused: %w", err)
	}
	if err := w.until(ctx, isReadyAgain); err != nil {
		w.object = nil
		return true, fmt.Errorf("after the old value came back: %w", err)
	}
	return true, nil
}

func (w *fieldsWorker) begin(ctx context.Context) error {
	w.tries++
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.make(w.namespace, fmt.Sprintf("%s-%d", w.name, w.tries)))
	if err != nil {
		return err
	}
	w.object = &unstructured.Unstructured{Object: fields}
	if err := w.client.Create(ctx, w.object); err != nil {
		return err
	}
	if w.sound, err = json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec", "value": w.object.Object["spec"]}}); err != nil || w.once {
		return err
	}
	return w.until(ctx, isReadyAgain)
}

func (w *fieldsWorker) read(ctx context.Context) (*unstructured.Unstructured, error) {
	state := &unstructured.Unstructured{}
	state.SetGroupVersionKind(w.object.GetObjectKind().GroupVersionKind())
	return state, w.client.Get(ctx, client.ObjectKeyFromObject(w.object), state)
}

// until waits for a state of the object that follows the rules for all.
func (w *fieldsWorker) until(ctx context.Context, done func(reported) error) error {
	return poll(ctx, fieldsTimeout, func() error {
		state, err := w.read(ctx)
		if err != nil {
			return err
		}
		if err := CheckConditions(state); err != nil {
			return err
		}
		r, err := readReported(state)
		if err != nil {
			return err
		}
		return done(r)
	})
}

// isExplained: what the spec now says was seen, and Ready says what became of it.
func isExplained(r reported) error {
	ready := r.condition("Ready")
	switch {
	case r.observedGeneration != r.generation || ready == nil || ready.ObservedGeneration != r.generation:
		return fmt.Errorf("generation %d: the status is of %d, Ready %+v", r.generation, r.observedGeneration, ready)
	case ready.Message == "":
		return fmt.Errorf("the condition Ready has no message: %+v", ready)
	}
	return nil
}

func isReadyAgain(r reported) error {
	if err := isExplained(r); err != nil {
		return err
	}
	if ready := r.condition("Ready"); !r.isTrue(ready.Type) {
		return fmt.Errorf("the condition Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	return nil
}
