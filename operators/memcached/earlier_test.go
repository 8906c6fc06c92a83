package memcached

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

func withUsers(mc *v1alpha1.Memcached) {
	mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "s", Key: "users"}
}

func withCertificate(mc *v1alpha1.Memcached) { mc.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "c"} }

// rendered is the template as a version of the operator made it.
func rendered(t *testing.T, mc *v1alpha1.Memcached, r objects.Rendering) objects.PodTemplate {
	t.Helper()
	template, err := objects.TemplateWith(mc, r)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// TestPodsOf002: the hashes are what 0.0.2 wrote to its pods. Another one would
// replace them.
func TestPodsOf002(t *testing.T) {
	for name, tc := range map[string]struct {
		options           []mcOption
		revision, replace string
	}{
		"random":                    {nil, "53df818d82", "6ea1957438"},
		"random with TLS":           {[]mcOption{withCertificate}, "1db80bc79c", "55bfb883b5"},
		"stable":                    {[]mcOption{stable}, "22853ad767", "e78a00dab1"},
		"stable with users and TLS": {[]mcOption{stable, withUsers, withCertificate}, "b2e8bb3a99", "1231e6457b"},
		"stable with metrics":       {[]mcOption{stable, exporting("e:1")}, "1662caa962", "c2730e79dc"},
		"warm":                      {[]mcOption{warm}, "e04cbdcc29", "487d21697e"},
		"warm with users":           {[]mcOption{warm, withUsers}, "b0dd2e33a4", "2487d21788"},
		"warm with both":            {[]mcOption{warm, withUsers, withCertificate}, "2b9f8c6a7d", "97656e2f22"},
	} {
		got := rendered(t, aPool(tc.options...), objects.Renderings[1])
		if replace := got.Annotations[objects.ReplaceAnnotation]; got.Revision != tc.revision || replace != tc.replace {
			t.Errorf("%s: revision %s, replaced for %s; want %s, %s", name, got.Revision, replace, tc.revision, tc.replace)
		}
	}
}

// TestPoolsAreRenderedAsTheyWere: an upgrade of the operator replaces no pod,
// and makes no warm change cold. A change that replaces them anyway takes up the
// present rendering.
func TestPoolsAreRenderedAsTheyWere(t *testing.T) {
	of002 := rendered(t, aPool(warm), objects.Renderings[1])
	workload := aStatefulSet(aPool(warm), func(s *appsv1.StatefulSet) {
		s.Annotations, s.Spec.Template.Annotations = objects.WorkloadAnnotations(aPool(warm), of002), of002.Annotations
	})
	ofNow := aStatefulSet(aPool(warm, memory("128Mi")))
	pod := aServer(aPool(warm), 0, func(pod *corev1.Pod) { pod.Annotations = of002.Annotations })
	for name, tc := range map[string]struct {
		mc      *v1alpha1.Memcached
		seen    pool.Observation
		isOf002 bool
	}{
		"a new pool":              {aPool(warm), somethingSeen(), false},
		"nothing changes":         {aPool(warm), somethingSeen(workload, pod), true},
		"a warm change":           {aPool(warm, version("1.6.45")), somethingSeen(workload, pod), true},
		"a cold change":           {aPool(warm, memory("128Mi")), somethingSeen(workload, pod), false},
		"a cold change goes on":   {aPool(warm, memory("128Mi")), somethingSeen(ofNow, pod), false},
		"a cold change undone":    {aPool(warm), somethingSeen(ofNow, pod), true},
		"undone, with none there": {aPool(warm), somethingSeen(ofNow), false},
		"another identity":        {aPool(), somethingSeen(workload, pod), false},
	} {
		got, err := pool.NextTemplate(tc.mc, tc.seen)
		if err != nil {
			t.Fatal(err)
		}
		if isOf002 := got.Server().TerminationMessagePolicy == ""; isOf002 != tc.isOf002 {
			t.Errorf("%s: rendered as by 0.0.2: %v, want %v", name, isOf002, tc.isOf002)
		}
	}
}

// TestLastWordsAreKept: the kubelet keeps what a container said last, unless the template
// says otherwise, and where a script queries memcached it starts no process that nobody
// waits for.
func TestLastWordsAreKept(t *testing.T) {
	mc := aPool(stable, exporting("e:1"), withUsers, func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "log", TerminationMessagePolicy: corev1.TerminationMessageReadFile},
		}}}
	})
	template := mustTemplate(mc)
	for _, c := range template.Spec.Containers {
		want := corev1.TerminationMessageFallbackToLogsOnError
		if c.Name == "log" {
			want = corev1.TerminationMessageReadFile
		}
		if c.TerminationMessagePolicy != want {
			t.Errorf("container %s has terminationMessagePolicy %q, want %q", c.Name, c.TerminationMessagePolicy, want)
		}
	}
	if script := strings.Join(template.Server().Command, " "); strings.Contains(script, "timeout") || !strings.Contains(script, "try \"cache_memlimit") {
		t.Errorf("script %s", script)
	}
}

// TestAskedEverMoreSlowly runs the script's part that speaks to memcached, which refuses:
// it logs in as the first user, whatever is in the password, and tries less and less
// often.
func TestAskedEverMoreSlowly(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("users", "me:p:a%s:\nyou:x\n", 0o600)
	write("nc", "#!/bin/sh\ncat >>"+dir+"/asked\necho ERROR\n", 0o700)
	script := strings.ReplaceAll(objects.StartScript(aPool(stable, withUsers), objects.Renderings[0]), "$$$$", "$$")
	_, script, _ = strings.Cut(script, "ask() {")
	script, _, _ = strings.Cut(script, "(while sleep")
	script = strings.ReplaceAll("ask() {"+script, "/etc/memcached/auth", dir)
	command := exec.Command("/bin/sh", "-c", script+"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do try 'cache_memlimit 128'; done; echo $pause")
	command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := command.CombinedOutput()
	if err != nil || string(out) != "32\n" {
		t.Errorf("%q, %v", out, err)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	const once = "set login 0 0 9\r\nme p:a%s:\r\ncache_memlimit 128\r\nquit\r\n"
	if want := strings.Repeat(once, 5); err != nil || string(asked) != want { // the 1st, 3rd, 6th, 11th and 20th time
		t.Errorf("memcached got %q, %v", asked, err)
	}
}
