//go:build apiserver

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// plant creates the objects of testdata/planted.yaml.
func (r *rig) plant() {
	r.Helper()
	file, err := os.Open("testdata/planted.yaml")
	if err != nil {
		r.Fatal(err)
	}
	defer file.Close()
	made := map[string]*unstructured.Unstructured{}
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			r.Fatal(err)
		}
		o.SetNamespace(r.namespace)
		if owner := made[o.GetLabels()["owned-by"]]; owner != nil {
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
			}})
		}
		if about, isEvent := o.Object["involvedObject"].(map[string]any); isEvent {
			about["namespace"] = r.namespace
			if of := made[about["name"].(string)]; of != nil {
				about["uid"] = string(of.GetUID())
			}
		}
		status, hasStatus := o.Object["status"]
		if err := r.Create(r.Context(), o); err != nil {
			r.Fatal(err)
		}
		if hasStatus {
			o.Object["status"] = status
			if err := r.Status().Update(r.Context(), o); err != nil {
				r.Fatal(err)
			}
		}
		if made[o.GetName()] == nil {
			made[o.GetName()] = o
		}
	}
}

// between is a way to the API server on which logs are answered, there being no kubelet, and on
// which some paths are forbidden.
func (r *rig) between(log string, forbidden string) []string {
	r.Helper()
	target, err := url.Parse(r.server.Config.Host)
	if err != nil {
		r.Fatal(err)
	}
	transport, err := rest.TransportFor(r.server.Config)
	if err != nil {
		r.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}
	isForbidden := regexp.MustCompile(forbidden)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case forbidden != "" && isForbidden.MatchString(q.URL.Path):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",`+
				`"code": 403, "message": "you may not"}`)
		case strings.HasSuffix(q.URL.Path, "/log"):
			_, _ = fmt.Fprintf(w, "container %s, previous %q\n%s", q.URL.Query().Get("container"), q.URL.Query().Get("previous"), log)
		case strings.HasSuffix(q.URL.Path, "/proxy/metrics"):
			said, hasSaid := scraped[path.Base(path.Dir(path.Dir(q.URL.Path)))]
			if !hasSaid {
				w.WriteHeader(http.StatusBadGateway)
			}
			_, _ = io.WriteString(w, said)
		default:
			proxy.ServeHTTP(w, q)
		}
	}))
	r.Cleanup(server.Close)
	return []string{"--server", server.URL, "-n", r.namespace}
}

// unpacked are the files of an archive, without the folder that all are in.
func unpacked(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(content)
	}
}

const plantedLog = `{"message":"The command ended with exit code 3: it said \"hunter2\" and hunter2-word"}
GET /login?password=hunter2 HTTP/1.1
Authorization: Bearer hunter2-bearer
connecting with hunter2-site
DB_PASSWORD=hunter2-log "api_key": "hunter2 with a blank"
-----BEGIN RSA PRIVATE KEY-----
hunter2
-----END RSA PRIVATE KEY-----
the last line
`

