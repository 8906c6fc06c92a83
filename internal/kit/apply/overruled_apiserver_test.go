//go:build apiserver

package apply_test

import (
	"cmp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
)

// TestApplyLeavesToAdmission: what a policy of the cluster makes of a child is left, and reported for as long as it is
// so, also when nothing is written; what another writer changes is still repaired. An operator that starts writes once,
// which changes nothing while there is the policy.
func TestApplyLeavesToAdmission(t *testing.T) {
	s := newStage(t)
	s.children.Sound = apply.NewSound()
	want := s.deployment()
	want.Spec.Template.Spec.Containers[0].WithResources(corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}))
	limit := func(obj client.Object) string {
		return obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().String()
	}
	server := testkit.Server(t)
	server.Enforce(t, s.owner.Namespace, testkit.LimitedTemplates)
	for _, step := range []struct {
		what, spoil      string
		restart, lift    bool
		created, applied bool
		limit            string // it is "2" if admission has it so
	}{
		{what: "it is made", created: true},
		{what: "nothing has happened"},
		{what: "another writer has changed it", spoil: `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"another:1"}]`, applied: true},
		{what: "nothing more has happened"},
		{what: "another operator has started", restart: true, applied: true},
		{what: "the policy is gone", lift: true},
		{what: "another operator has started, without the policy", restart: true, applied: true, limit: "1"},
		{what: "nothing is to be done any more", limit: "1"},
	} {
		if step.restart {
			s.children.Sound = apply.NewSound()
		}
		if step.lift {
			server.Lift(t, s.owner.Namespace, testkit.LimitedTemplates)
		}
		now := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.owner.Namespace, Name: "child"}}
		if step.spoil != "" {
			s.must(s.Patch(s.Context(), now, client.RawPatch(types.JSONPatchType, []byte(step.spoil))))
		}
		outcome, err := s.apply(now, want)
		s.must(err)
		if outcome.Created != step.created || outcome.Applied != step.applied {
			t.Errorf("%s: created %v, applied %v", step.what, outcome.Created, outcome.Applied)
		}
		wantLimit, overruled := cmp.Or(step.limit, "2"), []string{"spec.template.spec.containers[server].resources.limits.cpu"}
		if step.limit != "" {
			overruled = nil
		}
		if !slices.Equal(outcome.Overruled, overruled) {
			t.Errorf("%s: overruled %v, want %v", step.what, outcome.Overruled, overruled)
		}
		if image := now.Spec.Template.Spec.Containers[0].Image; image != "server:1" || limit(now) != wantLimit {
			t.Errorf("%s: image %s, limit %s", step.what, image, limit(now))
		}
	}
}
