package sim

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
)

// definitions are those of all operators.
func definitions(t testing.TB) map[schema.GroupVersionKind]*definition {
	t.Helper()
	const operators = "../../../operators/"
	all, err := readDefinitions(operators+"at/config/crd", operators+"memcached/config/crd", operators+"webserver/config/crd")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// anAt is an At that is valid, with the changes.
func anAt(changes ...func(*atv1alpha1.At)) *atv1alpha1.At {
	at := &atv1alpha1.At{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", Labels: map[string]string{"l": "x"}},
		Spec:       atv1alpha1.AtSpec{Schedule: "2031-01-06T08:00:00Z", Command: new("echo hello")},
	}
	for _, change := range changes {
		change(at)
	}
	return at
}

func phase(p atv1alpha1.Phase) func(*atv1alpha1.At) {
	return func(at *atv1alpha1.At) { at.Status.Phase = p }
}

// unseen is the default of an At's status.
func unseen(at *atv1alpha1.At) { at.Status.Phase, at.Status.ObservedGeneration = "PENDING", -1 }

func command(c string) func(*atv1alpha1.At) {
	return func(at *atv1alpha1.At) { at.Spec.Command = &c }
}

func label(v string) func(*atv1alpha1.At) {
	return func(at *atv1alpha1.At) { at.Labels["l"] = v }
}

func TestReadDefinitions(t *testing.T) {
	all := definitions(t)
	for _, kind := range []schema.GroupVersionKind{
		atv1alpha1.GroupVersion.WithKind("At"), cachev1alpha1.GroupVersion.WithKind("Memcached"),
		{Group: "my.domain", Version: "v1", Kind: "WebServer"},
	} {
		if d := all[kind]; d == nil || !d.hasStatus {
			t.Errorf("%v: %+v, want a definition with a status", kind, d)
		}
	}
	if _, err := readDefinitions(t.TempDir()); err == nil {
		t.Error("no error for an empty folder")
	}
}

func TestAdmit(t *testing.T) {
	cases := map[string]struct {
		obj, old    *atv1alpha1.At
		subresource string
		want        *atv1alpha1.At
		wantErr     string
	}{
		"created": {
			obj:  anAt(),
			want: anAt(unseen),
		},
		"created with a status": {
			obj:  anAt(phase("DONE")),
			want: anAt(unseen),
		},
		"a bad schedule": {
			obj:     anAt(func(at *atv1alpha1.At) { at.Spec.Schedule = "tomorrow" }),
			wantErr: "must be a date and time that exist, from 1970 on",
		},
		"a bad number": {
			obj:     anAt(func(at *atv1alpha1.At) { at.Spec.BackoffLimit = 101 }),
			wantErr: "spec.backoffLimit in body should be less than or equal to 100",
		},
		"changed": {
			old:  anAt(phase("PENDING")),
			obj:  anAt(command("true"), label("y")),
			want: anAt(command("true"), label("y"), phase("PENDING")),
		},
		"changed too late": {
			old:     anAt(phase("RUNNING")),
			obj:     anAt(command("true"), phase("PENDING")),
			wantErr: "the run has started or is over, so the spec cannot be changed any more",
		},
		"only labels change": {
			old:  anAt(phase("RUNNING")),
			obj:  anAt(label("y")),
			want: anAt(label("y"), phase("RUNNING")),
		},
		"a status": {
			old:         anAt(phase("PENDING")),
			obj:         anAt(phase("RUNNING"), command("true"), label("y")),
			subresource: "status",
			want:        anAt(phase("RUNNING")),
		},
		"a wrong status": {
			old:         anAt(phase("PENDING")),
			obj:         anAt(phase("DREAMING")),
			subresource: "status",
			wantErr:     `status.phase: Unsupported value: "DREAMING": supported values: "PENDING", "RUNNING", "DONE", "FAILED", "MISSED"`,
		},
		"a condition twice": {
			old: anAt(phase("PENDING")),
			obj: anAt(func(at *atv1alpha1.At) {
				ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "R", LastTransitionTime: metav1.Time{Time: monday}}
				at.Status.Conditions = []metav1.Condition{ready, ready}
			}),
			subresource: "status",
			wantErr:     "Duplicate value",
		},
	}
	d := definitions(t)[atv1alpha1.GroupVersion.WithKind("At")]
	for name, tc := range cases {
		for _, memory := range []string{"computed", "remembered"} {
			t.Run(name+"/"+memory, func(t *testing.T) {
				var old client.Object
				if tc.old != nil {
					old = tc.old
				}
				before := []client.Object{tc.obj.DeepCopy(), tc.old.DeepCopy()}
				got, err := d.admit(tc.obj, old, tc.subresource)
				if tc.wantErr != "" {
					if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.wantErr) {
						t.Fatalf("admit: %v, want it to be invalid: %s", err, tc.wantErr)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("admit (-want +got):\n%s", diff)
				}
				got.GetLabels()["l"] = "changed by its reader"
				if diff := cmp.Diff(before, []client.Object{tc.obj, tc.old}); diff != "" {
					t.Errorf("admit changed what it was given:\n%s", diff)
				}
			})
		}
	}
}

