package memcached

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
)

// This file has the writes to pods, each a patch of a part.

// changePods adds to the plan what is done to pods once all else is as it should be.
func changePods(seen observation, next *plan) error {
	if seen.inputs.hash != "" && !seen.inputs.missing {
		for i := range seen.pods {
			if pod := &seen.pods[i]; pod.DeletionTimestamp == nil && pod.Annotations[secretsAnnotation] != seen.inputs.hash {
				// Its kubelet looks at its Secrets at once.
				next.Then = append(next.Then, annotate(pod, "secrets", "", secretsAnnotation, seen.inputs.hash))
			}
		}
	}
	if want := next.resize; want != nil {
		memory := want.memory.String()
		refused := annotate(want.pod, "refused", "", refusedAnnotation, memory)
		write := patch(want.pod, "resize", fmt.Sprintf("server gets more memory: %s", memory), want.patch())
		write.Subresource, write.Otherwise = "resize", &refused
		next.Then = append(next.Then, write)
	}
	if next.change != nil {
		changed, err := next.change.patch()
		if err != nil {
			return err
		}
		write := patch(next.change.pod, "change", "server changed in place: image "+next.change.template.server().Image, changed)
		write.Done = serverChanges.WithLabelValues().Inc
		next.Then = append(next.Then, write)
	}
	return nil
}

// annotate sets one annotation of the very object.
func annotate(obj client.Object, part, why, name, value string) loop.Write {
	return patchOf(obj, part, why, map[string]any{"uid": obj.GetUID(), "annotations": map[string]any{name: value}}, nil)
}

// patchOf changes the metadata of an object, and its spec if there is something to
// change.
func patchOf(obj client.Object, part, why string, metadata, spec map[string]any) loop.Write {
	fields := map[string]any{"metadata": metadata}
	if spec != nil {
		fields["spec"] = spec
	}
	return patch(obj, part, why, fields)
}

func patch(obj client.Object, part, why string, fields map[string]any) loop.Write {
	data, err := json.Marshal(fields)
	if err != nil {
		panic(err) // of strings
	}
	return loop.Write{Verb: loop.Patch, Object: obj, Part: part, Why: why, Type: types.StrategicMergePatchType, Data: data}
}
