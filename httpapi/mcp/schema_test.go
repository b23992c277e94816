package mcp

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"regent/leadership"
	"regent/leadership/wire"
)

// walk calls do for each member of a schema, and of those in it.
func walk(s object, do func(name string, member object)) {
	members, _ := s["properties"].(object)
	for name, m := range members {
		do(name, m.(object))
		walk(m.(object), do)
		if items, ok := m.(object)["items"].(object); ok {
			walk(items, do)
		}
	}
}

func TestEveryMemberOfEveryToolSaysWhatItMeans(t *testing.T) {
	unused := maps.Clone(properties)
	for _, row := range tools() {
		for _, s := range []object{schemaOf(row.in), schemaOf(row.out)} {
			walk(s, func(name string, member object) {
				delete(unused, name)
				if member["description"] == "" {
					t.Errorf("%s: %s has no description", row.name, name)
				}
			})
		}
		if row.does == "" || row.title == "" || row.verb.Row().Verb == "" {
			t.Errorf("%s is not complete: %+v", row.name, row)
		}
	}
	if len(unused) > 0 {
		t.Errorf("members that no tool has: %v", slices.Sorted(maps.Keys(unused)))
	}
}

func TestKeepIsForHTTPAlone(t *testing.T) {
	for _, shared := range []bool{true, false} {
		s := (&desk{shared: shared}).schema(reflect.TypeFor[leadInput]())
		if _, there := s["properties"].(object)["keep"]; there != shared {
			t.Errorf("shared %v: keep is there: %v", shared, there)
		}
	}
}

func TestToolsThatTakeSomethingAwaySaySo(t *testing.T) {
	for _, row := range tools() {
		hints := row.effect.annotations(row.title)
		if changes := row.verb.Row().Changes(); hints.ReadOnlyHint && changes {
			t.Errorf("%s says that it only reads", row.name)
		}
		if once := row.name == "lead"; hints.IdempotentHint == once {
			t.Errorf("%s: the same call again is another one: %v", row.name, once)
		}
		destroys := slices.Contains([]string{"stop_leading", "checkpoint_put", "assign", "evict", "pause"}, row.name)
		if *hints.DestructiveHint != destroys || *hints.OpenWorldHint {
			t.Errorf("%s: %+v", row.name, hints)
		}
	}
}

func TestEveryCodeIsARefusalThatSaysWhatToDo(t *testing.T) {
	for _, m := range wire.Meanings() {
		for _, err := range []error{m.Code, &leadership.Error{Code: m.Code, Detail: "something is wrong; do this"}} {
			text := refusal("", err).Error()
			if rest, ok := strings.CutPrefix(text, string(m.Code)+": "); !ok || len(rest) < 15 || !strings.HasSuffix(text, ".") || strings.Contains(text, "..") || strings.Contains(rest, string(m.Code)) {
				t.Errorf("%s", text)
			}
		}
	}
}
