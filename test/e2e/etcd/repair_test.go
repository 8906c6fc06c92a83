//go:build e2e

package etcd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdPodDeleted: without volumes a member whose pod is deleted is replaced, with volumes it
// comes back.
func TestEtcdPodDeleted(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string][]string{"without volumes": {"size: 3"}, "with volumes": {"size: 3", volumes}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := create(t, spec...)
			e.put("/key", "before")
			ec, err := e.get()
			if err != nil {
				t.Fatal(err)
			}
			before, leader, keepsData := e.members(), ec.Status.Leader, len(spec) > 1
			deleted := e.pods()[leader].UID
			began := time.Now()
			e.kubectl("delete", "pod", leader, "--wait=false")
			pace.Eventually(t, 2*time.Minute, func() error {
				// Status may be from before the deletion until it says something of that.
				switch pod, ok := e.pods()[leader]; {
				case ok && pod.UID == deleted:
					return fmt.Errorf("pod %s is still there", leader)
				case keepsData && !ok:
					return fmt.Errorf("pod %s is not there again", leader)
				case !keepsData && slices.Contains(e.members(), leader):
					return fmt.Errorf("member %s lost its data and is still there", leader)
				}
				ec, err := e.get()
				if err != nil {
					return err
				}
				return isReady(ec)
			})
			t.Logf("the leader's pod was deleted; the cluster was whole again after %.1f s", time.Since(began).Seconds())
			e.wantValue("/key", "before")
			if after := e.members(); keepsData && !slices.Equal(before, after) {
				t.Errorf("the members were %v and are %v", before, after)
			}
		})
	}
	t.Run("with authentication", func(t *testing.T) { t.Parallel(); authenticates(t) })
}

// TestEtcdAllPodsDeleted: with volumes nothing is lost.
func TestEtcdAllPodsDeleted(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", volumes)
	e.put("/key", "kept")
	before, deleted := e.members(), e.pods()
	began := time.Now()
	e.kubectl("delete", "pod", "-l", "etcd_cluster=example", "--force", "--grace-period=0")
	pace.Eventually(t, 2*time.Minute, func() error {
		pods := e.pods()
		if len(pods) != 3 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		// Status may be from before the deletion, and the kubelet's word on a new pod is not.
		for name, pod := range pods {
			if pod.UID == deleted[name].UID || len(pod.Status.ContainerStatuses) == 0 || !pod.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("pod %s does not serve again", name)
			}
		}
		ec, err := e.get()
		if err != nil {
			return err
		}
		return isReady(ec)
	})
	t.Logf("all pods were deleted; the cluster was whole again after %.1f s", time.Since(began).Seconds())
	e.wantValue("/key", "kept")
	if after := e.members(); !slices.Equal(before, after) {
		t.Errorf("the members were %v and are %v", before, after)
	}
}

// TestEtcdComesBackBare: volumes that a backup tool brings back have no owner, and fields of its own. Nothing is
// founded beside them, and the user's word takes them in.
func TestEtcdComesBackBare(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", volumes)
	e.put("/key", "kept")
	members := e.members()
	e.kubectl("delete", "etcd", "example", "--cascade=orphan")
	e.kubectl("delete", "pod", "-l", "etcd_cluster=example")
	for _, claim := range members {
		e.kubectl("patch", "pvc", claim, "--type=merge", "--field-manager=velero", "-p", `{"metadata":{"ownerReferences":null,"managedFields":[{}]}}`)
	}
	e.apply("size: 3", volumes)
	pace.Eventually(t, time.Minute, func() error {
		ec, err := e.get()
		if err != nil {
			return err
		}
		if said := status(ec); !strings.HasPrefix(said, "ExistingMembers: ") || len(e.pods()) > 0 {
			return fmt.Errorf("there are %d pods, and it says %s", len(e.pods()), said)
		}
		return nil
	})
	began := time.Now()
	e.patch(`{"adoptExisting":true}`)
	e.ready()
	t.Logf("three volumes were taken in; the cluster was whole after %.1f s", time.Since(began).Seconds())
	e.wantValue("/key", "kept")
	if after := e.members(); !slices.Equal(members, after) {
		t.Errorf("the members were %v and are %v", members, after)
	}
	e.kubectl("delete", "etcd", "example")
	pace.Eventually(t, time.Minute, func() error {
		if left := e.kubectl("get", "pods,pvc", "-l", "etcd_cluster=example", "-o", "name"); left != "" {
			return fmt.Errorf("these are left: %s", left)
		}
		return nil
	})
}

// replaces waits until a member that has lost its data is none any more, and the cluster is ready.
func (e etcd) replaces(lost string) {
	e.t.Helper()
	pace.Eventually(e.t, 3*time.Minute, func() error {
		if slices.Contains(e.members(), lost) {
			return fmt.Errorf("member %s lost its data and is still there", lost)
		}
		ec, err := e.get()
		if err != nil {
			return err
		}
		return isReady(ec)
	})
}

// TestEtcdVolumeDeleted: a member whose volume is gone is replaced.
func TestEtcdVolumeDeleted(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", volumes)
	e.put("/key", "kept")
	lost := e.members()[0]
	began := time.Now()
	e.kubectl("delete", "pvc", lost, "--wait=false")
	e.kubectl("delete", "pod", lost, "--wait=false")
	e.replaces(lost)
	t.Logf("a member's volume was deleted; it was replaced after %.1f s", time.Since(began).Seconds())
	e.wantValue("/key", "kept")
}

// TestEtcdQuorumLost: the loss of two of three members' data is reported, and the cluster starts
// again from the third on the user's word.
func TestEtcdQuorumLost(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string][]string{"without volumes": {"size: 3"}, "with volumes": {"size: 3", volumes}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := create(t, spec...)
			e.put("/key", "kept")
			members := e.members()
			lost, survivor := members[:2], members[2]
			pace.Eventually(t, time.Minute, func() error {
				out, err := e2e.TryKubectl("", "exec", "-n", e.namespace, survivor, "-c", "etcd", "--",
					"etcdctl", "get", "/key", "--print-value-only", "--consistency=s")
				if err == nil && strings.TrimSpace(out) != "kept" {
					err = fmt.Errorf("%s has not applied it yet, and has %q", survivor, out)
				}
				return err
			})
			if len(spec) > 1 {
				e.kubectl("delete", "pvc", lost[0], lost[1], "--wait=false")
			}
			e.kubectl("delete", "pod", lost[0], lost[1], "--force", "--grace-period=0")
			id := ""
			pace.Eventually(t, 2*time.Minute, func() error {
				ec, err := e.get()
				if err != nil {
					return err
				}
				// Only the second is named if the first was removed while there still was a quorum.
				if ec.Status.QuorumLoss == nil || !slices.Contains(ec.Status.QuorumLoss.Lost, lost[1]) {
					return fmt.Errorf("no loss is reported: %s", status(ec))
				}
				id = ec.Status.QuorumLoss.ID
				return nil
			})
			began := time.Now()
			e.patch(`{"acceptDataLoss":"` + id + `"}`)
			e.ready()
			t.Logf("quorum was recovered after %.1f s", time.Since(began).Seconds())
			e.wantValue("/key", "kept")
			ec, err := e.get()
			if err != nil || ec.Status.Recovered == nil || ec.Status.Recovered.Revision == 0 {
				t.Errorf("status does not say from where the cluster was recovered (%v): %+v", err, ec.Status.Recovered)
			}
		})
	}
}
