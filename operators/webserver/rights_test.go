package webserver

import (
	"testing"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestRights(t *testing.T) {
	// OpenShift requires these of whoever sets the host of a Route, or changes it.
	others := loop.Rights{"routes/custom-host.route.openshift.io": {"create", "update"}}
	standalone.CheckRights(t, Operator, others, kind)
}
