package rollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/versions"
	"example.com/fairlead/operators/etcd/view"
)

// This file keeps members from a version that does not know their variables any more: etcd ignores those that it does not
// know, so that what they turn on would be off without an error. What counts is what a member's pod was made with.

// holdsVariables finds a member whose variables the version of the spec does not know. An error says what the user has to
// do; without one, but with a member, its pod is about to be replaced.
func holdsVariables(ec *v1beta2.EtcdCluster, v *view.View) (*view.Member, error) {
	if v.Wanted.Minor() < versions.Experimental || v.Highest().Minor() >= versions.Experimental || v.Lowest().Minor() < versions.Experimental-1 {
		return nil, nil // 3.6, through which all go, knows both names
	}
	inSpec := ""
	if ec.Spec.Pod != nil {
		inSpec, _ = unknownOf(ec.Spec.Pod.EtcdEnv)
	}
	for _, m := range v.Members {
		if m.Pod == nil || m.IsForeign() {
			continue
		}
		variable, instead := unknownOf(objects.Variables(m.Pod))
		if variable == "" {
			continue
		}
		err := fmt.Errorf("etcd 3.%d ignores the variable %s, with which member %s runs", v.Wanted.Minor(), variable, m.PodName)
		switch {
		case inSpec != "":
			return m, fmt.Errorf("%w: set %s in spec.pod.etcdEnv in its place", err, instead)
		case !objects.HasVolumes(ec):
			return m, fmt.Errorf("%w: its pod, which has no volume, keeps what it was made with. Annotate it with %s=true, and the operator replaces the member", err, annotation.Replace)
		}
		return m, nil
	}
	return nil, nil
}

// unknownOf is the first variable that 3.7 does not know, and what is to be set in its place; empty if there is none.
func unknownOf(variables []corev1.EnvVar) (variable, instead string) {
	for _, is := range variables {
		switch name, value := versions.Replacement(is.Name); {
		case name == "":
		case value != "":
			return is.Name, fmt.Sprintf("%s to %s=%s", name, value, is.Value)
		default:
			return is.Name, name
		}
	}
	return "", ""
}
