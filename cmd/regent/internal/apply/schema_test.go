package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"regent/httpapi"
)

// Editors accept what apply reads, and mark what the contract of the API can refuse. What it cannot
// are limits of durations, and two members that do not suit each other.
func TestTheSchemaIsThatOfTheFiles(t *testing.T) {
	t.Parallel()
	text, err := Schema(httpapi.Spec())
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &schema))
	valid, err := schema.Resolve(nil)
	require.NoError(t, err)
	for file, want := range map[string]bool{
		"elections: {}": true,
		"defaults: {lockDelay: 5s}\nelections:\n  reports: {leaseDuration: 1m, policy: {strategy: priority, window: 10s}}": true,
		`{"$schema": "x", "elections": {"a": {"policy": {"quorum": {"electorate": ["a", "b"], "need": "majority"}}}}}`:     true,
		"elections: {a: {description: x, retireAfter: 720h, maxLeaseDuration: 1h, policy: {maxTerm: 8h, verdicts: 3}}}":    true,

		"defaults: {}":                                            false,
		"elections: {}\npolicy: {}":                               false,
		"elections: {Reports: {}}":                                false,
		"elections: {reports: 30s}":                               false,
		"elections: {reports: {lease: 1m}}":                       false,
		"elections: {reports: {leaseDuration: 30}}":               false,
		"elections: {reports: {leaseDuration: soon}}":             false,
		"elections: {reports: {policy: {windows: 1s}}}":           false,
		"elections: {reports: {policy: {strategy: fastest}}}":     false,
		"elections: {reports: {policy: {preempt: yes please}}}":   false,
		"elections: {reports: {policy: {errorRate: {max: 0.5}}}}": false,
		"defaults: {lockDelay: 5}\nelections: {}":                 false,
	} {
		_, mistake := Read(one(file))
		var document any
		require.NoError(t, yaml.Unmarshal([]byte(file), &document))
		if err := valid.Validate(document); (err == nil) != want || (mistake == nil) != want {
			t.Errorf("%s\nis to be accepted: %t; the schema says %v, and Read %v", file, want, err, mistake)
		}
	}
}

func TestASchemaThatRefersToNothingIsAnError(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"", "components: {schemas: {Election: {}}}", "a: ["} {
		if schema, err := Schema([]byte(spec)); err == nil {
			t.Errorf("%q gives %s", spec, schema)
		}
	}
}
