package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// chartLabels are Helm's usual ones, and what adds a role to admin, edit and view.
func chartLabels(labels map[string]string) map[string]string {
	kept := map[string]string{"@@include labels@@": ""}
	for key, value := range labels {
		if strings.HasPrefix(key, "rbac.authorization.k8s.io/") {
			kept[key] = value
		}
	}
	return kept
}

// clusterScoped gives a ClusterRole or ClusterRoleBinding the release's own
// name. The labels that add a role to admin, edit or view stay.
func clusterScoped(object *unstructured.Unstructured) error {
	object.SetName(object.GetName() + "-@@namespace@@")
	if role, ok, _ := unstructured.NestedString(object.Object, "roleRef", "name"); ok {
		if err := unstructured.SetNestedField(object.Object, role+"-@@namespace@@", "roleRef", "name"); err != nil {
			return err
		}
	}
	return bindHere(object)
}

// bindHere lets a binding's service account be that of the release's namespace.
func bindHere(object *unstructured.Unstructured) error {
	subjects, ok, err := unstructured.NestedSlice(object.Object, "subjects")
	if err != nil || !ok {
		return err
	}
	for _, subject := range subjects {
		subject.(map[string]any)["namespace"] = "@@namespace@@"
	}
	return unstructured.SetNestedSlice(object.Object, subjects, "subjects")
}

// managerRoleTemplate is the manager's role or its binding: for the cluster,
// or one in each of the namespaces that it works for.
func managerRoleTemplate(object *unstructured.Unstructured) (string, error) {
	cluster, err := render(object)
	if err != nil {
		return "", err
	}
	object.SetKind(strings.TrimPrefix(object.GetKind(), "Cluster"))
	object.SetNamespace("@@watched@@")
	if _, ok := object.Object["roleRef"]; ok {
		if err := unstructured.SetNestedField(object.Object, "Role", "roleRef", "kind"); err != nil {
			return "", err
		}
	}
	namespaced, err := render(object)
	return "{{- if $.Values.watchNamespaces }}\n{{- range $watched := $.Values.watchNamespaces }}\n" + namespaced +
		"{{- end }}\n{{- else }}\n" + cluster + "{{- end }}\n", err
}

// deploymentTemplate makes the manager's settings values.
func deploymentTemplate(object *unstructured.Unstructured, operator string) (string, error) {
	spec := object.Object["spec"].(map[string]any)
	spec["replicas"] = "@@replicas@@"
	// The user's pod labels are not in the selector, which can never change.
	selector := func() map[string]any { return map[string]any{"@@include selectorLabels@@": ""} }
	spec["selector"] = map[string]any{"matchLabels": selector()}

	template := spec["template"].(map[string]any)
	metadata := template["metadata"].(map[string]any)
	labels := selector()
	labels["@@merge podLabels@@"] = ""
	metadata["labels"] = labels
	if metadata["annotations"] == nil {
		metadata["annotations"] = map[string]any{}
	}
	metadata["annotations"].(map[string]any)["@@merge podAnnotations@@"] = ""

	pod := template["spec"].(map[string]any)
	for _, name := range []string{
		"imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName",
	} {
		pod["@@set "+name+"@@"] = ""
	}
	err := eachContainer(object, func(container map[string]any) {
		container["image"], container["imagePullPolicy"] = "@@image@@", "@@pullPolicy@@"
		container["resources"] = "@@resources@@"
		container["args"] = []any{operator}
		for _, variable := range container["env"].([]any) {
			if variable := variable.(map[string]any); variable["name"] == "WATCH_NAMESPACE" {
				delete(variable, "valueFrom")
				variable["value"] = "@@watchNamespaces@@"
			}
		}
	})
	if err != nil {
		return "", err
	}
	text, err := render(object)
	// Flags come before the operator's name.
	return strings.Replace(text, "      - args:\n", "      - args:\n"+
		"        {{- if not $.Values.metrics.enabled }}\n        - --metrics-bind-address=0\n        {{- end }}\n"+
		"        {{- range $.Values.extraArgs }}\n        - {{ . | quote }}\n        {{- end }}\n", 1), err
}
