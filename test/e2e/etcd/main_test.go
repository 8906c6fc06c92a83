//go:build e2e

// Package etcd is the end-to-end tests of the etcd operator.
//
// They mostly wait, so they run in parallel, each with a cluster in a namespace of its own. A test is not parallel if
// it kills the operator, cordons nodes (which moves the members of all clusters) or changes the environment. It then
// runs before the parallel ones, with no other test of this package beside it.
package etcd

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/test/e2e"
)

var cluster client.Client

func TestMain(m *testing.M) { e2e.Main(m, &cluster, v1beta2.AddToScheme) }
