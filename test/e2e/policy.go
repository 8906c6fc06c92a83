//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// foreign are objects that no operator has made, by kind; each is called foreign, but for NAME.
var foreign = map[string]string{
	"pod": `apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: LABELS}
spec:
  schedulingGates: [{name: example.com/never}]
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers: [{name: never, image: never, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
`,
	"secret":    "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, labels: LABELS}\n",
	"configmap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, labels: LABELS}\n",
	"service":   "apiVersion: v1\nkind: Service\nmetadata: {name: NAME, labels: LABELS}\nspec: {ports: [{port: 80}]}\n",
	"persistentvolumeclaim": `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, labels: LABELS}
spec: {accessModes: [ReadWriteOnce], storageClassName: never, resources: {requests: {storage: 1Mi}}}
`,
	"deployment": `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: LABELS}
spec:
  replicas: 0
  selector: {matchLabels: {app: foreign}}
  template: {metadata: {labels: {app: foreign}}, spec: {containers: [{name: never, image: never}]}}
`,
	"at": "apiVersion: at.example.com/v1alpha1\nkind: At\nmetadata: {name: NAME}\nspec: {schedule: '2099-01-01T00:00:00Z', command: 'true'}\n",
}

// OnlyOwn shows that the admission policy keeps the service account of an operator from creating, changing and
// deleting objects of these kinds that are not its own, although its role allows it: an answer of the role would be
// another one. kind is the operator's, with its API version. That the policy allows what is its own, all other tests show.
func OnlyOwn(t *testing.T, operator, kind string, create, change, remove []string) {
	t.Helper()
	namespace := NewNamespace(t)
	manager := operator + "-operator"
	refused := func(stdin string, args ...string) {
		t.Helper()
		as := "--as=system:serviceaccount:" + manager + "-system:" + manager + "-controller-manager"
		out, err := TryKubectl(stdin, append(args, "-n", namespace, as)...)
		if want := manager + " may only write objects of its own"; err == nil || !strings.Contains(out, want) {
			t.Errorf("kubectl %s as %s: %v\n%s\nwant an answer with %q", strings.Join(args, " "), manager, err, out, want)
		}
	}
	object := func(kind, name, labels string) string {
		return strings.NewReplacer("NAME", name, "LABELS", labels).Replace(foreign[kind])
	}
	at := strings.LastIndex(kind, "/")
	owned := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":"any","uid":"1","controller":true}]}}`,
		kind[:at], kind[at+1:])
	label := "app.kubernetes.io/managed-by"
	for _, kind := range create {
		refused(object(kind, "made", "{}"), "create", "-f", "-")
		refused(object(kind, "made", fmt.Sprintf("{%s: %s}", label, manager)), "create", "-f", "-")
	}
	for _, kind := range change {
		Apply(t, namespace, object(kind, "foreign", "{}"))
		refused("", "annotate", kind, "foreign", "changed=yes")
		// What would make it the operator's is no way either.
		refused("", "label", kind, "foreign", label+"="+manager)
		refused("", "patch", kind, "foreign", "--type=merge", "-p", owned)
	}
	for _, kind := range remove {
		Apply(t, namespace, object(kind, "foreign", "{}"))
		refused("", "delete", kind, "foreign", "--wait=false")
	}
	refused(fmt.Sprintf(`apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: made}
eventTime: "2026-01-01T00:00:00.000000Z"
action: Tried
reason: Tried
type: Normal
note: nothing
reportingController: %s
reportingInstance: %[1]s
regarding: {apiVersion: v1, kind: Pod, namespace: %s, name: foreign}
`, manager, namespace), "create", "-f", "-")
}
