//go:build e2e

package alerts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/test/e2e"
)

// objects are the causes of alerts about objects. Each is in a namespace of its own.
var objects = map[string]cause{
	"an At whose pod is refused": {
		alerts: []string{"FairleadAtLate"},
		name:   "late",
		cause: func(s *scene) {
			s.noPods()
			s.at("late", "2020-01-01T00:00:00Z", "true")
		},
		mend: func(s *scene) { s.kubectl("delete", "resourcequota", "none") },
	},
	"an At whose pod is refused until its deadline": {
		alerts: []string{"FairleadAtMissed"},
		name:   "missed",
		cause: func(s *scene) {
			s.noPods()
			s.at("missed", now(), "true", "startingDeadlineSeconds: 2")
		},
	},
	"a command that fails": {
		alerts: []string{"FairleadAtFailed"},
		name:   "failed",
		cause:  func(s *scene) { s.at("failed", now(), "echo no such report; exit 3") },
	},
	"an At of an image that is not there": {
		alerts: []string{"FairleadAtNotReady"},
		name:   "imageless",
		cause:  func(s *scene) { s.at("imageless", now(), "true", "image: registry.invalid/absent:1") },
	},
	"a Memcached of an image that is not there": {
		alerts: []string{"FairleadMemcachedNotReady"},
		name:   "imageless",
		cause:  func(s *scene) { s.memcached("imageless", "size: 1, identity: Stable, version: 1.4.0") },
		mend:   func(s *scene) { s.patch("memcached/imageless", `{"version":"1.6.38"}`) },
	},
	"a second change of settings that waits": {
		alerts: []string{"FairleadMemcachedChangeStuck"},
		name:   "hasty",
		cause: func(s *scene) {
			s.memcached("hasty", "size: 1, identity: Stable, upgrade: Warm, version: 1.6.38, threads: 1")
			s.ready("memcached/hasty")
			s.patch("memcached/hasty", `{"threads":2}`)
			s.kubectl("wait", "--for=condition=Ready=false", "memcached/hasty", e2e.Patience)
			s.ready("memcached/hasty")
			s.patch("memcached/hasty", `{"threads":3}`)
		},
		mend: func(s *scene) { s.patch("memcached/hasty", `{"threads":2}`) },
	},
	"a WebServer of an image that is not there": {
		alerts: []string{"FairleadWebServerRolledBack"},
		name:   "rolled",
		cause: func(s *scene) {
			s.webserver("rolled", "image: nginx:1.26.3\n  rollout: {deadlineSeconds: 15}")
			s.ready("webserver/rolled")
			s.patch("webserver/rolled", `{"image":"nginx:0.0.0"}`)
		},
		mend: func(s *scene) { s.patch("webserver/rolled", `{"image":"nginx:1.26.3"}`) },
	},
	"a WebServer without its ConfigMap": {
		alerts: []string{"FairleadWebServerNotReady"},
		name:   "unconfigured",
		absent: "pods",
		cause:  func(s *scene) { s.webserver("unconfigured", "image: nginx:1.26.3\n  content: {configMap: absent}") },
		mend:   func(s *scene) { s.kubectl("create", "configmap", "absent", "--from-literal=index.html=here") },
	},
	"WebServers of which a policy refuses every write": {
		alerts: []string{"FairleadWritesRefused"},
		labels: map[string]string{"kind": "WebServer", "operator": "webserver"},
		cause: func(s *scene) {
			s.admission("ValidatingAdmissionPolicy", `
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+s.namespace+`}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments]}]
  validations: [{expression: "false", message: no Deployments here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+s.namespace+`}
spec: {policyName: `+s.namespace+`, validationActions: [Deny]}
`)
			// An operator tries again after up to a minute, and the rule looks at ten seconds: so one after the other.
			for i := range 20 {
				s.webserver(fmt.Sprintf("refused-%d", i), "image: nginx:1.26.3\n  replicas: 0")
				time.Sleep(2 * time.Second)
			}
		},
		mend: func(s *scene) { s.kubectl("delete", "validatingadmissionpolicybinding", s.namespace) },
	},
	"Memcacheds of which a webhook that fails stops every write": {
		alerts: []string{"FairleadOperatorErrors"},
		labels: map[string]string{"controller": "Memcached.cache.example.com", "operator": "memcached"},
		cause: func(s *scene) {
			s.manager("memcached")
			s.failingWebhook("deployments")
			// Each is tried again after 10 to 15 seconds.
			for i := range 25 {
				s.memcached(fmt.Sprintf("stopped-%d", i), "size: 0")
			}
		},
		mend: func(s *scene) { s.kubectl("delete", "validatingwebhookconfiguration", s.namespace) },
	},
}

// now is a schedule that has come.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05Z") }

// noPods is a quota that allows no pod.
func (s *scene) noPods() {
	s.Helper()
	s.apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {pods: \"0\"}}\n")
	s.kubectl("wait", "--for=jsonpath={.status.hard.pods}=0", "resourcequota/none", e2e.Patience)
}

func (s *scene) at(name, schedule, command string, spec ...string) {
	s.Helper()
	s.apply(fmt.Sprintf("apiVersion: at.example.com/v1alpha1\nkind: At\nmetadata: {name: %s}\nspec:\n  schedule: %q\n  command: %q\n  %s\n",
		name, schedule, command, strings.Join(spec, "\n  ")))
}

func (s *scene) memcached(name, spec string) {
	s.Helper()
	s.apply("apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n")
}

func (s *scene) webserver(name, spec string) {
	s.Helper()
	s.apply("apiVersion: my.domain/v1\nkind: WebServer\nmetadata: {name: " + name + "}\nspec:\n  " + spec + "\n")
}

// admission has an object of that kind, with the name of the namespace, until the end.
func (s *scene) admission(kind, rest string) {
	s.Helper()
	s.Cleanup(func() { _, _ = e2e.TryKubectl("", "delete", "--ignore-not-found", strings.ToLower(kind), s.namespace) })
	s.apply("apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + s.namespace + "}" + rest)
}

// manager is the operator that pages mean by MANAGER.
func (s *scene) manager(operator string) {
	s.variables["MANAGER_NAMESPACE"], s.variables["MANAGER"] = operator+"-operator-system", operator+"-operator-controller-manager"
}

// failingWebhook is one for a resource of the group apps that answers, and says that it is not able to.
func (s *scene) failingWebhook(resource string) {
	s.Helper()
	cert, key := e2e.Certificate(s, "hook."+s.namespace+".svc")
	ca, err := os.ReadFile(cert)
	if err != nil {
		s.Fatal(err)
	}
	host := e2e.Host(s)
	port := e2e.FreePort(s, host)
	server := &http.Server{Addr: net.JoinHostPort(host, port), ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "not now"}}
		_ = json.NewEncoder(w).Encode(review)
	})}
	go func() { _ = server.ListenAndServeTLS(cert, key) }()
	s.Cleanup(func() { _ = server.Close() })
	s.apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {ports: [{port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: hook, labels: {kubernetes.io/service-name: hook}}
addressType: IPv4
endpoints: [{addresses: [%q]}]
ports: [{port: %s}]
`, host, port))
	s.admission("ValidatingWebhookConfiguration", fmt.Sprintf(`
webhooks:
- name: failing.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {namespace: %[1]s, name: hook}, caBundle: %[2]s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [%[3]s]}]
`, s.namespace, base64.StdEncoding.EncodeToString(ca), resource))
}
