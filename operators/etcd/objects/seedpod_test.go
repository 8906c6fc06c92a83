package objects

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/task"
)

func TestSeedPod(t *testing.T) {
	for name, ec := range map[string]*v1beta2.EtcdCluster{"without volumes": aCluster(), "with volumes": aCluster(withVolumes), "with TLS": aCluster(withTLS)} {
		t.Run(name, func(t *testing.T) {
			r := aRestoring()
			r.Source.ServiceAccountName, r.Source.Newest = "cloud", true
			pod, err := SeedPod(ec, r, "3.6.16", 41, "agent:1", Certificates{})
			if err != nil {
				t.Fatal(err)
			}
			for label := range pod.Labels {
				if label == AppLabel || strings.HasPrefix(label, "etcd_") {
					t.Errorf("it has the label %s, by which Services find members", label)
				}
			}
			if pod.Labels[run.ManagedByLabel] != ManagedBy || !pods.IsGated(pod, Gate) || pod.Spec.ServiceAccountName != "cloud" || len(pod.Spec.InitContainers) != 1 {
				t.Errorf("%+v", pod)
			}
			var todo task.Task
			fetch := pod.Spec.InitContainers[0]
			if err := json.Unmarshal([]byte(fetch.Args[0]), &todo); err != nil {
				t.Fatal(err)
			}
			if todo.Action != task.Fetch || todo.Choose == nil || todo.Member.DataDir != Variable(pod, "ETCD_DATA_DIR") || todo.Member.Name != Variable(pod, "ETCD_NAME") ||
				todo.Member.PeerURL != Variable(pod, "ETCD_INITIAL_ADVERTISE_PEER_URLS") || todo.Member.Token == string(ec.UID) || todo.Member.Version != "3.6.16" || todo.Member.After != 41 {
				t.Errorf("%+v", todo)
			}
			if fetch.Image != "agent:1" || fetch.SecurityContext == nil || *fetch.SecurityContext.AllowPrivilegeEscalation || pod.Annotations[annotation.InitialCluster] != Sealed {
				t.Errorf("%+v, %v", fetch, pod.Annotations)
			}
		})
	}
}

func TestSeedIsBesideMembers(t *testing.T) {
	ec := aCluster(withPolicy(func(p *policy) { p.AntiAffinity = true }))
	made, err := SeedPod(ec, aRestoring(), "3.6.16", 41, "agent", Certificates{})
	if err != nil {
		t.Fatal(err)
	}
	if terms := made.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution; len(terms) != 0 {
		t.Errorf("with a member on each node it cannot be scheduled: %+v", terms)
	}
	if len(aPod(ec).Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Error("members are not kept apart")
	}
}

func TestStopsMembers(t *testing.T) {
	for phase, want := range map[v1beta2.RestorePhase]bool{
		v1beta2.RestoreVerifying: false, v1beta2.RestoreSwitching: true, v1beta2.RestoreCompleting: true,
	} {
		if got := StopsMembers(&v1beta2.Restoring{Phase: phase}); got != want {
			t.Errorf("%s: %t, want %t", phase, got, want)
		}
	}
	if StopsMembers(nil) {
		t.Error("no restore stops members")
	}
}
