//go:build e2e

package install

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// notCRDs selects all of a manifest but the CRDs.
const notCRDs = "app.kubernetes.io/component!=crds"

// way is a way to install.
type way struct {
	name string
	// install installs a version, or upgrades to it.
	install func(t *testing.T, v *version, operator string)
	// uninstall removes the operator and leaves the objects.
	uninstall func(t *testing.T, v *version, operator string)
}

var ways = []way{
	{
		name: "yaml",
		install: func(t *testing.T, v *version, operator string) {
			if v == current {
				kubectl(t, "apply", "-k", policyOf(operator))
			}
			kubectl(t, "apply", "-f", v.yaml(operator))
			rolledOut(t, operator)
		},
		uninstall: func(t *testing.T, v *version, operator string) {
			kubectl(t, "delete", "-f", v.yaml(operator), "-l", notCRDs)
			kubectl(t, "delete", "-k", policyOf(operator))
		},
	},
	byHelm("helm", helmProgram),
}

// byHelm is the way with a version of Helm.
func byHelm(name, helm string) way {
	return way{
		name: name,
		install: func(t *testing.T, v *version, operator string) {
			args := []string{"upgrade", "--install", nameOf(operator), v.chart(operator), "--namespace", namespaceOf(operator),
				"--create-namespace", "--wait", "--timeout", "10m"}
			if v == current {
				args = append(args, "--set", "admissionPolicy.enabled=true")
			}
			must(t, helm, args...)
			rolledOut(t, operator)
		},
		uninstall: func(t *testing.T, _ *version, operator string) {
			must(t, helm, "uninstall", nameOf(operator), "--namespace", namespaceOf(operator), "--wait")
		},
	}
}

// policyOf is the folder with the admission policy of an operator, or of all.
func policyOf(operator string) string {
	if operator == "all" {
		operator = ""
	}
	return filepath.Join(root, "operators", operator, "config", "policy")
}

// rolledOut waits until the manager runs, leads and works.
func rolledOut(t *testing.T, operator string) {
	t.Helper()
	deployment, namespace := "deployment/"+nameOf(operator)+"-controller-manager", namespaceOf(operator)
	kubectl(t, "rollout", "status", deployment, "-n", namespace, "--timeout=10m")
	eventually(t, 60*time.Second, func() error {
		pods := kubectl(t, "get", "pods", "-n", namespace, "-l", "control-plane=controller-manager", "-o", "name")
		if n := len(strings.Fields(pods)); n != 1 {
			return fmt.Errorf("%d manager pods", n)
		}
		if out, err := try("", "kubectl", "logs", "-n", namespace, deployment); err != nil || !strings.Contains(out, "Starting workers") {
			return fmt.Errorf("the manager does not work yet: %w\n%s", err, out)
		}
		return nil
	})
}

// members are the operators of an install that the version has.
func members(v *version, operator string) []string {
	if operator != "all" {
		return []string{operator}
	}
	var have []string
	for _, name := range operators {
		if v.has(name) {
			have = append(have, name)
		}
	}
	return have
}

// objectsOf is the file with the objects of an operator, and how many pods
// they make.
func objectsOf(t *testing.T, operator string) (file string, pods int) {
	t.Helper()
	file = filepath.Join(root, "operators", operator, "config", "testing", "objects.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(content), "# pods: %d", &pods); err != nil {
		t.Fatalf("%s does not begin with # pods: and a number: %v", file, err)
	}
	return file, pods
}

// populate makes the objects of the operators and waits until their pods run.
func populate(t *testing.T, namespace string, operators ...string) {
	t.Helper()
	want := 0
	for _, operator := range operators {
		file, pods := objectsOf(t, operator)
		kubectl(t, "apply", "-n", namespace, "-f", file)
		want += pods
	}
	podsSettle(t, namespace, want)
}

