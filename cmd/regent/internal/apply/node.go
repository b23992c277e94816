package apply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"regent/leadership/wire"
)

type member struct {
	name       string
	key, value *yaml.Node
}

// object returns the members of a mapping. what names it in a mistake.
func (r *reader) object(n *yaml.Node, what string) (members []member, ok bool) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "%s must be a mapping of names to values, not %s; write {} if there is nothing to say", what, kind(n))
		return nil, false
	}
	ok = true
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := target(n.Content[i]), n.Content[i+1]
		name := key.Value
		switch before := lines[name]; {
		case key.ShortTag() == "!!merge":
			r.wrong(key, "<< is not read; what elections have in common belongs into defaults")
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.wrong(key, `a name must be a text, not %s; write it in quotes, as in "1":`, kind(key))
		case before > 0:
			r.wrong(key, "%s stands in line %d already; keep one of the two", wire.Quote(name), before)
		default:
			lines[name] = key.Line
			members = append(members, member{name, n.Content[i], value})
			continue
		}
		ok = false
	}
	return members, ok
}

// target returns the node that an alias stands for, or n.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kind returns the kind of a node, in words.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	scalars := map[string]string{"!!null": "nothing", "!!str": "a text", "!!bool": "true or false", "!!int": "a number", "!!float": "a number"}
	return cmp.Or(scalars[n.ShortTag()], n.ShortTag())
}

// places are the nodes of a JSON text by JSON pointer.
type places map[string]*yaml.Node

// of returns the node of a field, or the nearest node around it. The field is a JSON pointer or a
// path such as policy.maxTerm.
func (p places) of(field string) *yaml.Node {
	if field != "" && !strings.HasPrefix(field, "/") {
		field = "/" + strings.ReplaceAll(field, ".", "/")
	}
	for p[field] == nil && field != "" {
		field = field[:strings.LastIndexByte(field, '/')]
	}
	return p[field]
}

// writer writes nodes as JSON, and notes where each came from.
type writer struct {
	*reader
	at     places
	out    bytes.Buffer
	failed bool
}

func (w *writer) fail(at *yaml.Node, format string, args ...any) {
	w.failed = true
	w.wrong(at, format, args...)
}

func (w *writer) object(pointer string, members []member) {
	w.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			w.out.WriteByte(',')
		}
		name, _ := json.Marshal(m.name) // cannot fail: a string can always be encoded
		w.out.Write(append(name, ':'))
		w.value(pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(m.name), m.value)
	}
	w.out.WriteByte('}')
}

// maxDepth is more than the depth of any configuration, and ends the expansion of an alias that
// contains itself.
const maxDepth = 16

// value writes a node. The expansion of an alias counts each time, so that a small file cannot
// become a large request.
func (w *writer) value(pointer string, n *yaml.Node) {
	switch {
	case w.out.Len() > wire.MaxBody:
		if !w.failed {
			w.fail(n, "the configuration is longer than the %d bytes that the API takes", wire.MaxBody)
		}
		return
	case strings.Count(pointer, "/") > maxDepth:
		w.fail(n, "this is nested deeper than any configuration")
		return
	}
	w.at[pointer] = n
	switch n = target(n); n.Kind {
	case yaml.MappingNode:
		members, ok := w.reader.object(n, pointer)
		w.failed = w.failed || !ok
		w.object(pointer, members)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(pointer+"/"+strconv.Itoa(i), item)
		}
		w.out.WriteByte(']')
	default:
		w.scalar(n)
	}
}

func (w *writer) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date is a text in JSON
		text, _ := json.Marshal(n.Value)
		w.out.Write(text)
	case "!!bool":
		w.out.WriteString(strings.ToLower(n.Value))
	case "!!null":
		w.out.WriteString("null")
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			w.fail(n, "write the number %s in decimal, as in 1000 or 0.25, or in quotes if it is a text", wire.Quote(n.Value))
		}
		w.out.WriteString(n.Value)
	default:
		w.fail(n, "the tag %s is not read; leave it out", wire.Quote(n.ShortTag()))
	}
}
