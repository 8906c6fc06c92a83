//go:build e2e

package etcd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// allowImages has the API server refuse all other images of pods in the namespace.
func (e etcd) allowImages(prefix string) {
	e.t.Helper()
	e.enforce("Validating", `
  validations: [{expression: 'object.spec.containers.all(c, c.image.startsWith("`+prefix+`"))'}]
`, `validationActions: [Deny]`, func() error {
		if _, err := e.probe("RESTART"); err == nil {
			return errors.New("the policy does not apply yet")
		}
		return nil
	})
}

// rewriteImages has the API server change the images of all pods in the namespace.
func (e etcd) rewriteImages(from, to string) {
	e.t.Helper()
	e.enforce("Mutating", fmt.Sprintf(`
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: '[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: object.spec.containers[0].image.replace("%s", "%s")}]'
`, from, to), "", func() error {
		image, err := e.probe(from + ":v1")
		if err == nil && image != to+":v1" {
			err = fmt.Errorf("the policy does not apply yet: %s", image)
		}
		return err
	})
}

// enforce has a policy of admission for all pods in the namespace until the test ends, and waits until it is in effect.
func (e etcd) enforce(kind, spec, binding string, inEffect func() error) {
	e.t.Helper()
	policy := strings.ToLower(kind) + "-" + e.namespace
	e2e.Apply(e.t, e.namespace, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sAdmissionPolicy
metadata: {name: %[2]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]
%[4]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sAdmissionPolicyBinding
metadata: {name: %[2]s}
spec: {policyName: %[2]s, %[5]s}
`, kind, policy, e.namespace, strings.Trim(spec, "\n"), binding))
	e.t.Cleanup(func() {
		resource := strings.ToLower(kind) + "admissionpolic"
		e2e.Kubectl(e.t, "delete", resource+"ies,"+resource+"ybindings", policy)
	})
	pace.Eventually(e.t, time.Minute, inEffect)
}

// probe is the image that a pod with that one would have.
func (e etcd) probe(image string) (string, error) {
	return e2e.TryKubectl("", "run", "probe", "-n", e.namespace, "--dry-run=server", "--image="+image, "-o", "jsonpath={.spec.containers[0].image}")
}
