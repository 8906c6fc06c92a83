package sim

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What a server decodes differs in a few things from what was encoded: times have whole
// seconds, what is empty is not there, quantities have their canonical form. To do just
// that to a copy takes a tenth of the time of encoding and decoding it.

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()
	quantityType  = reflect.TypeFor[resource.Quantity]()
	durationType  = reflect.TypeFor[metav1.Duration]()
	fieldsType    = reflect.TypeFor[metav1.FieldsV1]()
	rawType       = reflect.TypeFor[runtime.RawExtension]()
)

// decoded makes a value what a server would have decoded.
func decoded(v reflect.Value) {
	t := v.Type()
	if isPlain(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			decoded(v.Elem())
		}
	case reflect.Slice:
		switch {
		case v.Len() == 0 && !v.IsNil():
			v.SetZero()
		case !isPlain(t.Elem()):
			for i := range v.Len() {
				decoded(v.Index(i))
			}
		}
	case reflect.Map:
		if v.Len() == 0 && !v.IsNil() {
			v.SetZero()
			return
		}
		if isPlain(t.Elem()) {
			return
		}
		for _, key := range v.MapKeys() {
			value := reflect.New(t.Elem()).Elem()
			value.Set(v.MapIndex(key))
			decoded(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		switch t {
		case timeType:
			at := v.Addr().Interface().(*metav1.Time)
			if !at.IsZero() {
				at.Time = at.Truncate(time.Second).Local()
			}
			return
		case microTimeType:
			at := v.Addr().Interface().(*metav1.MicroTime)
			if !at.IsZero() {
				at.Time = at.Truncate(time.Microsecond).Local()
			}
			return
		case quantityType:
			q := v.Addr().Interface().(*resource.Quantity)
			if parsed, err := resource.ParseQuantity(q.String()); err == nil {
				*q = parsed
			}
			return
		case fieldsType, rawType:
			return
		}
		for _, i := range exported(t) {
			decoded(v.Field(i))
		}
	}
}

// plain says of types whether their values are decoded as they were encoded.
var plain sync.Map // of bool by reflect.Type

func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Interface:
		return false
	case reflect.Struct, reflect.Pointer, reflect.Array:
	default:
		return true
	}
	if known, ok := plain.Load(t); ok {
		return known.(bool)
	}
	plain.Store(t, false) // of a type that contains itself
	is := true
	switch t.Kind() {
	case reflect.Pointer, reflect.Array:
		is = isPlain(t.Elem())
	default:
		for _, i := range exported(t) {
			is = is && isPlain(t.Field(i).Type)
		}
		is = is && t != timeType && t != microTimeType && t != quantityType
	}
	plain.Store(t, is)
	return is
}

// fieldsOf are the exported fields of struct types: to ask for them takes long.
var fieldsOf sync.Map // of []int by reflect.Type

func exported(t reflect.Type) []int {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]int)
	}
	var fields []int
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			fields = append(fields, i)
		}
	}
	fieldsOf.Store(t, fields)
	return fields
}

// walk adds a typed value, with times by the order in which they first come: two values
// whose times differ, but not in which of them are equal, have one hash. Histories that
// are alike seldom have the same times. Nor have they the same sentences with times.
func (h *hash) walk(v reflect.Value) {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		h.flag(v.IsNil())
		if !v.IsNil() {
			h.walk(v.Elem())
		}
	case reflect.Interface:
		h.flag(v.IsNil())
		if !v.IsNil() {
			_ = h.value(v.Interface())
		}
	case reflect.String:
		h.words(v.String())
	case reflect.Bool:
		h.flag(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.number(v.Uint())
	case reflect.Slice:
		h.number(uint64(v.Len()))
		if t.Elem().Kind() == reflect.Uint8 {
			_, _ = h.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			h.walk(v.Index(i))
		}
	case reflect.Map:
		h.number(uint64(v.Len()))
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			h.text(key.String())
			h.walk(v.MapIndex(key))
		}
	case reflect.Struct:
		switch t {
		case timeType:
			h.time(v.Interface().(metav1.Time).Time)
			return
		case microTimeType:
			h.time(v.Interface().(metav1.MicroTime).Time)
			return
		case durationType:
			h.ordinal(v.Interface().(metav1.Duration).Duration.String())
			return
		case quantityType:
			q := v.Interface().(resource.Quantity)
			h.text(q.String())
			return
		case fieldsType:
			f := v.Interface().(metav1.FieldsV1)
			h.text(string(f.GetRawBytes()))
			return
		}
		for _, i := range exported(t) {
			h.walk(v.Field(i))
		}
	default:
		_ = h.json(v.Interface())
	}
}

// time adds a time, by its place among those that came first.
func (h *hash) time(t time.Time) {
	if t.IsZero() {
		h.number(0)
		return
	}
	h.ordinal(t.UTC().Format(time.RFC3339Nano))
}

// words adds a string. A sentence with a number in it, such as a time, counts by its form
// only, and by whether it is the same as another.
func (h *hash) words(s string) {
	if !strings.ContainsRune(s, ' ') || !strings.ContainsAny(s, "0123456789") {
		h.text(s)
		return
	}
	h.ordinal(s)
	form := []byte(s)
	for i, c := range form {
		if '0' <= c && c <= '9' {
			form[i] = '0'
		}
	}
	_, _ = h.Write(form)
	h.number(uint64(len(form)))
}

// ordinal adds a value by its place among those that came first.
func (h *hash) ordinal(value string) {
	i := slices.Index(h.seen, value)
	if i < 0 {
		i = len(h.seen)
		h.seen = append(h.seen, value)
	}
	h.number(uint64(i + 1))
}
