package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attempt is one case of the table on one server, the simulated or a real one: what is done
// is done by the same code on both. See semantics_test.go for the table.
type attempt struct {
	context.Context
	client.Client
	namespace string
	// seen is the object of the case as it was after the step before.
	seen client.Object
	// collect has the garbage collector do its work: it returns once the object is as
	// it is to become, nil for one that is gone. A nil function is for one that stays as it is.
	collect func(is func(client.Object) bool)
	// settle returns once the server's cache has what the step before has stored; nil for a
	// server without a cache.
	settle func()
}

// serverCase is what happens to one object.
type serverCase struct {
	name  string
	empty client.Object
	steps []serverStep
}

// serverStep is one request, and what comes of it, in the words of [attempt.take].
type serverStep struct {
	name string
	do   func(a *attempt) error
	want string
}

// objectName is that of the object of each case.
const objectName = "x"

// take takes a step, and says in words what came of it: the server's answer, whether the
// object was stored once more, and its generation.
func (a *attempt) take(empty client.Object, step serverStep) (said string, err error) {
	if a.settle != nil {
		a.settle()
	}
	err = step.do(a)
	said = answerOf(err)
	now := empty.DeepCopyObject().(client.Object)
	if apierrors.IsNotFound(a.Get(a, client.ObjectKey{Namespace: a.namespace, Name: objectName}, now)) {
		a.seen = nil
		return said + ", gone", err
	}
	switch {
	case a.seen == nil:
		said += ", there"
	case now.GetUID() != a.seen.GetUID():
		said += ", another one"
	case now.GetResourceVersion() != a.seen.GetResourceVersion():
		said += ", stored"
	}
	if a.seen == nil || now.GetGeneration() != a.seen.GetGeneration() {
		said += fmt.Sprintf(", generation %d", now.GetGeneration())
	}
	if now.GetDeletionTimestamp() != nil && (a.seen == nil || a.seen.GetDeletionTimestamp() == nil) {
		said += ", being deleted"
	}
	a.seen = now
	return said, err
}

// answerOf is the reason of an error and its code.
func answerOf(err error) string {
	if err == nil {
		return "ok"
	}
	code := int32(0)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = status.Status().Code
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown || code != 0 {
		return fmt.Sprintf("%d %s", code, reason)
	}
	return err.Error()
}

// play plays a case from its beginning, and returns what was not as the table has it, but
// for the known exceptions.
func (a *attempt) play(c serverCase, except map[string]string) (wrong []string) {
	for _, step := range c.steps {
		name, want := c.name+": "+step.name, step.want
		if other, ok := except[name]; ok {
			want = other
		}
		if said, err := a.take(c.empty, step); said != want {
			wrong = append(wrong, fmt.Sprintf("%s: got  %q\n  want %q\n  %v", name, said, want, err))
		}
	}
	return wrong
}

// server is an empty simulated server, with a clock that stands still.
func server(t *testing.T) *Server {
	t.Helper()
	api, err := NewAPI(testScheme(t), "../../../operators/at/config/crd")
	if err != nil {
		t.Fatal(err)
	}
	return NewServer(api, func() time.Time { return monday })
}

// TestServer plays the table on the simulated server. With the build tag apiserver it is
// played on a real one, too, see TestSameServer.
func TestServer(t *testing.T) {
	api := server(t).API
	for _, c := range serverCases() {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			s := NewServer(api, func() time.Time { return monday })
			collector := NewCollector(s)
			a := &attempt{Context: t.Context(), Client: NewClient(s, "test", "test", nil, nil), namespace: "default", collect: func(func(client.Object) bool) {
				for did := true; did; {
					did, _ = collector.Act()
				}
			}}
			for _, wrong := range a.play(c, differences) {
				t.Error(wrong)
			}
		})
	}
}
