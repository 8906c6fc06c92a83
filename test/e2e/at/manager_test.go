//go:build e2e

package at

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

const (
	atNamespace  = "at-operator-system"
	atDeployment = "deployment/at-operator-controller-manager"
)

// reconfigure runs the At operator's Deployment with other replicas and
// arguments until the test ends.
func reconfigure(t *testing.T, replicas int, args ...string) {
	t.Helper()
	set := func(replicas int, args ...string) {
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/replicas","value":%d},{"op":"replace","path":"/spec/template/spec/containers/0/args","value":["%s"]}]`,
			replicas, strings.Join(args, `","`))
		e2e.Kubectl(t, "patch", atDeployment, "-n", atNamespace, "--type=json", "-p", patch)
		e2e.Kubectl(t, "rollout", "status", atDeployment, "-n", atNamespace, e2e.Patience)
		pace.Eventually(t, 30*time.Second, func() error {
			if n := len(managerPods(t)); n != replicas {
				return fmt.Errorf("%d manager pods, want %d", n, replicas)
			}
			return nil
		})
	}
	t.Cleanup(func() { set(1, "at") })
	set(replicas, args...)
}

func managerPods(t *testing.T) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(context.Background(), pods, client.InNamespace(atNamespace), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// process is a manager that runs outside the cluster.
type process struct {
	cmd *exec.Cmd
	log string
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{log: filepath.Join(t.TempDir(), "log")}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(filepath.Join(e2e.Root, "bin", "fairlead"), append(args, "--metrics-bind-address=0", "--health-probe-bind-address=0", "at")...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_, _ = p.cmd.Process.Wait()
}

func (p *process) logs(t *testing.T) string {
	t.Helper()
	out, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Two managers outside the cluster, for one namespace: one acts, and when it
// is killed the other does.
func TestManagerOutsideTheCluster(t *testing.T) {
	reconfigure(t, 0, "at")
	ns, other := e2e.NewNamespace(t), e2e.NewNamespace(t)
	args := []string{"--kubeconfig", os.Getenv("KUBECONFIG"), "--namespace", ns, "--leader-election-namespace", ns}
	one := startProcess(t, args...)
	pace.Eventually(t, 20*time.Second, func() error {
		if !strings.Contains(one.logs(t), "Starting workers") {
			return fmt.Errorf("not started:\n%s", one.logs(t))
		}
		return nil
	})
	two := startProcess(t, args...)

	first, elsewhere := newAt(ns, "first", func(*atv1alpha1.AtSpec) {}), newAt(other, "elsewhere", func(*atv1alpha1.AtSpec) {})
	create(t, elsewhere)
	create(t, first)
	waitFor(t, first, atv1alpha1.Done, "Completed", 30*time.Second)
	one.kill()
	second := newAt(ns, "second", func(*atv1alpha1.AtSpec) {})
	create(t, second)
	waitFor(t, second, atv1alpha1.Done, "Completed", 40*time.Second)

	if strings.Contains(one.logs(t), `"second"`) || strings.Contains(two.logs(t), `"first"`) {
		t.Errorf("both managers acted:\n%s\n%s", one.logs(t), two.logs(t))
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(elsewhere), elsewhere); err != nil || elsewhere.Status.Attempts != 0 {
		t.Errorf("an At of another namespace was run: %+v, %v", elsewhere.Status, err)
	}

	forLife := startProcess(t, "--kubeconfig", os.Getenv("KUBECONFIG"), "--namespace", other, "--leader-election=for-life")
	waitFor(t, elsewhere, atv1alpha1.Done, "Completed", 30*time.Second)
	if !strings.Contains(forLife.logs(t), "leader election for life is skipped") {
		t.Errorf("the log does not say that leader-for-life is skipped:\n%s", forLife.logs(t))
	}
}

// The leader for life keeps its lock until its pod is gone.
func TestLeaderForLife(t *testing.T) {
	reconfigure(t, 2, "--leader-election=for-life", "at")
	leader := func() string {
		return e2e.Kubectl(t, "get", "configmap", "at-operator-leader", "-n", atNamespace, "-o", "jsonpath={.metadata.ownerReferences[0].name}")
	}
	t.Cleanup(func() {
		_, _ = e2e.TryKubectl("", "delete", "configmap", "at-operator-leader", "-n", atNamespace, "--ignore-not-found")
	})
	ns := e2e.NewNamespace(t)
	before := leader()
	at := newAt(ns, "first", func(*atv1alpha1.AtSpec) {})
	create(t, at)
	waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)

	e2e.Kubectl(t, "delete", "pod", before, "-n", atNamespace)
	at = newAt(ns, "second", func(*atv1alpha1.AtSpec) {})
	create(t, at)
	waitFor(t, at, atv1alpha1.Done, "Completed", 40*time.Second)
	if after := leader(); after == before {
		t.Errorf("%s still leads, although it is gone", after)
	}
}

// TestSerialRandomKills has two managers without leader election, both of which act,
// and kills one or the other again and again while commands come due. Every
// command leaves a line in a file: each must be there exactly once.
func TestSerialRandomKills(t *testing.T) {
	const ats, span = 60, 25 * time.Second
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	reconfigure(t, 2, "--leader-election=none", "at")
	ns := e2e.NewNamespace(t)
	e2e.Apply(t, ns, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ledger}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`)
	onLedger := func(s *atv1alpha1.AtSpec) {
		s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{}, // root: the volume is root's
			Containers:      []corev1.Container{{Name: "command", VolumeMounts: []corev1.VolumeMount{{Name: "ledger", MountPath: "/ledger"}}}},
			Volumes: []corev1.Volume{{Name: "ledger", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "ledger"}}}},
		}}
	}
	begin := time.Now().Add(2 * time.Second)
	var all []*atv1alpha1.At
	for i := range ats {
		at := newAt(ns, fmt.Sprintf("at-%02d", i), func(s *atv1alpha1.AtSpec) {
			s.Schedule = begin.Add(time.Duration(random.Int64N(int64(span)))).UTC().Format(time.RFC3339Nano)
			s.Command = new(fmt.Sprintf("echo at-%02d >> /ledger/runs", i))
			onLedger(s)
		})
		create(t, at)
		all = append(all, at)
	}

	kills := 0
	for time.Now().Before(begin.Add(span)) {
		if pods := managerPods(t); len(pods) > 0 {
			victim := pods[random.IntN(len(pods))]
			err := c.Delete(t.Context(), &victim, client.GracePeriodSeconds(0))
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			kills++
		}
		time.Sleep(time.Duration(500+random.IntN(1500)) * time.Millisecond)
	}
	t.Logf("%d managers were killed", kills)

	for _, at := range all {
		got := waitFor(t, at, atv1alpha1.Done, "Completed", 90*time.Second)
		if got.Status.Attempts != 1 || got.Status.StartTime.Before(got.Status.ScheduledTime) {
			t.Errorf("%s: %d attempts, scheduled %v, started %v", at.Name, got.Status.Attempts, got.Status.ScheduledTime, got.Status.StartTime)
		}
	}
	reader := newAt(ns, "reader", func(s *atv1alpha1.AtSpec) {
		s.Command, s.OutputBytes = new("sort /ledger/runs"), 4096
		onLedger(s)
	})
	create(t, reader)
	runs := strings.Fields(waitFor(t, reader, atv1alpha1.Done, "Completed", 60*time.Second).Status.Output)
	var want []string
	for _, at := range all {
		want = append(want, at.Name)
	}
	if !slices.Equal(runs, want) {
		t.Errorf("%d commands ran:\n%v\nwant each of %d once", len(runs), runs, len(want))
	}
}

// Metrics of the deployed manager are as their page says, and nobody gets them without the right to.
func TestMetricsOfTheDeployedManager(t *testing.T) {
	ns := e2e.NewNamespace(t)
	at := newAt(ns, "counted", func(*atv1alpha1.AtSpec) {})
	create(t, at)
	waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
	for account, want := range map[string]int{"": http.StatusUnauthorized, "default": http.StatusForbidden} {
		pace.Eventually(t, 20*time.Second, func() error {
			if code, _, err := e2e.Scrape(t, "at", account); err != nil || code != want {
				return fmt.Errorf("as service account %q: %d, %w", account, code, err)
			}
			return nil
		})
	}
	e2e.CheckMetrics(t, "at", "At", "fairlead_repairs_total") // it has no children of a fixed form
}
