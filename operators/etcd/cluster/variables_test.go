package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
)

func withVariable(name, value string) ecOption {
	return func(ec *v1beta2.EtcdCluster) {
		if ec.Spec.Pod == nil {
			ec.Spec.Pod = &v1beta2.PodPolicy{}
		}
		ec.Spec.Pod.EtcdEnv = append(ec.Spec.Pod.EtcdEnv, corev1.EnvVar{Name: name, Value: value})
	}
}

// TestDecideVariables: no member is given a version that does not know its variables any more.
func TestDecideVariables(t *testing.T) {
	old := withVariable("ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME", "8s")
	renamed := func(options ...ecOption) *world {
		w := healthy(anEtcd(options...), 1, 2, 3)
		w.ec.Spec.Pod.EtcdEnv = nil
		withVariable("ETCD_CORRUPT_CHECK_TIME", "8s")(w.ec)
		w.ec.Spec.Version = "3.7.3"
		return w
	}
	requireDecisions(t, map[string]decision{
		"3.7, and a variable that it does not know": {
			world:   healthy(anEtcd(version("3.7.3"), old), 1, 2, 3),
			problem: "VersionRefused: etcd 3.7 ignores the variable ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME, with which member " + healthy(anEtcd(), 1).name(1) + " runs: set ETCD_CORRUPT_CHECK_TIME in spec.pod.etcdEnv in its place",
		},
		"3.7, and one that became a feature gate": {
			world:   healthy(anEtcd(version("3.7.3"), withVariable("ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK", "true")), 1, 2, 3),
			problem: "VersionRefused: etcd 3.7 ignores the variable ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK, with which member " + healthy(anEtcd(), 1).name(1) + " runs: set ETCD_FEATURE_GATES to InitialCorruptCheck=true in spec.pod.etcdEnv in its place",
		},
		"3.7, renamed, without volumes": {
			world:   renamed(old),
			problem: "VersionRefused: etcd 3.7 ignores the variable ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME, with which member " + healthy(anEtcd(), 1).name(1) + " runs: its pod, which has no volume",
		},
		"3.7, renamed, with volumes: other pods first": {world: renamed(onVolumes, old), want: "status/change"},
		"3.7, by 3.6, which knows both":                {world: healthy(anEtcd(version("3.7.3"), old), 1, 2, 3).areOf("3.5.35"), asks: rewrites(1)},
		"3.6 knows it":                                 {world: healthy(anEtcd(version("3.6.17"), old), 1, 2, 3), want: "status/change"},
		"3.7, and none that it does not know": {
			world: healthy(anEtcd(version("3.7.3"), withVariable("ETCD_CORRUPT_CHECK_TIME", "8s")), 1, 2, 3), asks: downgradesTo("3.5"),
		},
	})
}

// TestIgnoresVariables: a variable that the version does not know is in an event.
func TestIgnoresVariables(t *testing.T) {
	for _, tc := range []struct {
		version string
		want    bool
	}{{"3.6.16", false}, {"3.7.3", true}} {
		ec := anEtcd(version(tc.version), withVariable("ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME", "8s"))
		if got := strings.Join(ignoredFields(ec), " "); strings.Contains(got, "ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME") != tc.want {
			t.Errorf("%s: these are said to be ignored: %q", tc.version, got)
		}
	}
}
