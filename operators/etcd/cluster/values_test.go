package cluster

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/view"
)

// TestValues: decide takes values, and returns values. A write of the loop has functions, and objects as what they are.
func TestValues(t *testing.T) {
	testkit.RequireValues(t, []reflect.Type{
		reflect.TypeFor[loop.Write](), reflect.TypeFor[error](), reflect.TypeFor[client.Object](),
		reflect.TypeFor[runtime.Object](), reflect.TypeFor[runtime.ApplyConfiguration](),
	}, reflect.TypeFor[view.Observation](), reflect.TypeFor[plan](), reflect.TypeFor[session.Request]())
}
