package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A right that is missing is logged once, however often the cache tries again.
func TestMissingRightsAreToldOnce(t *testing.T) {
	lacked.Clear() // what other tests were refused
	var lines []string
	r := &rights{log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
	refused := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "at.example.com", Resource: resource}, "", errors.New(`User "x" cannot list`))
	}
	for range 3 {
		r.onWatchError(t.Context(), nil, refused("ats"))
	}
	r.onWatchError(t.Context(), nil, refused("others"))
	if len(lines) != 2 || !strings.Contains(lines[0], "ats.at.example.com") || !strings.Contains(lines[0], "WATCH_NAMESPACE") {
		t.Errorf("logged: %q", lines)
	}
	missing := func() float64 { return testutil.ToFloat64(rightsMissing) }
	if got := missing(); got != 2 {
		t.Errorf("%v rights are missing, want 2", got)
	}
	lacked.Store(refused("ats").Error(), time.Now().Add(-lately))
	if got := missing(); got != 1 {
		t.Errorf("%v rights are missing a minute after one was given, want 1", got)
	}
}

// A right that an install may leave out: that it is not there is logged, with what is not done; another error is one.
func TestRightsThatMayBeLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		sees    bool
		fails   bool
		logged  string
	}{
		"there":           {sees: true},
		"left out":        {refusal: apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(`User "x" cannot list`)), logged: "nothing is moved"},
		"nobody can tell": {refusal: errors.New("no connection"), fails: true},
	} {
		var lines []string
		listed := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return tc.refusal
		}}
		l := &lister{
			live: fake.NewClientBuilder().WithInterceptorFuncs(listed).Build(), scheme: scheme.Scheme,
			log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
		}
		sees, err := l.sees(t.Context(), &corev1.Node{}, "nothing is moved")
		if sees != tc.sees || (err != nil) != tc.fails || !strings.Contains(strings.Join(lines, ""), tc.logged) || (tc.logged == "") != (len(lines) == 0) {
			t.Errorf("%s: %v, %v, logged %q", name, sees, err, lines)
		}
	}
}

// Of the metadata of a ConfigMap that kubectl has applied, a copy of all of its content would be most.
func TestMetadataIsCachedWithoutContent(t *testing.T) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: "large", "team": "blue", "example.com/original": strings.Repeat("x", 2<<10),
	}}}
	got, err := bare(object)
	if want := map[string]string{"team": "blue"}; err != nil || !equality.Semantic.DeepEqual(got.(client.Object).GetAnnotations(), want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := bare(&metav1.PartialObjectMetadata{}); err != nil {
		t.Error(err)
	}
}

// Of a Node its status is most, and nobody reads it.
func TestNodesAreCachedWithoutStatus(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status:     corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"large"}}}},
	}
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if got, err := bare(node); err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