// TestReportHasNoSecrets plants a secret wherever one could be, and looks for it in the whole archive.
func TestReportHasNoSecrets(t *testing.T) {
	r := newRig(t)
	r.plant()
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	there := r.between(plantedLog, "")
	got := callAt(t, time.Now, "", append([]string{"kubectl-fairlead", "report", "--file", file}, there...)...)
	if got.code != 0 || got.out != "" || !strings.Contains(got.errOut, ", in "+file+".\nSecrets were not read.") {
		t.Fatalf("report: %+v", got)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := unpacked(t, bytes.NewReader(archive))
	for name, content := range files {
		for i, line := range strings.Split(content, "\n") {
			if strings.Contains(line, "hunter2") || strings.Contains(line, "aHVudGVyMg") {
				t.Errorf("%s, line %d: %s", name, i+1, line)
			}
		}
	}
	in := "namespaces/" + r.namespace + "/"
	for name, words := range map[string][]string{
		"README.txt":   {"Secrets            they are not read"},
		"versions.txt": {"Kubernetes v", "webservers.my.domain: v1 (served true, stored true, schema "},
		"status.txt":   {"webserver/site", "BadConfig", "exit code 3: REDACTED", "\nnamespace " + r.namespace + "\n"},
		"events.txt":   {"CommandFailed", "exit code 3: REDACTED", "/pod/site-gone-pod\tthe pod said REDACTED, token: REDACTED"},
		"left-out.txt": {"logs of 1 pods of Ats: what users' commands print is not taken"},
		in + "webservers.my.domain/site.yaml": {"name: SITE_KEY", "value: REDACTED", "- --password=REDACTED", "host: www.example.com",
			"https://REDACTED@db.example.com/x?REDACTED"},
		in + "ats.cnat.programming-kubernetes.info/earlier.yaml": {"command: REDACTED"},
		in + "etcdbackups.etcd.database.coreos.com/nightly.yaml": {"path: bucket/db"},
		in + "configmaps/site-files.yaml":                        {"index.html: REDACTED (17 bytes)"},
		in + "deployments/site.yaml":                             {"webserver-operator/last-good-revision: abc123"},
		in + "deployments/controller-manager.yaml":               {"- at\n", "- --login=REDACTED"},
		in + "pods/line-pod.yaml":                                {"message: REDACTED"},
		in + "logs/site-pod/web.log":                             {"container web, previous \"\"\n", "connecting with REDACTED\n", "the last line\n"},
		in + "logs/site-pod/web.previous.log":                    {"previous \"true\""},
		in + "logs/manager-pod/manager.log":                      {`exit code 3: REDACTED"}`},
	} {
		for _, word := range words {
			if !strings.Contains(files[name], word) {
				t.Errorf("%s lacks %q:\n%s", name, word, files[name])
			}
		}
	}
	if files[in+"secrets/hers.yaml"] != "" {
		t.Error("a Secret is in the report")
	}
	again := callAt(t, time.Now, "", append([]string{"kubectl-fairlead", "report", "--file", file}, there...)...)
	if now, err := os.ReadFile(file); again.code != 1 || err != nil || !bytes.Equal(now, archive) {
		t.Errorf("over a file that is there: %+v, %v", again, err)
	}
}

// TestReportWithoutRights leaves out what may not be read, and says so.
func TestReportWithoutRights(t *testing.T) {
	r := newRig(t)
	r.plant()
	there := r.between("", "customresourcedefinitions|/pods$|/events$|^/apis/apps/v1/deployments$|/at.example.com/.*/ats$")
	got := callAt(t, time.Now, "", append([]string{"kubectl-fairlead", "report", "--file=-"}, there...)...)
	if got.code != 0 || !strings.Contains(got.errOut, "(left-out.txt says what), in the archive.") {
		t.Fatalf("report: %+v", got)
	}
	files := unpacked(t, strings.NewReader(got.out))
	for _, what := range []string{
		"CustomResourceDefinition ats.at.example.com", "ats.at.example.com", "pods", "events", "operators' deployments in all namespaces",
	} {
		if !strings.Contains("\n"+files["left-out.txt"], "\n"+what+": you may not") {
			t.Errorf("left-out.txt does not have %q:\n%s", what, files["left-out.txt"])
		}
	}
	if !strings.Contains(files["versions.txt"], "ats.at.example.com: version v1alpha1 is served: true") {
		t.Errorf("versions.txt: %s", files["versions.txt"])
	}
	if files["namespaces/"+r.namespace+"/webservers.my.domain/site.yaml"] == "" {
		t.Error("what may be read is not there")
	}

	nowhere := callAt(t, time.Now, "", "kubectl-fairlead", "report", "--server=http://127.0.0.1:1", "--file="+filepath.Join(t.TempDir(), "x"))
	if nowhere.code != 1 || !strings.Contains(nowhere.errOut, "connection refused") {
		t.Errorf("without a server: %+v", nowhere)
	}
}
