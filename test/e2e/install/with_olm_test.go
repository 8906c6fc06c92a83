//go:build e2e

package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/draw"
)

// The real OLM v0 installs from the files that docs/install/olm.md names, as
// they are: each release, then the current version over it, and uninstalls
// with the commands of the page. Then every operator again, each in another
// install mode. No pod of a workload restarts, and no object changes.
//
// It is in the last file, so that it runs last: once the kubelet has pulled an
// image from a registry, it takes the same image under another name for one
// whose credentials are to be checked, and pulls that, too. Those of the other
// tests are in no registry.
func TestOperatorLifecycleManager(t *testing.T) {
	o := startOLM(t)
	for _, v := range append(slices.Clone(released), current) {
		o.publish(t, v)
	}
	for _, from := range released[:len(released)-1] {
		t.Run(from.number, func(t *testing.T) {
			draw.Part(t)
			upgradeByOLM(t, from)
		})
		// It remembers what was in a catalog of that name, which is an older one now.
		kubectl(t, "rollout", "restart", "deployment/catalog-operator", "-n", "olm")
		kubectl(t, "rollout", "status", "deployment/catalog-operator", "-n", "olm", "--timeout=10m")
	}
	unchanged := upgradeByOLM(t, last)
	t.Run("InstallModes", installModes)
	unchanged("with other operators elsewhere")
	olmUninstall(t)
}

// upgradeByOLM is upgrade, and the uninstall, of all operators in a package each.
func upgradeByOLM(t *testing.T, from *version) (unchanged func(when string)) {
	t.Helper()
	clean(t, operators...)
	// What is new in this version comes with the upgrade: all share a catalog, which is of one version.
	have := members(from, "all")
	namespace := newNamespace(t)
	install := func(v *version, operators []string) {
		for _, operator := range operators {
			kubectl(t, "apply", "-f", v.olmFile(operator, "v0-all-namespaces.yaml"))
		}
		for _, operator := range operators {
			succeeded(t, v, operator)
		}
	}
	install(from, have)
	populate(t, namespace, have...)
	before := look(t, namespace, have...)
	unchanged = func(when string) { before.unchanged(t, when, look(t, namespace, have...)) }

	install(current, operators)
	time.Sleep(3 * time.Second) // for what the new managers would do
	unchanged("after the upgrade")
	everywhere := mode{name: "AllNamespaces", watched: []string{"*"}}
	for _, operator := range operators {
		everywhere.compare(t, operator, clusterObjects(t))
	}

	olmUninstall(t)
	unchanged("after the uninstall")
	return unchanged
}

