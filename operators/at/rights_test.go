package at

import (
	"testing"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestRights(t *testing.T) {
	// The calls patch and update the pod, and what the command wrote is read.
	others := loop.Rights{"pods": {"patch", "update"}, "pods/log": {"get"}}
	standalone.CheckRights(t, Operator, others, atExample.kind(), cnat.kind())
}
