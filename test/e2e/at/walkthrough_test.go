//go:build e2e

package at

import (
	"bufio"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// in is the schedule that far from now, or farther on a slow machine, in the form
// that the guides use.
func in(d time.Duration) string {
	return time.Now().Add(pace.Scale(d)).UTC().Format("2006-01-02T15:04:05Z")
}

// wantAt waits until kubectl get shows the At in a phase.
func wantAt(t *testing.T, namespace, name, phase string, within time.Duration) {
	t.Helper()
	pace.Eventually(t, within, func() error {
		rows := e2e.Rows(e2e.Kubectl(t, "get", name, "-n", namespace))
		if len(rows) != 1 || len(rows[0]) < 3 || rows[0][2] != phase {
			return fmt.Errorf("kubectl get %s shows %v, want phase %s", name, rows, phase)
		}
		return nil
	})
}

// watchPhases returns the phases that kubectl get --watch has shown of an At so far, in their order. A phase that takes
// no longer than its command does, who gets it again and again may not see.
func watchPhases(t *testing.T, namespace, name string) func() []string {
	t.Helper()
	watch := exec.CommandContext(t.Context(), "kubectl", "get", name, "-n", namespace, "--watch", "--no-headers")
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watch.Wait() }) // the test's context has ended it
	var mu sync.Mutex
	var phases []string
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if row := strings.Fields(lines.Text()); len(row) > 2 {
				mu.Lock()
				phases = slices.Compact(append(phases, row[2]))
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(phases)
	}
}

func TestAtWalkthrough(t *testing.T) {
	ns := e2e.NewNamespace(t)
	schedule, prepared := in(20*time.Second), in(14*time.Second)
	e2e.Apply(t, ns, fmt.Sprintf(`
apiVersion: at.example.com/v1alpha1
kind: At
metadata: {name: sample-at}
spec:
  schedule: %q
  command: "echo hello world"
`, schedule))
	phases := watchPhases(t, ns, "at/sample-at")

	out := e2e.Kubectl(t, "get", "at", "-n", ns)
	if header := strings.Fields(strings.Split(out, "\n")[0]); strings.Join(header, " ") != "NAME SCHEDULE TIME ZONE PHASE EXIT CODE REASON AGE" {
		t.Errorf("columns of kubectl get at: %v", header)
	}
	wantAt(t, ns, "at/sample-at", "PENDING", 2*time.Second)
	out, _ = e2e.TryKubectl("", "get", "pods", "-n", ns)
	if isEarly := in(0) < prepared; isEarly && !strings.HasPrefix(out, "No resources found") {
		t.Errorf("before the time there is a pod:\n%s", out)
	}

	wantAt(t, ns, "at/sample-at", "DONE", 2*time.Minute)
	pace.Eventually(t, 5*time.Second, func() error {
		if got := phases(); !slices.Equal(got, []string{"PENDING", "RUNNING", "DONE"}) {
			return fmt.Errorf("kubectl get --watch shows the phases %v", got)
		}
		return nil
	})
	pods := e2e.Rows(e2e.Kubectl(t, "get", "pods", "sample-at", "-n", ns))
	if pods[0][1] != "0/1" || pods[0][2] != "Completed" {
		t.Errorf("kubectl get pods sample-at: %v", pods)
	}
	if out := e2e.Kubectl(t, "logs", "sample-at", "-n", ns); out != "hello world\n" {
		t.Errorf("kubectl logs sample-at: %q", out)
	}

	out = e2e.Kubectl(t, "describe", "at", "sample-at", "-n", ns)
	for _, word := range []string{"Completed", "Exit Code:", "Scheduled Time:", "Lateness:"} {
		if !strings.Contains(out, word) {
			t.Errorf("kubectl describe at does not show %q:\n%s", word, out)
		}
	}

	e2e.Kubectl(t, "delete", "at", "sample-at", "-n", ns)
	pace.Eventually(t, 20*time.Second, func() error {
		if out, _ := e2e.TryKubectl("", "get", "pods", "-n", ns); !strings.HasPrefix(out, "No resources found") {
			return fmt.Errorf("the pod outlives its At:\n%s", out)
		}
		return nil
	})
	if out := e2e.Kubectl(t, "get", "crds"); !strings.Contains(out, "ats.at.example.com") {
		t.Errorf("kubectl get crds:\n%s", out)
	}
}

