package webserver

import (
	"testing"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestRights(t *testing.T) {
	others := loop.Rights{
		// OpenShift requires these of whoever sets the host of a Route, or changes it.
		"routes/custom-host.route.openshift.io": {"create", "update"},
		// The Gateway is read, and neither watched nor written.
		"gateways.gateway.networking.k8s.io": {"get"},
	}
	standalone.CheckRights(t, Operator, others, kind)
}
