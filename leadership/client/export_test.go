package client

import (
	"context"
	"io"
	"iter"
	"net/http"

	"regent/leadership"
)

// Through replaces the transport of a client that has its own.
func (c *Client) Through(transport http.RoundTripper) { c.http.Transport = transport }

// Spare replaces the transport of retried renewals.
func (c *Client) Spare(transport http.RoundTripper) { c.spare = transport }

// CandidateIDOn is DefaultCandidateID on another host.
func CandidateIDOn(ctx context.Context, env func(string) string, host string, transport http.RoundTripper) (id leadership.CandidateID, stable bool) {
	return defaultCandidateID(ctx, env, host, newMetadataServer(env, transport))
}

// MetadataCredentialFrom is MetadataCredential with another metadata server.
func MetadataCredentialFrom(audience string, transport http.RoundTripper) func(context.Context) (string, error) {
	return (&metadataTokens{audience: audience, server: metadataServer{"metadata", transport}}).token
}

// Message is one event of a stream.
type Message struct{ Name, Data, ID string }

// MaxMessage limits the size of one event.
const MaxMessage = maxMessage

// Messages yields events until the stream ends or cannot be read; the last iteration has the error.
func Messages(in io.Reader) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for e := newEvents(in); ; {
			m, ok, err := e.read()
			if (ok || err != nil) && (!yield(Message{m.name, string(m.data), m.id}, err) || err != nil) {
				return
			}
		}
	}
}

// NewTransport returns a client's default transport.
var NewTransport = newTransport
