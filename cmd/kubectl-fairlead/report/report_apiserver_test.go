//go:build apiserver

package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and `kubectl fairlead report` in it.
type namespace struct{ *rig.Rig }

func newRig(t *testing.T) namespace { return namespace{rig.New(t, rig.Below(Command))} }

// plant creates the objects of testdata/planted.yaml.
func (r namespace) plant() {
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
		o.SetNamespace(r.Namespace)
		if owner := made[o.GetLabels()["owned-by"]]; owner != nil {
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
			}})
		}
		if about, isEvent := o.Object["involvedObject"].(map[string]any); isEvent {
			about["namespace"] = r.Namespace
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

// logging answers requests for logs, there being no kubelet.
func logging(log string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/log") {
			return false
		}
		_, _ = fmt.Fprintf(w, "container %s, previous %q\n%s", q.URL.Query().Get("container"), q.URL.Query().Get("previous"), log)
		return true
	}
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
nginx: [emerg] unknown directive "hunter2-configmap" in /etc/nginx/conf.d/site.conf:1
nginx: [emerg] unknown directive "hunter2-mounted" in /etc/nginx/conf.d/her.conf:1
the last line
`

// TestReportHasNoSecrets plants a secret wherever one could be, and looks for it in the whole archive.
func TestReportHasNoSecrets(t *testing.T) {
	r := newRig(t)
	r.plant()
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	there := r.Between("", logging(plantedLog))
	got := r.Through(there, "report", "--file", file)
	if got.Code != 0 || got.Out != "" || !strings.Contains(got.ErrOut, ", in "+file+".\nSecrets were not read.") {
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
	in := "namespaces/" + r.Namespace + "/"
	for name, words := range map[string][]string{
		"README.txt":   {"Secrets            they are not read"},
		"versions.txt": {"Kubernetes v", "webservers.my.domain: v1 (served true, stored true, schema "},
		"status.txt":   {"webserver/site", "BadConfig", "exit code 3: REDACTED", "\nnamespace " + r.Namespace + "\n"},
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
	again := r.Through(there, "report", "--file", file)
	if now, err := os.ReadFile(file); again.Code != 1 || err != nil || !bytes.Equal(now, archive) {
		t.Errorf("over a file that is there: %+v, %v", again, err)
	}
}

// TestReportWithoutRights leaves out what may not be read, and says so.
func TestReportWithoutRights(t *testing.T) {
	r := newRig(t)
	r.plant()
	there := r.Between("customresourcedefinitions|/pods$|/events$|^/apis/apps/v1/deployments$|/at.example.com/.*/ats$", logging(""))
	got := r.Through(there, "report", "--file=-")
	if got.Code != 0 || !strings.Contains(got.ErrOut, "(left-out.txt says what), in the archive.") {
		t.Fatalf("report: %+v", got)
	}
	files := unpacked(t, strings.NewReader(got.Out))
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
	if files["namespaces/"+r.Namespace+"/webservers.my.domain/site.yaml"] == "" {
		t.Error("what may be read is not there")
	}

	nowhere := r.Through([]string{"--server=http://127.0.0.1:1"}, "report", "--file="+filepath.Join(t.TempDir(), "x"))
	if nowhere.Code != 1 || !strings.Contains(nowhere.ErrOut, "connection refused") {
		t.Errorf("without a server: %+v", nowhere)
	}
}
