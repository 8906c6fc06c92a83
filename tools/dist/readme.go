package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// valueSchema is what the table of a chart's values takes from values.schema.json.
type valueSchema struct {
	Ref         string                 `json:"$ref"`
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
	Properties  map[string]valueSchema `json:"properties"`
	Definitions map[string]valueSchema `json:"definitions"`
}

// valuesTable is a table of a chart's values, with their defaults and what the schema says of them.
func valuesTable(values, schema []byte) (string, error) {
	var defaults any
	if err := yaml.Unmarshal(values, &defaults); err != nil {
		return "", err
	}
	var root valueSchema
	if err := json.Unmarshal(schema, &root); err != nil {
		return "", err
	}
	table := &strings.Builder{}
	table.WriteString("| value | type | default | what |\n| --- | --- | --- | --- |\n")
	err := root.addRows(table, root, "", defaults)
	return table.String(), err
}

// addRows adds those of a value, or of the values in it if it has no description itself.
func (root valueSchema) addRows(table *strings.Builder, s valueSchema, name string, value any) error {
	said := s.Description
	if s.Ref != "" {
		s = root.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	}
	if said == "" {
		if len(s.Properties) == 0 {
			return fmt.Errorf("values.schema.json has no description of %s", name)
		}
		within, _ := value.(map[string]any)
		for _, below := range slices.Sorted(maps.Keys(s.Properties)) {
			if err := root.addRows(table, s.Properties[below], strings.TrimPrefix(name+"."+below, "."), within[below]); err != nil {
				return err
			}
		}
		return nil
	}
	kind := s.Type
	if several, ok := kind.([]any); ok {
		kind = several[0] // the other one is null
	}
	inJSON, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if value != nil {
		fmt.Fprintf(table, "| `%s` | %v | `%s` | %s |\n", name, kind, inJSON, said)
	}
	return nil
}
