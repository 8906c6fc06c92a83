package sim

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/fairlead/internal/kit/run"
)

// watched is an informer of ConfigMaps, and the events that it has told.
type watched struct {
	*informer
	client client.Client
	events []string
}

// watchConfigMaps makes an informer over an empty server: label is as in informer.
func watchConfigMaps(t *testing.T, label string) *watched {
	t.Helper()
	s := server(t)
	k, err := s.API.kindOf(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{client: NewClient(s, "test", "test", nil, nil)}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	note := func(text string) { w.events = append(w.events, text) }
	w.informer = &informer{kind: k, label: label, log: s.store(k), objects: map[types.NamespacedName]client.Object{}, sources: []wakes{{Source: run.Source{
		Handler: handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { note("+" + valueOf(e.Object)) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
				note(valueOf(e.ObjectOld) + ">" + valueOf(e.ObjectNew))
			},
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
				text := "-" + valueOf(e.Object)
				if e.DeleteStateUnknown {
					text += "?"
				}
				note(text)
			},
		},
	}}}}
	return w
}

func valueOf(obj client.Object) string { return obj.(*corev1.ConfigMap).Data["k"] }

// write creates the ConfigMap with a value, or updates it; "" deletes it.
func (w *watched) write(t *testing.T, value, managedBy string) {
	t.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", Labels: map[string]string{run.ManagedByLabel: managedBy}}, Data: map[string]string{"k": value}}
	var err error
	switch {
	case value == "":
		err = w.client.Delete(t.Context(), obj)
	case w.client.Get(t.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{}) == nil:
		err = w.client.Update(t.Context(), obj)
	default:
		err = w.client.Create(t.Context(), obj)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *watched) told(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(w.events, want) {
		t.Errorf("told %q, want %q", w.events, want)
	}
	w.events = nil
}

// TestInformerIsLate: it shows one change after the other, and none that it was not told to.
func TestInformerIsLate(t *testing.T) {
	w := watchConfigMaps(t, "")
	for _, value := range []string{"a", "b", "", "c"} {
		w.write(t, value, "")
	}
	if w.told(t); len(w.objects) > 0 || !w.isBehind() {
		t.Error("it shows what it has not been told")
	}
	for _, want := range []string{"+a", "a>b", "-b", "+c"} {
		w.next()
		w.told(t, want)
	}
	if w.isBehind() {
		t.Error("it is behind although it has seen all")
	}
}

// TestInformerIsCut: what happened while it was cut has one event at most, and what is gone
// is gone as it was last seen.
func TestInformerIsCut(t *testing.T) {
	w := watchConfigMaps(t, "")
	w.write(t, "a", "")
	w.next()
	w.told(t, "+a")
	for _, value := range []string{"b", "", "c", "d"} {
		w.write(t, value, "")
	}
	w.isCut = true
	w.next()
	w.told(t, "a>d")
	w.write(t, "", "")
	w.isCut = true
	w.next()
	w.told(t, "-d?")
	w.write(t, "e", "")
	w.write(t, "", "")
	w.isCut = true
	w.next()
	w.told(t)
	if len(w.objects) > 0 || w.isBehind() {
		t.Errorf("it shows %v", w.objects)
	}
}

// TestInformerOfALabel: what loses the label is deleted for it, and what gets it is new.
func TestInformerOfALabel(t *testing.T) {
	w := watchConfigMaps(t, "fairlead-shop")
	for i, change := range []struct {
		value, managedBy string
		want             []string
	}{
		{"a", "", nil},
		{"b", "fairlead-shop", []string{"+b"}},
		{"c", "fairlead-shop", []string{"b>c"}},
		{"d", "somebody", []string{"-c"}},
		{"e", "somebody", nil},
		{"f", "fairlead-shop", []string{"+f"}},
		{"", "", []string{"-f"}},
	} {
		w.write(t, change.value, change.managedBy)
		w.next()
		t.Log("change", i+1)
		w.told(t, change.want...)
	}
}
