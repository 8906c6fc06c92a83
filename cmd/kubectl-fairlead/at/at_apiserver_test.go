//go:build apiserver

package at

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/standalone"
	operator "example.com/fairlead/operators/at"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and `kubectl at` in it.
type namespace struct{ *rig.Rig }

func newRig(t *testing.T) namespace { return namespace{rig.New(t, Command)} }

// do is a call that must succeed, and print this.
func (r namespace) do(want string, args ...string) {
	r.Helper()
	if got := r.Call(args...); got.Code != 0 || !strings.Contains(got.Out, want) {
		r.Errorf("kubectl at %s: %+v, want %q", strings.Join(args, " "), got, want)
	}
}

// refused is a call that must fail, and say this.
func (r namespace) refused(want string, args ...string) {
	r.Helper()
	if got := r.Call(args...); got.Code != 1 || !strings.Contains(got.ErrOut, want) {
		r.Errorf("kubectl at %s: %+v, want an error with %q", strings.Join(args, " "), got, want)
	}
}

func (r namespace) at(name string) *atv1alpha1.At {
	r.Helper()
	var at atv1alpha1.At
	if err := r.Get(r.Context(), client.ObjectKey{Namespace: r.Namespace, Name: name}, &at); err != nil {
		r.Fatal(err)
	}
	return &at
}

// reach has an At come to a phase, as its operator would.
func (r namespace) reach(name string, phase atv1alpha1.Phase) {
	r.Helper()
	at := r.at(name)
	at.Status.Phase, at.Status.PodName = phase, name
	if err := r.Status().Update(r.Context(), at); err != nil {
		r.Fatal(err)
	}
}

func TestVerbs(t *testing.T) {
	r := newRig(t)
	r.do("x created (server dry run)", "now + 1 hour", "--name=x", "--dry-run=server", "--", "date")
	if got := r.Call("list"); got.Code != 0 || !strings.HasPrefix(got.ErrOut, "No Ats found in namespace "+r.Namespace) {
		t.Errorf("a dry run left something: %+v", got)
	}
	r.do("at.at.example.com/x created", "now + 1 hour", "--name=x", "--", "echo", "hello you", "it's")
	r.do("at.at.example.com/y created", "now + 2 hours", "--name=y", "--", "date")
	r.refused(`"x" already exists`, "now + 1 hour", "--name=x", "--", "date")

	r.do("x suspended (dry run)", "suspend", "x", "--dry-run=client")
	r.do("x suspended (server dry run)", "suspend", "x", "--dry-run=server")
	if r.at("x").Spec.Suspend {
		t.Error("a dry run suspended it")
	}
	r.do("y suspended", "suspend", "x", "y")
	if !r.at("x").Spec.Suspend || !r.at("y").Spec.Suspend {
		t.Error("they are not suspended")
	}
	r.do("suspended", "list")
	r.do("x resumed", "resume", "x")
	if r.at("x").Spec.Suspend {
		t.Error("it is suspended still")
	}
	spread := r.at("y")
	spread.Spec.WindowSeconds = 3600
	if err := r.Update(r.Context(), spread); err != nil {
		t.Fatal(err)
	}
	r.do("y runs now", "run-now", "y")
	if at := r.at("y"); at.Spec.Suspend || time.Since(Scheduled(at)) > time.Minute || time.Since(Scheduled(at)) < 0 {
		t.Errorf("it does not run now: %+v", at.Spec)
	}
	r.refused("ats.at.example.com \"z\" not found", "run-now", "z")
	r.refused("there are no logs yet, or ever: x runs in ", "logs", "x")

	r.reach("x", atv1alpha1.Running)
	for _, verb := range []string{"suspend", "resume", "run-now"} {
		r.refused("x is RUNNING: create a new At for another run", verb, "x")
	}
	r.refused("x is running: to remove it stops its command. Nothing was done: there is no terminal to ask on; add --yes", "rm", "x")
	r.do("x removed (server dry run)", "rm", "x", "--yes", "--dry-run=server")
	r.do("x removed (dry run)", "rm", "x", "--yes", "--dry-run=client")
	r.do("x removed", "rm", "x", "--yes")
	r.do("y removed (dry run)", "delete", "y", "--dry-run=client")
	r.do("y removed", "atrm", "y")
	r.refused("not found", "rm", "y")
}

