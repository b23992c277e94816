package mcp

import "net/http"

// Inside returns a transport to a handler.
func Inside(h http.Handler) http.RoundTripper { return inside{h} }
