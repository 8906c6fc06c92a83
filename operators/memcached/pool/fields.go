package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/memcached/objects"
)

// This file names the fields of the spec in which the servers differ from what is
// requested. They are read from the pods, not from the previous spec: an edit while a
// change is under way adds to it.

// changedFields is what the servers that are not as the template has them are
// to be changed from and to, in words.
func changedFields(seen Observation, t objects.PodTemplate) []string {
	from := map[string][]string{} // by field, each value once
	is := fieldsOf(&corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec})
	for _, pod := range seen.Pods {
		if pod.DeletionTimestamp != nil || IsUpdated(&pod, t) || pod.Annotations[objects.RevisionAnnotation] == "" {
			continue
		}
		was := fieldsOf(&pod)
		all := maps.Clone(is)
		maps.Copy(all, was)
		for field := range all {
			if value := orNone(was[field]); was[field] != is[field] && !slices.Contains(from[field], value) {
				from[field] = append(from[field], value)
			}
		}
	}
	var changed []string
	for _, field := range slices.Sorted(maps.Keys(from)) {
		changed = append(changed, fmt.Sprintf("%s from %s to %s", field, strings.Join(from[field], " and "), orNone(is[field])))
	}
	if len(changed) == 0 {
		return []string{"the pod template"}
	}
	return changed
}

// fieldsOf are the fields of the spec that a pod was made from.
func fieldsOf(pod *corev1.Pod) map[string]string {
	server, exporter := podtemplate.Container(&pod.Spec, objects.ServerContainer), podtemplate.Container(&pod.Spec, objects.ExporterContainer)
	fields := map[string]string{
		"image":    RequestedImage(pod, objects.ServerContainer),
		"identity": pod.Labels[objects.IdentityLabel],
		"upgrade":  "Cold",
	}
	if len(exporter.Ports) > 0 {
		fields["metrics.image"], fields["metrics.port"] = RequestedImage(pod, objects.ExporterContainer), fmt.Sprint(exporter.Ports[0].ContainerPort)
	}
	// The order is that of arguments.
	args := server.Args
	next := func(flag string, count int) string {
		if len(args) < count || args[0] != flag {
			return ""
		}
		value := args[count-1]
		args = args[count:]
		return value
	}
	annotated := func(value, reference, name string) string {
		if value == reference {
			return pod.Annotations[name]
		}
		return value
	}
	fields["memory"] = quantity(annotated(next("-m", 2), "$(MEMORY)", objects.MemoryAnnotation) + "Mi")
	fields["maxItemSize"] = quantity(next("-I", 2))
	fields["maxConnections"] = annotated(next("-c", 2), "$(MAX_CONNECTIONS)", objects.ConnectionsAnnotation)
	fields["threads"] = annotated(next("-t", 2), "$(THREADS)", objects.ThreadsAnnotation)
	fields["port"] = next("-p", 2)
	if next("-Y", 2) != "" {
		fields["auth"] = "on"
	}
	if next("-Z", 5) != "" {
		fields["tls"] = "on"
	}
	if next("-e", 2) != "" {
		fields["upgrade"] = "Warm"
	}
	if len(args) > 0 {
		fields["extraArgs"] = strings.Join(args, " ")
	}
	return fields
}

// quantity is a number of bytes as people write it.
func quantity(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return ""
	}
	return resource.NewQuantity(q.Value(), resource.BinarySI).String()
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}
