package webserver

import appsv1 "k8s.io/api/apps/v1"

// This file is about what earlier versions of the operator made. It goes with 0.2.0,
// which nobody upgrades to from 0.0.2.

// rendering is what a template looks like for the same spec, by the version of the
// operator.
type rendering int

const (
	today   rendering = iota
	asOf002           // the kubelet does not keep what crashing containers print, and any node is for it; no configuration has IPv6
	asOf001           // nor has the check resources
)

// goodOf002 is the last good template where 0.0.2 kept it: in an annotation of the
// Deployment.
func goodOf002(d *appsv1.Deployment) podTemplate {
	return templateFrom(d.Annotations["webserver-operator/last-good"])
}
