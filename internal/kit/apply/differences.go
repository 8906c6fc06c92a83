package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	// The same encoding and decoding for both, so that values have the same
	// types.
	wanted, err := plain(want)
	if err != nil {
		return nil, err
	}
	have, err := plain(live)
	if err != nil {
		return nil, err
	}
	if wanted, ok := wanted.(map[string]any); ok {
		delete(wanted, "apiVersion") // a cached object may be without
		delete(wanted, "kind")
	}
	return differences("", wanted, have), nil
}

func plain(value any) (any, error) {
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
	default:
		if want == have {
			return nil
		}
	}
	if have == nil && isEmpty(want) {
		return nil
	}
	return []Change{{Path: path, From: have, To: want}}
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
	switch value := value.(type) {
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
