//go:build e2e

// Package install installs, upgrades and uninstalls on a real cluster, in every
// way. It needs a local cluster of its own, without CRDs of ours: `make
// install-test` makes one.
package install

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/draw"
	"example.com/fairlead/internal/testkit/pace"
)

var (
	root       = filepath.Join("..", "..", "..")
	clusterDir = os.Getenv("LOCALCLUSTER_DIR")
	temp       string
	// operators are the folders, each an operator.
	operators []string
	// current is the version that is made from the files here, released are those in
	// hack/releases, oldest first, and last is the newest of them.
	current, last *version
	released      []*version
)

// current's number is later than any.
const currentNumber = "999.0.0"

// version is what a version is installed from.
type version struct{ number, dir string }

// has says whether an operator is in the version.
func (v *version) has(operator string) bool { return exists(v.yaml(operator)) }

func (v *version) image() string { return "fairlead:v" + v.number }

// yaml is the manifest of an operator, or of all.
func (v *version) yaml(operator string) string {
	if operator == "all" {
		return filepath.Join(v.dir, "install.yaml")
	}
	return filepath.Join(v.dir, "install-"+operator+".yaml")
}

func (v *version) chart(operator string) string {
	return filepath.Join(v.dir, "charts", nameOf(operator)+"-"+v.number+".tgz")
}

// nameOf is what an operator's install is called.
func nameOf(operator string) string {
	if operator == "all" {
		return "fairlead"
	}
	return operator + "-operator"
}

// packageOf is the operator's package in the catalog: that of etcd has the name that guides have for it.
func packageOf(operator string) string {
	if operator == "etcd" {
		return operator
	}
	return nameOf(operator)
}

// namespaceOf is where an operator is installed.
func namespaceOf(operator string) string {
	if operator == "all" {
		return "fairlead-system"
	}
	return operator + "-operator-system"
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if temp, err = os.MkdirTemp("", "install-test-"); err == nil {
		defer func() { _ = os.RemoveAll(temp) }()
		err = setUp()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "install: %v\n", err)
		return 1
	}
	return draw.Run(m, "^Test(InstallUpgradeUninstall|Helm3|PluginByKrew|OperatorLifecycleManager)$")
}

func setUp() error {
	if clusterDir == "" || os.Getenv("KUBECONFIG") == "" {
		return fmt.Errorf("$LOCALCLUSTER_DIR and $KUBECONFIG must name a local cluster: run make install-test")
	}
	if crds, err := try("", "kubectl", "get", "crds", "-o", "name"); err != nil || crds != "" {
		return fmt.Errorf("the cluster has CRDs, these tests would remove ours: %s %w", crds, err)
	}
	folders, err := filepath.Glob(filepath.Join(root, "operators", "*", "operator.go"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		operators = append(operators, filepath.Base(filepath.Dir(folder)))
	}
	if err := takeSource(); err != nil {
		return err
	}
	if current, err = makeVersion(currentNumber); err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(root, "hack", "releases"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue // what the file is about
		}
		if last, err = makeVersion(strings.Fields(line)[0]); err != nil {
			return err
		}
		released = append(released, last)
	}
	return nil
}

// source is the work tree as it was when the tests began: what somebody edits or
// commits meanwhile would make another image.
var source string

func takeSource() error {
	source = filepath.Join(temp, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	args := []string{"-a", "-t", source}
	for _, entry := range entries {
		if name := entry.Name(); name != ".cluster" && name != "bin" && name != "dist" {
			args = append(args, filepath.Join(root, name))
		}
	}
	_, err = try("", "cp", args...)
	return err
}

// makeVersion makes the manifests, charts and the image of a version.
func makeVersion(number string) (*version, error) {
	v := &version{number: number, dir: filepath.Join(temp, number)}
	for _, what := range []string{"yaml", "charts", "image"} {
		out, err := try("", filepath.Join(root, "bin", "dist"), "-C", source, "-version", number, "-out", v.dir,
			"-platforms", "linux/"+runtime.GOARCH, what)
		if err != nil {
			return nil, err
		}
		fmt.Print(out)
	}
	_, err := try("", filepath.Join(root, "bin", "localcluster"), "load", "--dir", clusterDir, v.image(),
		filepath.Join(v.dir, "images", "fairlead-v"+number+".tar"))
	return v, err
}

// try runs a program and returns what it prints on both outputs.
func try(stdin, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+temp+"/helm", "HELM_CONFIG_HOME="+temp+"/helm", "HELM_DATA_HOME="+temp+"/helm")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, "kubectl", args...)
}

func helm(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, helmProgram, args...)
}

var (
	helmProgram  = filepath.Join(root, "bin", "helm")
	helm3Program = filepath.Join(root, "bin", "helm3")
)

func must(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := try("", program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs what must fail, with a message that has all of the words.
func refused(t *testing.T, words []string, program string, args ...string) {
	t.Helper()
	out, err := try("", program, args...)
	if err == nil {
		t.Errorf("%s %v is not refused:\n%s", filepath.Base(program), args, out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			t.Errorf("%s %v: the message lacks %q:\n%s", filepath.Base(program), args, word, out)
		}
	}
}

func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	pace.Eventually(t, within, check)
}

// newNamespace is a namespace for a test, gone at its end.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(t.Name()))
	return namespaceCalled(t, strings.Trim(name[:min(len(name), 50)], "-"))
}

func namespaceCalled(t *testing.T, name string) string {
	t.Helper()
	kubectl(t, "create", "namespace", name)
	t.Cleanup(func() { _, _ = try("", "kubectl", "delete", "namespace", name, "--wait=false") })
	return name
}
