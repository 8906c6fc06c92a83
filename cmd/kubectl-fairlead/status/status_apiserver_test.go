//go:build apiserver

package status

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and `kubectl fairlead status` in it.
type namespace struct{ *rig.Rig }

func newRig(t *testing.T) namespace { return namespace{rig.New(t, rig.Below(Command))} }

func (r namespace) status(args ...string) rig.Called {
	r.Helper()
	return r.Call(append([]string{"status"}, args...)...)
}

func TestStatus(t *testing.T) {
	r := newRig(t)
	if got := r.status(); got != (rig.Called{Out: "There is nothing of Fairlead's here.\n"}) {
		t.Errorf("status of nothing: %+v", got)
	}
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "hello", Labels: map[string]string{"team": "books"}}}
	at.Spec.Schedule, at.Spec.Command = "2040-01-02T08:00:00Z", new("date")
	r.Stored(at, func() {
		at.Status.Phase, at.Status.Conditions = atv1alpha1.Pending, rig.Ready("True", "Scheduled", "It waits")
	})
	if got := r.status(); got.Code != 0 || strings.Join(strings.Fields(got.Out)[:6], " ") != "NAME STATUS FOR MESSAGE at/hello Scheduled" {
		t.Errorf("status of what is well: %+v", got)
	}

	web := &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: webv1.WebServerSpec{Image: "nginx:2"}}
	r.Stored(web, func() {
		web.Status.Image, web.Status.DesiredReplicas, web.Status.ReadyReplicas = "nginx:1", 2, 2
		web.Status.FailedRollout = &webv1.FailedRollout{
			Revision: "x", Image: "nginx:2", Reason: "ImagePullBackOff", Message: "no such image", Time: metav1.Now(),
		}
		web.Status.Conditions = rig.Ready("False", "RolledBack", "Rolled back to nginx:1")
	})
	etcd := &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: etcdv1beta2.EtcdClusterSpec{Size: 3}}
	r.Stored(etcd, func() {
		etcd.Status.ReadyMembers, etcd.Status.Leader = 2, "db-0"
		etcd.Status.CurrentVersion, etcd.Status.TargetVersion = "3.6.15", "3.6.16"
		etcd.Status.MemberList = []etcdv1beta2.MemberStatus{
			{Name: "db-0", Ready: true},
			{Name: "db-1", Learner: true, Alarms: []string{"NOSPACE"}, Problem: "its pod is pending"},
		}
		etcd.Status.Conditions = rig.Ready("True", "Healthy", "well")
		etcd.Status.Conditions[0].ObservedGeneration = 0 // of an earlier generation
	})
	r.Stored(&cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}, func() {})

	got := r.status()
	var rows []string
	for _, line := range strings.Split(got.Out, "\n") {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for i, want := range []string{
		"NAME STATUS FOR MESSAGE",
		"etcdcluster/db NotSeen * its operator has not seen the last change: is it running?",
		"memcached/cache NotSeen * its operator has not seen it: is it running?",
		"webserver/site RolledBack * Rolled back to nginx:1",
		"at/hello Scheduled *",
	} {
		before, after, _ := strings.Cut(want, "*")
		if i >= len(rows) || !strings.HasPrefix(rows[i], before) || !strings.HasSuffix(rows[i], after) {
			t.Errorf("line %d of status: want %q:\n%s", i, want, got.Out)
		}
	}
	if got.Code != 2 {
		t.Errorf("exit code %d", got.Code)
	}
	r.detail("webserver/site", 2, "not well: RolledBack", "from nginx:2, ", "ImagePullBackOff: no such image", "wanted ", "nginx:2\n")
	r.detail("etcd/db", 2, "2 ready of 3", "3.6.15, on the way to 3.6.16", "db-0\n", "not ready, learner, alarms NOSPACE, its pod is pending\n")
	r.detail("ats/hello", 0, "well: Scheduled", "2040-01-02T08:00:00Z, in ")
	r.detail("memcached/none", 1)
	r.detail("pods/none", 1)
	r.detail("memcached", 2, "NAME ", "memcached/cache ")
	r.detail("pods", 1)
	r.detail("etcd/db -A", 1)
	r.detail("etcd db -l a=b", 1)
	r.detail("-l a=(", 1)
	r.detail("webserver site", 2, "not well: RolledBack")
	r.detail("ats -o wide", 0, "at/hello ", "It waits")
	if got := r.status("-l", "team=books"); got.Code != 0 || !strings.Contains(got.Out, "at/hello ") || strings.Contains(got.Out, "webserver") {
		t.Errorf("status of what has a label: %+v", got)
	}

	for begun, want := range map[string]string{"w": "webserver/\n:6\n", "webserver/": "webserver/site\n:4\n", "etcd/d": "etcd/db\n:4\n", "etcd d": "db\n:4\n"} {
		if got := r.Call(append([]string{"__complete", "status"}, strings.Fields(begun)...)...); got.Out != want {
			t.Errorf("completion of %q: %q, want %q", begun, got.Out, want)
		}
	}
}

