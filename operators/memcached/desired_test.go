package memcached

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/memcached/objects"
)

func TestArguments(t *testing.T) {
	const basic = "-m 64 -I 1048576 -c 1024 -t 4 -p 11211"
	for name, tc := range map[string]struct {
		mc   *v1alpha1.Memcached
		want string
	}{
		"the tutorial's": {aPool(), basic},
		"more":           {aPool(memory("4Gi"), func(mc *v1alpha1.Memcached) { mc.Spec.ExtraArgs = []string{"-v"} }), "-m 4096 -I 1048576 -c 1024 -t 4 -p 11211 -v"},
		"warm":           {aPool(warm), "-m 64 -I 1048576 -c $(MAX_CONNECTIONS) -t $(THREADS) -p 11211 -e /cache/memory"},
		"stable":         {aPool(stable), "-m $(MEMORY) -I 1048576 -c 1024 -t 4 -p 11211"},
		"users":          {aPool(func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "s"} }), basic + " -Y /etc/memcached/auth/users"},
		"a certificate": {aPool(func(mc *v1alpha1.Memcached) { mc.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "s"} }),
			basic + " -Z -o ssl_chain_cert=/etc/memcached/tls/tls.crt,ssl_key=/etc/memcached/tls/tls.key -l *,notls:127.0.0.1:11210"},
	} {
		if diff := cmp.Diff(tc.want, strings.Join(objects.Arguments(tc.mc, objects.Renderings[0]), " ")); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", name, diff)
		}
	}
}

func TestExportersAreScraped(t *testing.T) {
	if err := testkit.CheckPodMonitor("config/prometheus/podmonitor.yaml", mustTemplate(aPool(exporting("e:1"))).PodTemplateSpec); err != nil {
		t.Error(err)
	}
}

func TestPodsAreUnprivileged(t *testing.T) {
	for _, mc := range []*v1alpha1.Memcached{aPool(), aPool(warm, exporting("e:1"))} {
		spec := mustTemplate(mc).Spec
		if s := spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 11211 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("pod security context %+v", s)
		}
		for _, c := range spec.Containers {
			if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("security context of %s %+v", c.Name, s)
			}
		}
	}
	usersOwn := mustTemplate(aPool(func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(0))}}}
	})).Spec
	if diff := cmp.Diff(&corev1.PodSecurityContext{RunAsUser: new(int64(0))}, usersOwn.SecurityContext); diff != "" {
		t.Errorf("the template's own security context (-want +got):\n%s", diff)
	}
}

// TestMemoryFollows: the container has room for the cache and a quarter more,
// and the memory file fits into its volume.
func TestMemoryFollows(t *testing.T) {
	for cache, limit := range map[string]string{"64Mi": "144Mi", "8Mi": "74Mi", "1Gi": "1344Mi"} {
		spec := mustTemplate(aPool(warm, memory(cache))).Spec
		server := podtemplate.Container(&spec, objects.ServerContainer)
		if got := server.Resources.Limits.Memory().String(); got != limit {
			t.Errorf("a cache of %s: limit %s, want %s", cache, got, limit)
		}
		volume := spec.Volumes[0].EmptyDir
		if m := aPool(memory(cache)).Spec.Memory; volume.Medium != corev1.StorageMediumMemory || volume.SizeLimit.Cmp(m) <= 0 || volume.SizeLimit.Cmp(*server.Resources.Limits.Memory()) >= 0 {
			t.Errorf("a cache of %s: volume of %s", cache, volume.SizeLimit)
		}
	}
}

func TestTheTemplateIsMerged(t *testing.T) {
	probe := &corev1.Probe{PeriodSeconds: 9}
	spec := mustTemplate(aPool(warm, func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "log", Image: "busybox"},
			{Name: objects.ServerContainer, Image: "ignored", ReadinessProbe: probe, Env: []corev1.EnvVar{{Name: "A", Value: "theirs"}, {Name: "THREADS", Value: "theirs"}}},
		}}}
	})).Spec
	server := spec.Containers[1]
	var env []string
	for _, v := range server.Env {
		env = append(env, v.Name+v.Value)
	}
	if diff := cmp.Diff([]string{"Atheirs", "THREADS", "MAX_CONNECTIONS", "SETTINGS"}, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if len(spec.Containers) != 2 || server.Image != "memcached:1.6.38" || server.ReadinessProbe.PeriodSeconds != 9 {
		t.Errorf("containers %+v", spec.Containers)
	}
}

// TestScripts: without need there is no shell, and Kubernetes leaves the
// shell's process number alone.
func TestScripts(t *testing.T) {
	if script := objects.StartScript(aPool(), objects.Renderings[0]); script != "" {
		t.Errorf("a plain server is started with %q", script)
	}
	tls := func(mc *v1alpha1.Memcached) { mc.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "s"} }
	for name, script := range map[string]string{"warm": objects.StartScript(aPool(warm), objects.Renderings[0]), "tls": objects.StartScript(aPool(tls), objects.Renderings[0]), "both": objects.StartScript(aPool(warm, tls), objects.Renderings[0])} {
		if strings.Contains(strings.ReplaceAll(script, "$$$$", ""), "$$") || strings.Contains(script, "$$$$") != (name != "tls") || !strings.HasSuffix(script, "exec memcached \"$@\"\n") {
			t.Errorf("%s: %s", name, script)
		}
	}
}

// TestTheSameSpecTheSameRevision: a revision is a pure function of what the
// pods are made of.
func TestTheSameSpecTheSameRevision(t *testing.T) {
	first := mustTemplate(aPool(warm))
	if scaled := mustTemplate(aPool(warm, size(9))); scaled.Revision != first.Revision {
		t.Error("a change of the size is a new revision")
	}
	for name, tc := range map[string]struct {
		mc      *v1alpha1.Memcached
		replace bool
	}{
		"version": {aPool(warm, version("1.6.18")), false},
		"threads": {aPool(warm, threads(8)), false},
		"memory":  {aPool(warm, memory("128Mi")), true},
	} {
		changed := mustTemplate(tc.mc)
		if changed.Revision == first.Revision {
			t.Errorf("%s: no new revision", name)
		}
		if replace := changed.Annotations[objects.ReplaceAnnotation] != first.Annotations[objects.ReplaceAnnotation]; replace != tc.replace {
			t.Errorf("%s: pods are replaced: %v", name, replace)
		}
	}
}

func TestNames(t *testing.T) {
	long := "a-name-that-is-much-longer-than-what-a-label-or-a-service-may-have-as-a-name"
	for name, want := range map[string]string{
		"example-memcached": "example-memcached",
		"www.example":       "m-www-example-" + names.Hash("www.example"),
		"1st":               "m-1st-" + names.Hash("1st"),
		long:                long[:36] + "-" + names.Hash(long),
	} {
		got := objects.PoolName(aPool(func(mc *v1alpha1.Memcached) { mc.Name = name }))
		if got != want || len(got) > objects.MaxPoolName || len(validation.IsDNS1035Label(got)) > 0 {
			t.Errorf("poolName(%q) = %q (%d bytes), want %q", name, got, len(got), want)
		}
	}
}

// TestDrains: one server may go, and any that is not ready.
func TestDrains(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{}
	decodeInto(t, objects.DisruptionBudget(aPool(), 1), budget)
	if budget.Spec.MaxUnavailable.IntValue() != 1 || *budget.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("PodDisruptionBudget %+v", budget.Spec)
	}
}
