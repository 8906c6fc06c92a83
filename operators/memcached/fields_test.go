package memcached

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// TestStory: a change is reported as the difference from what the servers run.
func TestStory(t *testing.T) {
	all := func(mc *v1alpha1.Memcached) {
		exporting("e:1")(mc)
		mc.Spec.Port, mc.Spec.ExtraArgs = 11311, []string{"-vv", "-R", "40"}
		mc.Spec.Auth, mc.Spec.TLS = &v1alpha1.AuthSpec{SecretName: "a"}, &v1alpha1.TLSSpec{SecretName: "b"}
		maxItemSize("4Mi")(mc)
	}
	half := aPool(warm, version("1.6.18"), threads(2)) // of an edit that another one followed
	for name, tc := range map[string]struct {
		was  []*v1alpha1.Memcached // of the servers
		is   *v1alpha1.Memcached
		want string
	}{
		"a version, and then threads":      {[]*v1alpha1.Memcached{aPool(warm, version("1.6.18")), aPool(warm, version("1.6.18"))}, aPool(warm, threads(2)), "image from memcached:1.6.18 to memcached:1.6.38, threads from 4 to 2"},
		"one server has the first edit":    {[]*v1alpha1.Memcached{aPool(warm), half}, aPool(warm, threads(8)), "image from memcached:1.6.18 to memcached:1.6.38, threads from 4 and 2 to 8"},
		"one server has all":               {[]*v1alpha1.Memcached{aPool(warm, threads(8)), aPool(warm)}, aPool(warm, threads(8)), "threads from 4 to 8"},
		"memory that there is no room for": {[]*v1alpha1.Memcached{aPool(stable, memory("15Gi"))}, aPool(stable, memory("64Gi")), "memory from 15Gi to 64Gi"},
		"mebibytes":                        {[]*v1alpha1.Memcached{aPool(memory("1024Mi"))}, aPool(memory("100Mi")), "memory from 1Gi to 100Mi"},
		"the pod template":                 {[]*v1alpha1.Memcached{aPool()}, aPool(labelled), "the pod template"},
		"all at once": {[]*v1alpha1.Memcached{aPool()}, aPool(warm, all), "auth from none to on, extraArgs from none to -vv -R 40, identity from Random to Stable, " +
			"maxItemSize from 1Mi to 4Mi, metrics.image from none to e:1, metrics.port from none to 9150, port from 11211 to 11311, tls from none to on, upgrade from Cold to Warm"},
		"and back": {[]*v1alpha1.Memcached{aPool(warm, all)}, aPool(), "auth from on to none, extraArgs from -vv -R 40 to none, identity from Stable to Random, " +
			"maxItemSize from 4Mi to 1Mi, metrics.image from e:1 to none, metrics.port from 9150 to none, port from 11311 to 11211, tls from on to none, upgrade from Warm to Cold"},
	} {
		t.Run(name, func(t *testing.T) {
			// The workload has been written for the edit already.
			options := []seenOption{aDeployment(tc.is, 3)}
			if objects.IsStable(tc.is) {
				options[0] = aStatefulSet(tc.is)
			}
			for i, was := range tc.was {
				options = append(options, aServer(was, i))
			}
			next, err := decide(tc.is, somethingSeen(options...))
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := strings.Cut(next.Upgrade.Message, ": the servers"); got != tc.want {
				if got, _, _ = strings.Cut(next.Upgrade.Message, ": new servers"); got != tc.want {
					t.Errorf("the message is %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func labelled(mc *v1alpha1.Memcached) {
	mc.Spec.PodTemplate = &corev1.PodTemplateSpec{}
	mc.Spec.PodTemplate.Labels = map[string]string{"team": "shop"}
}

func maxItemSize(m string) mcOption {
	return func(mc *v1alpha1.Memcached) { mc.Spec.MaxItemSize = resource.MustParse(m) }
}
