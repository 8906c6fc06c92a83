//go:build apiserver

package webserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/testkit"
)

// TestAdoptByHand: what kubectl create deployment and kubectl expose have made is refused as long as the spec does not
// have all of it, then adopted without a new pod, rolled back to as it was, and in the end the operator's alone.
func TestAdoptByHand(t *testing.T) {
	s, ctx := newStageWith(t, crashing), context.Background()
	s.Must(s.Create(ctx, createdByHand(s.R.Namespace)))
	exposed := exposedByHand(s.R.Namespace)
	exposed.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	s.Must(s.Create(ctx, exposed))
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
	for _, words := range []string{"They do not drain", "former owner has set: spec.sessionAffinity, spec.sessionAffinityConfig.", "spec.containers[webserver].readinessProbe", "spec.securityContext"} {
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
	if c := meta.FindStatusCondition(mustCurrent(s).Status.Conditions, webv1.ConditionAdopted); c == nil || !strings.Contains(c.Message, "spec.sessionAffinity") {
		t.Errorf("the Service keeps its session affinity, and Adopted is %+v", c)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// TestAdoptedFieldsGo: what the former owners of a Deployment have set, each for itself, goes when the spec leaves it out.
func TestAdoptedFieldsGo(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	d := createdByHand(s.R.Namespace)
	d.Spec.RevisionHistoryLimit = new(int32(3))
	pod := &d.Spec.Template
	pod.Annotations = map[string]string{"team": "blue"}
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a.example.com"}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "theirs", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.Must(s.Create(ctx, d, client.FieldOwner("kubectl-client-side-apply")))
	s.Must(s.Patch(ctx, d, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}}}`)), client.FieldOwner("kubectl-edit")))
	s.Must(s.Create(ctx, exposedByHand(s.R.Namespace)))
	s.Must(s.Create(ctx, story(s.R, adopting, func(ws *webv1.WebServer) {
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"team": "blue"}},
			Spec: corev1.PodSpec{
				HostAliases: pod.Spec.HostAliases, Volumes: pod.Spec.Volumes,
				Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}},
			},
		}
	})))
	s.Settled(func(ctx context.Context, r *testkit.Run) error {
		ws, err := current(ctx, r)
		if err == nil && !meta.IsStatusConditionTrue(ws.Status.Conditions, webv1.ConditionAdopted) {
			err = fmt.Errorf("not adopted: %+v", ws.Status.Conditions)
		}
		return errors.Join(err, isReady(reasonReady, "nginx:1")(ctx, r))
	})
	s.patch(`{"spec":{"image":"nginx:2"}}`)
	s.settled(reasonReady, "nginx:2")
	s.patch(`{"spec":{"podTemplate":null}}`)
	s.settled(reasonReady, "nginx:2")

	d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
	s.Must(err)
	now := d.Spec.Template
	if now.Annotations["team"] != "" || len(now.Spec.HostAliases)+len(now.Spec.Tolerations) > 0 || now.Spec.Volumes[0].Name == "theirs" {
		t.Errorf("the former owners' template is left: annotations %v, aliases %v, tolerations %v, volumes %v",
			now.Annotations, now.Spec.HostAliases, now.Spec.Tolerations, now.Spec.Volumes)
	}
	if *d.Spec.RevisionHistoryLimit == 3 {
		t.Error("the former owner's revisionHistoryLimit is left")
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}
