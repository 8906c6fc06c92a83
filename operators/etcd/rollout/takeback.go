package rollout

import (
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file is about what etcd's API v2 has written. Etcd 3.6 has no such API, and ends when its data has anything of it: a
// key, or an entry of the log after the last snapshot of that, be it of a key's deletion. Before, nobody can be asked for it:
// 3.5 shows the keys only where the API is on, and the log nowhere. So the first member that is given 3.6 finds out, while the
// others serve. It has written nothing: it gets the version of the others again, with its data.
//
//	status has the refusal     with what etcd said, and spec.version
//	the member is taken back   also without a quorum, which it may be needed for
//	spec.version changes       the refusal is forgotten, and the next one is tried

// refusesV2 is the minor version from which on etcd ends for what the API v2 has written.
const refusesV2 = 6

// TakeBack gives a member the version of the others again that cannot start with a later one.
func TakeBack(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if is := ec.Status.VersionRefused; is != nil && is.Version != ec.Spec.Version {
		s.Remember(ec).VersionRefused = nil
	}
	m := v.Find(func(m *view.Member) bool {
		given := ""
		if m.HasV2() && !objects.IsEnding(m.Pod) {
			given = m.Pod.Annotations[annotation.Version]
		}
		version, err := versions.Parse(given)
		return err == nil && version.Minor() >= refusesV2
	})
	lowest := v.Lowest()
	if m == nil || lowest.IsZero() || lowest.Minor() >= refusesV2 {
		return s
	}
	s.Soon()
	if ec.Status.VersionRefused == nil && v.Wanted.Minor() >= refusesV2 {
		said := view.LastWords(pods.Status(m.Pod, objects.ContainerName))
		s.Remember(ec).VersionRefused = &v1beta2.VersionRefused{Version: ec.Spec.Version, Member: m.PodName, Message: said}
		s.Claim = "refusal"
		return s.Last()
	}
	if err := refused(ec, v); err != nil {
		s.Stall(reason.VersionRefused, "%v", err)
	}
	s.Do(step.ImageChange(ec, m.Pod, "image", fmt.Sprintf("member %s is taken back to %s: its data has what etcd's API v2 has written", m.PodName, lowest), lowest))
	return s.Last()
}

// refused is an error that says what is to be done before members are given the version of the spec; nil if they may have it.
func refused(ec *v1beta2.EtcdCluster, v *view.View) error {
	is, lowest := ec.Status.VersionRefused, v.Lowest()
	if is == nil || is.Version != ec.Spec.Version || lowest.Minor() >= refusesV2 || v.Wanted.Minor() < refusesV2 {
		return nil
	}
	return fmt.Errorf("etcd 3.%d does not start with what etcd's API v2 has written, so all members stay at %[2]s. Set spec.version to %[2]s, and in spec.pod.etcdEnv "+
		"ETCD_ENABLE_V2 to true and ETCD_SNAPSHOT_COUNT to 1; once all members have that, delete all keys at /v2/keys, and put a few of the API v3; "+
		"then set spec.version to %s again, without the two variables. Member %s said: %s", refusesV2, lowest, is.Version, is.Member, is.Message)
}
