//go:build e2e

// Package e2e shows on a real cluster what only a real cluster can show. It
// runs on a local cluster, which $KUBECONFIG and $LOCALCLUSTER_DIR name: `make
// e2e` makes one for it. Every operator is deployed by itself, as its guide
// says, and the walkthroughs go through kubectl, as a user would.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/fairlead/operators"
)

var (
	// root is the folder of the repository.
	root = filepath.Join("..", "..")
	// clusterDir is the local cluster's folder.
	clusterDir = os.Getenv("LOCALCLUSTER_DIR")
	restConfig *rest.Config
	c          client.Client
)

func TestMain(m *testing.M) {
	if err := setUp(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func setUp() error {
	if clusterDir == "" || os.Getenv("KUBECONFIG") == "" {
		return fmt.Errorf("$LOCALCLUSTER_DIR and $KUBECONFIG must name a local cluster: run make e2e")
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	for _, operator := range operators.All {
		utilruntime.Must(operator.AddToScheme(scheme))
		deploy := exec.Command(filepath.Join(root, "hack", "deploy.sh"), operator.Name)
		deploy.Stdout, deploy.Stderr = os.Stdout, os.Stderr
		if err := deploy.Run(); err != nil {
			return fmt.Errorf("deploy the %s operator: %w", operator.Name, err)
		}
	}
	var err error
	if restConfig, err = config.GetConfig(); err != nil {
		return err
	}
	restConfig.QPS = -1
	c, err = client.New(restConfig, client.Options{Scheme: scheme})
	return err
}

// tryKubectl runs kubectl and returns what it prints on both outputs.
func tryKubectl(stdin string, args ...string) (string, error) {
	cmd := exec.Command("kubectl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// kubectl runs kubectl, which must succeed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryKubectl("", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies a manifest in a namespace, which must succeed.
func apply(t *testing.T, namespace, manifest string) {
	t.Helper()
	if _, err := tryKubectl(manifest, "apply", "-n", namespace, "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
}

// eventually waits until check succeeds, and fails with its last error.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", within, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// newNamespace is a namespace for one test, removed at its end.
func newNamespace(t *testing.T, labels ...string) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(name) > 50 {
		name = name[:50]
	}
	name = fmt.Sprintf("%s-%d", name, time.Now().UnixNano()%1e6)
	kubectl(t, "create", "namespace", name)
	for _, label := range labels {
		kubectl(t, "label", "namespace", name, label)
	}
	t.Cleanup(func() { _, _ = tryKubectl("", "delete", "namespace", name, "--wait=false") })
	return name
}

// fields splits what kubectl get prints into rows of columns, without the
// header.
func fields(out string) [][]string {
	var rows [][]string
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if i > 0 {
			rows = append(rows, strings.Fields(line))
		}
	}
	return rows
}

// managerLogs is what the manager of an operator has logged so far.
func managerLogs(t *testing.T, operator string) string {
	t.Helper()
	return kubectl(t, "logs", "-n", operator+"-operator-system", "deployment/"+operator+"-operator-controller-manager")
}

// quantity parses a quantity such as 16Mi.
func quantity(s string) resource.Quantity { return resource.MustParse(s) }
