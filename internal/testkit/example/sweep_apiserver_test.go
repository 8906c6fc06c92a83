//go:build apiserver

package example

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestMain gives the tests of this package an API server with these CRDs. It starts with
// the first test that requests it, and is gone when the tests are.
func TestMain(m *testing.M) { testkit.Main(m, testkit.Options{CRDs: []string{"."}}) }

// TestSweep plays the story with the operator killed before and after every write
// that it makes, with late caches, with two operators, and with errors in place of
// answers: whatever happens, the story ends as it should.
func TestSweep(t *testing.T) {
	sweep := &testkit.Sweep{
		Start:  standalone.Start(Operator),
		Writes: Kind.Writes,
		NameOf: loop.NameOf,
		Scheme: standalone.Scheme(Operator),
		Kinds:  []client.Object{&Order{}}, // their status is watched for lies
		Late:   []string{"orders", "pods"},
	}
	sweep.Run(t, stories()...)
	// A write in the operator's list that no story makes is a failure, too.
	sweep.RequireAllWritesCut(t)
}
