package testkit

import (
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// CheckPodMonitor says what is wrong with a PodMonitor that is to have this pod scraped.
func CheckPodMonitor(file string, pod corev1.PodTemplateSpec) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var monitor struct {
		Spec struct {
			Selector            metav1.LabelSelector
			PodMetricsEndpoints []struct{ Port string }
		}
	}
	if err := yaml.Unmarshal(text, &monitor); err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		return err
	}
	if selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
		return fmt.Errorf("%s selects %s, which a pod with labels %v is not", file, selector, pod.Labels)
	}
	var ports []string
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			ports = append(ports, port.Name)
		}
	}
	for _, endpoint := range monitor.Spec.PodMetricsEndpoints {
		if slices.Contains(ports, endpoint.Port) {
			return nil
		}
	}
	return fmt.Errorf("%s is for %v, the pod has ports %v", file, monitor.Spec.PodMetricsEndpoints, ports)
}
