package mcp

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"regent/leadership/wire"
)

// Inside returns a transport to a handler.
func Inside(h http.Handler) http.RoundTripper { return inside{h} }

// Verbs returns, for each tool, the verb that its caller needs the right for.
func Verbs() map[string]wire.Verb {
	all := map[string]wire.Verb{}
	for _, t := range tools() {
		all[t.name] = t.verb
	}
	return all
}

// MaxBody is the largest body of a request.
const MaxBody = maxBody

// Row is a row of the table of tools in README.md.
type Row struct {
	Name, Changes, Does string
	Roles               []string
}

// Rows returns the rows of all tools.
func Rows() (all []Row) {
	changes := map[effect]string{reads: "no", repeats: "yes", adds: "once", replaces: "ends"}
	for _, t := range tools() {
		r := Row{Name: t.name, Changes: changes[t.effect], Does: t.does}
		for _, role := range t.verb.Row().Roles {
			r.Roles = append(r.Roles, string(role))
		}
		all = append(all, r)
	}
	return all
}

// resolved has the schemas of a tool's input and output.
type resolved struct{ in, out *jsonschema.Resolved }

var schemas = sync.OnceValues(func() (map[string]resolved, error) {
	all := map[string]resolved{}
	for _, t := range tools() {
		var r resolved
		for s, into := range map[*object]**jsonschema.Resolved{new(schemaOf(t.in)): &r.in, new(schemaOf(t.out)): &r.out} {
			text, err := json.Marshal(*s)
			if err != nil {
				return nil, err
			}
			var schema jsonschema.Schema
			if err := json.Unmarshal(text, &schema); err != nil {
				return nil, err
			}
			if *into, err = schema.Resolve(nil); err != nil {
				return nil, err
			}
		}
		all[t.name] = r
	}
	return all, nil
})

// Fits returns an error if an accepted input, or the output, of a tool does not fit its schema.
func Fits(tool string, in, out any) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var sent any
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	if err := all[tool].in.Validate(sent); err != nil {
		return err
	}
	return all[tool].out.Validate(out)
}
