//go:build apiserver

package object

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// site is a WebServer with a Deployment, a ReplicaSet and a pod, a pod that is another's, and a manager.
func site(r *rig.Rig) {
	r.Helper()
	create := func(o client.Object, owner client.Object, kind schema.GroupVersionKind) {
		r.Helper()
		o.SetNamespace(r.Namespace)
		if owner != nil {
			o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)})
		}
		if err := r.Create(r.Context(), o); err != nil {
			r.Fatal(err)
		}
	}
	template := func(labels map[string]string, container string, args ...string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "x", Args: args}}}}
	}
	apps := appsv1.SchemeGroupVersion
	web := &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: webv1.WebServerSpec{Image: "nginx:2"}}
	create(web, nil, schema.GroupVersionKind{})
	labels := map[string]string{"app": "site"}
	selector, of := &metav1.LabelSelector{MatchLabels: labels}, template(labels, "webserver")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: of}}
	create(d, web, webv1.GroupVersion.WithKind("WebServer"))
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "site-1"}, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: of}}
	create(set, d, apps.WithKind("Deployment"))
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "site-1-a", Labels: labels}, Spec: of.Spec}, set, apps.WithKind("ReplicaSet"))
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: labels}, Spec: of.Spec}, nil, schema.GroupVersionKind{})
	create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "site-files"}}, web, webv1.GroupVersion.WithKind("WebServer"))

	labels = map[string]string{"control-plane": "controller-manager"}
	manager := template(labels, "manager", "webserver")
	create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: manager}}, nil, schema.GroupVersionKind{})
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "manager-a", Labels: labels}, Spec: manager.Spec}, nil, schema.GroupVersionKind{})
}

// logging answers for the kubelet.
func logging(namespace string) func(w http.ResponseWriter, q *http.Request) bool {
	return func(w http.ResponseWriter, q *http.Request) bool {
		switch {
		case strings.HasSuffix(q.URL.Path, "/pods/manager-a/log"):
			for _, name := range []string{"site", "other"} {
				_, _ = fmt.Fprintf(w, `{"msg":"rolled out","controllerKind":"WebServer","namespace":%q,"name":%q}`+"\n", namespace, name)
			}
		case strings.HasSuffix(q.URL.Path, "/log"):
			_, _ = fmt.Fprintf(w, "tail %s, previous %s\nthe last line", q.URL.Query().Get("tailLines"), q.URL.Query().Get("previous"))
		default:
			return false
		}
		return true
	}
}

func TestLogs(t *testing.T) {
	r := rig.New(t, rig.Below(LogsCommand))
	site(r)
	answering := r.Between("", logging(r.Namespace))
	about := fmt.Sprintf(`[manager-a/manager] {"msg":"rolled out","controllerKind":"WebServer","namespace":%q,"name":"site"}`+"\n", r.Namespace)
	got := r.Through(answering, "logs", "webserver", "site", "--tail=7")
	if want := "[site-1-a/webserver] tail 7, previous \n[site-1-a/webserver] the last line\n" + about; got != (rig.Called{Out: want}) {
		t.Errorf("%+v, want %q", got, want)
	}
	got = r.Through(answering, "logs", "webserver/site", "-f", "-p")
	if got.Code != 0 || !strings.Contains(got.Out, "tail , previous true\n") || !strings.Contains(got.Out, about) || strings.Contains(got.Out, "foreign") {
		t.Errorf("%+v", got)
	}
	got = r.Through(r.Between("/pods/manager-a/log$|/secrets$", logging(r.Namespace)), "logs", "webserver", "site")
	if got.Code != 1 || got.ErrOut != "error: pod manager-a, container manager: you may not\n" || !strings.Contains(got.Out, "the last line") {
		t.Errorf("without a permission: %+v", got)
	}
	if got := r.Call("logs", "webserver", "none"); got.Code != 1 || !strings.Contains(got.ErrOut, `"none" not found`) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestTree(t *testing.T) {
	r := rig.New(t, rig.Below(TreeCommand))
	site(r)
	names := func(out string) string {
		var all []string
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			all = append(all, strings.TrimRight(line[:strings.LastIndex(line, " ")], " "))
		}
		return strings.Join(all, "\n")
	}
	got := r.Call("tree", "webserver", "site")
	want := "NAME\nwebserver/site\n  deployment/site\n    replicaset/site-1\n      pod/site-1-a\n  configmap/site-files"
	if got.Code != 0 || names(got.Out) != want {
		t.Errorf("%+v, want\n%s", got, want)
	}
	got = r.Through(r.Between("/configmaps$", func(http.ResponseWriter, *http.Request) bool { return false }), "tree", "webserver/site")
	if got.Code != 1 || names(got.Out) != strings.TrimSuffix(want, "\n  configmap/site-files") || !strings.Contains(got.ErrOut, "you may not") {
		t.Errorf("without a permission: %+v", got)
	}
	if got := r.Call("__complete", "tree", "webserver", "s"); got.Out != "site\n:4\n" {
		t.Errorf("completion: %+v", got)
	}
}
