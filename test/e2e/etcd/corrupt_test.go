//go:build e2e

package etcd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdCorruptLeader: a value is changed on the leader's disk while its etcd runs. Etcd's leader compares the others with
// itself, and accuses those that are right; it is the leader that is replaced, and its volume kept.
func TestEtcdCorruptLeader(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", strings.TrimSuffix(volumes, "}")+", etcdEnv: [{name: ETCD_CORRUPT_CHECK_TIME, value: 8s}]}")
	const right = "this-value-is-right"
	e.put("/key", right)
	ec, err := e.get()
	if err != nil {
		t.Fatal(err)
	}
	leader := ec.Status.Leader
	if leader == "" {
		t.Fatalf("nobody leads: %s", status(ec))
	}
	began := time.Now()
	pace.Eventually(t, time.Minute, func() error { return e.overwrite(leader, right, "wrong") })
	pace.Eventually(t, 3*time.Minute, func() error {
		if ec, err = e.get(); err != nil {
			return err
		}
		if len(ec.Status.KeptVolumes) != 1 || ec.Status.KeptVolumes[0].PersistentVolumeClaim != leader {
			return fmt.Errorf("of %s, the leader, these volumes are kept: %v; %s", leader, ec.Status.KeptVolumes, status(ec))
		}
		return isReady(ec)
	})
	t.Logf("the leader's data was changed; the cluster was whole again after %.1f s", time.Since(began).Seconds())
	for name := range e.pods() {
		got := e2e.Kubectl(t, "exec", "-n", e.namespace, name, "-c", "etcd", "--", "etcdctl", "get", "/key", "--print-value-only", "--consistency=s")
		if strings.TrimSpace(got) != right {
			t.Errorf("%s has %q, want %q", name, got, right)
		}
	}
	if said := e.kubectl("get", "events", "--field-selector", "reason=VolumeKept", "-o", "jsonpath={.items[*].note}{.items[*].message}"); !strings.Contains(said, leader) {
		t.Errorf("events say %q, and not that the volume of %s is kept", said, leader)
	}
	e.kubectl("delete", "pvc", leader)
	pace.Eventually(t, 2*time.Minute, func() error {
		ec, err := e.get()
		if err == nil && len(ec.Status.KeptVolumes) > 0 {
			err = fmt.Errorf("the volume was deleted, and status has it still: %v", ec.Status.KeptVolumes)
		}
		return err
	})
}

// overwrite changes the beginning of a text wherever a member has it on its disk.
func (e etcd) overwrite(member, text, by string) error {
	e.t.Helper()
	script := fmt.Sprintf(`db=/etcd/data/member/snap/db
places=$(strings -n 8 -t d $db | awk -v text=%[1]s '{ at = $1; line = substr($0, index($0, at) + length(at) + 1); i = index(line, text); if (i) print at + i - 1 }')
for at in $places; do printf %[2]s | dd of=$db bs=1 seek=$at conv=notrunc 2>/dev/null || exit 1; done
echo places: $places`, text, by)
	e2e.Apply(e.t, e.namespace, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: hand}
spec:
  restartPolicy: Never
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: hand
      image: busybox:1.35.0
      imagePullPolicy: IfNotPresent
      command: [sh, -c, %q]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: etcd, mountPath: /etcd}]
  volumes: [{name: etcd, persistentVolumeClaim: {claimName: %s}}]
`, script, member))
	defer e.kubectl("delete", "pod", "hand", "--now")
	e.kubectl("wait", "pod/hand", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
	if said := strings.TrimSpace(e.kubectl("logs", "hand")); !strings.HasPrefix(said, "places: ") {
		return fmt.Errorf("%q is not on the disk of %s: %q", text, member, said)
	}
	return nil
}
