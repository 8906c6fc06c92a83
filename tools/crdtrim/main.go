// Command crdtrim makes the CRDs that controller-gen writes fit to install.
//
// A pod template spells out every field of a pod: good, because kubectl then
// refuses a misspelt one, but with descriptions it makes a CRD larger than
// `kubectl apply` can keep in its annotation (256 KiB). So, below every
// property named podTemplate, crdtrim
//
//   - drops the descriptions: they are Kubernetes' own, and kubectl explain
//     pod shows them;
//   - lets spec.containers be left out: the operator adds its container.
//
// It rewrites the files it is given, and writes the same bytes when run again.
package main

import (
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := trimFile(file); err != nil {
			fmt.Fprintf(os.Stderr, "crdtrim: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func trimFile(file string) error {
	in, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(in, &crd); err != nil {
		return err
	}
	trim(crd)
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// trim looks for pod templates in the schema and trims those it finds.
func trim(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			trim(item)
		}
	case map[string]any:
		properties, _ := node["properties"].(map[string]any)
		if template, ok := properties["podTemplate"].(map[string]any); ok {
			trimPodTemplate(template)
		}
		for _, child := range node {
			trim(child)
		}
	}
}

func trimPodTemplate(template map[string]any) {
	properties, _ := template["properties"].(map[string]any)
	dropDescriptions(properties)
	spec, _ := properties["spec"].(map[string]any)
	if spec == nil {
		return
	}
	required, _ := spec["required"].([]any)
	required = slices.DeleteFunc(required, func(name any) bool { return name == "containers" })
	if len(required) == 0 {
		delete(spec, "required")
	} else {
		spec["required"] = required
	}
}

// dropDescriptions drops the descriptions of the given properties and of all
// that is below them. A property that is itself called description stays.
func dropDescriptions(properties map[string]any) {
	for _, property := range properties {
		dropDescription(property)
	}
}

func dropDescription(schema any) {
	node, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(node, "description")
	if properties, ok := node["properties"].(map[string]any); ok {
		dropDescriptions(properties)
	}
	dropDescription(node["items"])
	dropDescription(node["additionalProperties"])
}