// TestAdmitDefaults looks at defaults of values, and at unknown fields.
func TestAdmitDefaults(t *testing.T) {
	all := definitions(t)
	m := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	got, err := all[cachev1alpha1.GroupVersion.WithKind("Memcached")].admit(m, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	spec := got.(*cachev1alpha1.Memcached).Spec
	if spec.Version != "1.6.45" || spec.Port != 11211 {
		t.Errorf("spec %+v, want the defaults", spec)
	}

	u := manifest(t, `{apiVersion: at.example.com/v1alpha1, kind: At, metadata: {name: a}, spec: {schedule: "2031-01-06T08:00:00Z", command: x, colour: red}}`)
	if got, err = all[atv1alpha1.GroupVersion.WithKind("At")].admit(u, nil, ""); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "at.example.com/v1alpha1", "kind": "At", "metadata": map[string]any{"name": "a"},
		"spec":   map[string]any{"schedule": "2031-01-06T08:00:00Z", "command": "x"},
		"status": map[string]any{"observedGeneration": int64(-1), "phase": "PENDING"},
	}
	if diff := cmp.Diff(want, got.(*unstructured.Unstructured).Object); diff != "" {
		t.Errorf("admit (-want +got):\n%s", diff)
	}
}

func BenchmarkAdmit(b *testing.B) {
	d := definitions(b)[atv1alpha1.GroupVersion.WithKind("At")]
	old := anAt(phase("RUNNING"), func(at *atv1alpha1.At) {
		at.Status.ObservedGeneration, at.Status.Attempts, at.Status.PodName = 1, 1, "a-1"
		at.Status.StartTime = &metav1.MicroTime{Time: monday}
		at.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: "False", Reason: "Running", LastTransitionTime: metav1.Time{Time: monday}},
			{Type: "Reconciling", Status: "True", Reason: "Running", LastTransitionTime: metav1.Time{Time: monday}},
		}
	})
	obj := old.DeepCopy()
	obj.Status.Phase = atv1alpha1.Done
	op := func(b *testing.B) {
		if _, err := d.admit(obj, old, "status"); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("status/hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			op(b)
		}
	})
	b.Run("status/miss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.admitted = memo[admitted]{}
			op(b)
		}
	})
}

// TestTogether is for the race detector: histories are played side by side.
func TestTogether(t *testing.T) {
	f, d := newFields(testScheme(t)), definitions(t)[atv1alpha1.GroupVersion.WithKind("At")]
	site, at := manifest(t, deployment), anAt()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 20 {
				obj, err := f.apply(nil, site, "me", true, monday)
				if err != nil {
					t.Error(err)
					return
				}
				obj.SetUID("1")
				if _, err := f.apply(obj, site, "you", true, tuesday); err != nil {
					t.Error(err)
				}
				created, err := d.admit(at, nil, "")
				if err != nil {
					t.Error(err)
					return
				}
				if err := f.update(nil, created, "me", "", monday); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
}
