//go:build apiserver

package restore

import (
	"testing"

	"example.com/fairlead/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.Options{CRDs: []string{"../config/crd"}})
}
