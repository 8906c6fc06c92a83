package testkit

import (
	"context"
	"reflect"
	"testing"
)

func TestRequireValues(t *testing.T) {
	type fine struct {
		Names map[string][]*int
		Err   error
	}
	type calls struct {
		All []map[string]struct{ Do func() }
	}
	for name, tc := range map[string]struct {
		of   reflect.Type
		want bool
	}{
		"data":      {reflect.TypeFor[fine](), true},
		"a func":    {reflect.TypeFor[calls](), false},
		"a context": {reflect.TypeFor[*struct{ ctx context.Context }](), false},
		"a channel": {reflect.TypeFor[map[chan int]int](), false},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &testing.T{}
			RequireValues(inner, []reflect.Type{reflect.TypeFor[error]()}, tc.of)
			if inner.Failed() == tc.want {
				t.Errorf("it passes: %t, want %t", !inner.Failed(), tc.want)
			}
		})
	}
}
