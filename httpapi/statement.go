package httpapi

import (
	"context"
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// longestSigning bounds how long a signature may take. It comes after the commit, and a leader
// whose answer is late may not know that its renewal counts; so it takes no more than a tenth of
// what is left of the lease, either.
const longestSigning = 2 * time.Second

// keySet answers with the public keys. A cache may keep them for as long as verifiers do.
func (a *api) keySet(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	if a.issuer == nil {
		return refuse(leadership.NotFound, unsigned+"; start it with --statement-key")
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	return send(w, a.issuer.KeySet(), nil)
}

// unsigned is why there is no statement, if the server has no key.
const unsigned = "this server signs no statements"

// state adds a statement to the answer, or why there is none: the lease is granted or renewed all
// the same. A leader must not lose its lease to a server that has lost its key.
func (a *api) state(w http.ResponseWriter, r *http.Request, l leadership.Lease, answer *wire.Lease) {
	if a.issuer == nil {
		answer.StatementError = unsigned
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(longestSigning, l.ExpiresIn/10))
	defer cancel()
	text, err := a.issuer.Sign(ctx, l, leadership.Actor(r.Context()))
	if err != nil {
		blame(w, err)
		answer.StatementError = "the key could not sign; the next renewal may have a statement"
		return
	}
	answer.Statement = text
}
