package httpapi

import (
	"math/rand/v2"
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

func (a *api) leaseHandlers() handlers {
	return handlers{
		wire.VerbAcquire:    a.acquire,
		wire.VerbRenew:      a.renew,
		wire.VerbRelease:    a.release,
		wire.VerbCheckToken: a.checkToken,
	}
}

func (a *api) acquire(w http.ResponseWriter, r *http.Request) error {
	request, err := acquireRequest(w, r)
	if err != nil {
		return err
	}
	if request.Statement && a.issuer == nil && request.Key == nil { // with its key it may be the leader
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

func acquireRequest(w http.ResponseWriter, r *http.Request) (leadership.AcquireRequest, error) {
	var body wire.AcquireRequest
	if err := call(w, r, &body); err != nil {
		return leadership.AcquireRequest{}, err
	}
	e, err := open(r)
	if err != nil {
		return leadership.AcquireRequest{}, err
	}
	return body.Leadership(e)
}

func (a *api) answerGrant(w http.ResponseWriter, r *http.Request, request *leadership.AcquireRequest, grant *leadership.Grant) error {
	answer := wire.NewGrant(*grant)
	spread(&answer.Lease)
	if request.Statement {
		a.state(w, r, grant.Lease, &answer.Lease)
	}
	if request.Key != nil {
		answer.Key = "" // a key is told once, by the reply to the call that made the server choose it
	}
	body, err := wire.AppendGrant(make([]byte, 0, usualReply), &answer)
	return send(w, body, err)
}

func (a *api) renew(w http.ResponseWriter, r *http.Request) error {
	var body wire.LeaseRequest
	if err := call(w, r, &body); err != nil {
		return err
	}
	request, err := body.Leadership(election(r))
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

// release is answered as a renewal is, without an ETag.
func (a *api) release(w http.ResponseWriter, r *http.Request) error {
	var body wire.ReleaseRequest
	if err := call(w, r, &body); err != nil {
		return err
	}
	command, err := body.Command(election(r), 0)
	if err != nil {
		return err
	}
	lease, err := a.service.Do(r.Context(), command)
	return answerLeader(w, lease, err)
}

func answerLeader(w http.ResponseWriter, lease leadership.Lease, err error) error {
	if err != nil {
		return err
	}
	answer := wire.NewLease(lease)
	spread(&answer)
	return okLease(w, &answer)
}

func (a *api) checkToken(w http.ResponseWriter, r *http.Request) error {
	var body wire.TokenCheck
	if err := call(w, r, &body); err != nil {
		return err
	}
	check, err := body.Leadership(election(r))
	if err != nil {
		return err
	}
	lease, err := a.service.CheckToken(r.Context(), check)
	return shown(w, lease, err)
}

// call reads a request that has a body and no query.
func call(w http.ResponseWriter, r *http.Request, body any) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return decode(w, r, wire.MaxBody, body)
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
