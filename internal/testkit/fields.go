package testkit

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// An Edit puts one value at one field of an object's spec.
type Edit struct {
	// Path is the field, such as spec.service.type or spec.hosts[0].
	Path  string
	Value any

	patch map[string]any // of the object
}

func (e Edit) String() string {
	value := fmt.Sprintf("%#v", e.Value)
	if len(value) > 60 {
		value = value[:57] + "..."
	}
	return e.Path + ": " + value
}

// Edits are changes of every field of a CRD's spec, one at a time, to values
// that its schema allows and to absurd ones, with a few drawn by chance: the
// seed decides which. Of the fields below a pod template, which are Kubernetes'
// own and many, some are drawn by chance, too.
func Edits(crd string, seed uint64, fromTemplates int) ([]Edit, error) {
	data, err := os.ReadFile(crd)
	if err != nil {
		return nil, err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &definition); err != nil {
		return nil, fmt.Errorf("%s: %w", crd, err)
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable, not secret
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	var edits, ofTemplates []Edit
	walk(root, []string{"spec"}, random, func(path []string, value any) {
		e := Edit{Path: strings.ReplaceAll(strings.Join(path, "."), ".[", "["), Value: value, patch: nest(path, value)}
		if inTemplate(path) {
			ofTemplates = append(ofTemplates, e)
		} else {
			edits = append(edits, e)
		}
	})
	random.Shuffle(len(ofTemplates), func(i, j int) { ofTemplates[i], ofTemplates[j] = ofTemplates[j], ofTemplates[i] })
	return append(edits, ofTemplates[:min(fromTemplates, len(ofTemplates))]...), nil
}

func inTemplate(path []string) bool {
	i := slices.IndexFunc(path, func(field string) bool { return strings.HasSuffix(strings.ToLower(field), "podtemplate") })
	return i >= 0 && i < len(path)-1
}

// walk calls each for every value that is to be tried at a field and below it.
func walk(schema apiextensionsv1.JSONSchemaProps, path []string, random *rand.Rand, each func([]string, any)) {
	for _, value := range values(schema, random) {
		each(path, value)
	}
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		walk(schema.Properties[field], append(slices.Clone(path), field), random, each)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(*schema.Items.Schema, append(slices.Clone(path), "[0]"), random, each)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(*schema.AdditionalProperties.Schema, append(slices.Clone(path), "a-key"), random, each)
	}
}

// values are what is tried at a field of its own.
func values(schema apiextensionsv1.JSONSchemaProps, random *rand.Rand) []any {
	switch {
	case schema.XIntOrString:
		return []any{0, 1, -1, "50%", "999%", "-1%", "100%", "x", "", math.MaxInt32}
	case len(schema.Enum) > 0:
		all := []any{"", "Absurd"}
		for _, value := range schema.Enum {
			all = append(all, strings.Trim(string(value.Raw), `"`))
		}
		return all
	}
	switch schema.Type {
	case "string":
		return []any{"", "x", "A b", "a/b:c", "-", "10", "1s", "64Mi", "localhost", "\n", "%s $(X) {{.}}", strings.Repeat("long", 80), randomText(random)}
	case "integer":
		all := []any{0, 1, -1, math.MaxInt32, math.MinInt32, random.IntN(70000)}
		for _, bound := range []*float64{schema.Minimum, schema.Maximum} {
			if bound != nil {
				all = append(all, int64(*bound), int64(*bound)-1, int64(*bound)+1)
			}
		}
		return all
	case "boolean":
		return []any{true, false}
	case "object":
		return []any{nil, map[string]any{}, map[string]any{"unknown": "x"}}
	case "array":
		return []any{nil, []any{}}
	}
	return nil
}

// randomText has letters that users have, and some that they should not.
func randomText(random *rand.Rand) string {
	const runes = "abcXYZ019-._/:@%$ \t\"'\\äß漢🙂"
	text := ""
	for range 1 + random.IntN(20) {
		text += string([]rune(runes)[random.IntN(len([]rune(runes)))])
	}
	return text
}

// nest is the object that has value at path.
func nest(path []string, value any) map[string]any {
	for _, field := range slices.Backward(path) {
		if field == "[0]" {
			value = []any{value}
		} else {
			value = map[string]any{field: value}
		}
	}
	return value.(map[string]any)
}
