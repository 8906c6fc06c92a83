//go:build e2e

package etcd

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// authenticates turns authentication on by the guide's commands, in a cluster with keys. Etcd then answers nobody without
// a password, and the operator goes on to replace members, and makes backups.
func authenticates(t *testing.T) {
	e := create(t, "size: 3")
	e.put("/key", "before")
	e2e.RunGuide(t, e.namespace, e2e.GuideCommands(t, "etcd.md", "Users", 1)[0])
	e.ready()
	if out, err := e.etcdctl("get", "/key"); err == nil {
		t.Errorf("without a password etcd answers %s", out)
	}
	lost := e.members()[0]
	e.kubectl("delete", "pod", lost, "--wait=false")
	e.replaces(lost)
	e.wantAsRoot("/key", "before")
	s := e.claim()
	e.backUp("once", "etcdCluster: example", s.at("storageType", "once.backup"), "verify: Restore")
	e.backup("once", isProved)
}

// asRoot runs etcdctl as root, with the password of the guide's Secret.
func (e etcd) asRoot(args ...string) (string, error) {
	secret, err := e.secret("example-root")
	if err != nil {
		return "", err
	}
	return e.etcdctl(append([]string{"--user=root", "--password=" + string(secret["password"])}, args...)...)
}

func (e etcd) wantAsRoot(key, want string) {
	e.t.Helper()
	pace.Eventually(e.t, time.Minute, func() error {
		out, err := e.asRoot("get", key, "--print-value-only")
		if err == nil && strings.TrimSpace(out) != want {
			e.t.Fatalf("%s is %q, want %q", key, out, want)
		}
		return err
	})
}
