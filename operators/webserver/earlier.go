package webserver

import appsv1 "k8s.io/api/apps/v1"

// This file is about what earlier versions made, and goes with the first version that
// cannot be upgraded to from 0.0.2. How their pod templates looked is in askedFor.

// goodOf002 is the last good template where 0.0.2 kept it: in an annotation of the
// Deployment.
func goodOf002(d *appsv1.Deployment) podTemplate {
	return templateFrom(d.Annotations["webserver-operator/last-good"])
}
