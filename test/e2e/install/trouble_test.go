//go:build e2e

package install

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The operators are installed alike, so one of them stands for all.

// Installing twice, and in two ways at once: refused with a message that says
// what is in the way, or harmless.
func TestTwiceAndTwoWaysAtOnce(t *testing.T) {
	operator := operators[0]
	name, namespace := nameOf(operator), namespaceOf(operator)
	clean(t, operator)
	objects := newNamespace(t)

	elsewhere := namespaceCalled(t, "elsewhere")
	t.Cleanup(func() { _, _ = try("", helmProgram, "uninstall", name, "--namespace", elsewhere) })
	helm(t, "install", name, current.chart(operator), "--namespace", elsewhere, "--wait", "--timeout", "10m")
	populate(t, objects, operator)
	before := look(t, objects, operator)

	refused(t, []string{"name"}, helmProgram, "install", name, current.chart(operator), "--namespace", elsewhere)
	refused(t, []string{"exists", "release-name"}, helmProgram, "install", "second", current.chart(operator), "--namespace", elsewhere)
	refused(t, []string{"exists", "release-namespace"}, helmProgram, "install", name, current.chart(operator), "--namespace", namespace, "--create-namespace")
	kubectl(t, "delete", "namespace", namespace, "--ignore-not-found")

	// kubectl does not know of Helm: two managers now, each with its own rights.
	kubectl(t, "apply", "-f", current.yaml(operator))
	rolledOut(t, operator)
	kubectl(t, "apply", "-f", current.yaml(operator))
	time.Sleep(2 * time.Second)
	before.unchanged(t, "with two managers", look(t, objects, operator))
	refused(t, []string{"exists"}, helmProgram, "install", name, current.chart(operator), "--namespace", namespace)

	// Either can go, and the other works on.
	helm(t, "uninstall", name, "--namespace", elsewhere, "--wait")
	before.unchanged(t, "after Helm's is uninstalled", look(t, objects, operator))
	more := namespaceCalled(t, "more")
	populate(t, more, operator)
}

// In the wrong order: objects before CRDs are refused, a manager before its
// CRDs waits for them.
func TestWrongOrder(t *testing.T) {
	operator := operators[0]
	clean(t, operator)
	namespace := newNamespace(t)
	file, _ := objectsOf(t, operator)
	refused(t, []string{"no matches for kind", "ensure CRDs are installed first"}, "kubectl", "apply", "--cache-dir", t.TempDir(), "-n", namespace, "-f", file)

	kubectl(t, "apply", "-f", current.yaml(operator), "-l", notCRDs)
	deployment := "deployment/" + nameOf(operator) + "-controller-manager"
	kubectl(t, "rollout", "status", deployment, "-n", namespaceOf(operator), "--timeout=10m")
	logs := kubectl(t, "logs", "-n", namespaceOf(operator), deployment)
	if !strings.Contains(logs, "it starts when its CRD appears") {
		t.Errorf("the log does not say what is missing:\n%s", logs)
	}
	kubectl(t, "apply", "-f", current.yaml(operator))
	populate(t, namespace, operator)
}

// Whoever may not install is told which right they lack, and nothing is made.
func TestWithoutTheRights(t *testing.T) {
	operator := operators[0]
	clean(t, operator)
	refused(t, []string{"forbidden", `User "somebody"`}, "kubectl", "apply", "--as=somebody", "-f", current.yaml(operator))
	refused(t, []string{"forbidden", `User "somebody"`}, helmProgram, "install", nameOf(operator), current.chart(operator),
		"--kube-as-user", "somebody", "--namespace", "default")
	nothingOf(t, operator)
}

