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
