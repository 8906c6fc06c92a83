package memcached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// TestExporterOfTemplate: the exporter has what the template's container of its name gives it, and one container has the name.
func TestExporterOfTemplate(t *testing.T) {
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
	mc := aPool(exporting("e:1"), func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: objects.ExporterContainer, Image: "template", Args: []string{"no"}, Resources: corev1.ResourceRequirements{Limits: limits}},
		}}}
	})
	containers := mustTemplate(mc).Spec.Containers
	if len(containers) != 2 || containers[0].Name != objects.ServerContainer {
		t.Fatalf("containers %v", containers)
	}
	if c := containers[1]; c.Image != "e:1" || len(c.Args) != 2 || c.Ports[0].ContainerPort != 9150 || !c.Resources.Limits.Memory().Equal(limits[corev1.ResourceMemory]) {
		t.Errorf("the exporter is %+v", c)
	}
}
