//go:build e2e

package install

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// What `make image` makes is loaded by the commands that kind, minikube and k3d
// run in their nodes, run in the local cluster's: for kind, by kind's own code.
// Nothing can be pulled here, so the manager runs what was loaded.
func TestLoadedByKindMinikubeAndK3d(t *testing.T) {
	const image = "docker.io/library/fairlead:dev"
	clean(t, "all")
	out := filepath.Join(temp, "local")
	must(t, filepath.Join(root, "bin", "dist"), "-C", source, "-version", currentNumber, "-out", out, "-image", "fairlead:dev",
		"-platforms", "linux/"+runtime.GOARCH, "local")
	archive := filepath.Join(out, "fairlead.tar")
	must(t, "cp", archive, clusterDir) // inside it is /cluster
	kindload := filepath.Join(temp, "kindload")
	must(t, "go", "build", "-C", filepath.Join(root, "tools", "dist"), "-o", kindload, "./kindload")

	node := inNode(t)
	for _, load := range []struct {
		tool    string
		command []string
	}{
		{"kind", append([]string{kindload, archive}, node...)},
		{"minikube", append(node, "ctr", "-n=k8s.io", "images", "import", "/cluster/fairlead.tar")},
		// The ctr of k3s has the namespace by itself.
		{"k3d", append(node, "CONTAINERD_NAMESPACE=k8s.io", "ctr", "image", "import", "--all-platforms", "/cluster/fairlead.tar")},
	} {
		t.Run(load.tool, func(t *testing.T) {
			images := func(args ...string) string {
				command := slices.Concat(node, []string{"ctr", "-n=k8s.io", "images"}, args)
				return strings.TrimSpace(must(t, command[0], command[1:]...))
			}
			images("remove", image)
			if left := images("list", "--quiet", "name=="+image); left != "" {
				t.Fatalf("the image is there before it is loaded: %s", left)
			}
			must(t, load.command[0], load.command[1:]...)
			if loaded := images("list", "--quiet", "name=="+image); loaded != image {
				t.Fatalf("loaded %q, want %s", loaded, image)
			}
			kubectl(t, "apply", "-f", filepath.Join(out, "install.yaml"))
			rolledOut(t, "all")
			populate(t, newNamespace(t), "at")
			kubectl(t, "delete", "-f", filepath.Join(out, "install.yaml"))
		})
	}
}

// inNode begins a command that runs in the local cluster's node, as one after
// `docker exec` does in kind's.
func inNode(t *testing.T) []string {
	t.Helper()
	entries, err := filepath.Glob("/run/localcluster/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range entries {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var entry struct {
			Dir  string
			Init struct{ PID int }
		}
		if json.Unmarshal(content, &entry) == nil && entry.Dir == clusterDir {
			return []string{"nsenter", "--all", "--target", fmt.Sprint(entry.Init.PID),
				"env", "PATH=/cluster/debian/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		}
	}
	t.Fatalf("no cluster of %s is in /run/localcluster", clusterDir)
	return nil
}
