//go:build e2e

package webserver

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// The two versions of nginx that the local cluster can make.
const (
	oldNginx = "nginx:1.22.1"
	newNginx = "nginx:1.26.3"
)

// webURL waits until a WebServer is ready, and returns where it is.
func webURL(t testing.TB, namespace, name string) string {
	t.Helper()
	e2e.Kubectl(t, "wait", "-n", namespace, "--for=condition=Ready", e2e.Patience, "webserver/"+name)
	return e2e.Kubectl(t, "get", "webserver", name, "-n", namespace, "-o", "jsonpath={.status.url}")
}

// page gets a page over a connection of its own.
func page(url string) (string, error) {
	client := http.Client{Timeout: pace.Scale(5 * time.Second), Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(body), err
}

// podNames are the pods of a WebServer that are not about to go.
func podNames(t testing.TB, namespace, name string) []string {
	t.Helper()
	out := e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "webserver_cr="+name,
		"-o", `go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`)
	return strings.Fields(out)
}

// wantDeployment waits until kubectl get deployment shows that many pods, all
// of them up to date.
func wantDeployment(t testing.TB, namespace, name string, replicas int) {
	t.Helper()
	want := fmt.Sprintf("%d/%d", replicas, replicas)
	pace.Eventually(t, 2*time.Minute, func() error {
		out, err := e2e.TryKubectl("", "get", "deployment", name, "-n", namespace)
		if err != nil {
			return err
		}
		rows := e2e.Rows(out)
		if len(rows) != 1 || rows[0][1] != want || rows[0][2] != fmt.Sprint(replicas) || len(podNames(t, namespace, name)) != replicas {
			return fmt.Errorf("kubectl get deployment shows %v, want %s", rows, want)
		}
		return nil
	})
}

// freeTheGuidesPort removes the WebServers of other tests, and nobody else's.
func freeTheGuidesPort(t *testing.T) {
	t.Helper()
	for _, namespace := range strings.Fields(e2e.Kubectl(t, "get", "namespaces", "-l", e2e.Label, "-o", "jsonpath={.items[*].metadata.name}")) {
		e2e.Kubectl(t, "delete", "webservers", "--all", "-n", namespace)
	}
	pace.Eventually(t, 30*time.Second, func() error {
		if out := e2e.Kubectl(t, "get", "services", "--all-namespaces"); strings.Contains(out, ":30010/") {
			return fmt.Errorf("port 30010 is still taken:\n%s", out)
		}
		return nil
	})
	time.Sleep(3 * time.Second) // until the operator asks for it again
}

func TestWebServerWalkthrough(t *testing.T) {
	freeTheGuidesPort(t)
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	manifest := func(image string, replicas int) string {
		return fmt.Sprintf(`
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: webserver-sample}
spec:
  image: %s
  replicas: %d
`, image, replicas)
	}
	e2e.Apply(t, ns, manifest(oldNginx, 3))
	wantDeployment(t, ns, "webserver-sample", 3)
	url := webURL(t, ns, "webserver-sample")
	if !strings.HasSuffix(url, ":30010") {
		t.Errorf("status.url is %s, want port 30010", url)
	}
	wantService := func() error {
		out, err := e2e.TryKubectl("", "get", "service", "-n", ns, "webserver-sample-service")
		if err != nil {
			return err
		}
		if rows := e2e.Rows(out); rows[0][1] != "NodePort" || rows[0][4] != "80:30010/TCP" {
			return fmt.Errorf("kubectl get service: %v", rows)
		}
		body, err := page(url)
		if err == nil && !strings.Contains(body, "Welcome to nginx") {
			err = fmt.Errorf("the page is %q", body)
		}
		return err
	}
	pace.Eventually(t, 10*time.Second, wantService)
	first := podNames(t, ns, "webserver-sample")
	for _, pod := range first {
		if !regexp.MustCompile(`^webserver-sample-[a-z0-9]+-[a-z0-9]{5}$`).MatchString(pod) {
			t.Errorf("a pod has the name %s", pod)
		}
	}
	out := e2e.Kubectl(t, "get", "webserver", "-n", ns)
	if header := strings.Join(strings.Fields(strings.Split(out, "\n")[0]), " "); header != "NAME IMAGE DESIRED READY URL STATUS AGE" {
		t.Errorf("columns of kubectl get webserver: %s", header)
	}

	e2e.Apply(t, ns, manifest(oldNginx, 4))
	wantDeployment(t, ns, "webserver-sample", 4)
	second := podNames(t, ns, "webserver-sample")
	for _, pod := range first {
		if !slices.Contains(second, pod) {
			t.Errorf("pod %s did not outlive the scale-up: %v", pod, second)
		}
	}

	e2e.Apply(t, ns, manifest(newNginx, 4))
	pace.Eventually(t, 2*time.Minute, func() error {
		for _, pod := range podNames(t, ns, "webserver-sample") {
			if slices.Contains(second, pod) {
				return fmt.Errorf("pod %s is still there", pod)
			}
		}
		return nil
	})
	wantDeployment(t, ns, "webserver-sample", 4)

	e2e.Kubectl(t, "delete", "service/webserver-sample-service", "-n", ns)
	pace.Eventually(t, 5*time.Second, wantService)
	for _, patch := range []string{
		`[{"op":"replace","path":"/spec/type","value":"ClusterIP"},{"op":"remove","path":"/spec/ports/0/nodePort"}]`,
		`[{"op":"replace","path":"/spec/ports/0/port","value":8080}]`,
		`[{"op":"replace","path":"/spec/selector/app","value":"somebody-else"}]`,
	} {
		e2e.Kubectl(t, "patch", "service", "webserver-sample-service", "-n", ns, "--type=json", "-p", patch)
		pace.Eventually(t, 5*time.Second, wantService)
	}

	e2e.Kubectl(t, "scale", "webserver/webserver-sample", "-n", ns, "--replicas=0")
	pace.Eventually(t, time.Minute, func() error {
		if pods := podNames(t, ns, "webserver-sample"); len(pods) > 0 {
			return fmt.Errorf("scaled to 0, there is %v", pods)
		}
		return nil
	})

	logs := e2e.ManagerLogs(t, "webserver")
	for _, line := range []string{
		"Deployment created", "Service created", "replicas changed from 3 to 4",
		"image changed from " + oldNginx + " to " + newNginx, "Service created again",
	} {
		if !strings.Contains(logs, line) {
			t.Errorf("the operator's log does not say %q:\n%s", line, logs)
		}
	}
	e2e.CheckMetrics(t, "webserver", "WebServer")
}

func TestWebServerDeployment(t *testing.T) {
	const system = "webserver-operator-system"
	e2e.Kubectl(t, "get", "deployment", "-n", system, "webserver-operator-controller-manager")
	e2e.Kubectl(t, "get", "service", "-n", system, "webserver-operator-controller-manager-metrics-service")
	e2e.Kubectl(t, "get", "clusterrole", "webserver-operator-webserver-editor-role", "webserver-operator-webserver-viewer-role")
}