// A namespaced install takes no right beyond its namespace, and works for that
// one only. Asked to watch everything it says what it lacks, is not ready, and
// the one before works on.
func TestNamespacedInstall(t *testing.T) {
	operator := operators[0]
	clean(t, operator)
	namespace, deployment := namespaceOf(operator), "deployment/"+nameOf(operator)+"-controller-manager"
	kubectl(t, "apply", "-f", current.yaml(operator), "-l", "app.kubernetes.io/component=crds")
	kubectl(t, "create", "namespace", namespace)
	kubectl(t, "create", "rolebinding", "everything", "-n", namespace, "--clusterrole=cluster-admin", "--user=somebody")
	file := filepath.Join(filepath.Dir(current.yaml(operator)), "install-namespaced-"+operator+".yaml")
	kubectl(t, "apply", "--as=somebody", "-f", file)
	rolledOut(t, operator)
	elsewhere := newNamespace(t)
	objects, pods := objectsOf(t, operator)
	kubectl(t, "apply", "-n", elsewhere, "-f", objects)
	kubectl(t, "apply", "-n", namespace, "-f", objects)
	eventually(t, 60*time.Second, func() error {
		if n := len(podsIn(t, namespace)) - 1; n != pods {
			return fmt.Errorf("%d pods, want %d", n, pods)
		}
		return nil
	})
	if pods := podsIn(t, elsewhere); len(pods) > 0 {
		t.Errorf("it works for another namespace too: %d pods", len(pods))
	}

	kubectl(t, "patch", deployment, "-n", namespace, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/template/spec/containers/0/env/0","value":{"name":"WATCH_NAMESPACE","value":""}}]`)
	eventually(t, 60*time.Second, func() error {
		newest := kubectl(t, "get", "pods", "-n", namespace, "-l", "control-plane=controller-manager",
			"--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[-1:].metadata.name}")
		logs, err := try("", "kubectl", "logs", "-n", namespace, newest)
		if err != nil || !strings.Contains(logs, "may not see what it is to work for") || !strings.Contains(logs, "at the cluster scope") {
			return fmt.Errorf("the log does not say what it lacks: %w\n%s", err, logs)
		}
		return nil
	})
	ready := kubectl(t, "get", deployment, "-n", namespace, "-o", "jsonpath={.status.updatedReplicas} {.status.readyReplicas}")
	if ready != "1 1" {
		t.Errorf("updated and ready replicas: %s, want the one before ready and the new one not", ready)
	}

	// With the right it goes on, without a restart.
	kubectl(t, "create", "clusterrolebinding", "everywhere", "--clusterrole=cluster-admin",
		"--serviceaccount="+namespace+":"+nameOf(operator)+"-controller-manager")
	t.Cleanup(func() { _, _ = try("", "kubectl", "delete", "clusterrolebinding", "everywhere") })
	kubectl(t, "rollout", "status", deployment, "-n", namespace, "--timeout=10m")
	podsSettle(t, elsewhere, pods)
}

// An older operator with the newer CRDs: it serves the objects and leaves the
// fields that it does not know. That is also how to downgrade.
func TestOlderOperatorAndNewerFields(t *testing.T) {
	operator := operators[0]
	clean(t, operator)
	namespace := newNamespace(t)
	kubectl(t, "apply", "-f", current.yaml(operator))
	rolledOut(t, operator)
	crds := strings.Fields(kubectl(t, "get", "crds", "-l", "app.kubernetes.io/component=crds", "-o", "name"))
	for _, crd := range crds {
		kubectl(t, "patch", crd, "--type=json", "-p",
			`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/future","value":{"type":"string"}}]`)
	}
	file, pods := objectsOf(t, operator)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.NewReplacer("spec: {", "spec: {future: kept, ", "\nspec:\n", "\nspec:\n  future: kept\n").Replace(string(content))
	eventually(t, 20*time.Second, func() error { // until the API server has the new schema
		_, err := try(newer, "kubectl", "apply", "-n", namespace, "-f", "-")
		return err
	})
	podsSettle(t, namespace, pods)
	before := look(t, namespace, operator)
	if n := strings.Count(strings.Join(values(before), " "), `"future": "kept"`); n == 0 {
		t.Fatal("no object has the newer field")
	}

	kubectl(t, "apply", "-f", last.yaml(operator), "-l", notCRDs)
	rolledOut(t, operator)
	time.Sleep(2 * time.Second)
	before.unchanged(t, "with the older operator", look(t, namespace, operator))
}

// A downgrade by Helm would replace CRDs by older ones, which drop fields. It
// is refused, with the way that loses nothing.
func TestDowngradeByHelm(t *testing.T) {
	operator := operators[0]
	clean(t, operator)
	namespace := newNamespace(t)
	ways[1].install(t, current, operator)
	populate(t, namespace, operator)
	before := look(t, namespace, operator)

	// CRDs that Helm would delete are not given up.
	same := []string{"upgrade", nameOf(operator), current.chart(operator), "--namespace", namespaceOf(operator), "--wait", "--timeout", "10m"}
	helm(t, append(same, "--set", "crds.keep=false")...)
	refused(t, []string{"Helm would delete it", "crds.keep=true"}, helmProgram, append(same, "--set", "crds.install=false")...)
	helm(t, append(same, "--set", "crds.keep=true")...)

	downgrade := []string{"upgrade", nameOf(operator), last.chart(operator), "--namespace", namespaceOf(operator), "--wait", "--timeout", "10m"}
	refused(t, []string{"older CRD would drop the fields", "crds.install=false"}, helmProgram, downgrade...)
	helm(t, append(downgrade, "--set", "crds.install=false")...)
	rolledOut(t, operator)
	time.Sleep(2 * time.Second)
	before.unchanged(t, "after the downgrade", look(t, namespace, operator))

	// A release of another name takes the kept CRDs over only when told to.
	ways[1].uninstall(t, last, operator)
	other := []string{"install", "other", current.chart(operator), "--namespace", namespaceOf(operator), "--wait", "--timeout", "10m"}
	refused(t, []string{"exists", "release-name"}, helmProgram, other...)
	helm(t, append(other, "--take-ownership")...)
	t.Cleanup(func() {
		_, _ = try("", helmProgram, "uninstall", "other", "--namespace", namespaceOf(operator), "--wait")
	})
	before.unchanged(t, "under another release", look(t, namespace, operator))
}

// Charts pass helm lint, their values are checked, and what they make is what
// the API server takes, whatever the values.
func TestCharts(t *testing.T) {
	for _, operator := range append(append([]string{}, operators...), "all") {
		chart := current.chart(operator)
		helm(t, "lint", "--strict", chart)
		refused(t, []string{"replica"}, helmProgram, "template", chart, "--set", "replica=2")
		refused(t, []string{"watchNamespaces"}, helmProgram, "template", chart, "--set", "watchNamespaces={UPPER}")
		for _, values := range [][]string{
			nil,
			{"--set", "watchNamespaces={default,kube-system}", "--set", "metrics.enabled=false", "--set", "userRoles=false"},
			{"--set", "replicas=2", "--set", "extraArgs={--leader-election=for-life}", "--set", "podLabels.a=b",
				"--set", "podAnnotations.a=b", "--set", "nodeSelector.a=b", "--set", "priorityClassName=system-cluster-critical",
				"--set", "tolerations[0].operator=Exists", "--set", "imagePullSecrets[0].name=pull", "--set", "image.tag=other",
				"--set", "crds.keep=false", "--set-json", `affinity={"nodeAffinity":{}}`},
		} {
			manifest := helm(t, append([]string{"template", nameOf(operator), chart, "--namespace", "default"}, values...)...)
			if out, err := try(manifest, "kubectl", "apply", "--dry-run=server", "--validate=strict", "--server-side", "-f", "-"); err != nil {
				t.Errorf("%s %v: %v\n%s", operator, values, err, out)
			}
			if kept := strings.Contains(manifest, "helm.sh/resource-policy: keep"); kept != (len(values) < 12) {
				t.Errorf("%s %v: the CRDs are kept: %t", operator, values, kept)
			}
		}
	}
}

// values are a world's.
func values(w world) []string {
	var all []string
	for _, value := range w {
		all = append(all, value)
	}
	return all
}
