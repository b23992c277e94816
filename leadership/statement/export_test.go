package statement

import "net/http"

// AskBy makes the source read its keys by the transport.
func (s *Source) AskBy(t http.RoundTripper) { s.http.Transport = t }
