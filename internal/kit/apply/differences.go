package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is a field that is not as wanted.
type Change struct {
	Path string
	// From is what it is, nil if it is not there. To is what is wanted.
	From, To any
}

// Differences are the fields of want that live, in the API's own JSON, does not
// have, or has otherwise. What only live has is no difference, but for spec.selector,
// and neither is an empty value of want that live leaves out. The items of a list of
// objects may stand in any order, with others among them.
func Differences(want, live any) ([]Change, error) {
	wanted, err := plain(want)
	if err != nil {
		return nil, err
	}
	have, err := plain(live)
	if err != nil {
		return nil, err
	}
	if fields, ok := wanted.(map[string]any); ok {
		fields = maps.Clone(fields)  // it may be the caller's
		delete(fields, "apiVersion") // a cached object may be without
		delete(fields, "kind")
		wanted = fields
	}
	return differences("", wanted, have), nil
}

// plain is a value as the API's JSON has it, but for the type of numbers, see number. An
// object's managed fields, which nobody wants, are left out: they are most of it.
func plain(value any) (any, error) {
	switch value := value.(type) {
	case runtime.Unstructured:
		return value.UnstructuredContent(), nil
	case client.Object:
		bare := reflect.New(reflect.TypeOf(value).Elem())
		bare.Elem().Set(reflect.ValueOf(value).Elem())
		obj := bare.Interface().(client.Object)
		obj.SetManagedFields(nil)
		return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var decoded any
	return decoded, json.Unmarshal(data, &decoded)
}

// atomic is the field that selects the pods of a Service, a PodDisruptionBudget, a
// Deployment. The API has it atomic: who sets it has all of it, and a key that another
// writer adds would leave it selecting nothing.
const atomic = "spec.selector"

func differences(path string, want, have any) []Change {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			if path == atomic && !reflect.DeepEqual(want, have) {
				return []Change{{Path: path, From: have, To: want}}
			}
			var changes []Change
			for _, field := range slices.Sorted(maps.Keys(want)) {
				changes = append(changes, differences(join(path, field), want[field], have[field])...)
			}
			return changes
		}
	case []any:
		if have, ok := have.([]any); ok {
			return listDifferences(path, want, have)
		}
	}
	want, have = number(want), number(have)
	if _, ok := want.(map[string]any); !ok {
		if _, ok := want.([]any); !ok && want == have {
			return nil
		}
	}
	if have == nil && isEmpty(want) {
		return nil
	}
	return []Change{{Path: path, From: have, To: want}}
}

// number is a number of whatever type as one of the same type.
func number(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case int:
		return float64(value)
	}
	return value
}

func listDifferences(path string, want, have []any) []Change {
	if len(want) > 0 {
		if _, ok := want[0].(map[string]any); !ok { // plain values: their order counts
			if len(want) != len(have) {
				return []Change{{Path: path, From: have, To: want}}
			}
			for i := range want {
				if len(differences("", want[i], have[i])) > 0 {
					return []Change{{Path: path, From: have, To: want}}
				}
			}
			return nil
		}
	}
	var changes []Change
	for i, item := range want {
		changes = append(changes, itemDifferences(path, i, item, have)...)
	}
	return changes
}

// itemDifferences looks for an item among those of a list. If it is not there,
// the one of its name is what has changed.
func itemDifferences(path string, i int, want any, have []any) []Change {
	name := nameOf(want)
	at := fmt.Sprintf("%s[%d]", path, i)
	if name != "" {
		at = fmt.Sprintf("%s[%s]", path, name)
	}
	var namesake any
	for _, candidate := range have {
		if len(differences(at, want, candidate)) == 0 {
			return nil
		}
		if name != "" && nameOf(candidate) == name {
			namesake = candidate
		}
	}
	return differences(at, want, namesake)
}

func nameOf(item any) string {
	if fields, ok := item.(map[string]any); ok {
		name, _ := fields["name"].(string)
		return name
	}
	return ""
}

func isEmpty(value any) bool {
	switch value := number(value).(type) {
	case nil:
		return true
	case bool:
		return !value
	case float64:
		return value == 0
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, field := range value {
			if !isEmpty(field) {
				return false
			}
		}
		return true
	}
	return false
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
