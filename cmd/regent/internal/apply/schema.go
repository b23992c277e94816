package apply

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	inSpec   = "#/components/schemas/"
	inSchema = "#/$defs/"
)

// Schema returns a JSON Schema of the files, for editors. It has the schemas of the API's contract,
// spec, so that the two cannot differ.
func Schema(spec []byte) ([]byte, error) {
	var contract struct {
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(spec, &contract); err != nil {
		return nil, fmt.Errorf("the contract of the API: %w", err)
	}
	const election, configuration = "Election", "ConfigureRequest"
	c := collector{schemas: contract.Components.Schemas, defs: map[string]any{}}
	ref := func(name string) map[string]any { return map[string]any{"$ref": inSpec + name} }
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Elections, for regent apply",
		"type":    "object",
		"properties": map[string]any{
			"$schema":   map[string]any{"type": "string"},
			"defaults":  map[string]any{"$ref": inSpec + configuration, "description": "What the elections of this document have in common. A member of an election replaces the one here as a whole."},
			"elections": map[string]any{"type": "object", "propertyNames": ref(election), "additionalProperties": ref(configuration), "description": "Elections by name. A member that is left out has its default."},
		},
		"required":             []string{"elections"},
		"additionalProperties": false,
	}
	c.walk(schema)
	schema["$defs"] = c.defs
	if c.missing != "" {
		return nil, fmt.Errorf("the contract of the API has no schema %s", c.missing)
	}
	return json.MarshalIndent(schema, "", "  ")
}

// collector copies the schemas that other schemas refer to.
type collector struct {
	schemas, defs map[string]any
	missing       string
}

func (c *collector) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			c.walk(item)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			v["$ref"] = c.take(ref)
		}
		for _, member := range v {
			c.walk(member)
		}
	}
}

// take returns the reference of a schema in the result, and copies it if need be.
func (c *collector) take(ref string) string {
	name, ok := strings.CutPrefix(ref, inSpec)
	if !ok {
		return ref // taken already
	}
	if _, taken := c.defs[name]; !taken {
		c.defs[name] = c.schemas[name]
		if c.schemas[name] == nil {
			c.missing = name
		}
		c.walk(c.schemas[name])
	}
	return inSchema + name
}