func TestCnatWalkthrough(t *testing.T) {
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, `
apiVersion: cnat.programming-kubernetes.info/v1alpha1
kind: At
metadata: {name: at-sample}
spec:
  schedule: "2021-09-09T07:05:59Z"
  command: "echo YAY"
`)
	wantAt(t, ns, "ats.cnat.programming-kubernetes.info/at-sample", "DONE", 20*time.Second)
	pods := e2e.Rows(e2e.Kubectl(t, "get", "pods", "-n", ns))
	if len(pods) != 1 || pods[0][0] != "at-sample-pod" || pods[0][1] != "0/1" || pods[0][2] != "Completed" {
		t.Errorf("kubectl get pods: %v", pods)
	}
	if out := e2e.Kubectl(t, "logs", "at-sample-pod", "-n", ns); out != "YAY\n" {
		t.Errorf("kubectl logs at-sample-pod: %q", out)
	}
	if out := e2e.Kubectl(t, "get", "ats.at.example.com", "-n", ns); !strings.HasPrefix(out, "No resources found") {
		t.Errorf("kubectl get ats.at.example.com:\n%s", out)
	}
}

func TestAtMovesWithItsSchedule(t *testing.T) {
	ns := e2e.NewNamespace(t)
	manifest := `
apiVersion: cnat.programming-kubernetes.info/v1alpha1
kind: At
metadata: {name: moved}
spec: {schedule: %q, command: "echo YAY"}
`
	const kind = "ats.cnat.programming-kubernetes.info/moved"
	e2e.Apply(t, ns, fmt.Sprintf(manifest, in(time.Hour)))
	wantAt(t, ns, kind, "PENDING", 2*time.Second)
	schedule := in(3 * time.Second)
	e2e.Apply(t, ns, fmt.Sprintf(manifest, schedule))
	wantAt(t, ns, kind, "DONE", 20*time.Second)
	// Both have the same form up to the seconds, and the gate was removed some fraction later.
	if released := e2e.Kubectl(t, "get", "pod", "moved-pod", "-n", ns, "-o", `jsonpath={.metadata.annotations.at\.example\.com/released}`); released < strings.TrimSuffix(schedule, "Z") {
		t.Errorf("the gate of the pod was removed at %s, before %s", released, schedule)
	}

	out, err := e2e.TryKubectl(fmt.Sprintf(manifest, in(time.Hour)), "apply", "-n", ns, "-f", "-")
	if err == nil || !strings.Contains(out, "create a new At for another run") {
		t.Errorf("a change after the run is not refused as it should be: %s", out)
	}
}

func TestAtManagerIsInstalledByItsConventions(t *testing.T) {
	out := e2e.Kubectl(t, "get", "deployment", "-n", "at-operator-system", "-l", "control-plane=controller-manager", "-o", "name")
	if strings.TrimSpace(out) != "deployment.apps/at-operator-controller-manager" {
		t.Errorf("deployments: %s", out)
	}
	logs := e2e.ManagerLogs(t, "at")
	lease, start := strings.Index(strings.ToLower(logs), "successfully acquired lease"), strings.Index(logs, "Starting workers")
	if lease < 0 || start < 0 || lease > start {
		t.Errorf("the log does not show the lease acquired (at %d) before the controllers start (at %d):\n%s", lease, start, logs)
	}
	if strings.Contains(logs, `"level":"error"`) {
		t.Errorf("the log has errors:\n%s", logs)
	}
}