// TestStatusOfSomeKinds: what may not be listed, or is not there, keeps nothing else from being shown.
func TestStatusOfSomeKinds(t *testing.T) {
	r := newRig(t)
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	at.Spec.Schedule, at.Spec.Command = "2040-01-02T08:00:00Z", new("date")
	r.Stored(at, func() {
		at.Status.Phase, at.Status.Conditions = atv1alpha1.Pending, rig.Ready("True", "Scheduled", "It waits")
	})
	nothing := func(http.ResponseWriter, *http.Request) bool { return false }
	flat := func(got rig.Called) rig.Called {
		return rig.Called{Code: got.Code, Out: strings.Join(strings.Fields(got.Out), " "), ErrOut: got.ErrOut}
	}
	const why = "not shown: you have no permission to list etcdbackups.etcd.database.coreos.com in "
	server := r.Between("/etcdbackups$", nothing)
	got := flat(r.Through(server, "status"))
	if got.Code != 1 || !strings.Contains(got.Out, "NAME STATUS FOR MESSAGE etcdbackups Unknown "+why+"namespace "+r.Namespace+" at/hello Scheduled") {
		t.Errorf("one kind is forbidden: %+v", got)
	}
	got = flat(r.Through(server, "status", "-A"))
	if got.Code == 0 || !strings.Contains(got.Out, "etcdbackups Unknown "+why+"all namespaces") || !strings.Contains(got.Out, r.Namespace+" at/hello Scheduled") {
		t.Errorf("one kind is forbidden, of all namespaces: %+v", got)
	}
	if got := r.Through(server, "status", "-o", "name"); got != (rig.Called{Code: 1, Out: "at.at.example.com/hello\n", ErrOut: "error: etcdbackups: " + why + "namespace " + r.Namespace + "\n"}) {
		t.Errorf("one kind is forbidden, with -o name: %+v", got)
	}
	if got := flat(r.Through(r.Between("/ats$", nothing), "status")); got.Code != 1 || strings.Contains(got.Out, "There is nothing") || !strings.Contains(got.Out, "ats Unknown not shown") {
		t.Errorf("the kind that has objects is forbidden: %+v", got)
	}
	if got := r.Through(r.Between("/(etcd.*|memcacheds|webservers|ats)$", nothing), "status"); got.Code != 1 || got.Out != "" || !strings.Contains(got.ErrOut, "you may not") {
		t.Errorf("all kinds are forbidden: %+v", got)
	}
	broken := func(w http.ResponseWriter, q *http.Request) bool {
		isIt := strings.HasSuffix(q.URL.Path, "/webservers")
		if isIt {
			http.Error(w, "a fault", http.StatusInternalServerError)
		}
		return isIt
	}
	if got := flat(r.Through(r.Between("", broken), "status")); got.Code != 1 || !strings.Contains(got.Out, "webservers Unknown an error on the server") || !strings.Contains(got.Out, "at/hello Scheduled") {
		t.Errorf("one kind cannot be read: %+v", got)
	}
	absent := func(w http.ResponseWriter, q *http.Request) bool {
		isIt := strings.HasSuffix(q.URL.Path, "/memcacheds")
		if isIt {
			http.NotFound(w, q) // as the API server does without the CRD
		}
		return isIt
	}
	if got := flat(r.Through(r.Between("", absent), "status")); got.Code != 0 || strings.Contains(got.Out, "memcached") || !strings.Contains(got.Out, "at/hello Scheduled") {
		t.Errorf("one kind has no CRD: %+v", got)
	}
	served := func(w http.ResponseWriter, q *http.Request) bool {
		isIt := strings.HasSuffix(q.URL.Path, "/etcd.database.coreos.com/v1beta2")
		if isIt {
			http.NotFound(w, q)
		}
		return isIt
	}
	got = flat(r.Through(r.Between("/etcd[a-z]*s$", served), "status"))
	if got.Code != 0 || strings.Contains(got.Out, "etcd") || !strings.Contains(got.Out, "at/hello Scheduled") {
		t.Errorf("kinds have no CRD, and may not be listed: %+v", got)
	}
	got = flat(r.Through(r.Between("/etcd[a-z]*s$|/etcd.database.coreos.com/v1beta2$", nothing), "status"))
	if got.Code != 1 || !strings.Contains(got.Out, "etcdclusters Unknown") {
		t.Errorf("kinds may not be listed, and it is not known whether they are there: %+v", got)
	}

	r.Stored(&cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}, func() {})
	got = flat(r.Through(server, "status"))
	if got.Code != 2 || !strings.Contains(got.Out, "etcdbackups Unknown") || !strings.Contains(got.Out, "memcached/cache NotSeen") {
		t.Errorf("one kind is forbidden, and an object is not well: %+v", got)
	}
}

// detail is the status of one object, which must have these words.
func (r namespace) detail(name string, code int, words ...string) {
	r.Helper()
	got := r.status(strings.Fields(name)...)
	for _, want := range words {
		if !strings.Contains(got.Out, want) {
			r.Errorf("status %s lacks %q:\n%s", name, want, got.Out)
		}
	}
	if got.Code != code {
		r.Errorf("status %s: exit code %d, want %d: %s", name, got.Code, code, got.ErrOut)
	}
}
