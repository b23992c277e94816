package authz

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// explain names the line and the key of the first mistake in an access file that the decoder
// refused with err, or took with a nil err: the decoder itself names the types of this package, and
// cuts fractions off. It returns nil if it finds no mistake, or the text is no YAML.
func explain(text []byte, err error) error {
	var root yaml.Node
	if err != nil && !errors.As(err, new(*yaml.TypeError)) || yaml.Unmarshal(text, &root) != nil || len(root.Content) == 0 {
		return nil
	}
	return explainNode(root.Content[0], reflect.TypeFor[document](), "the access file")
}

// explainNode returns the first mistake in a node that is decoded into the type t.
func explainNode(n *yaml.Node, t reflect.Type, name string) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	must := func(what string) error { return fmt.Errorf("line %d: %s must be %s", n.Line, name, what) }
	switch {
	case n.Tag == "!!null":
		return nil
	case t.Kind() == reflect.Struct && n.Kind != yaml.MappingNode:
		return must("keys with values; the keys are " + keyNames(t))
	case t.Kind() == reflect.Struct:
		return explainKeys(n, t, name)
	case t.Kind() == reflect.Slice && n.Kind != yaml.SequenceNode:
		return must("a list, such as [a, b]")
	case t.Kind() == reflect.Slice:
		for _, entry := range n.Content {
			if err := explainNode(entry, t.Elem(), "an entry of "+name); err != nil {
				return err
			}
		}
		return nil
	case n.Decode(reflect.New(t).Interface()) == nil && !(t.Kind() == reflect.Int && n.Tag == "!!float"):
		return nil
	case t == reflect.TypeFor[time.Duration]():
		return must(fmt.Sprintf("a duration such as 1m, not %q", n.Value))
	case t.Kind() == reflect.Int:
		return must(fmt.Sprintf("a whole number such as 100, not %q", n.Value))
	}
	return must("a text, such as a name")
}

func explainKeys(n *yaml.Node, t reflect.Type, name string) error {
	known := keys(t)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		of, ok := known[key.Value]
		switch {
		case key.Tag == "!!merge":
			if of = t; value.Kind == yaml.SequenceNode {
				of = reflect.SliceOf(t)
			}
			if err := explainNode(value, of, name); err != nil {
				return err
			}
		case !ok:
			return fmt.Errorf("line %d: %s has no key %q; the keys are %s", key.Line, name, key.Value, keyNames(t))
		default:
			if err := explainNode(value, of, key.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// keys returns the keys of a struct, and the type of each.
func keys(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for field := range t.Fields() {
		switch key := field.Tag.Get("yaml"); key {
		case ",inline":
			maps.Copy(all, keys(field.Type))
		default:
			all[key] = field.Type
		}
	}
	return all
}

func keyNames(t reflect.Type) string {
	return strings.Join(slices.Sorted(maps.Keys(keys(t))), ", ")
}
