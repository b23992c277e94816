package apply

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// fromJSON returns the document of a JSON text, or nil if the text is not JSON. A YAML parser does
// not accept all JSON: neither \/ nor surrogate pairs such as \ud83d\ude80.
func fromJSON(text []byte) *yaml.Node {
	if !json.Valid(text) || !utf8.Valid(text) {
		return nil
	}
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(text)), text: text, line: 1}
	r.UseNumber()
	return r.node()
}

type jsonReader struct {
	*json.Decoder
	text []byte
	read int64 // bytes whose lines are counted
	line int
}

// node reads the next value, or the next name of a member.
func (r *jsonReader) node() *yaml.Node {
	token, err := r.Token()
	if err != nil {
		panic(err) // the text is valid
	}
	r.line += bytes.Count(r.text[r.read:r.InputOffset()], []byte("\n"))
	r.read = r.InputOffset()
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line}
	switch v := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for r.More() {
			n.Content = append(n.Content, r.node())
		}
		_, _ = r.Token() // the closing bracket; its lines count with the next value
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
	case bool:
		n.Tag, n.Value = "!!bool", map[bool]string{true: "true", false: "false"}[v]
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n
}
