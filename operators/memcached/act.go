package memcached

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/kit/loop"
)

// This file has the writes to pods, each a patch of a part.

// changePods adds to the plan what is done to pods once all else is as it should be.
func changePods(seen observation, next *plan) error {
	if seen.inputs.hash != "" && len(seen.inputs.missing) == 0 {
		for i := range seen.pods {
			if pod := &seen.pods[i]; pod.DeletionTimestamp == nil && pod.Annotations[secretsAnnotation] != seen.inputs.hash {
				// Its kubelet looks at its Secrets at once.
				next.Then = append(next.Then, annotate(pod, "secrets", secretsAnnotation, seen.inputs.hash))
			}
		}
	}
	if want := next.resize; want != nil {
		next.Then = append(next.Then, want.patch())
	}
	if next.change != nil {
		changed, err := next.change.patch()
		if err != nil {
			return err
		}
		next.Then = append(next.Then, changed)
	}
	return nil
}

// annotate sets one annotation.
func annotate(obj client.Object, part, name, value string) loop.Patch {
	return loop.Patch{Object: obj, Part: part, Metadata: map[string]any{"annotations": map[string]any{name: value}}}
}