// podsSettle waits for so many pods that are ready, or have ended well.
func podsSettle(t *testing.T, namespace string, want int) {
	t.Helper()
	eventually(t, 90*time.Second, func() error {
		pods := podsIn(t, namespace)
		if len(pods) != want {
			return fmt.Errorf("%d pods, want %d", len(pods), want)
		}
		for _, pod := range pods {
			if !settled(pod) {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
}

func settled(pod corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func podsIn(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pods", "-n", namespace, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// world is what must not change: the pods and their containers, and what the
// objects ask for.
type world map[string]string

func look(t *testing.T, namespace string, operators ...string) world {
	t.Helper()
	seen := world{}
	for _, pod := range podsIn(t, namespace) {
		about := string(pod.UID)
		for _, container := range pod.Status.ContainerStatuses {
			about += fmt.Sprintf(" %s %d %s", container.Name, container.RestartCount, container.ContainerID)
		}
		seen["pod "+pod.Name] = about
	}
	for _, operator := range operators {
		file, _ := objectsOf(t, operator)
		var list struct {
			Items []struct {
				Kind     string
				Metadata struct{ Name, UID string }
				Spec     json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(kubectl(t, "get", "-n", namespace, "-f", file, "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, object := range list.Items {
			seen[object.Kind+" "+object.Metadata.Name] = object.Metadata.UID + " " + string(object.Spec)
		}
	}
	return seen
}

// unchanged fails for whatever differs from before.
func (before world) unchanged(t *testing.T, when string, after world) {
	t.Helper()
	for name, was := range before {
		if is := after[name]; is != was {
			t.Errorf("%s: %s was %s, is %s", when, name, was, is)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%s: there were %d objects and pods, there are %d", when, len(before), len(after))
	}
}

// nothingOf fails if anything of an operator's install is left but the CRDs.
func nothingOf(t *testing.T, operator string) {
	t.Helper()
	eventually(t, 60*time.Second, func() error {
		// The kinds of each look are those of that moment: a test beside this one
		// removes its operator's CRDs, and kubectl refuses a kind that is no more.
		namespaced, err := kinds(true)
		if err != nil {
			return err
		}
		others, err := kinds(false)
		if err != nil {
			return err
		}
		left, err := try("", "kubectl", "get", namespaced+","+others, "-A", "-l", "app.kubernetes.io/part-of=fairlead,app.kubernetes.io/name="+nameOf(operator), "-o", "name", "--ignore-not-found")
		if err != nil {
			return err
		}
		if strings.TrimSpace(left) != "" && !strings.Contains(left, "No resources found") {
			return fmt.Errorf("left behind: %s", left)
		}
		// Helm leaves the namespace, with what every namespace has.
		in, err := try("", "kubectl", "get", namespaced, "-n", namespaceOf(operator), "-o", "name", "--ignore-not-found")
		for _, name := range strings.Fields(in) {
			if name != "configmap/kube-root-ca.crt" && name != "serviceaccount/default" && strings.Contains(name, "/") {
				return fmt.Errorf("left behind in %s: %s", namespaceOf(operator), name)
			}
		}
		return err
	})
}

// kinds are those that can be listed and deleted, in a namespace or in none, as
// kubectl takes them; CRDs are not among them.
func kinds(namespaced bool) (string, error) {
	out, err := try("", "kubectl", "api-resources", "--verbs=list,delete", "-o", "name", fmt.Sprintf("--namespaced=%t", namespaced))
	all := slices.DeleteFunc(strings.Fields(out), func(kind string) bool {
		return kind == "endpoints" || kind == "customresourcedefinitions.apiextensions.k8s.io" || strings.HasPrefix(kind, "events")
	})
	return strings.Join(all, ","), err
}

// clean removes everything, whatever a test has left.
func clean(t *testing.T, installed ...string) {
	t.Cleanup(func() {
		for _, operator := range installed {
			_, _ = try("", helmProgram, "uninstall", nameOf(operator), "--namespace", namespaceOf(operator), "--wait", "--ignore-not-found")
			for flag, what := range map[string]string{"-k": policyOf(operator), "-f": current.yaml(operator)} {
				if out, err := try("", "kubectl", "delete", flag, what, "--ignore-not-found", "--timeout=10m"); err != nil {
					t.Errorf("clean up: %v\n%s", err, out)
				}
			}
		}
	})
}
