//go:build e2e

package alerts

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/test/e2e"
)

// workloads is the scrape configuration that the Prometheus operator makes of an operator's PodMonitor. As this
// Prometheus is outside of the cluster, it asks the test for the pods, and reaches them through it and the API server.
func workloads(t *testing.T, operator string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e2e.Root, "operators", operator, "config", "prometheus", "podmonitor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Spec struct {
			Selector            metav1.LabelSelector
			PodMetricsEndpoints []struct {
				Port        string
				Relabelings []struct {
					SourceLabels []string
					TargetLabel  string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &monitor); err != nil || len(monitor.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("the PodMonitor of %s: %v\n%s", operator, err, text)
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	relabel := []map[string]any{
		{"source_labels": []string{"__meta_kubernetes_namespace"}, "target_label": "namespace"},
		{"source_labels": []string{"__meta_kubernetes_pod_name"}, "target_label": "pod"},
	}
	for _, r := range endpoint.Relabelings {
		relabel = append(relabel, map[string]any{"source_labels": r.SourceLabels, "target_label": r.TargetLabel})
	}
	toPods := throughTheAPIServer(t)
	var through *httptest.Server
	through = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/targets" {
			toPods.ServeHTTP(w, r)
			return
		}
		targets, err := targetsOf(metav1.FormatLabelSelector(&monitor.Spec.Selector), endpoint.Port, through.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(targets)
	}))
	t.Cleanup(through.Close)
	return map[string]any{
		"job_name": operator + "-pods", "scrape_interval": "5s", "scrape_timeout": "4s", "relabel_configs": relabel,
		"http_sd_configs": []any{map[string]any{"url": through.URL + "/targets", "refresh_interval": "5s"}},
	}
}

func throughTheAPIServer(t *testing.T) http.Handler {
	t.Helper()
	config, err := e2e.Config()
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(server)
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	return proxy
}

// notInLabel is what Prometheus does not have in the name of a label.
var notInLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// targetsOf are the pods that a selector fits, as a Prometheus in the cluster finds them by a port's name, but for how
// they are reached.
func targetsOf(selector, portName, proxy string) ([]target, error) {
	out, err := e2e.TryKubectl("", "get", "pods", "--all-namespaces", "-l", selector, "-o", "json")
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(out), &pods); err != nil {
		return nil, err
	}
	targets := []target{}
	for _, pod := range pods.Items {
		labels := map[string]string{"__meta_kubernetes_namespace": pod.Namespace, "__meta_kubernetes_pod_name": pod.Name}
		for label, value := range pod.Labels {
			labels["__meta_kubernetes_pod_label_"+notInLabel.ReplaceAllString(label, "_")] = value
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if port.Name == portName && pod.Status.PodIP != "" {
					labels["__metrics_path__"] = fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", pod.Namespace, pod.Name, port.ContainerPort)
					targets = append(targets, target{[]string{proxy}, labels})
				}
			}
		}
	}
	return targets, nil
}

// keepReading has a pool of memcached with an exporter, and a client of it, until the test ends.
func keepReading(t *testing.T) {
	t.Helper()
	const image = "exporter:of-alerts"
	e2e.Load(t, "../memcached/exporter", image)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: read}\nspec: {size: 1, version: 1.6.38, metrics: {image: \""+image+"\"}}\n")
	e2e.Kubectl(t, "wait", "-n", namespace, "--for=condition=Ready", "memcached/read", e2e.Patience)
	server := onNode(t, namespace, "memcached_cr: read", 11211)
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			// Two items are found of three that are read.
			if conn, err := net.DialTimeout("tcp", server, time.Second); err == nil {
				_, _ = fmt.Fprintf(conn, "set item-%[1]d 0 0 4\r\nhere\r\nget item-%[1]d\r\nget item-%[1]d\r\nget absent\r\nquit\r\n", i)
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
		}
	}()
}
