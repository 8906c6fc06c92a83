package loop

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/fairlead/internal/kit/apply"
)

// TestPatchIsOfTheVeryObject: a patch never changes another object of the name and, if it is said, no other version.
func TestPatchIsOfTheVeryObject(t *testing.T) {
	child := configMap("s")
	child.UID, child.ResourceVersion = "c", "7"
	labels := map[string]any{"a": "b"}
	for name, tc := range map[string]struct {
		patch Patch
		want  map[string]any
	}{
		"metadata": {Patch{Metadata: map[string]any{"labels": labels}}, map[string]any{"metadata": map[string]any{"uid": "c", "labels": labels}}},
		"the spec": {Patch{Spec: map[string]any{"suspend": true}}, map[string]any{"metadata": map[string]any{"uid": "c"}, "spec": map[string]any{"suspend": true}}},
		"if same": {Patch{IfSame: true, Metadata: map[string]any{"labels": labels}},
			map[string]any{"metadata": map[string]any{"uid": "c", "resourceVersion": "7", "labels": labels}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.patch.Object = child
			before := len(tc.patch.Metadata)
			b := newBench(t, child)
			var got map[string]any
			b.executor.client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(obj)
					if err != nil {
						return err
					}
					return json.Unmarshal(data, &got)
				},
			})
			b.kind.Decide = func(*corev1.Service, string) (*Plan, error) { return &Plan{Writes: []Write{tc.patch}}, nil }
			if _, _, err := b.reconcile(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if len(tc.patch.Metadata) != before {
				t.Errorf("the plan was changed: %v", tc.patch.Metadata)
			}
		})
	}
}

// TestNames: what the log, the metrics and the tests call a write.
func TestNames(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for want, write := range map[string]Write{
		"create Pod p":        Create{Object: pod},
		"delete Pod p":        Delete{Object: pod},
		"apply Service s":     Apply{Object: &corev1.Service{}, Want: corev1ac.Service("s", "n")},
		"patch Pod/restart p": Patch{Object: pod, Part: "restart"},
		"call Pod/marks p":    Call{Object: pod, Part: "marks"},
		"call/etcd add":       Call{Part: "etcd add"},
	} {
		if got := described(write); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTakenBack: a child without its owner reference gets it back from the owner that the API server has, and from no
// other. Else a child that was to stay would be deleted with its owner.
func TestTakenBack(t *testing.T) {
	child := configMap("s")
	child.UID, child.ResourceVersion, child.OwnerReferences = "c", "7", nil
	child.Labels[apply.InstanceLabel] = "s"
	child.Annotations = map[string]string{"bench-operator/applied": "before"}
	b := newBench(t, child)
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		want := corev1ac.ConfigMap("s", "n").WithLabels(child.Labels).WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion("v1").WithKind("Service").WithName("s").WithUID("u").WithController(true))
		return &Plan{Writes: []Write{Apply{Object: child, Want: want}}}, nil
	}
	current, ownerIsGone := b.client, fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	for _, tc := range []struct {
		live client.Client
		want int
	}{{ownerIsGone, 0}, {current, 1}} {
		b.executor.live = tc.live
		if _, _, err := b.reconcile(); err != nil {
			t.Error(err)
		}
		var now corev1.ConfigMap
		if err := current.Get(t.Context(), client.ObjectKeyFromObject(child), &now); err != nil || len(now.OwnerReferences) != tc.want {
			t.Errorf("%d owners (%v), want %d", len(now.OwnerReferences), err, tc.want)
		}
		b.now = b.now.Add(conflictWait)
	}
}
