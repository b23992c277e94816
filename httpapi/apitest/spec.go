package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"regent/httpapi"
)

// spec is openapi.yaml. Its schemas are JSON Schema 2020-12.
type spec struct {
	root  Node
	paths map[string]*regexp.Regexp // by the path in the document

	mu       sync.Mutex           // guards compiler
	compiler *jsonschema.Compiler // compiles each schema once
}

const location = "file:///openapi.json"

// load reads the document once, and checks its references and examples.
var load = sync.OnceValues(func() (*spec, error) {
	var document any
	if err := yaml.Unmarshal(httpapi.Spec(), &document); err != nil {
		return nil, err
	}
	s := &spec{paths: map[string]*regexp.Regexp{}, compiler: jsonschema.NewCompiler()}
	s.root = Node{spec: s, at: "#", value: document}
	s.compiler.AssertFormat()
	if err := s.compiler.AddResource(location, document); err != nil {
		return nil, err
	}
	for path := range s.root.At("paths").All() {
		s.paths[path] = regexp.MustCompile("^" + pattern.Replace(regexp.QuoteMeta(path)) + "$")
	}
	return s, s.root.check()
})

// pattern turns a path into a pattern of URLs. A colon after an election begins a verb.
var pattern = strings.NewReplacer(`\{election\}`, `(?P<election>[^/:]+)`, `\{`, `(?P<`, `\}`, `>[^/]+)`)

// find returns the path item of a request, and the parameters in its path. The item is zero if
// there is none.
func (s *spec) find(r *http.Request) (path Node, parameters map[string]string) {
	for name, pattern := range s.paths {
		if values := pattern.FindStringSubmatch(r.URL.EscapedPath()); values != nil {
			parameters = map[string]string{}
			for i, parameter := range pattern.SubexpNames() {
				parameters[parameter], _ = url.PathUnescape(values[i])
			}
			return s.root.At("paths", name), parameters
		}
	}
	return Node{}, nil
}

// Node is a value in the document. The zero Node has no value.
type Node struct {
	spec  *spec
	at    string // its JSON pointer
	value any
}

// At returns a member of an object or an element of an array, a member of that, and so on. It
// follows references, except the last.
func (n Node) At(names ...string) Node {
	for _, name := range names {
		n = n.referred()
		child := Node{spec: n.spec, at: n.at + "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))}
		switch v := n.value.(type) {
		case map[string]any:
			child.value = v[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(v) {
				child.value = v[i]
			}
		}
		n = child
	}
	if n.value == nil {
		return Node{}
	}
	return n
}

// All returns the members of an object, or the elements of an array by their numbers.
func (n Node) All() iter.Seq2[string, Node] {
	var names []string
	switch v := n.Value().(type) {
	case map[string]any:
		names = slices.Collect(maps.Keys(v))
	case []any:
		for i := range v {
			names = append(names, strconv.Itoa(i))
		}
	}
	return func(yield func(string, Node) bool) {
		for _, name := range names {
			if !yield(name, n.At(name)) {
				return
			}
		}
	}
}

// Value returns the value, nil if there is none.
func (n Node) Value() any { return n.referred().value }

func (n Node) referred() Node {
	if object, ok := n.value.(map[string]any); ok {
		if to, ok := object["$ref"].(string); ok {
			return n.spec.root.At(strings.Split(strings.TrimPrefix(to, "#/"), "/")...)
		}
	}
	return n
}

// fits checks a JSON value against this schema.
func (n Node) fits(value any) error {
	n.spec.mu.Lock()
	schema, err := n.spec.compiler.Compile(location + n.at)
	n.spec.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// fitsJSON is fits for the text of a JSON document.
func (n Node) fitsJSON(document []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return n.fits(value)
}

// fitsText is fits for the value of a header or of a parameter.
func (n Node) fitsText(text string) error {
	err := n.fits(text)
	if _, no := strconv.ParseInt(text, 10, 64); err != nil && no == nil {
		return n.fits(json.Number(text))
	}
	return err
}

// check checks that references resolve, and that examples fit their schemas.
func (n Node) check() error {
	object, _ := n.value.(map[string]any)
	if to, refers := object["$ref"]; refers {
		if n.Value() == nil {
			return fmt.Errorf("%s refers to %v, which is not there", n.at, to)
		}
		return nil
	}
	if schema := n.At("schema"); schema.value != nil {
		examples := []any{object["example"]}
		for _, example := range n.At("examples").All() {
			examples = append(examples, example.At("value").Value())
		}
		for _, example := range examples {
			if err := schema.fits(example); example != nil && err != nil {
				return fmt.Errorf("an example in %s: %w", n.at, err)
			}
		}
	}
	for _, child := range n.All() {
		if err := child.check(); err != nil {
			return err
		}
	}
	return nil
}
