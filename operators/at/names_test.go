package at

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/names"
)

func TestNamesStayWithinTheirBounds(t *testing.T) {
	long := strings.Repeat("a", 253)
	samples := []string{"sample", "with.dots.in-it", long, strings.Repeat("a.", 126) + "b", strings.Repeat("a", 63) + "1", strings.Repeat("a", 63) + "2"}
	namespaces := []string{"default", strings.Repeat("n", 63)}
	labels, pods := map[string]string{}, map[string]string{}
	for _, name := range samples {
		label := names.LabelValue(name)
		if errs := validation.IsValidLabelValue(label); errs != nil {
			t.Errorf("label value of %q: %v", name, errs)
		}
		if other, taken := labels[label]; taken {
			t.Errorf("%q and %q have the same label value", name, other)
		}
		labels[label] = name
		for _, namespace := range namespaces {
			for _, g := range []group{atExample, cnat} {
				for _, attempt := range []int32{1, 2, 101} {
					at := anAt(func(at *atv1alpha1.At) { at.Name, at.Namespace = name, namespace })
					pod := g.podName(at, attempt)
					if errs := validation.IsDNS1123Subdomain(pod); errs != nil {
						t.Errorf("pod name of %q: %v", name, errs)
					}
					if folder := namespace + "_" + pod + "_" + strings.Repeat("u", 36); len(folder) > 255 {
						t.Errorf("the log folder of %q has %d bytes", pod, len(folder))
					}
					if other, taken := pods[namespace+pod]; taken {
						t.Errorf("%q and %s have the same pod %s", name, other, pod)
					}
					pods[namespace+pod] = name
				}
			}
		}
	}
}

func TestFirstPodHasTheKnownName(t *testing.T) {
	if got := atExample.podName(anAt(), 1); got != "sample" {
		t.Errorf("pod of at.example.com: %q", got)
	}
	if got := cnat.podName(anAt(), 1); got != "sample-pod" {
		t.Errorf("pod of cnat: %q", got)
	}
}
