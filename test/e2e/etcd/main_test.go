//go:build e2e

// Package etcd is the end-to-end tests of the etcd operator.
package etcd

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/test/e2e"
)

var cluster client.Client

func TestMain(m *testing.M) { e2e.Main(m, &cluster, v1beta2.AddToScheme) }
