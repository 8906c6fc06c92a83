package cluster

import (
	"testing"

	"example.com/fairlead/internal/testkit"
)

// TestSteps: the steps of doc.go are those that decide takes.
func TestSteps(t *testing.T) { testkit.RequireSteps(t, table) }
