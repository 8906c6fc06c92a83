package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

func TestServices(t *testing.T) {
	type summary struct {
		Name, IP string
		Unready  bool
		Ports    map[string]int32
	}
	of := func(config any, selector map[string]string) summary {
		s := &corev1.Service{}
		decodeInto(t, config, s)
		if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != "EtcdCluster" || !*s.OwnerReferences[0].Controller {
			t.Errorf("%s: owner references %+v", s.Name, s.OwnerReferences)
		}
		if diff := cmp.Diff(selector, s.Spec.Selector); diff != "" {
			t.Errorf("%s: selector (-want +got):\n%s", s.Name, diff)
		}
		ports := map[string]int32{}
		for _, p := range s.Spec.Ports {
			ports[p.Name] = p.Port
		}
		return summary{s.Name, s.Spec.ClusterIP, s.Spec.PublishNotReadyAddresses, ports}
	}
	want := summary{"example", "None", true, map[string]int32{"client": 2379, "peer": 2380}}
	if diff := cmp.Diff(want, of(PeerService(aCluster()), Selector(aCluster()))); diff != "" {
		t.Errorf("members find each other by (-want +got):\n%s", diff)
	}
	want = summary{"example-client", "", false, map[string]int32{"client": 2379}}
	if diff := cmp.Diff(want, of(ClientService(aCluster(), false), Selector(aCluster()))); diff != "" {
		t.Errorf("clients find members by (-want +got):\n%s", diff)
	}
	voters := map[string]string{"app": "etcd", "etcd_cluster": "example", "etcd.database.coreos.com/voter": "true"}
	if diff := cmp.Diff(want, of(ClientService(aCluster(), true), voters)); diff != "" {
		t.Errorf("clients find voters by (-want +got):\n%s", diff)
	}
}

// TestDrains: as many members may be evicted as leave a quorum. Without volumes it is one at a
// time. A cluster of one or two blocks a drain that would lose data, and no other.
func TestDrains(t *testing.T) {
	for name, tc := range map[string]struct {
		ec        *etcdCluster
		evictable map[int]int // by the number of voters
	}{
		"with volumes": {aCluster(withVolumes), map[int]int{0: 0, 1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 7: 3, 9: 4}},
		"without":      {aCluster(), map[int]int{0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 7: 1, 9: 1}},
	} {
		for voters, want := range tc.evictable {
			budget := &policyv1.PodDisruptionBudget{}
			decodeInto(t, DisruptionBudget(tc.ec, voters-Evictable(tc.ec, voters)), budget)
			if got := voters - budget.Spec.MinAvailable.IntValue(); got != want {
				t.Errorf("%s: %d of %d members can be evicted, want %d", name, got, voters, want)
			}
			unready := policyv1.IfHealthyBudget
			if budget.Spec.MinAvailable.IntValue() == 0 {
				unready = policyv1.AlwaysAllow
			}
			if got := *budget.Spec.UnhealthyPodEvictionPolicy; got != unready {
				t.Errorf("%s: of %d members, those that are not ready go by %s, want %s", name, voters, got, unready)
			}
		}
	}
}

func TestVolumes(t *testing.T) {
	ec := aCluster(withVolumes)
	got := Claim(ec, "example-abcde")
	if got.Name != "example-abcde" || got.Annotations["etcd.database.coreos.com/cluster-uid"] != "example-uid" || got.Labels["etcd_node"] != "example-abcde" || len(got.OwnerReferences) != 1 {
		t.Errorf("volume %+v", got.ObjectMeta)
	}
	if diff := cmp.Diff([]corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, got.Spec.AccessModes); diff != "" || *got.Spec.VolumeMode != corev1.PersistentVolumeFilesystem {
		t.Errorf("a volume of which the spec says only the size: %+v", got.Spec)
	}
	if ec.Spec.Pod.PersistentVolumeClaimSpec.VolumeMode != nil {
		t.Error("the spec was changed")
	}
	ec.Spec.Pod.PersistentVolumeClaimSpec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	if modes := Claim(ec, "example-abcde").Spec.AccessModes; len(modes) != 1 || modes[0] != corev1.ReadWriteOncePod {
		t.Errorf("access modes %v instead of the spec's", modes)
	}
}
