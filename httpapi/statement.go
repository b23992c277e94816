package httpapi

import (
	"context"
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// longestSigning limits how long a signature may take. The server signs after the commit, and a
// late answer costs the leader time, so a signature also takes at most a tenth of the time left of
// the lease.
const longestSigning = 2 * time.Second

// keySet answers with the public keys. A cache may keep them as long as verifiers do.
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

// unsigned is the statementError of a server without a key.
const unsigned = "this server signs no statements"

// state adds a statement to the answer, or the reason why there is none. It never fails the call: a
// leader must not lose its lease because the server cannot sign.
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