// installModes installs each operator for its own namespace, for one other, or
// for several: they do not know of each other, so all at once.
func installModes(t *testing.T) {
	modes := []mode{{name: "OwnNamespace"}, {name: "SingleNamespace"}, {name: "MultiNamespace"}}
	of := map[string]mode{}
	for i, operator := range operators {
		m := modes[i%len(modes)]
		switch m.name {
		case "OwnNamespace":
			m.watched = []string{namespaceOf(operator)}
		case "SingleNamespace":
			m.watched = []string{namespaceCalled(t, "one-"+operator)}
		case "MultiNamespace":
			m.watched = []string{namespaceCalled(t, "one-"+operator), namespaceCalled(t, "two-"+operator)}
		}
		of[operator] = m
		// The page says: name other namespaces here.
		content, err := os.ReadFile(current.olmFile(operator, "v0-own-namespace.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		own := "targetNamespaces: [" + namespaceOf(operator) + "]"
		manifest := strings.Replace(string(content), own, "targetNamespaces: ["+strings.Join(m.watched, ", ")+"]", 1)
		if !strings.Contains(string(content), own) {
			t.Fatalf("there is no line %s in\n%s", own, content)
		}
		if _, err := try(manifest, "kubectl", "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := newNamespace(t)
	for operator, m := range of {
		succeeded(t, current, operator)
		m.compare(t, operator, clusterObjects(t))
		objects, want := objectsOf(t, operator)
		kubectl(t, "apply", "-n", elsewhere, "-f", objects)
		for _, namespace := range m.watched {
			kubectl(t, "apply", "-n", namespace, "-f", objects)
		}
		for _, namespace := range m.watched {
			if namespace == namespaceOf(operator) {
				want++ // the manager's own
			}
			podsSettle(t, namespace, want)
		}
	}
	if pods := podsIn(t, elsewhere); len(pods) > 0 {
		t.Errorf("they work for another namespace too: %d pods", len(pods))
	}
	for operator, m := range of { // what goes with the namespaces must not wait for the operator
		objects, _ := objectsOf(t, operator)
		for _, namespace := range m.watched {
			kubectl(t, "delete", "-n", namespace, "-f", objects)
		}
	}
}

// olmUninstall runs the commands of the page for every operator, and the one
// for what they have in common when they are all gone.
func olmUninstall(t *testing.T) {
	t.Helper()
	const common = "if no other operator comes from it"
	commands := documented(t, "## OLM v0", "**Uninstall**")
	t.Run("Uninstall", func(t *testing.T) {
		for _, operator := range operators {
			t.Run(operator, func(t *testing.T) {
				t.Parallel()
				for _, command := range commands {
					if !strings.Contains(command, common) {
						names := strings.NewReplacer(
							packageOf("at")+"."+namespaceOf("at"), packageOf(operator)+"."+namespaceOf(operator), nameOf("at"), nameOf(operator))
						must(t, "bash", "-euc", names.Replace(command))
					}
				}
				nothingOf(t, operator)
			})
		}
	})
	for _, command := range commands {
		if strings.Contains(command, common) {
			must(t, "bash", "-euc", command)
		}
	}
	left := kubectl(t, "get", "operators.operators.coreos.com,csv,subscriptions,catalogsources,clusterroles,clusterrolebindings", "-A", "-o", "name")
	for name := range strings.FieldsSeq(left) {
		for _, operator := range operators {
			if strings.Contains(name, "/"+nameOf(operator)) || strings.Contains(name, "/"+packageOf(operator)+".") || strings.Contains(name, "/fairlead") {
				t.Errorf("left behind: %s", name)
			}
		}
	}
}

// documented are the commands of docs/install/olm.md in the first block after
// some words, in a section.
func documented(t *testing.T, section, words string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "install", "olm.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	_, rest, _ = strings.Cut(rest, words)
	_, rest, _ = strings.Cut(rest, "\n```\n")
	block, _, found := strings.Cut(rest, "\n```\n")
	if !found {
		t.Fatalf("docs/install/olm.md has no commands after %s in %s", words, section)
	}
	return strings.Split(block, "\n")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// mode is where an operator works, and so where it has which rights.
type mode struct {
	name    string
	watched []string // "*" is everywhere
}

// olmAdds are the rights that OLM gives beside those that an operator asks for.
func (m mode) olmAdds(t *testing.T, operator string) rights {
	adds, own := rights{}, namespaceOf(operator)
	for _, verb := range []string{"get", "update", "patch"} { // its OperatorCondition
		adds[right{own, verb, "operators.coreos.com", "operatorconditions", nameOf(operator) + ".v" + current.number}] = true
		adds[right{own, verb, "operators.coreos.com", "operatorconditions/status", nameOf(operator) + ".v" + current.number}] = true
	}
	if m.name == "AllNamespaces" {
		for _, verb := range []string{"get", "list", "watch"} {
			adds[right{"*", verb, "", "namespaces", ""}] = true
		}
	}
	for one := range rightsIn(t, operator, []string{"*"}) { // what is in no namespace, whatever is watched
		if one.resource == "nodes" || one.resource == "persistentvolumes" {
			adds[one] = true
		}
	}
	if m.name == "SingleNamespace" || m.name == "MultiNamespace" { // the operator's own namespace, as if it were watched
		maps.Copy(adds, rightsIn(t, operator, []string{own}))
	}
	return adds
}

// compare holds the rights that a manager has against those that the YAML gives
// for the same namespaces.
func (m mode) compare(t *testing.T, operator string, objects []object) {
	t.Helper()
	has := rightsOf(objects, namespaceOf(operator), nameOf(operator)+"-controller-manager")
	want := rightsIn(t, operator, m.watched)
	adds := m.olmAdds(t, operator)
	for _, r := range has.without(want, adds) {
		t.Errorf("%s of %s has a right more than by YAML: %s", m.name, operator, r)
	}
	for _, r := range want.without(has) {
		t.Errorf("%s of %s lacks a right that it has by YAML: %s", m.name, operator, r)
	}
}
