//go:build apiserver

package web

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and `kubectl fairlead web` in it.
type namespace struct{ *rig.Rig }

// native is a client of Kubernetes' own kinds.
func (r namespace) native() client.Client {
	r.Helper()
	k, err := client.New(r.Server.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		r.Fatal(err)
	}
	return k
}

// create creates an object of Kubernetes' own.
func (r namespace) create(o client.Object) {
	r.Helper()
	o.SetNamespace(r.Namespace)
	if err := r.native().Create(r.Context(), o); err != nil {
		r.Fatal(err)
	}
}

// owned is metadata of an object that another one controls.
func owned(name string, by client.Object, apiVersion, kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: by.GetName(), UID: by.GetUID(), Controller: new(true),
	}}}
}

// ofRevision is a pod template as the operator makes one.
func ofRevision(name, image string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: map[string]string{}}}
	if name != "" {
		t.Annotations[revisionAnnotation] = name
	}
	t.Spec.Containers = []corev1.Container{{Name: "webserver", Image: image}}
	return t
}

func TestWeb(t *testing.T) {
	r := namespace{rig.New(t, rig.Below(Command))}
	web := &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: webv1.WebServerSpec{Image: "nginx:2"}}
	r.Stored(web, func() {
		web.Status.Revision, web.Status.LastGoodRevision = "aaa", "aaa"
		web.Status.Conditions = rig.Ready("True", "Ready", "well")
	})
	r.Wants(1, []string{"no rollout was rolled back"}, "web", "retry", "site")
	r.Wants(2, []string{"there are no two revisions to compare"}, "web", "diff", "site")
	r.Wants(1, []string{`"none" not found`}, "web", "history", "none")

	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	d := &appsv1.Deployment{ObjectMeta: owned("site", web, webv1.GroupVersion.String(), "WebServer")}
	d.Spec = appsv1.DeploymentSpec{Selector: selector, Template: ofRevision("aaa", "nginx:1")}
	r.create(d)
	for name, image := range map[string]string{"aaa": "nginx:1", "bbb": "nginx:2"} {
		set := &appsv1.ReplicaSet{ObjectMeta: owned("site-"+name, d, "apps/v1", "Deployment")}
		set.Spec = appsv1.ReplicaSetSpec{Selector: selector, Template: ofRevision(name, image)}
		r.create(set)
	}
	foreign := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	foreign.Spec = appsv1.ReplicaSetSpec{Selector: selector, Template: ofRevision("foreign", "nginx:3")}
	r.create(foreign)
	for name, image := range map[string]string{"aaa": "nginx:1", "old": "nginx:0"} {
		raw, err := json.Marshal(ofRevision("", image))
		if err != nil {
			t.Fatal(err)
		}
		kept := &appsv1.ControllerRevision{ObjectMeta: owned("kept-"+name, web, webv1.GroupVersion.String(), "WebServer"), Data: runtime.RawExtension{Raw: raw}}
		kept.Annotations = map[string]string{revisionAnnotation: name}
		r.create(kept)
	}
	web.Status.FailedRollout = &webv1.FailedRollout{Revision: "bbb", Image: "nginx:2", Reason: "ImagePullBackOff", Message: "no such image", Time: metav1.Now()}
	if err := r.Status().Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	out := r.Wants(0, []string{"REVISION ", "current, last good\n", "rolled back: ImagePullBackOff\n"}, "web", "history", "site")
	if strings.Count(out, "\n") != 4 || strings.Contains(out, "foreign") || strings.Count(out, "aaa") != 1 {
		t.Errorf("the history is\n%s", out)
	}
	r.Wants(1, []string{"--- aaa nginx:1\n+++ bbb nginx:2\n", "\n-  - image: nginx:1\n+  - image: nginx:2\n"}, "web", "diff", "site")
	r.Wants(1, []string{"--- old nginx:0\n+++ aaa nginx:1\n"}, "web", "diff", "site", "old")
	r.Wants(1, []string{"--- bbb nginx:2\n+++ old nginx:0\n"}, "web", "diff", "site", "bbb", "old")
	r.Wants(2, []string{`no revision "ccc": it has `}, "web", "diff", "site", "ccc")
	if same := r.Call("web", "diff", "site", "bbb", "bbb"); same != (rig.Called{}) {
		t.Errorf("a revision and itself: %+v", same)
	}

	// With some of the rights, the rest is shown.
	for refused, has := range map[string]string{
		"/controllerrevisions$": "aaa bbb", "/replicasets$": "aaa old", "/deployments$": "aaa old", "/(replicasets|deployments)$": "aaa old",
	} {
		server := r.Between(refused, func(http.ResponseWriter, *http.Request) bool { return false })
		got := r.Through(server, "web", "history", "site")
		var names []string
		for _, line := range strings.Split(strings.TrimSpace(got.Out), "\n")[1:] {
			names = append(names, strings.Fields(line)[0])
		}
		slices.Sort(names)
		if got.Code != 1 || strings.Join(names, " ") != has || !strings.HasPrefix(got.ErrOut, "error: revisions may be missing: you may not") {
			t.Errorf("the history without %s: %+v, want %s", refused, got, has)
		}
		names = strings.Fields(has)
		got = r.Through(server, "web", "diff", "site", names[1], names[0])
		if got.Code != 2 || !strings.Contains(got.Out, "+++ aaa nginx:1\n") || !strings.HasPrefix(got.ErrOut, "error: revisions may be missing: ") {
			t.Errorf("a comparison without %s: %+v", refused, got)
		}
	}
	none := r.Through(r.Between("/(controllerrevisions|replicasets)$", func(http.ResponseWriter, *http.Request) bool { return false }), "web", "history", "site")
	if none.Code != 1 || none.Out != "" || !strings.Contains(none.ErrOut, "you may not") {
		t.Errorf("the history without a right: %+v", none)
	}

	retry := func() string {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			t.Fatal(err)
		}
		return web.Annotations[webv1.AnnotationRetry]
	}
	r.Wants(0, []string{"site retried (dry run)"}, "web", "retry", "site", "--dry-run=client")
	r.Wants(0, []string{"site retried (server dry run)"}, "web", "retry", "site", "--dry-run=server")
	if got := retry(); got != "" {
		t.Errorf("a dry run has set the annotation: %q", got)
	}
	r.Wants(0, []string{"webserver.my.domain/site retried\n", "image nginx:2", "ImagePullBackOff: no such image"}, "web", "retry", "site")
	first := retry()
	r.Wants(0, nil, "web", "retry", "site")
	if second := retry(); first == "" || first == second {
		t.Errorf("two retries are %q and %q: the operator sees no other value", first, second)
	}
	for _, line := range []string{"site\n:4\n", "aaa\tnginx:1 current, last good\n:4\n"} {
		args := map[bool][]string{true: {"s"}, false: {"site", "a"}}[line == "site\n:4\n"]
		if got := r.Call(slices.Concat([]string{"__complete", "web", "diff"}, args)...); got.Out != line {
			t.Errorf("completion of %q: %q, want %q", args, got.Out, line)
		}
	}
}
