package httpapi

import (
	"math/rand/v2"
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

func (a *api) acquire(w http.ResponseWriter, r *http.Request) error {
	request, err := request(w, r, open, wire.AcquireRequest.Leadership)
	if err != nil {
		return err
	}
	if request.Statement && a.issuer == nil && request.Key == nil { // a caller with a key may already be the leader
		return wrong("/statement", "%s, and nothing was done; leave it out, or start the server with --statement-key", unsigned)
	}
	if request.Wait > 0 {
		return a.campaign(w, r, &request)
	}
	return a.acquireNow(w, r, &request)
}

// acquireNow answers an acquire that does not wait.
func (a *api) acquireNow(w http.ResponseWriter, r *http.Request, request *leadership.AcquireRequest) error {
	ctx, cancel := a.patience(w, r, 0)
	defer cancel()
	grant, err := a.service.Acquire(ctx, *request)
	if err != nil {
		return err
	}
	return a.answerGrant(w, r, request, &grant)
}

// campaign answers an acquire that may wait.
func (a *api) campaign(w http.ResponseWriter, r *http.Request, request *leadership.AcquireRequest) error {
	ctx, cancel := a.patience(w, r, request.Wait)
	defer cancel()
	grant, err := a.service.Campaign(ctx, request)
	if err != nil {
		return err
	}
	return a.answerGrant(w, r, request, grant)
}

func (a *api) answerGrant(w http.ResponseWriter, r *http.Request, request *leadership.AcquireRequest, grant *leadership.Grant) error {
	answer := wire.NewGrant(*grant)
	spread(&answer.Lease)
	if request.Statement {
		a.state(w, r, grant.Lease, &answer.Lease)
	}
	if request.Key != nil {
		answer.Key = "" // only the call for which the server chose the key returns it
	}
	body, err := wire.AppendGrant(make([]byte, 0, usualReply), &answer)
	return send(w, body, err)
}

func (a *api) renew(w http.ResponseWriter, r *http.Request) error {
	request, err := request(w, r, named, wire.LeaseRequest.Leadership)
	if err != nil {
		return err
	}
	lease, err := a.service.Renew(r.Context(), request)
	if err != nil {
		return err
	}
	answer := wire.NewLease(lease)
	spread(&answer)
	if request.Statement {
		a.state(w, r, lease, &answer)
	}
	return okLease(w, &answer)
}

// release answers like a renewal, without an ETag.
func (a *api) release(w http.ResponseWriter, r *http.Request) error {
	var body wire.ReleaseRequest
	if err := call(w, r, wire.MaxBody, &body); err != nil {
		return err
	}
	command, err := body.Command(election(r), 0)
	if err != nil {
		return err
	}
	lease, err := a.service.Do(r.Context(), command)
	if err != nil {
		return err
	}
	answer := wire.NewLease(lease)
	spread(&answer)
	return okLease(w, &answer)
}

func (a *api) checkToken(w http.ResponseWriter, r *http.Request) error {
	check, err := request(w, r, named, wire.TokenCheck.Leadership)
	if err != nil {
		return err
	}
	lease, err := a.service.CheckToken(r.Context(), check)
	return shown(w, lease, err)
}

// request reads a call about an election, whose name is in the path.
func request[B, Q any](w http.ResponseWriter, r *http.Request, of func(*http.Request) (leadership.Election, error), read func(B, leadership.Election) (Q, error)) (q Q, err error) {
	var body B
	if err := call(w, r, wire.MaxBody, &body); err != nil {
		return q, err
	}
	e, err := of(r)
	if err != nil {
		return q, err
	}
	return read(body, e)
}

// call reads a request that has a body, of at most limit bytes, and no query.
func call(w http.ResponseWriter, r *http.Request, limit int64, body any) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return decode(w, r, limit, body)
}

// renewalJitter is the largest part of renewInMs that spread takes off.
const renewalJitter = 0.1

// spread tells a leader to renew a little earlier, at random, so that a fleet which started at once
// does not renew in step for ever. Never later: that would leave less time for failed renewals.
func spread(l *wire.Lease) {
	if l.RenewInMs != nil {
		*l.RenewInMs = int64(float64(*l.RenewInMs) * (1 - renewalJitter*rand.Float64()))
	}
}
