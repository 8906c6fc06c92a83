//go:build e2e

package install

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Krew installs the plugin under both of its names, kubectl finds it, and it is the same program that goes by its name.
func TestPluginByKrew(t *testing.T) {
	out := filepath.Join(temp, "plugins")
	must(t, filepath.Join(root, "bin", "dist"), "-C", source, "-version", currentNumber, "-out", out,
		"-plugin-platforms", runtime.GOOS+"/"+runtime.GOARCH, "plugins")
	archive := filepath.Join(out, "plugins", "kubectl-fairlead-v"+currentNumber+"-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
	krew := t.TempDir()
	t.Setenv("KREW_ROOT", krew)
	t.Setenv("KREW_NO_UPGRADE_CHECK", "1")
	t.Setenv("PATH", filepath.Join(krew, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, usage := range map[string]string{"fairlead": "kubectl fairlead [command]", "at": "kubectl at TIME [DATE]"} {
		must(t, filepath.Join(root, "bin", "krew"), "install", "--manifest="+filepath.Join(out, "plugins", name+".yaml"), "--archive="+archive)
		if said := kubectl(t, name, "--help"); !strings.Contains(said, "Usage:\n  "+usage) {
			t.Errorf("kubectl %s --help: want the usage %q in\n%s", name, usage, said)
		}
	}
}
