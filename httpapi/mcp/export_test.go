package mcp

import (
	"net/http"

	"regent/leadership/wire"
)

// Inside returns a transport to a handler.
func Inside(h http.Handler) http.RoundTripper { return inside{h} }

// Verbs returns the verb of each tool, to which its caller needs the right.
func Verbs() map[string]wire.Verb {
	all := map[string]wire.Verb{}
	for _, t := range tools() {
		all[t.name] = t.verb
	}
	return all
}

// MaxBody is the most that a request may have.
const MaxBody = maxBody

// Row is a tool as the table of README.md has it.
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
