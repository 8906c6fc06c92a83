package loop

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TestDroppedWhileReading: what was gone, or changed, while it was read is no error for the queue; the log has it, and
// it is looked at again.
func TestDroppedWhileReading(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for name, dropped := range map[string]error{
		"it is gone":     apierrors.NewNotFound(resource, "cache-7"),
		"it has changed": apierrors.NewConflict(resource, "cache-7", nil),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.kind.Observe = func(context.Context, *Reader, *corev1.Service) (string, error) { return "", dropped }
			var lines []string
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			key := client.ObjectKey{Namespace: "n", Name: "s"}
			if _, err := b.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
				t.Errorf("error %v", err)
			}
			if len(lines) != 1 || !strings.Contains(lines[0], "cache-7") {
				t.Errorf("the log has %q", lines)
			}
			if alarm := b.alarms.byKey[key]; alarm == nil || !alarm.at.Equal(b.now.Add(conflictWait)) {
				t.Errorf("alarm %+v, want one in %v", alarm, conflictWait)
			}
		})
	}
}

// TestPatchOfWhatIsGone counts as a conflict: it was otherwise than the operator saw it.
func TestPatchOfWhatIsGone(t *testing.T) {
	const name = "patch ConfigMap/labels"
	b := newBench(t)
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		return &Plan{Writes: []Write{Patch{Object: configMap("gone"), Part: "labels", Metadata: map[string]any{"labels": nil}}}}, nil
	}
	before := counted(name)
	if _, _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	before[asConflict]++
	if now := counted(name); !maps.Equal(now, before) {
		t.Errorf("counted %v, want %v", now, before)
	}
}

// TestFailureBesideAConflict: that somebody else wrote the status keeps no other failure from the queue.
func TestFailureBesideAConflict(t *testing.T) {
	b := newBench(t)
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
	}
	b.refuse["create ConfigMap"] = apierrors.NewServerTimeout(schema.GroupResource{Resource: "configmaps"}, "create", 1)
	b.refuse["status Service"] = apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "s", nil)
	if _, _, err := b.reconcile(); !apierrors.IsServerTimeout(err) {
		t.Errorf("error %v, want that of the write", err)
	}
}
