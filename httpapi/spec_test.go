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
	schema := doc.At("components", "schemas", "Code")
	got := map[string]string{}
	for code, status := range schema.At("x-status").All() {
		got[code] = fmt.Sprint(status.Value())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wire (-) and specification (+) differ:\n%s", diff)
	}
	var enum []string
	for _, code := range schema.At("enum").All() {
		enum = append(enum, fmt.Sprint(code.Value()))
	}
	slices.Sort(enum)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), enum); diff != "" {
		t.Errorf("wire (-) and the enumeration of the specification (+) differ:\n%s", diff)
	}
}

// Each response of the specification names the codes that it may have; they must have the
// response's status.
func TestEachResponseOfTheSpecificationHasCodesOfItsStatus(t *testing.T) {
	t.Parallel()
	doc := apitest.Load(t)
	checked := 0
	for path, item := range doc.At("paths").All() {
		for method, operation := range item.All() {
			for status, response := range operation.At("responses").All() {
				media := response.At("content", wire.ProblemType)
				code := media.At("schema", "allOf", "1", "properties", "code")
				codes, _ := code.At("enum").Value().([]any)
				if c := code.At("const").Value(); c != nil {
					codes = append(codes, c)
				}
				if media.Value() != nil && len(codes) == 0 {
					t.Errorf("%s %s: no code stands under status %s", method, path, status)
				}
				for _, c := range codes {
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
