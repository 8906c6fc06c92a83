//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
)

// Met is what a client met that connected as soon as it read that an object is Ready.
type Met struct {
	Time    time.Time
	Version string        // of the object
	After   time.Duration // until it knew the addresses
	// Addresses is how many ready ones the Service had, and Refusals are what did not answer.
	Addresses int
	Refusals  []string
	// Retries is how often the Service's own address was tried again, and Service for how long: that
	// is kube-proxy's delay, which no operator sees. A headless Service has none.
	Retries int
	Service time.Duration
}

// patience is how long the client may take for one version.
const patience = 10 * time.Second

// Believer is a client in a pod that connects each time an object is shown as Ready.
type Believer struct {
	t                                  testing.TB
	namespace, resource, name, service string
}

// Rounds is how often a way to Ready is tried: $ROUNDS, or once.
func Rounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("ROUNDS=%q is no number", text)
	}
	return n
}

// NewBeliever starts a client for an object of a resource, such as
// "etcdclusters.v1beta2.etcd.database.coreos.com", and waits until it watches.
func NewBeliever(t testing.TB, namespace, resource, name, service string, port int) *Believer {
	t.Helper()
	NeedsLocalCluster(t, "it loads an image of its own")
	Load(t, "../connect", "connect:dev")
	Kubectl(t, "create", "rolebinding", "believer", "-n", namespace, "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":default")
	Apply(t, namespace, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: believer}
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: client
    image: connect:dev
    args: [%s, %s, %s, "%d"]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, resource, name, service, port))
	Kubectl(t, "wait", "-n", namespace, "--for=condition=Ready", Patience, "pod/believer")
	return &Believer{t, namespace, resource, name, service}
}

// After does something, and waits until that is settled. It fails the test for everything that did not
// answer the client in the meantime, as often as the object was shown as Ready, and once more at the end.
func (b *Believer) After(what string, do func(), settled func() error) {
	b.t.Helper()
	seen := len(b.met())
	do()
	pace.Eventually(b.t, 5*time.Minute, settled)
	var all []Met
	pace.Eventually(b.t, time.Minute, func() error {
		// What it is shown by this is the last of what it meets before the next step.
		version := Kubectl(b.t, "annotate", b.resource, b.name, "-n", b.namespace, "--overwrite", "believer="+time.Now().Format(time.RFC3339Nano),
			"-o", "jsonpath={.metadata.resourceVersion}")
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if all = b.met()[seen:]; slices.ContainsFunc(all, func(m Met) bool { return m.Version == version }) {
				return nil
			}
		}
		return fmt.Errorf("after %s the client has not met version %s as Ready", what, version)
	})
	for _, m := range all {
		if len(m.Refusals) > 0 || m.Addresses == 0 {
			b.t.Errorf("after %s it is Ready, and the client is refused: %+v", what, m)
		}
		b.t.Logf("%s: Ready, %d addresses known after %s, the Service tried again %d times in %s", what, m.Addresses, m.After.Round(time.Millisecond), m.Retries, m.Service.Round(time.Millisecond))
	}
}

// Ready says whether the object is Ready, as its spec is now.
func (b *Believer) Ready() error {
	said := strings.Fields(b.Get(b.resource+"/"+b.name, `{.metadata.generation} {range .status.conditions[?(@.type=="Ready")]}{.observedGeneration} {.status} {.message}{end}`))
	if len(said) < 3 || said[0] != said[1] || said[2] != "True" {
		return fmt.Errorf("not Ready: %s", strings.Join(said, " "))
	}
	return nil
}

// DeletePods is what deletes the pods with a label, and whether the object is Ready without them.
func (b *Believer) DeletePods(label string) (do func(), replaced func() error) {
	do = func() {
		b.t.Helper()
		Kubectl(b.t, "delete", "pod", "-n", b.namespace, "-l", label, "--wait=false")
	}
	return do, func() error {
		if ending := Kubectl(b.t, "get", "pod", "-n", b.namespace, "-l", label, "-o", "jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name} {end}"); ending != "" {
			return fmt.Errorf("pods are ending: %s", ending)
		}
		return b.Ready()
	}
}

// DeleteService is what deletes the Service, and whether the object is Ready with another one.
func (b *Believer) DeleteService() (do func(), replaced func() error) {
	service := "service/" + b.service
	before := ""
	do = func() {
		b.t.Helper()
		before = b.Get(service, "{.metadata.uid}")
		Kubectl(b.t, "delete", service, "-n", b.namespace)
	}
	return do, func() error {
		if uid := b.Get(service, "{.metadata.uid}"); uid == "" || uid == before {
			return errors.New("the Service has not been created again")
		}
		return b.Ready()
	}
}

// Get is what kubectl get prints of an object by a path; nothing if there is none.
func (b *Believer) Get(object, path string) string {
	b.t.Helper()
	return Kubectl(b.t, "get", object, "-n", b.namespace, "--ignore-not-found", "-o", "jsonpath="+path)
}

// Patched changes the spec of the object.
func (b *Believer) Patched(spec string) func() {
	return func() {
		b.t.Helper()
		Kubectl(b.t, "patch", b.resource, b.name, "-n", b.namespace, "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
}

// met is all that the client has met so far.
func (b *Believer) met() []Met {
	var all []Met
	for line := range strings.Lines(Kubectl(b.t, "logs", "-n", b.namespace, "believer")) {
		var m Met
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			b.t.Fatalf("the client says %q: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}
