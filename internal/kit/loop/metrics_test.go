package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/metrics"
)

// TestWritesAreCounted: each write that is sent once, with what became of it.
func TestWritesAreCounted(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, tc := range map[string]struct {
		name string
		err  error
		want result
	}{
		"done":          {name: "create ConfigMap", want: asDone},
		"refused":       {name: "create ConfigMap", err: apierrors.NewForbidden(resource, "s", errors.New("exceeded quota")), want: asRefused},
		"conflict":      {name: "create ConfigMap", err: apierrors.NewConflict(resource, "s", errors.New("changed")), want: asConflict},
		"failed":        {name: "create ConfigMap", err: apierrors.NewInternalError(errors.New("etcd")), want: asFailed},
		"status":        {name: "status Service", want: asDone},
		"status failed": {name: "status Service", err: apierrors.NewInternalError(errors.New("etcd")), want: asFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
				return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
			}
			b.refuse[tc.name] = tc.err
			before := counted(tc.name)
			_, _, _ = b.reconcile() // what it returns is another test's
			before[tc.want]++
			if now := counted(tc.name); !maps.Equal(now, before) {
				t.Errorf("counted %v, want %v", now, before)
			}
		})
	}
}

func counted(name string) map[result]float64 {
	all := map[result]float64{}
	for _, r := range results {
		all[r] = testutil.ToFloat64(writes.WithLabelValues("", "Service", name, string(r)))
	}
	return all
}

// TestObjectsAreKnown: what metrics say of an object follows its status, and goes with it.
func TestObjectsAreKnown(t *testing.T) {
	b := newBench(t)
	key := client.ObjectKey{Namespace: "n", Name: "s"}
	series := func() int { return testutil.CollectAndCount(metrics.Known, "fairlead_object_problem") }
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
	}
	b.refuse["create ConfigMap"] = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "s", errors.New("exceeded quota"))
	if _, _, err := b.reconcile(); err != nil || series() != 1 {
		t.Errorf("an object in trouble has %d series, error %v", series(), err)
	}
	if err := b.client.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || series() != 0 {
		t.Errorf("an object that is gone has %d series, error %v", series(), err)
	}
}

// TestCallsAreCounted: one that has changed nothing, because it was not time, is none.
func TestCallsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		want  map[result]float64
		isErr bool
	}{
		"done":    {want: map[result]float64{asDone: 1}},
		"not now": {err: fmt.Errorf("it was changed since: %w", ErrNotNow)},
		"failed":  {err: errors.New("no answer"), want: map[result]float64{asFailed: 1}, isErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			call := Call{Part: "etcd add", Do: func(context.Context, Caller) error { return tc.err }}
			b.kind.Decide = func(*corev1.Service, string) (*Plan, error) { return &Plan{Writes: []Write{call}}, nil }
			want := counted(Name(call))
			ready, _, err := b.reconcile()
			if (err != nil) != tc.isErr || (ready.Status == metav1.ConditionTrue) == tc.isErr {
				t.Errorf("error %v, Ready %+v", err, ready)
			}
			for r, more := range tc.want {
				want[r] += more
			}
			if got := counted(Name(call)); !maps.Equal(got, want) {
				t.Errorf("counted %v, want %v", got, want)
			}
		})
	}
}
