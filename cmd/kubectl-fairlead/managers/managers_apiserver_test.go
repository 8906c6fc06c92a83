//go:build apiserver

package managers

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/cmd/kubectl-fairlead/rig"
	"example.com/fairlead/internal/kit/run"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and the commands about managers.
type namespace struct{ *rig.Rig }

func newRig(t *testing.T) namespace {
	return namespace{rig.New(t, rig.Below(VersionCommand, CheckCommand))}
}

// manager is one that is available, of which a pod leads.
func (r namespace) manager(word string, replicas int32) (*appsv1.Deployment, *coordinationv1.Lease) {
	r.Helper()
	selected := map[string]string{"control-plane": "controller-manager"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected}}
	template.Spec.ServiceAccountName = "manager"
	template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "fairlead:dev", Args: []string{"--zap-devel", word}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: word + "-manager"}}
	d.Spec = appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template}
	r.Stored(d, func() {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1}
	})
	r.Cleanup(func() { _ = r.Delete(context.Background(), d) })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-of-" + word, Labels: selected}, Spec: template.Spec}
	pod.Spec.ServiceAccountName = ""
	r.Stored(pod, func() {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", ImageID: "sha256:1"}}
	})
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: run.LockName(word), Labels: run.BuildLabels()}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("pod-of-" + word + "_x"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: time.Now()}}
	if err := r.Create(r.Context(), lease); err != nil {
		r.Fatal(err)
	}
	return d, lease
}

// has is a call that must end with this code, and say this, whatever the blanks.
func (r namespace) has(got rig.Called, code int, words ...string) {
	r.Helper()
	flat := strings.Join(strings.Fields(got.Out+got.ErrOut), " ")
	for _, word := range words {
		if !strings.Contains(flat, word) {
			r.Errorf("no %q in:\n%s%s", word, got.Out, got.ErrOut)
		}
	}
	if got.Code != code {
		r.Errorf("exit code %d, want %d:\n%s%s", got.Code, code, got.Out, got.ErrOut)
	}
}

func nothing(http.ResponseWriter, *http.Request) bool { return false }

func TestVersion(t *testing.T) {
	r := newRig(t)
	run.Version, run.Commit = "1.2.3", "abc"
	t.Cleanup(func() { run.Version, run.Commit = "dev", "" })
	r.has(r.Call("version", "--client"), 0, "Plugin: 1.2.3, commit abc")
	r.has(r.Call("version"), 1, "Plugin: 1.2.3", "Kubernetes: v1.", "error: no manager was found")
	_, lease := r.manager("at", 1)
	at := r.Namespace + " at-manager at fairlead:dev "
	r.has(r.Call("version"), 0, "NAMESPACE MANAGER RUNS IMAGE VERSION COMMIT FITS MESSAGE", at+"1.2.3 abc yes")
	var said versions
	got := r.Call("version", "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &said); err != nil || said.Plugin.Commit != "abc" || len(said.Managers) != 1 || said.Managers[0].Version != "1.2.3" {
		t.Errorf("version -o json: %v, %+v", err, got)
	}
	r.has(r.Call("version", "-o", "yaml"), 0, "fits: \"yes\"")
	r.has(r.Call("version", "-o", "wide"), 1, "must be json or yaml")

	r.has(r.Through(r.Between("^/apis/apps/v1/deployments$", nothing), "version"), 0, at+"1.2.3 abc yes")
	r.has(r.Through(r.Between("/deployments$", nothing), "version"), 1, "Plugin: 1.2.3", "error: you may not")
	r.has(r.Through(r.Between("/leases/", nothing), "version"), 1, at+"unknown you may not")

	for version, want := range map[string]string{"1.2.9": "abc yes", "1.3.0": "abc no the plugin is of 1.2: install the one of 1.3", "": "unknown its leader does not say its version"} {
		lease.Labels[run.VersionLabel] = version
		if version == "" {
			lease.Labels = nil
		}
		if err := r.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		r.has(r.Call("version"), map[bool]int{true: 2}[version == "1.3.0"]+map[bool]int{true: 1}[version == ""], strings.TrimSpace(version+" "+want))
		if version == "" {
			lease.Labels = run.BuildLabels()
		}
	}
}

func TestCheck(t *testing.T) {
	r := newRig(t)
	r.has(r.Call("check"), 2, "CHECK RESULT MESSAGE", "kind ats.at.example.com problem no manager runs the operator at: nothing happens to its objects")
	d, lease := r.manager("all", 1)
	name := r.Namespace + "/all-manager "
	r.has(r.Call("check"), 2, "kind ats.at.example.com ok version v1alpha1", "manager "+name+"ok 1 of 1 pods are available, 1 of them of this revision",
		"image "+name+"problem AT_START_IMAGE is not set", "leader "+name+"ok pod-of-all, renewed ",
		"permissions "+name+"problem system:serviceaccount:"+r.Namespace+":manager may not: list etcdclusters, watch etcdclusters, update/status etcdclusters, ")
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "AT_START_IMAGE", Value: "fairlead:dev"}, {Name: "ETCD_AGENT_IMAGE", Value: "fairlead:dev"}, {Name: "WATCH_NAMESPACE", Value: "a"}}
	if err := r.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	lease.Spec.RenewTime.Time = time.Now().Add(-time.Minute)
	if err := r.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	allowed := func(w http.ResponseWriter, q *http.Request) bool {
		isIt := strings.HasSuffix(q.URL.Path, "/subjectaccessreviews")
		if isIt {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": true}}`))
		}
		return isIt
	}
	r.has(r.Call("check"), 2, "watch ats a")
	r.has(r.Through(r.Between("", allowed), "check"), 2, "manager "+name+"problem 1 of 1 pods", // of an earlier generation
		"image "+name+"ok fairlead:dev", "permissions "+name+"ok ", "leader "+name+"problem pod-of-all has not renewed its Lease for 1m")

	d.Status.ObservedGeneration = d.Generation
	if err := r.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	lease.Spec.RenewTime.Time = time.Now()
	if err := r.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	r.has(r.Through(r.Between("", allowed), "check"), 0, "leader "+name+"ok ")
	r.has(r.Through(r.Between("/leases/", allowed), "check"), 1, "leader "+name+"unknown you may not")
	r.has(r.Through(r.Between("/subjectaccessreviews$", nothing), "check"), 1, "permissions "+name+"unknown you may not")
	r.has(r.Through(r.Between("/deployments$", nothing), "check"), 1, "managers unknown you may not", "kind ats.at.example.com unknown whether a manager runs")
	absent := func(w http.ResponseWriter, q *http.Request) bool {
		if strings.HasSuffix(q.URL.Path, "/my.domain/v1") {
			http.NotFound(w, q)
			return true
		}
		return allowed(w, q)
	}
	r.has(r.Through(r.Between("", absent), "check"), 0, "kind webservers.my.domain ok not installed")
	r.manager("webserver", 1)
	r.has(r.Through(r.Between("", absent), "check"), 2, "kind ats.at.example.com ok",
		"kind webservers.my.domain problem version v1 is not served: install the CRD, for which the manager webserver-manager waits")
	r.has(r.Through([]string{"--server=http://127.0.0.1:1"}, "check"), 1, "connection refused")

	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: d.Spec.Selector.MatchLabels}}
	other.Spec.Containers = []corev1.Container{{Name: "manager", Image: "fairlead:dev"}}
	r.Stored(other, func() {
		other.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", ImageID: "sha256:2"}}
	})
	r.has(r.Call("check"), 2, "image "+name+"problem the pods run 2 builds of fairlead:dev")
}
