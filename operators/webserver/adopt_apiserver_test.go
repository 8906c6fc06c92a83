//go:build apiserver

package webserver

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
)

// TestAdoptByHand: what kubectl create deployment and kubectl expose have made is refused as long as the spec does not
// have all of it, then adopted without a new pod, rolled back to as it was, and in the end the operator's alone.
func TestAdoptByHand(t *testing.T) {
	s, ctx := newStageWith(t, crashing), context.Background()
	s.Must(s.Create(ctx, createdByHand(s.R.Namespace)))
	s.Must(s.Create(ctx, exposedByHand(s.R.Namespace)))
	deployment := func() *appsv1.Deployment {
		d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		s.Must(err)
		return d
	}
	s.Must(s.Create(ctx, story(s.R, adopting, image("nginx:other"))))
	if said := s.waitsFor(reasonNotAdopted); !strings.Contains(said.Message, `spec.image must be "nginx:1"`) {
		t.Errorf("it says %q", said.Message)
	}
	if d := deployment(); len(d.OwnerReferences) > 0 || d.Generation != 1 || len(d.Labels) > 1 {
		t.Errorf("what was refused was changed: %+v", d.ObjectMeta)
	}
	err := s.Patch(ctx, story(s.R), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"adopt":{"service":"other"}}}`)))
	if err == nil || !strings.Contains(err.Error(), "must be set when the WebServer is created") {
		t.Errorf("another Service to adopt: %v", err)
	}

	s.patch(`{"spec":{"image":"nginx:1"}}`)
	s.Settled(adoptedAsItIs)
	said := meta.FindStatusCondition(mustCurrent(s).Status.Conditions, webv1.ConditionAdopted).Message
	for _, words := range []string{"They do not drain", "spec.containers[webserver].readinessProbe", "spec.securityContext"} {
		if !strings.Contains(said, words) {
			t.Errorf("Adopted says %q, want %q", said, words)
		}
	}
	if url := mustCurrent(s).Status.URL; url != "http://web."+s.R.Namespace+".svc" {
		t.Errorf("the URL is %s", url)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))

	s.patch(`{"spec":{"image":"nginx:bad"}}`)
	s.settled(reasonRolledBack, "nginx:1")
	if c := deployment().Spec.Template.Spec.Containers; len(c) != 1 || c[0].Name != "nginx" {
		t.Errorf("rolled back to containers %+v", c)
	}
	s.patch(`{"spec":{"image":"nginx:2"}}`)
	s.settled(reasonReady, "nginx:2")
	d := deployment()
	if c := d.Spec.Template.Spec.Containers; len(c) != 1 || c[0].Name != serverContainer || d.Spec.Template.Labels["app"] != "web" {
		t.Errorf("the pods have labels %v and containers %+v", d.Spec.Template.Labels, c)
	}
	service, err := read(ctx, s.R, "web", &corev1.Service{})
	s.Must(err)
	if p := service.Spec.Ports; len(p) != 1 || p[0].Name != "" || p[0].TargetPort.String() != httpName {
		t.Errorf("the Service has ports %+v", p)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}
