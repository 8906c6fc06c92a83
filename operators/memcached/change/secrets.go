package change

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/objects"
)

// CopySecrets writes the copies, before the pods get them.
func CopySecrets(mc *v1alpha1.Memcached, v *View) (p Plan) {
	for _, c := range v.Inputs.Stale {
		if slices.ContainsFunc(objects.Roles(mc), func(r objects.Role) bool { return r.Name == c.Role }) {
			p.Do(loop.Apply{Object: c.Seen, Want: objects.SecretCopy(mc, c.Role, c.Data), Private: true})
		}
	}
	return p
}

// ReloadSecrets makes the kubelets read the Secrets of their pods at once.
func ReloadSecrets(_ *v1alpha1.Memcached, v *View) (p Plan) {
	if v.Inputs.Hash == "" || len(v.Inputs.Missing) > 0 {
		return p
	}
	for i := range v.Pods {
		if pod := &v.Pods[i]; pod.DeletionTimestamp == nil && pod.Annotations[objects.SecretsAnnotation] != v.Inputs.Hash {
			p.Then = append(p.Then, annotate(pod, "secrets", objects.SecretsAnnotation, v.Inputs.Hash))
		}
	}
	return p
}

// annotate sets one annotation.
func annotate(obj client.Object, part, name, value string) loop.Patch {
	return loop.Patch{Object: obj, Part: part, Metadata: map[string]any{"annotations": map[string]any{name: value}}}
}
