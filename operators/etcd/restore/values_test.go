package restore

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
)

// TestValues: decide takes values, and returns values. A write of the loop has functions, and objects as what they are.
func TestValues(t *testing.T) {
	testkit.RequireValues(t, []reflect.Type{reflect.TypeFor[loop.Write](), reflect.TypeFor[runtime.Object]()},
		reflect.TypeFor[observation](), reflect.TypeFor[loop.Plan]())
}
