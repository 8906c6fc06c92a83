package memcached

import (
	"testing"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit/standalone"
)

func TestRights(t *testing.T) {
	// A server gets more memory while it runs.
	others := loop.Rights{"pods/resize": {"patch"}}
	standalone.CheckRights(t, Operator, others, kind)
}
