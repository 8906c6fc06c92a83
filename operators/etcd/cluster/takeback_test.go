package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/session"
)

// TestTakeBack: what is done when a member cannot start with 3.6 for what etcd's API v2 has written.
func TestTakeBack(t *testing.T) {
	const says = "VersionRefused: etcd 3.6 does not start with what etcd's API v2 has written, so all members stay at 3.5.35. Set spec.version to 3.5.35, and in spec.pod.etcdEnv ETCD_ENABLE_V2 to true"
	in35 := func(options ...ecOption) *world { return healthy(anEtcd(options...), 1, 2, 3).areOf("3.5.35") }
	requireDecisions(t, map[string]decision{
		"it says so: remember it":                   {world: in35(changing(3)).refusesV2(3), want: "status/refusal"},
		"remembered: take it back":                  {world: in35(changing(3), refusing("3.6.16")).refusesV2(3), want: "patch Pod/image #3", problem: says},
		"remembered, no quorum: take it back":       {world: in35(changing(3), refusing("3.6.16")).refusesV2(3).silences(2).leaderless(), want: "patch Pod/image #3", problem: says},
		"it is back: nothing to do":                 {world: in35(refusing("3.6.16")), problem: says},
		"it is back, on the way to 3.7":             {world: in35(version("3.7.3"), refusing("3.7.3")), problem: says},
		"it is back, and its pod is gone":           {world: in35(refusing("3.6.16"), onVolumes).losesPod(3), want: "create Pod #3", problem: says},
		"it runs again: nothing to do":              {world: in35(refusing("3.6.16")).refusesV2(3).runsAt(3, "3.5.35"), problem: says},
		"spec.version is another one: try that":     {world: in35(version("3.6.15"), refusing("3.6.16")).rewritten(1, 2, 3), want: "status/change"},
		"spec.version was set back before it is":    {world: in35(version("3.5.35"), changing(3)).refusesV2(3), want: "patch Pod/image #3"},
		"two are at 3.6 already: they go back":      {world: in35(refusing("3.6.16"), changing(2)).runsAt(2, "3.6.16"), want: "patch Pod/image #2", problem: says},
		"it ends for something else: wait":          {world: in35(changing(3)).isChanged(3, "3.6.16").crashes(3, `{"level":"fatal","msg":"discovery failed","error":"no space left on device"}`)},
		"it says so at 3.5, of flags of the user's": {world: in35(version("3.5.35")).silences(3).crashes(3, v2Words)},
		"all are at 3.6: too late":                  {world: healthy(anEtcd(), 1, 2, 3).silences(3).crashes(3, v2Words)},
	})
}

// TestRefusalIsRemembered: until spec.version is another one.
func TestRefusalIsRemembered(t *testing.T) {
	w := healthy(anEtcd(changing(3)), 1, 2, 3).areOf("3.5.35").refusesV2(3)
	want := v1beta2.VersionRefused{Version: "3.6.16", Member: w.name(3), Message: "discovery failed: detected disallowed custom content in v2store for stage --v2-deprecation=write-only"}
	is := decide(w.ec, w.seen).memory.VersionRefused
	if is == nil || *is != want {
		t.Fatalf("remembered is %+v, want %+v", is, want)
	}
	for spec, want := range map[string]bool{"3.6.16": true, "3.5.35": false, "3.6.15": false} {
		w := healthy(anEtcd(version(spec), refusing("3.6.16")), 1, 2, 3).areOf("3.5.35")
		if got := decide(w.ec, w.seen).memory.VersionRefused != nil; got != want {
			t.Errorf("spec.version %s: it is remembered: %t", spec, got)
		}
	}
}

const v2Words = `{"level":"fatal","msg":"discovery failed","error":"detected disallowed custom content in v2store for stage --v2-deprecation=write-only"}`

// refusing has a version be refused.
func refusing(version string) ecOption {
	return func(ec *v1beta2.EtcdCluster) {
		ec.Status.VersionRefused = &v1beta2.VersionRefused{Version: version, Member: "example-1", Message: "no"}
	}
}

// refusesV2 has a member be given 3.6, and end for what the API v2 has written.
func (w *world) refusesV2(n int64) *world { return w.isChanged(n, "3.6.16").crashes(n, v2Words) }

// runsAt has a member run with a version.
func (w *world) runsAt(n int64, version string) *world {
	last := w.seen.Pods[w.name(n)].Status.ContainerStatuses
	w.addPod(n, version)
	w.answer(n, func(*session.Answer) {})
	if len(last) > 0 {
		w.container(n, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, last[0].LastTerminationState)
	}
	return w
}
