//go:build e2e

package memcached

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/test/e2e"
)

var c client.Client

func TestMain(m *testing.M) { e2e.Main(m, &c) }
