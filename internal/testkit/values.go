package testkit

import (
	"reflect"
	"testing"
)

// RequireValues fails a test if types can hold anything but data: a func, a channel, or an interface. Of data are
// types that count as data all the same, and are not looked into.
func RequireValues(t *testing.T, data []reflect.Type, types ...reflect.Type) {
	t.Helper()
	seen := map[reflect.Type]bool{}
	for _, of := range data {
		seen[of] = true
	}
	var walk func(of reflect.Type, path string)
	walk = func(of reflect.Type, path string) {
		if seen[of] {
			return
		}
		seen[of] = true
		switch of.Kind() { //nolint:exhaustive // the others are data
		case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Interface:
			t.Errorf("%s is a %s: %s", path, of.Kind(), of)
		case reflect.Map:
			walk(of.Key(), path+" key")
			walk(of.Elem(), path+"[]")
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(of.Elem(), path)
		case reflect.Struct:
			for i := range of.NumField() {
				walk(of.Field(i).Type, path+"."+of.Field(i).Name)
			}
		}
	}
	for _, of := range types {
		walk(of, of.String())
	}
}
