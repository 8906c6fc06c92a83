//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/memcached/objects"
)

// TestServiceAccountGoes: a service account that an edit sets, and another takes out, is gone from the template and the
// pods.
func TestServiceAccountGoes(t *testing.T) {
	for name, options := range map[string][]mcOption{"random": nil, "stable": {stable}} {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStage(t, behaves), context.Background()
			s.Must(s.Create(ctx, s.object(&corev1.ServiceAccount{}, "rights")))
			s.Must(s.Create(ctx, story(s.R, options...)))
			s.settled("memcached:1.6.18", 1)
			for _, step := range []struct{ edit, template, pod string }{
				{`{"spec":{"podTemplate":{"spec":{"serviceAccountName":"rights"}}}}`, "rights", "rights"},
				{`{"spec":{"podTemplate":null}}`, "", "default"},
				{`{"spec":{"podTemplate":{"spec":{"serviceAccount":"rights"}}}}`, "rights", "rights"},
				{`{"spec":{"podTemplate":null}}`, "", "default"},
			} {
				s.patch(step.edit)
				s.settled("memcached:1.6.18", 1)
				var template corev1.PodTemplateSpec
				if len(options) > 0 {
					set, err := read(ctx, s.R, "cache", &appsv1.StatefulSet{})
					s.Must(err)
					template = set.Spec.Template
				} else {
					d, err := read(ctx, s.R, "cache", &appsv1.Deployment{})
					s.Must(err)
					template = d.Spec.Template
				}
				if is := template.Spec.ServiceAccountName; is != step.template || template.Spec.DeprecatedServiceAccount != is {
					t.Errorf("%s: the template has %q and %q", step.edit, is, template.Spec.DeprecatedServiceAccount)
				}
				s.Eventually(func() error {
					pods, err := servers(ctx, s.R)
					if err == nil && (len(pods) != 1 || pods[0].Spec.ServiceAccountName != step.pod) {
						err = fmt.Errorf("%d pods with the account %s", len(pods), pods[0].Spec.ServiceAccountName)
					}
					if err != nil {
						return err
					}
					if token := pods[0].Spec.AutomountServiceAccountToken; step.template != "" && token != nil && !*token {
						t.Errorf("%s: the pod has no token, volumes %v", step.edit, podtemplate.Container(&pods[0].Spec, objects.ServerContainer).VolumeMounts)
					}
					return nil
				})
			}
		})
	}
}
