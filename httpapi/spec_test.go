package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/wire"
)

func TestTheCodesAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t)
	want := map[string]string{}
	for _, m := range wire.Meanings() {
		want[string(m.Code)] = fmt.Sprint(m.Status)
	}
	schema := doc.Components.Schemas["Code"].Value
	got := map[string]string{}
	for code, status := range schema.Extensions["x-status"].(map[string]any) {
		got[code] = fmt.Sprint(status)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wire (-) and specification (+) differ:\n%s", diff)
	}
	var enum []string
	for _, code := range schema.Enum {
		enum = append(enum, fmt.Sprint(code))
	}
	slices.Sort(enum)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), enum); diff != "" {
		t.Errorf("wire (-) and the enumeration of the specification (+) differ:\n%s", diff)
	}
}

// Each response of the specification names the codes that it may have; they must be those whose
// status it is.
func TestEachResponseOfTheSpecificationHasCodesOfItsStatus(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t)
	checked := 0
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				media := response.Value.Content[wire.ProblemType]
				if media == nil {
					continue
				}
				code := media.Schema.Value.AllOf[1].Value.Properties["code"].Value
				for _, c := range append(code.Enum, code.Const) {
					if c == nil {
						continue
					}
					checked++
					if want := fmt.Sprint(wire.MeaningOf(leadership.Code(c.(string))).Status); want != status {
						t.Errorf("%s %s: code %s stands under status %s, and is %s", method, path, c, status, want)
					}
				}
			}
		}
	}
	if checked == 0 || !strings.Contains(string(httpapi.Spec()), "openapi: 3.1") {
		t.Errorf("only %d codes were found in the responses", checked)
	}
}
