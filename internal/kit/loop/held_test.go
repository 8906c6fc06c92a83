package loop

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func anOwner(options ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", Generation: 1}}
	for _, option := range options {
		option(owner)
	}
	return owner
}

func serviceOf(name string) Write {
	return Apply{Object: &corev1.Service{}, Want: corev1ac.Service(name, "shop")}
}

// TestRefusalsAreOfOneWish: who changes an object, makes a new one of the name, or
// wants something else, need not wait.
func TestRefusalsAreOfOneWish(t *testing.T) {
	h := newHeld(time.Second, time.Minute)
	h.note(anOwner(), serviceOf("a"), errors.New("quota"), noon)
	for name, tc := range map[string]struct {
		owner *corev1.ConfigMap
		write Write
		later time.Duration
		held  bool
	}{
		"the same":               {anOwner(), serviceOf("a"), time.Second - 1, true},
		"the wait is over":       {anOwner(), serviceOf("a"), time.Second, false},
		"another generation":     {anOwner(func(o *corev1.ConfigMap) { o.Generation++ }), serviceOf("a"), 0, false},
		"another of the name":    {anOwner(func(o *corev1.ConfigMap) { o.UID = "other" }), serviceOf("a"), 0, false},
		"another owner":          {anOwner(func(o *corev1.ConfigMap) { o.Name = "other" }), serviceOf("a"), 0, false},
		"other content":          {anOwner(), serviceOf("b"), 0, false},
		"another write":          {anOwner(), Delete{Object: &corev1.Service{}}, 0, false},
		"the same, but a Secret": {anOwner(), Apply{Object: &corev1.Secret{}, Want: corev1ac.Service("a", "shop")}, 0, false},
	} {
		if last, held := h.back(tc.owner, tc.write, noon.Add(tc.later)); held != tc.held || held && last.err.Error() != "quota" {
			t.Errorf("%s: held back is %v (%+v), want %v", name, held, last, tc.held)
		}
	}
}

// TestRefusalsAreOfTheirContent: what is refused is not held back once it is another, whatever kind of write it is.
func TestRefusalsAreOfTheirContent(t *testing.T) {
	pod := func(uid types.UID, version, image string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: uid, ResourceVersion: version},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
		}
	}
	labels := func(value string) map[string]any {
		return map[string]any{"labels": map[string]any{"a": value}}
	}
	for name, tc := range map[string]struct{ refused, same, other Write }{
		"create":        {Create{Object: pod("", "", "a")}, Create{Object: pod("", "", "a")}, Create{Object: pod("", "", "b")}},
		"apply":         {serviceOf("a"), serviceOf("a"), Apply{Object: &corev1.Service{}, Want: corev1ac.Service("a", "shop").WithLabels(map[string]string{"a": "b"})}},
		"patch":         {Patch{Object: pod("1", "5", "a"), Metadata: labels("a")}, Patch{Object: pod("1", "6", "a"), Metadata: labels("a"), IfSame: true}, Patch{Object: pod("1", "5", "a"), Metadata: labels("b")}},
		"patch, a time": {Patch{Object: pod("1", "5", "a"), Metadata: labels("2026-01-02T12:00:00Z")}, Patch{Object: pod("1", "6", "a"), Metadata: labels("2026-01-02T12:00:01Z")}, Patch{Object: pod("1", "5", "a"), Metadata: labels("b")}},
		"patch, a time in a text": {Patch{Object: pod("1", "5", "a"), Metadata: labels(`{"a":{"times":1,"last":"2026-01-02T12:00:00.5+01:00"}}`)},
			Patch{Object: pod("1", "6", "a"), Metadata: labels(`{"a":{"times":1,"last":"2026-01-02T12:00:01Z"}}`)}, Patch{Object: pod("1", "5", "a"), Metadata: labels(`{"a":{"times":2,"last":"2026-01-02T12:00:00Z"}}`)}},
		"patch, whose fields": {Patch{Object: pod("1", "5", "a"), Metadata: map[string]any{"managedFields": "a"}}, Patch{Object: pod("1", "6", "a"), Metadata: map[string]any{"managedFields": "b"}}, Patch{Object: pod("1", "5", "a"), Metadata: labels("b")}},
		"patch, spec":         {Patch{Object: pod("1", "5", "a")}, Patch{Object: pod("1", "6", "a")}, Patch{Object: pod("1", "5", "a"), Spec: map[string]any{"a": "b"}}},
		"patch, another":      {Patch{Object: pod("1", "5", "a")}, Patch{Object: pod("1", "6", "a")}, Patch{Object: pod("2", "5", "a")}},
		"delete":              {Delete{Object: pod("1", "5", "a")}, Delete{Object: pod("1", "6", "a")}, Delete{Object: pod("2", "5", "a")}},
	} {
		h := newHeld(time.Second, time.Minute)
		h.note(anOwner(), tc.refused, errors.New("a policy"), noon)
		if _, held := h.back(anOwner(), tc.same, noon); !held {
			t.Errorf("%s: the same is not held back", name)
		}
		if _, held := h.back(anOwner(), tc.other, noon); held {
			t.Errorf("%s: another one is held back", name)
		}
		if again, isFirst := h.note(anOwner(), tc.other, errors.New("a policy"), noon); !isFirst || again.wait != 2*time.Second {
			t.Errorf("%s: another one is refused, too: first %t, wait %s", name, isFirst, again.wait)
		}
	}
}

// TestRefusalsAreAskedForEverMoreSlowly: the wait doubles up to its bound, and starts
// again from the first one once the write was done or is not wanted any more.
func TestRefusalsAreAskedForEverMoreSlowly(t *testing.T) {
	h := newHeld(5*time.Second, time.Minute)
	waits := func(want time.Duration, first bool) {
		t.Helper()
		if got, isFirst := h.note(anOwner(), serviceOf("a"), errors.New("quota"), noon); !got.until.Equal(noon.Add(want)) || isFirst != first {
			t.Errorf("until %v, first %v; want after %v, first %v", got.until, isFirst, want, first)
		}
	}
	waits(5*time.Second, true)
	waits(10*time.Second, false)
	waits(20*time.Second, false)
	waits(40*time.Second, false)
	waits(time.Minute, false)
	waits(time.Minute, false)
	h.done(anOwner(), serviceOf("a"))
	waits(5*time.Second, true)
	h.forget(client.ObjectKeyFromObject(anOwner()), serviceOf("a"))
	waits(10*time.Second, false)
	h.forget(client.ObjectKeyFromObject(anOwner()), serviceOf("a"), Delete{})
	waits(20*time.Second, false)
	h.forget(client.ObjectKeyFromObject(anOwner()), Delete{})
	waits(5*time.Second, true)
	h.forget(client.ObjectKeyFromObject(anOwner()))
	if len(h.byOwner) != 0 {
		t.Errorf("%d owners are left", len(h.byOwner))
	}
}

// TestRefusalsOfTwo: two children of a kind wait each for themselves.
func TestRefusalsOfTwo(t *testing.T) {
	h := newHeld(time.Second, time.Minute)
	for _, name := range []string{"a", "b"} {
		h.note(anOwner(), serviceOf(name), errors.New("quota"), noon)
	}
	for _, name := range []string{"a", "b"} {
		if _, held := h.back(anOwner(), serviceOf(name), noon); !held {
			t.Errorf("the Service %q is not held back", name)
		}
	}
}
