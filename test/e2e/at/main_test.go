//go:build e2e

package at

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/test/e2e"
)

var c client.Client

func TestMain(m *testing.M) { e2e.Main(m, &c, atv1alpha1.AddToScheme) }
