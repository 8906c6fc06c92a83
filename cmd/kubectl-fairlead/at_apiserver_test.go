//go:build apiserver

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
	"example.com/fairlead/operators/at"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{CRDs: []string{
		"../../operators/at/config/crd", "../../operators/etcd/config/crd",
		"../../operators/memcached/config/crd", "../../operators/webserver/config/crd",
	}})
}

// rig is a namespace, and the program that works in it.
type rig struct {
	*testing.T
	client.Client
	server    *testkit.APIServer
	namespace string
}

func newRig(t *testing.T) *rig {
	t.Setenv("KUBECONFIG", "/dev/null")
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, c, server, server.NewNamespace(t)}
}

// there are the flags that name the server and the namespace.
func (r *rig) there() []string {
	config := r.server.Config
	return []string{"--server", config.Host, "--certificate-authority", config.CAFile, "--token", config.BearerToken, "-n", r.namespace}
}

// call runs `kubectl at` with these arguments.
func (r *rig) call(args ...string) called {
	r.Helper()
	return callAt(r.T, time.Now, "", slices.Concat([]string{"kubectl-at"}, r.there(), args)...)
}

// do is a call that must succeed, and print this.
func (r *rig) do(want string, args ...string) {
	r.Helper()
	if got := r.call(args...); got.code != 0 || !strings.Contains(got.out, want) {
		r.Errorf("kubectl at %s: %+v, want %q", strings.Join(args, " "), got, want)
	}
}

// refused is a call that must fail, and say this.
func (r *rig) refused(want string, args ...string) {
	r.Helper()
	if got := r.call(args...); got.code != 1 || !strings.Contains(got.errOut, want) {
		r.Errorf("kubectl at %s: %+v, want an error with %q", strings.Join(args, " "), got, want)
	}
}

func (r *rig) at(name string) *atv1alpha1.At {
	r.Helper()
	var at atv1alpha1.At
	if err := r.Get(r.Context(), client.ObjectKey{Namespace: r.namespace, Name: name}, &at); err != nil {
		r.Fatal(err)
	}
	return &at
}

// reach has an At come to a phase, as its operator would.
func (r *rig) reach(name string, phase atv1alpha1.Phase) {
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
	if got := r.call("list"); got.code != 0 || !strings.HasPrefix(got.errOut, "No Ats found in namespace "+r.namespace) {
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
	r.do("y runs now", "run-now", "y")
	if at := r.at("y"); at.Spec.Suspend || time.Since(scheduled(at)) > time.Minute || time.Since(scheduled(at)) < 0 {
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
	r.do("y removed", "rm", "y")
	r.refused("not found", "rm", "y")
}

func TestList(t *testing.T) {
	r := newRig(t)
	r.do("", "2040-01-02 08:00", "--tz=UTC", "--name=later", "--", "echo", "hello you", "it's")
	r.do("", "2039-01-02 08:00", "--tz=UTC", "--name=sooner", "--", "echo a line that is longer than what is shown of it | cat")
	out := r.call("list", "--tz=Asia/Kathmandu").out
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
	r.do(r.namespace+"   sooner ", "list", "-A")
	r.refused("unable to match a printer", "list", "-o", "nonsense")

	for line, want := range map[string]string{"rm l": "later\tPENDING 2040-01-02T08:00:00Z\n:4\n", "rm later sooner ": ":4\n"} {
		got := r.call(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got.out != want {
			t.Errorf("completion of %q: %q, want %q", line, got.out, want)
		}
	}
	if got := r.call("__complete", "list", "--namespace", ""); !strings.Contains(got.out, r.namespace+"\n") {
		t.Errorf("completion of namespaces: %q", got.out)
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
	if _, err := testkit.StartKubelet(t.Context(), r.server.Config, r.namespace, behave); err != nil {
		t.Fatal(err)
	}
	go func() { _ = standalone.Start(at.Operator)(t.Context(), r.server.Config, r.namespace) }()

	r.do("", "--in=2s", "--name=succeeds", "--", "true")
	r.do("", "--in=2s", "--name=fails", "--", "false")
	r.do("", "--in=1h", "--name=waits", "--", "true")
	if got := r.call("wait", "fails"); got.code != 3 || !strings.Contains(got.out, "\nfails is FAILED: ") {
		t.Errorf("wait for what fails: %+v", got)
	}
	if got := r.call("wait", "succeeds"); got.code != 0 || !strings.Contains(got.out, "succeeds is DONE: ") {
		t.Errorf("wait for what succeeds: %+v", got)
	}
	if got := r.call("wait", "waits", "--timeout=1s"); got.code != 124 || got.errOut != "error: waits is not over after 1s\n" {
		t.Errorf("wait with a timeout: %+v", got)
	}
	r.refused("not found", "wait", "nothing")
	removed := make(chan called)
	go func() { removed <- r.call("wait", "waits", "--timeout=1m") }()
	time.Sleep(time.Second) // so that it waits; were it late, it would not be found
	r.do("removed", "rm", "waits")
	if got := <-removed; got.code != 1 || !strings.Contains(got.errOut, "waits was removed") && !strings.Contains(got.errOut, "not found") {
		t.Errorf("wait for what is removed: %+v", got)
	}
}
