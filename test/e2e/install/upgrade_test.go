//go:build e2e

package install

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/draw"
)

// Every operator, and all in one, in every way: the last release is installed
// and given objects of all kinds, upgraded to the current version, uninstalled,
// and installed again. No pod of a workload restarts, and no object changes.
func TestInstallUpgradeUninstall(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			// One operator does not know of the other, so they go side by side.
			t.Run("each", func(t *testing.T) {
				for _, operator := range operators {
					t.Run(operator, func(t *testing.T) {
						t.Parallel()
						draw.Part(t)
						lifeCycle(t, way, operator)
					})
				}
			})
			t.Run("all", func(t *testing.T) { lifeCycle(t, way, "all") })
		})
	}
}

// The same upgrade from each release before the last one, of all operators in one.
func TestUpgradeFromEarlierReleases(t *testing.T) {
	for _, from := range released[:len(released)-1] {
		for _, way := range ways {
			t.Run(from.number+"/"+way.name, func(t *testing.T) { upgrade(t, way, from, "all") })
		}
	}
}

// Helm 3 takes the same charts.
func TestHelm3(t *testing.T) {
	if version := must(t, helm3Program, "version", "--template", "{{.Version}}"); !strings.HasPrefix(version, "v3.") {
		t.Fatalf("%s is Helm %s", helm3Program, version)
	}
	lifeCycle(t, byHelm("helm 3", helm3Program), operators[0])
}

func lifeCycle(t *testing.T, way way, operator string) {
	from := last
	if !from.has(operator) {
		t.Logf("%s is not in an earlier release: there is nothing to upgrade from", operator)
		from = current
	}
	unchanged := upgrade(t, way, from, operator)

	way.uninstall(t, current, operator)
	nothingOf(t, operator)
	unchanged("after the uninstall")

	way.install(t, current, operator)
	time.Sleep(2 * time.Second)
	unchanged("installed again")
}

// upgrade installs a version and has it make objects, and then installs the current one. What it returns fails for any
// of them, or of their pods, that is another one since.
func upgrade(t *testing.T, way way, from *version, operator string) (unchanged func(when string)) {
	namespace := newNamespace(t)
	clean(t, operator)
	way.install(t, from, operator)
	have := members(from, operator)
	populate(t, namespace, have...)
	before := look(t, namespace, have...)
	unchanged = func(when string) { before.unchanged(t, when, look(t, namespace, have...)) }

	way.install(t, current, operator)
	time.Sleep(3 * time.Second) // for what the new manager would do
	unchanged("after the upgrade")
	return unchanged
}
