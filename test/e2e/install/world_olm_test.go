//go:build e2e

package install

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// olm is a running Operator Lifecycle Manager, v0: its own programs from its own
// manifests. Only its images are made here, and the catalog of all the world's
// operators and the server of its contents are left out.
type olm struct {
	// place is where images are pushed to and pulled from: a registry in the
	// cluster, at the same address for the node and for this machine.
	place string
}

// programs is where make install-test puts OLM's.
var programs = filepath.Join(root, "bin", "olm")

const olmModule, olmAPIModule = "github.com/operator-framework/operator-lifecycle-manager", "github.com/operator-framework/api"

func startOLM(t *testing.T) *olm {
	t.Helper()
	o := &olm{place: startRegistry(t)}
	program := func(names ...string) []string {
		var files []string
		for _, name := range names {
			files = append(files, "bin/"+name+"="+filepath.Join(programs, name))
		}
		return files
	}
	const image = "olm:test"
	must(t, localcluster, append([]string{"load", "--dir", clusterDir, image}, program("olm", "catalog", "copy-content", "cpb", "cp")...)...)
	opm := o.push(t, "opm", "opm", "grpc_health_probe")

	for _, crd := range glob(t, filepath.Join(moduleFolder(t, olmAPIModule), "crds", "*.yaml")) {
		kubectl(t, "apply", "--server-side", "-f", crd)
	}
	content, err := os.ReadFile(filepath.Join(moduleFolder(t, olmModule), "deploy", "upstream", "quickstart", "olm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if !strings.Contains(document, "\nkind: ClusterServiceVersion\n") && !strings.Contains(document, "\nkind: CatalogSource\n") {
			kept = append(kept, document)
		}
	}
	manifest := regexp.MustCompile(`\S+/olm@sha256:[0-9a-f]+`).ReplaceAllString(strings.Join(kept, "\n---\n"), image)
	// The manifest is older than the program, which wants two dashes.
	manifest = strings.NewReplacer("- '-namespace'\n", "- --namespace\n", "- -configmapServerImage", "- --configmapServerImage",
		"- -util-image\n", "- --opmImage="+opm+"\n          - --util-image\n").Replace(manifest)
	eventually(t, 30*time.Second, func() error { // until its kinds are served
		_, err := try(manifest, "kubectl", "apply", "--server-side", "-f", "-")
		return err
	})
	t.Cleanup(func() {
		_, _ = try("", "kubectl", "delete", "namespace", "olm", "operators", "--wait=false")
		_, _ = try("", "kubectl", "delete", "crds", "-l", "!app.kubernetes.io/part-of", "--wait=false")
	})
	for _, deployment := range []string{"olm-operator", "catalog-operator"} {
		kubectl(t, "rollout", "status", "deployment/"+deployment, "-n", "olm", "--timeout=10m")
	}
	return o
}

var localcluster = filepath.Join(root, "bin", "localcluster")

// startRegistry runs a registry on the node's network. containerd pulls from
// localhost without TLS; what is sent to the same port here goes there.
func startRegistry(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	const image = "registry:test"
	must(t, localcluster, "load", "--dir", clusterDir, image, filepath.Join(programs, "crane"))
	namespace := namespaceCalled(t, "registry")
	_, err = try(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: registry, namespace: %s}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
    - name: registry
      image: %s
      args: [registry, serve, "--address=:%d"]
      readinessProbe: {httpGet: {path: /v2/, port: %d}, periodSeconds: 1}
`, namespace, image, port, port), "kubectl", "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "wait", "--for=condition=Ready", "pod/registry", "-n", namespace, "--timeout=10m")
	node := kubectl(t, "get", "pod", "registry", "-n", namespace, "-o", "jsonpath={.status.hostIP}")
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(from, net.JoinHostPort(node, strconv.Itoa(port)))
		}
	}()
	return fmt.Sprintf("localhost:%d", port)
}

// forward passes a connection on, both ways, until either end closes it.
func forward(from net.Conn, address string) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}

// push makes an image of some of OLM's programs and pushes it.
func (o *olm) push(t *testing.T, name string, files ...string) string {
	t.Helper()
	crane, layer, reference := filepath.Join(programs, "crane"), filepath.Join(temp, name+".tar"), o.place+"/"+name+":test"
	must(t, "tar", append([]string{"-C", programs, "--transform=s,^,bin/,", "-cf", layer}, files...)...)
	must(t, crane, "append", "--new_layer", layer, "--new_tag", reference)
	must(t, crane, "mutate", "--tag", reference, "--set-platform", "linux/"+runtime.GOARCH, "--user", "65532", "--env", "PATH=/bin", reference)
	return reference
}

// publish makes and pushes a version's images, as docs/install/olm.md says.
func (o *olm) publish(t *testing.T, v *version) {
	t.Helper()
	base := o.place + "/fairlead"
	dist := func(image string, command ...string) {
		args := []string{"-C", source, "-version", v.number, "-out", v.dir, "-platforms", "linux/" + runtime.GOARCH, "-image-base", base, "-image", image}
		fmt.Print(must(t, filepath.Join(root, "bin", "dist"), append(args, command...)...))
	}
	dist(base+":v"+v.number, "push", "image")
	for _, what := range []string{"bundles", "catalog"} {
		dist("", what)
		dist("", "push", what)
	}
}

func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(must(t, "go", "list", "-C", filepath.Join(root, "tools", "olm"), "-m", "-f", "{{.Dir}}", module))
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found
}

// olmFile is one of the manifests that a version is installed with.
func (v *version) olmFile(operator, name string) string {
	return filepath.Join(v.dir, "olm", nameOf(operator), name)
}

// succeeded waits until OLM has installed a version, and the manager works.
func succeeded(t *testing.T, v *version, operator string) {
	t.Helper()
	name := nameOf(operator) + ".v" + v.number
	eventually(t, 5*time.Minute, func() error {
		csv, err := try("", "kubectl", "get", "csv", name, "-n", namespaceOf(operator), "-o", "jsonpath={.status.phase} {.status.message}")
		if err != nil || !strings.HasPrefix(csv, "Succeeded ") {
			pods, _ := try("", "kubectl", "get", "pods,subscriptions,installplans,csv", "-A", "-o", "wide")
			return fmt.Errorf("%s: %s %w\n%s\n%s", name, csv, err, pods, catalogTrouble(t))
		}
		return nil
	})
	rolledOut(t, operator)
}

// catalogTrouble is what the containers of the catalog's pods say that do not run.
func catalogTrouble(t *testing.T) string {
	t.Helper()
	text, err := try("", "kubectl", "get", "pods", "-n", "olm", "-o", "json")
	var list corev1.PodList
	if err != nil || json.Unmarshal([]byte(text), &list) != nil {
		return text
	}
	var all []string
	for _, pod := range list.Items {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if waiting, ended := status.State.Waiting, status.State.Terminated; waiting != nil {
				all = append(all, fmt.Sprintf("%s/%s: %s: %s", pod.Name, status.Name, waiting.Reason, waiting.Message))
			} else if ended != nil && ended.ExitCode != 0 {
				all = append(all, fmt.Sprintf("%s/%s: exit code %d: %s", pod.Name, status.Name, ended.ExitCode, ended.Message))
			}
		}
	}
	return strings.Join(all, "\n")
}
