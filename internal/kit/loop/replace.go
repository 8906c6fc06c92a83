package loop

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
)

// ReplaceTemplate makes a workload that another has made what is wanted, where its pods get their first template of the
// operator's. A server-side apply would leave what others have set in the template, such as a container of another name.
// And what is as it was would stay theirs, for ever: so all of spec becomes the manager's in the same write, but for the
// replicas, and goes once it is not wanted any more.
//
// All of spec is in the one write, because the template begins a rollout: the strategy must be the wanted one by then,
// and where the selector is another one, which cannot be changed, the API server refuses the template with it.
func ReplaceTemplate(workload client.Object, manager string, want runtime.ApplyConfiguration) (Patch, error) {
	data, err := json.Marshal(want)
	if err != nil {
		return Patch{}, fmt.Errorf("encode a child: %w", err)
	}
	var wanted struct{ Metadata, Spec map[string]any }
	if err := json.Unmarshal(data, &wanted); err != nil {
		return Patch{}, fmt.Errorf("decode a child: %w", err)
	}
	for _, field := range []string{"selector", "template"} {
		replaced, ok := wanted.Spec[field].(map[string]any)
		if !ok {
			return Patch{}, fmt.Errorf("no %s is wanted of the %s", field, KindOf(workload))
		}
		replaced["$patch"] = "replace"
	}
	if wanted.Metadata["managedFields"], err = apply.Seized(workload, manager); err != nil {
		return Patch{}, err
	}
	return Patch{
		Object: workload, Part: "template", IfCurrent: true, IfSame: true,
		Metadata: wanted.Metadata, Spec: wanted.Spec,
		Why: "the adopted " + KindOf(workload) + " gets its first template of the operator's",
	}, nil
}
