package at

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// TestIsOwn: one mark may be lost, and one may be forged.
func TestIsOwn(t *testing.T) {
	made := func(options ...podOption) *corev1.Pod {
		pod := desiredPod(anAt(), atExample.gvk, "sample", noon)
		pod.UID = "pod-uid"
		for _, option := range options {
			option(pod)
		}
		return pod
	}
	unlabelled := func(p *corev1.Pod) { p.Labels["app.kubernetes.io/managed-by"] = "policy" }
	orphaned := func(p *corev1.Pod) { p.OwnerReferences = nil }
	bare := func(p *corev1.Pod) { p.Annotations = nil }
	other := func(at *atv1alpha1.At) { at.UID = "other" }
	for name, tc := range map[string]struct {
		at   *atv1alpha1.At
		pod  *corev1.Pod
		want bool
	}{
		"as made":                                {anAt(), made(), true},
		"without its label":                      {anAt(), made(unlabelled), true},
		"without its owner":                      {anAt(), made(orphaned), true},
		"without label and owner":                {anAt(), made(unlabelled, orphaned), true},
		"of 0.0.1, without its label":            {anAt(), made(bare, unlabelled), true},
		"of 0.0.1, without its owner":            {anAt(), made(bare, orphaned), false},
		"claimed, without any mark":              {anAt(claimedAt(noon)), made(bare, unlabelled, orphaned, ungated), true},
		"prepared, without any mark":             {anAt(preparedPod), made(bare, unlabelled, orphaned, ungated), true},
		"of another At of the name":              {anAt(other), made(), false},
		"of another At of the name, orphaned":    {anAt(other), made(orphaned), false},
		"somebody's, with a forged owner":        {anAt(), made(bare, unlabelled, ungated), false},
		"somebody's, with the operator's labels": {anAt(), made(bare, orphaned, ungated), false},
	} {
		if got := isOwn(tc.pod, tc.at, atExample.gvk); got != tc.want {
			t.Errorf("%s: own %v, want %v", name, got, tc.want)
		}
	}
	foreign := made(orphaned)
	foreign.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
	if missing := missingMarks(foreign); len(missing) > 0 {
		t.Errorf("a pod with another controller lacks %v: there can be only one controller", missing)
	}
	if at := markedOwner(made(), atExample.gvk); at != "sample" {
		t.Errorf("the annotation names %q", at)
	}
	if at := markedOwner(made(), cnat.gvk); at != "" {
		t.Errorf("the annotation names %q of the other group", at)
	}
}
