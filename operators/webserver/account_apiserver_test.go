//go:build apiserver

package webserver

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/testkit/pace"
)

// TestServiceAccountGoes: a service account that an edit sets, and another takes out, is gone from the template, and so is one
// that is rolled back because it does not exist.
func TestServiceAccountGoes(t *testing.T) {
	t.Parallel()
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "rights"}}))
	ws := story(s.R)
	ws.Spec.Rollout.DeadlineSeconds = int32(pace.Seconds(5))
	s.Must(s.Create(ctx, ws))
	s.settled(reasonReady, "nginx:1")
	for _, step := range []struct{ edit, reason, want string }{
		{`{"spec":{"podTemplate":{"spec":{"serviceAccountName":"rights"}}}}`, reasonReady, "rights"},
		{`{"spec":{"podTemplate":null}}`, reasonReady, ""},
		{`{"spec":{"podTemplate":{"spec":{"serviceAccount":"rights"}}}}`, reasonReady, "rights"},
		{`{"spec":{"podTemplate":{"spec":{"serviceAccount":null}}}}`, reasonReady, ""},
		{`{"spec":{"podTemplate":{"spec":{"serviceAccountName":"nobody"}}}}`, reasonRolledBack, ""},
		{`{"spec":{"podTemplate":null}}`, reasonReady, ""},
	} {
		s.patch(step.edit)
		s.settled(step.reason, "nginx:1")
		d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		s.Must(err)
		pod := d.Spec.Template.Spec
		if pod.ServiceAccountName != step.want || pod.DeprecatedServiceAccount != step.want {
			t.Errorf("%s: the template has %q and %q, want %q", step.edit, pod.ServiceAccountName, pod.DeprecatedServiceAccount, step.want)
		}
		if token := pod.AutomountServiceAccountToken; step.want != "" && token != nil && !*token {
			t.Errorf("%s: the pods have no token of the account that is named", step.edit)
		}
	}
}
