package loop

import (
	"encoding/json"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/apply"
)

// ReplaceTemplate gives a workload that another has made its first pod template of the operator's, as JSON, with these
// annotations of its pods and this metadata of its own. A server-side apply would leave what others have set, such as a
// container of another name. And what is as it was would stay theirs, for ever: so all of spec becomes the
// manager's in the same write, but for the replicas, and goes once it is not wanted any more.
func ReplaceTemplate(workload client.Object, manager, template string, annotations map[string]string, metadata map[string]any) (Patch, error) {
	var replaced map[string]any
	if err := json.Unmarshal([]byte(template), &replaced); err != nil {
		return Patch{}, fmt.Errorf("read the pod template: %w", err)
	}
	ofPods, _ := replaced["metadata"].(map[string]any)
	if ofPods == nil {
		ofPods = map[string]any{}
	}
	all, _ := ofPods["annotations"].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for name, value := range annotations {
		all[name] = value
	}
	ofPods["annotations"] = all
	replaced["metadata"], replaced["$patch"] = ofPods, "replace"

	fields, err := apply.Seized(workload, manager)
	if err != nil {
		return Patch{}, err
	}
	metadata = maps.Clone(metadata)
	metadata["managedFields"] = fields
	return Patch{
		Object: workload, Part: "template", IfCurrent: true, IfSame: true,
		Metadata: metadata, Spec: map[string]any{"template": replaced},
		Why: "the adopted " + KindOf(workload) + " gets its first template of the operator's",
	}, nil
}
