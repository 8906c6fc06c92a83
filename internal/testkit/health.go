package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// healthScript is the health check that Argo CD gets, from the root of the module.
const healthScript = "operators/config/argocd/health.lua"

// health is what Argo CD says of an object.
type health struct{ status, message string }

// judged has the states whose health was found to be right. Simulations ask for millions of versions of
// objects, and these have a few hundred states.
var judged struct {
	sync.RWMutex
	states map[string]bool
}

// CheckHealth says what is wrong with the health that Argo CD gives to an object by the script that users install:
// it has to be the one that the object's status asks for. States that differ in texts and times only are tried once.
func CheckHealth(obj runtime.Object) error {
	r, err := readReported(obj)
	if err != nil {
		return err
	}
	words := readWords(obj)
	var buffer [512]byte
	state := appendState(buffer[:0], obj, &r, &words)
	judged.RLock()
	known := judged.states[string(state)]
	judged.RUnlock()
	if known {
		return nil
	}
	script, err := readHealth()
	if err != nil {
		return err
	}
	got, err := runHealth(script, obj)
	if err == nil {
		err = rightHealth(got, &r, &words)
	}
	if err != nil {
		return fmt.Errorf("health of %s %s in Argo CD: %w", kindOf(obj), r.name, err)
	}
	judged.Lock()
	defer judged.Unlock()
	if judged.states == nil {
		judged.states = map[string]bool{}
	}
	judged.states[string(state)] = true
	return nil
}

// words are what an object says besides its conditions.
type words struct {
	phase                  string
	isSuspended, isDeleted bool
}

func readWords(obj runtime.Object) (w words) {
	if meta, ok := obj.(metav1.Object); ok {
		w.isDeleted = meta.GetDeletionTimestamp() != nil
	}
	v := reflect.ValueOf(obj).Elem()
	fields := statusFieldsOf(v.Type())
	if fields.phase != nil {
		w.phase = v.FieldByIndex(fields.phase).String()
	}
	if fields.suspend != nil {
		w.isSuspended = v.FieldByIndex(fields.suspend).Bool()
	}
	return w
}

// appendState is all that an object's health may depend on.
func appendState(state []byte, obj runtime.Object, r *reported, w *words) []byte {
	flag := func(is bool) {
		state = strconv.AppendBool(state, is)
	}
	state = append(state, reflect.TypeOf(obj).String()...)
	state = append(append(state, ' '), w.phase...)
	flag(w.isSuspended)
	flag(w.isDeleted)
	flag(r.observedGeneration == r.generation)
	for i := range r.conditions {
		c := &r.conditions[i]
		for _, word := range []string{c.Type, string(c.Status), c.Reason} {
			state = append(append(state, ' '), word...)
		}
		flag(c.ObservedGeneration == r.generation)
	}
	return state
}

// rightHealth compares what the script says with what the status asks for. A phase, where a kind has one,
// is a second witness: it is not from the conditions.
func rightHealth(got health, r *reported, w *words) error {
	isCurrent := r.observedGeneration == r.generation && !w.isDeleted
	ready := r.condition("Ready")
	isReady := isCurrent && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == r.generation
	// While Ready is Unknown, the operator reads nothing, and the phase is that of before.
	isKnown := isCurrent && (ready == nil || ready.Status != metav1.ConditionUnknown)
	hasEnded := w.phase == "DONE" || w.phase == "Complete"
	hasFailed := w.phase == "FAILED" || w.phase == "MISSED" || w.phase == "Failed"
	want := "Progressing"
	switch {
	case isCurrent && r.isTrue("Stalled") || isKnown && hasFailed:
		want = "Degraded"
	case isReady && w.isSuspended && !hasEnded:
		want = "Suspended"
	case isReady || isKnown && hasEnded:
		want = "Healthy"
	}
	switch {
	case got.status != want:
		return fmt.Errorf("it is %s (%s), want %s", got.status, got.message, want)
	case got.status == "Healthy" && !isReady:
		return errors.New("it is Healthy, and Ready is not True for this generation")
	case got.message == "":
		return fmt.Errorf("it is %s without a message", got.status)
	}
	return nil
}

// readHealth is the text of the script.
var readHealth = sync.OnceValues(func() (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, healthScript))
	return string(text), err
})

// runHealth runs the script as Argo CD does: with the libraries base, package and table, and for at most a second.
// (Its library os, without what would reach the system, is left out: the script does not need it.)
func runHealth(script string, obj runtime.Object) (health, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return health{}, err
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(library.open), Protect: true}, lua.LString(library.name)); err != nil {
			return health{}, err
		}
	}
	l.SetGlobal("obj", luaValue(l, content))
	if err := l.DoString(script); err != nil {
		return health{}, err
	}
	said, isTable := l.Get(-1).(*lua.LTable)
	if !isTable {
		return health{}, fmt.Errorf("the script returns a %s, not a table", l.Get(-1).Type())
	}
	return health{lua.LVAsString(said.RawGetString("status")), lua.LVAsString(said.RawGetString("message"))}, nil
}

// luaValue is a value of JSON for Lua.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		table := l.CreateTable(len(v), 0)
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// ModuleRoot is the folder above the test that has go.mod.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", fmt.Errorf("no go.mod above the test (%w)", err)
}
