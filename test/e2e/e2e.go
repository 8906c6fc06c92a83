//go:build e2e

// Package e2e is what the end-to-end tests share. They show on a real cluster what
// only a real cluster can show, through kubectl, as a user would: a package for
// each operator, so that they go on side by side. `make e2e` deploys the operators,
// each by itself, as its guide says, and runs them: on a local cluster of its
// own, or on any other that it is given, where the tests that need the local
// one are skipped.
//
// A test that does to the cluster what others would not survive is called
// TestSerial…: hack/e2e.sh runs it after them. One that judges time, or that no
// request is lost, is called TestAlone…: nothing else runs on the machine either.
// What may disturb it all the same is a step of package internal/testkit/stall,
// which does not judge while the machine stands still. Every other test waits, with
// package internal/testkit/pace, as long as the machine is slow.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/fairlead/internal/testkit/draw"
)

const (
	// Patience is for kubectl's own waiting, which ends as soon as it can.
	Patience = "--timeout=5m"
	// Label is on every namespace that a test makes.
	Label = "fairlead-e2e"
)

var (
	// Root is the folder of the repository.
	Root = filepath.Join("..", "..", "..")
	// local is the local cluster's folder, or empty on another cluster.
	local = os.Getenv("LOCALCLUSTER_DIR")
)

// Main is the whole of a TestMain. The client it makes, which has no rate limit,
// knows Kubernetes' own kinds and those that are added.
func Main(m *testing.M, c *client.Client, add ...func(*runtime.Scheme) error) {
	scheme := runtime.NewScheme()
	for _, add := range append(add, clientgoscheme.AddToScheme) {
		utilruntime.Must(add(scheme))
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	made, err := newClient(scheme)
	if err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v: run make e2e\n", err)
		os.Exit(1)
	}
	*c = made
	os.Exit(Run(m))
}

// Run is a TestMain's m.Run, in which walkthroughs and what judges time or loss are never left to other landings, see
// package draw.
func Run(m *testing.M, operators ...string) int {
	return draw.Run(m, "Walkthrough|^TestAlone|^TestDrain$", operators...)
}

func newClient(scheme *runtime.Scheme) (client.Client, error) {
	cfg, err := Config()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// Config is how the cluster of $KUBECONFIG is reached, without a rate limit.
func Config() (*rest.Config, error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return cfg, nil
}

// NeedsLocalCluster skips a test on any other cluster. hack/e2e.sh counts the
// line that it prints.
func NeedsLocalCluster(t testing.TB, why string) {
	t.Helper()
	if local == "" {
		t.Skipf("needs the local cluster: %s", why)
	}
}

// Load makes images of a program of these tests, by its folder, and loads them into the local cluster.
func Load(t testing.TB, folder string, images ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "e2e", "-o", program, folder)
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // there is no libc in them
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, out)
	}
	for _, image := range images {
		load := exec.CommandContext(t.Context(), filepath.Join(Root, "bin", "localcluster"), "load", "--dir", local, image, program)
		if out, err := load.CombinedOutput(); err != nil {
			t.Fatalf("load %s: %v\n%s", image, err, out)
		}
	}
}

// TryKubectl runs kubectl and returns what it prints on both outputs.
func TryKubectl(stdin string, args ...string) (string, error) { return tryKubectl(nil, stdin, args...) }

// tryKubectl is TryKubectl with more in the environment.
func tryKubectl(env []string, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "kubectl", args...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// Kubectl runs kubectl, which must succeed.
func Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := TryKubectl("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Evict asks for the eviction of a pod, as kubectl drain does, and returns what Kubernetes answers.
func Evict(namespace, pod string) (string, error) {
	return TryKubectl(fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod, namespace),
		"create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, pod), "-f", "-")
}

// Apply applies a manifest in a namespace, which must succeed.
func Apply(t testing.TB, namespace, manifest string) {
	t.Helper()
	if _, err := TryKubectl(manifest, "apply", "-n", namespace, "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
}

// NewNamespace is a namespace for one test, removed at its end.
func NewNamespace(t testing.TB, labels ...string) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = fmt.Sprintf("%s-%d", name[:min(len(name), 50)], time.Now().UnixNano()%1e6)
	Kubectl(t, "create", "namespace", name)
	Kubectl(t, append([]string{"label", "namespace", name, Label + "=true"}, labels...)...)
	t.Cleanup(func() { _, _ = TryKubectl("", "delete", "namespace", name, "--wait=false") })
	return name
}

// Rows splits what kubectl get prints into rows of columns, without the header.
func Rows(out string) [][]string {
	var rows [][]string
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if i > 0 {
			rows = append(rows, strings.Fields(line))
		}
	}
	return rows
}

// ManagerLogs is what the manager of an operator has logged so far.
func ManagerLogs(t testing.TB, operator string) string {
	t.Helper()
	return Kubectl(t, "logs", "-n", operator+"-operator-system", "deployment/"+operator+"-operator-controller-manager")
}
