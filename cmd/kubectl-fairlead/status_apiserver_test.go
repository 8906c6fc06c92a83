//go:build apiserver

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
)

// ready is the condition, as an operator would write it of an object's first generation.
func ready(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}
}

// stored creates an object, and has its status written as an operator would.
func (r *rig) stored(o client.Object, status func()) {
	r.Helper()
	o.SetNamespace(r.namespace)
	if err := r.Create(r.Context(), o); err != nil {
		r.Fatal(err)
	}
	status()
	if err := r.Status().Update(r.Context(), o); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) status(args ...string) called {
	r.Helper()
	return callAt(r.T, time.Now, "", slices.Concat([]string{"kubectl-fairlead", "status"}, r.there(), args)...)
}

func TestStatus(t *testing.T) {
	r := newRig(t)
	if got := r.status(); got != (called{0, "There is nothing of Fairlead's here.\n", ""}) {
		t.Errorf("status of nothing: %+v", got)
	}
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	at.Spec.Schedule, at.Spec.Command = "2040-01-02T08:00:00Z", new("date")
	r.stored(at, func() {
		at.Status.Phase, at.Status.Conditions = atv1alpha1.Pending, ready("True", "Scheduled", "It waits")
	})
	if got := r.status(); got.code != 0 || strings.Join(strings.Fields(got.out)[:6], " ") != "OBJECT STATE SINCE WHY at/hello Scheduled" {
		t.Errorf("status of what is well: %+v", got)
	}

	web := &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: webv1.WebServerSpec{Image: "nginx:2"}}
	r.stored(web, func() {
		web.Status.Image, web.Status.DesiredReplicas, web.Status.ReadyReplicas = "nginx:1", 2, 2
		web.Status.FailedRollout = &webv1.FailedRollout{
			Revision: "x", Image: "nginx:2", Reason: "ImagePullBackOff", Message: "no such image", Time: metav1.Now(),
		}
		web.Status.Conditions = ready("False", "RolledBack", "Rolled back to nginx:1")
	})
	etcd := &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: etcdv1beta2.EtcdClusterSpec{Size: 3}}
	r.stored(etcd, func() {
		etcd.Status.ReadyMembers, etcd.Status.Leader = 2, "db-0"
		etcd.Status.CurrentVersion, etcd.Status.TargetVersion = "3.6.15", "3.6.16"
		etcd.Status.MemberList = []etcdv1beta2.MemberStatus{
			{Name: "db-0", Ready: true},
			{Name: "db-1", Learner: true, Alarms: []string{"NOSPACE"}, Problem: "its pod is pending"},
		}
		etcd.Status.Conditions = ready("True", "Healthy", "well")
		etcd.Status.Conditions[0].ObservedGeneration = 0 // of an earlier generation
	})
	r.stored(&cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}, func() {})

	got := r.status()
	var rows []string
	for _, line := range strings.Split(got.out, "\n") {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{
		"OBJECT STATE SINCE WHY",
		"etcdcluster/db NotSeen * its operator has not seen the last change: is it running?",
		"memcached/cache NotSeen * its operator has not seen it: is it running?",
		"webserver/site RolledBack * Rolled back to nginx:1",
		"at/hello Scheduled *",
	} {
		before, after, _ := strings.Cut(want, "*")
		if i >= len(rows) || !strings.HasPrefix(rows[i], before) || !strings.HasSuffix(rows[i], after) {
			t.Errorf("line %d of status: want %q:\n%s", i, want, got.out)
		}
	}
	if got.code != 2 {
		t.Errorf("exit code %d", got.code)
	}
	r.detail("webserver/site", 2, "not well: RolledBack", "from nginx:2, ", "ImagePullBackOff: no such image", "wanted ", "nginx:2\n")
	r.detail("etcd/db", 2, "2 ready of 3", "3.6.15, on the way to 3.6.16", "db-0\n", "not ready, learner, alarms NOSPACE, its pod is pending\n")
	r.detail("ats/hello", 0, "well: Scheduled", "2040-01-02T08:00:00Z, in ")
	r.detail("memcached/none", 1)
	r.detail("pods/none", 1)
	r.detail("memcached", 1)

	for begun, want := range map[string]string{"w": "webserver/\n:6\n", "webserver/": "webserver/site\n:4\n", "etcd/d": "etcd/db\n:4\n"} {
		args := slices.Concat([]string{"kubectl-fairlead", "__complete", "status"}, r.there(), []string{begun})
		if got := callAt(t, time.Now, "", args...); got.out != want {
			t.Errorf("completion of %q: %q, want %q", begun, got.out, want)
		}
	}
}

// detail is the status of one object, which must have these words.
func (r *rig) detail(name string, code int, words ...string) {
	r.Helper()
	got := r.status(name)
	for _, want := range words {
		if !strings.Contains(got.out, want) {
			r.Errorf("status %s lacks %q:\n%s", name, want, got.out)
		}
	}
	if got.code != code {
		r.Errorf("status %s: exit code %d, want %d: %s", name, got.code, code, got.errOut)
	}
}
