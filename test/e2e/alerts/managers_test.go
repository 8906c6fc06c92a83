//go:build e2e

package alerts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// managers are the causes of alerts about the operators: each takes one of them from everybody.
var managers = map[string]cause{
	"a manager that is scaled to 0": {
		alerts: []string{"FairleadOperatorDown"},
		labels: map[string]string{"operator": "webserver"},
		cause: func(s *scene) {
			s.manager("webserver")
			s.Cleanup(func() { s.ofManager("scale", "--replicas=1", "deployment") })
			s.ofManager("scale", "--replicas=0", "deployment")
		},
	},
	"a Lease that another holds": {
		alerts: []string{"FairleadOperatorNoLeader"},
		labels: map[string]string{"name": "memcached-operator-leader"},
		cause: func(s *scene) {
			s.manager("memcached")
			stop := make(chan struct{})
			done := make(chan struct{})
			s.end = func() { close(stop); <-done }
			go func() {
				defer close(done)
				for {
					_, _ = e2e.TryKubectl("", "patch", "lease", "memcached-operator-leader", "-n", s.variables["MANAGER_NAMESPACE"], "--type=merge", "-p",
						`{"spec":{"holderIdentity":"another","renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`)
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
					}
				}
			}()
		},
		mend: func(s *scene) {
			s.end()
			pace.Eventually(s, 5*time.Minute, func() error {
				holder, err := e2e.TryKubectl("", "get", "lease", "memcached-operator-leader", "-n", s.variables["MANAGER_NAMESPACE"], "-o", "jsonpath={.spec.holderIdentity}")
				if err != nil || !strings.HasPrefix(holder, s.variables["MANAGER"]) {
					return fmt.Errorf("the Lease is held by %s (%w)", holder, err)
				}
				return nil
			})
		},
	},
	"a manager that starts without a rule of its role": {
		alerts: []string{"FairleadRightMissing"},
		labels: map[string]string{"job": "fairlead", "namespace": "etcd-operator-system"},
		cause: func(s *scene) {
			s.manager("etcd")
			const name = "etcd-operator-manager-role"
			var role rbacv1.ClusterRole
			if err := json.Unmarshal([]byte(s.kubectl("get", "clusterrole", name, "-o", "json")), &role); err != nil {
				s.Fatal(err)
			}
			set := func(rules []rbacv1.PolicyRule) {
				patch, err := json.Marshal(map[string]any{"rules": rules})
				if err != nil {
					s.Fatal(err)
				}
				s.kubectl("patch", "clusterrole", name, "--type=merge", "-p", string(patch))
			}
			s.end = func() { set(role.Rules) }
			s.Cleanup(s.end)
			set(slices.DeleteFunc(slices.Clone(role.Rules), func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "poddisruptionbudgets") }))
			e2e.Kubectl(s, "delete", "pods", "-n", s.variables["MANAGER_NAMESPACE"], "-l", "control-plane=controller-manager")
		},
		mend: func(s *scene) { s.end() },
	},
	"more Ats in trouble than have a name": {
		alerts: []string{"FairleadProblemsOmitted"},
		labels: map[string]string{"kind": "At", "operator": "at"},
		cause: func(s *scene) {
			var ats strings.Builder
			for i := range 520 {
				fmt.Fprintf(&ats, "apiVersion: at.example.com/v1alpha1\nkind: At\nmetadata: {name: missed-%d}\n"+
					"spec: {schedule: \"2020-01-01T00:00:00Z\", startingDeadlineSeconds: 1, command: \"true\"}\n---\n", i)
			}
			if _, err := e2e.TryKubectl(ats.String(), "create", "-n", s.namespace, "-f", "-"); err != nil {
				s.Fatal(err)
			}
		},
		mend: func(s *scene) { s.kubectl("delete", "at", "--all", "--wait=false") },
	},
}

// ofManager runs kubectl for the Deployment of the manager.
func (s *scene) ofManager(args ...string) {
	s.Helper()
	e2e.Kubectl(s, append(args, s.variables["MANAGER"], "-n", s.variables["MANAGER_NAMESPACE"])...)
}
