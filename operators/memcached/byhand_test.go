package memcached

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// TestByHand: an image that another writer has changed in a running pod is changed back,
// in the pod, after status has said so; one that admission has set is left alone.
func TestByHand(t *testing.T) {
	fields := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"memcached\"}":` + fields + `}}}`)}
	}
	const made, both, image = `{".":{},"f:name":{}}`, `{".":{},"f:name":{},"f:image":{}}`, `{"f:image":{}}`
	update, apply := metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	with := func(have string, entries ...metav1.ManagedFieldsEntry) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].Image, pod.ManagedFields = have, entries }
	}
	edited := with("memcached:1.6.18", fields("maker", update, "", made), fields("kubectl-edit", update, "", image))
	for name, tc := range map[string]struct {
		options []mcOption
		pod     func(*corev1.Pod)
		kind    v1alpha1.UpgradeKind
	}{
		"as it was made":          {[]mcOption{warm}, with("memcached:1.6.38", fields("maker", update, "", both)), ""},
		"set by admission":        {[]mcOption{warm}, with("mirror/memcached:1.6.38", fields("maker", update, "", both)), ""},
		"set by admission, later": {[]mcOption{warm}, with("mirror/memcached:1.6.38", fields("maker", update, "", made), fields(objects.ManagedBy, update, "", image)), ""},
		"nobody knows by whom":    {[]mcOption{warm}, with("memcached:1.6.18"), ""},
		"the same by hand":        {[]mcOption{warm}, with("memcached:1.6.38", fields("maker", update, "", made), fields("kubectl-edit", update, "", image)), ""},
		"edited":                  {[]mcOption{warm}, edited, v1alpha1.Warm},
		"applied":                 {[]mcOption{warm}, with("memcached:1.6.18", fields("kubectl", apply, "", both), fields("maker", update, "", made)), v1alpha1.Warm},
		"edited, and not warm":    {[]mcOption{stable}, edited, v1alpha1.Cold},
		"edited, of a Deployment": {nil, edited, v1alpha1.Cold},
	} {
		t.Run(name, func(t *testing.T) {
			mc := aPool(append(tc.options, size(2))...)
			seen := somethingSeen(aDeployment(mc, 2), aServer(mc, 0, tc.pod), aServer(mc, 1), aPull(mc, pulled("")))
			if objects.IsStable(mc) {
				seen.Children[objects.DeploymentKind] = &appsv1.Deployment{}
				aStatefulSet(mc)(&seen)
			}
			for _, server := range []string{"", "cache-0"} { // named, and then changed
				next, err := decide(mc, seen)
				if err != nil {
					t.Fatal(err)
				}
				if tc.kind == "" {
					if next.Upgrade != nil {
						t.Errorf("it is to be changed: %+v", next.Upgrade)
					}
					return
				}
				if next.Upgrade == nil || next.Upgrade.Kind != tc.kind || !strings.HasPrefix(next.Upgrade.Message, "image from memcached:1.6.18 to memcached:1.6.38: ") {
					t.Fatalf("upgrade %+v", next.Upgrade)
				}
				if objects.IsStable(mc) && partitionOf(t, next) != objects.PartitionClosed {
					t.Error("its pods are replaced")
				}
				mc.Status.Upgrade = next.Upgrade
				if server == "" {
					if patchOf(next, "change") != nil {
						t.Error("the pod is changed before status announces it")
					}
					mc.Status.Upgrade.Server = "cache-0"
					continue
				}
				patch := patchOf(next, "change")
				if patch == nil || patch.Object.GetName() != "cache-0" {
					t.Fatalf("change %+v, waits for %q", patch, next.Waits)
				}
				if _, labelled := patch.Metadata["labels"]; labelled != objects.IsStable(mc) {
					t.Errorf("metadata %v", patch.Metadata)
				}
			}
		})
	}
}