func TestList(t *testing.T) {
	r := newRig(t)
	r.do("", "2040-01-02 08:00", "--tz=UTC", "--name=later", "--", "echo", "hello you", "it's")
	r.do("", "2039-01-02 08:00", "--tz=UTC", "--name=sooner", "--", "echo a line that is longer than what is shown of it | cat")
	out := r.Call("list", "--tz=Asia/Kathmandu").Out
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || strings.Join(strings.Fields(lines[0]), " ") != "NAME TIME WHEN PHASE COMMAND" ||
		!strings.HasPrefix(lines[1], "sooner   Sun 2039-01-02 13:45:00 +05:45   in ") ||
		!strings.HasSuffix(lines[1], "PENDING   echo a line that is longer than what is…") ||
		!strings.HasPrefix(lines[2], "later ") || !strings.HasSuffix(lines[2], `PENDING   echo 'hello you' 'it'\''s'`) {
		t.Errorf("kubectl at list:\n%s", out)
	}
	r.do("at.at.example.com/sooner\nat.at.example.com/later\n", "list", "-o", "name")
	r.do("kind: AtList", "list", "-o", "yaml")
	r.do("2039-01-02T08:00:00Z 2040-01-02T08:00:00Z", "list", "-o", "jsonpath={.items[*].spec.schedule}")
	r.do("is shown of it | cat", "list", "-o", "wide")
	r.do(r.Namespace+"   sooner ", "list", "-A")
	r.do("at.at.example.com/later\n", "get", "later", "-o", "name")
	r.do("kind: At\n", "get", "later", "-o", "yaml")
	r.do("at.at.example.com/sooner\nat.at.example.com/later\n", "atq", "later", "sooner", "-o", "name")
	if got := r.Call("get", "none", "later", "-o", "name"); got.Code != 1 || got.Out != "at.at.example.com/later\n" ||
		got.ErrOut != "error: ats.at.example.com \"none\" not found\n" {
		t.Errorf("one of two is not there: %+v", got)
	}
	r.refused("unable to match a printer", "list", "-o", "nonsense")

	for line, want := range map[string]string{"rm l": "later\tPENDING 2040-01-02T08:00:00Z\n:4\n", "rm later sooner ": ":4\n", "get l": "later\tPENDING 2040-01-02T08:00:00Z\n:4\n"} {
		got := r.Call(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got.Out != want {
			t.Errorf("completion of %q: %q, want %q", line, got.Out, want)
		}
	}
	if got := r.Call("__complete", "list", "--namespace", ""); !strings.Contains(got.Out, r.Namespace+"\n") {
		t.Errorf("completion of namespaces: %q", got.Out)
	}
}

// TestWait has the operator run what it waits for.
func TestWait(t *testing.T) {
	r := newRig(t)
	behave := func(pod *corev1.Pod) testkit.Outcome {
		if strings.HasPrefix(pod.Name, "fails") {
			return testkit.Outcome{RunsFor: time.Second, ExitCode: 3}
		}
		return testkit.Outcome{RunsFor: time.Second}
	}
	if _, err := testkit.StartKubelet(t.Context(), r.Server.Config, r.Namespace, behave); err != nil {
		t.Fatal(err)
	}
	go func() { _ = standalone.Start(operator.Operator)(t.Context(), r.Server.Config, r.Namespace) }()

	r.do("", "--in=2s", "--name=succeeds", "--", "true")
	r.do("", "--in=2s", "--name=fails", "--", "false")
	r.do("", "--in=1h", "--name=waits", "--", "true")
	if got := r.Call("wait", "fails"); got.Code != 3 || !strings.Contains(got.Out, "\nfails is FAILED: ") {
		t.Errorf("wait for what fails: %+v", got)
	}
	if got := r.Call("wait", "succeeds"); got.Code != 0 || !strings.Contains(got.Out, "succeeds is DONE: ") {
		t.Errorf("wait for what succeeds: %+v", got)
	}
	if got := r.Call("wait", "waits", "--timeout=1s"); got.Code != 124 || got.ErrOut != "error: waits is not over after 1s\n" {
		t.Errorf("wait with a timeout: %+v", got)
	}
	r.refused("not found", "wait", "nothing")
	removed := make(chan rig.Called)
	go func() { removed <- r.Call("wait", "waits", "--timeout=1m") }()
	time.Sleep(time.Second) // so that it waits; were it late, it would not be found
	r.do("removed", "rm", "waits")
	if got := <-removed; got.Code != 1 || !strings.Contains(got.ErrOut, "waits was removed") && !strings.Contains(got.ErrOut, "not found") {
		t.Errorf("wait for what is removed: %+v", got)
	}
}

// TestWaitIsTold: who waits for what can never come is told within seconds, and a cut is survived.
func TestWaitIsTold(t *testing.T) {
	r := newRig(t)
	r.do("", "--in=1h", "--name=x", "--", "true")
	for want, server := range map[string][]string{
		"connection refused": {"--server", "http://127.0.0.1:1"},
		"you may not":        r.Between("/ats$", func(http.ResponseWriter, *http.Request) bool { return false }), // to watch
	} {
		began := time.Now()
		if got := r.Through(server, "wait", "x"); got.Code != 1 || !strings.Contains(got.ErrOut, want) || strings.Count(got.ErrOut, "\n") != 1 {
			t.Errorf("%+v, want %q", got, want)
		}
		if took := time.Since(began); took > pace.Scale(10*time.Second) {
			t.Errorf("%q was said after %s", want, took)
		}
	}

	var requests atomic.Int64
	cut := func(w http.ResponseWriter, _ *http.Request) bool {
		n := requests.Add(1)
		if n == 5 {
			r.reach("x", atv1alpha1.Done)
		}
		if n == 1 || n > 5 {
			return false
		}
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = connection.Close()
		}
		return true
	}
	if got := r.Through(r.Between("", cut), "wait", "x"); got.Code != 0 || !strings.Contains(got.Out, "x is DONE") {
		t.Errorf("a cut is not survived: %+v", got)
	}
}
