package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Acquire asks for the lease. Without a key in the request the server chooses one and returns it in
// Grant.Key. With a Wait it blocks for up to that time, in addition to the time of any other call.
func (c *Client) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	metadata, err := leadership.ParseMetadata(r.Metadata)
	if err != nil {
		return leadership.Grant{}, &leadership.Error{Code: leadership.InvalidArgument, Field: "metadata", Detail: err.Error()}
	}
	r.Metadata = []byte(metadata)
	var answer wire.Grant
	err = c.about(ctx, r.Election, call{
		name: "acquire", method: http.MethodPost, suffix: wire.Acquire, mutates: wire.VerbAcquire.Row().Changes(),
		wait: min(max(r.Wait, 0), leadership.MaxWait), body: wire.NewAcquireRequest(r), answer: &answer,
	})
	if err != nil {
		return leadership.Grant{}, err
	}
	lease, err := answer.Leadership()
	if err == nil {
		err = expected{election: r.Election, held: true, leader: r.CandidateID}.match(lease)
	}
	if err != nil {
		return leadership.Grant{}, misread("acquire", true, err)
	}
	grant := leadership.Grant{Lease: lease, Waited: waited(r, answer), Inherited: answer.Inherited.Leadership(r.Election)}
	if r.Key != nil {
		grant.Key = *r.Key
	} else if grant.Key, err = leadership.ParseKey(answer.Key); err != nil {
		return leadership.Grant{}, misread("acquire", true, err)
	}
	return grant, nil
}

// waited returns how long the request waited in line. It moves the leader's deadline later, so a
// value above the wait that was asked for is not believed.
func waited(r leadership.AcquireRequest, answer wire.Grant) time.Duration {
	most := max(r.Wait.Milliseconds(), 0)
	return time.Duration(min(max(answer.WaitedMs, 0), most)) * time.Millisecond
}

// Renew renews the caller's lease. The Ticket of the last answer, in the request, saves the store a
// read. A server of an older version answers InvalidArgument to it: renew without it then.
func (c *Client) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return c.lease(ctx, ofRenewal(r), call{
		name: "renew", method: http.MethodPost, suffix: wire.Renew, mutates: wire.VerbRenew.Row().Changes(), text: wire.AppendRenewal(nil, r),
	})
}

// Release ends the caller's lease.
func (c *Client) Release(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return c.lease(ctx, expected{election: r.Election}, call{
		name: "release", method: http.MethodPost, suffix: wire.Release, mutates: wire.VerbRelease.Row().Changes(), text: wire.AppendRenewal(nil, r),
	})
}

// CheckToken returns the lease if the token is the current leader's.
func (c *Client) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	return c.lease(ctx, ofCheck(r), call{
		name: "check token", method: http.MethodPost, suffix: wire.CheckToken, mutates: wire.VerbCheckToken.Row().Changes(), body: wire.NewTokenCheck(r),
	})
}

// Get reads an election from the store.
func (c *Client) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	reading, err := c.Read(ctx, leadership.ReadRequest{Election: e, Strong: true})
	return reading.Lease, err
}

// Read reads an election. Unless a strong read is asked for, the reply shows the election as it was
// at some moment within Reading.Bound before it was sent, and the remaining time counts from when
// it was sent, not from ReadAt. RevisionMismatch: the store has not reached the revision Known.
func (c *Client) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	query := url.Values{}
	if r.Strong {
		query.Set("consistency", "strong")
	}
	setNumber(query, "minRevision", int64(r.Known))
	return c.reading(ctx, r, call{name: "read", method: http.MethodGet, query: query})
}

// reading makes a call whose reply is an election that may be stale.
func (c *Client) reading(ctx context.Context, r leadership.ReadRequest, k call) (leadership.Reading, error) {
	var answer wire.Lease
	var header http.Header
	k.answer, k.replyHeader = &answer, &header
	if err := c.about(ctx, r.Election, k); err != nil {
		return leadership.Reading{}, err
	}
	lease, err := answer.Leadership()
	if err == nil {
		err = matchReading(r, lease, answer.MaxStalenessMs)
	}
	if err != nil {
		return leadership.Reading{}, misread(k.name, k.mutates, err)
	}
	bound := time.Duration(answer.MaxStalenessMs) * time.Millisecond
	return leadership.Reading{Lease: lease, Age: age(header, bound), Bound: bound}, nil
}

// age returns the age that the reply states, and bound if it states none.
func age(h http.Header, bound time.Duration) time.Duration {
	if age, ok := seconds(h, "Age"); ok {
		return min(age, bound)
	}
	return bound
}

// List reads a page of elections in the order of their names.
func (c *Client) List(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	query := url.Values{}
	setText(query, "prefix", r.Prefix)
	setText(query, "pageToken", string(r.After))
	setNumber(query, "pageSize", int64(r.Limit))
	var answer wire.Page
	err := c.do(ctx, call{name: "list", method: http.MethodGet, path: wire.PathElections, query: query, answer: &answer})
	if err != nil {
		return leadership.Page{}, err
	}
	page, err := answer.Leadership()
	if err != nil {
		return leadership.Page{}, misread("list", false, err)
	}
	return page, nil
}

// Events reads a part of an election's history, oldest first.
func (c *Client) Events(ctx context.Context, r leadership.EventsRequest) ([]leadership.Event, error) {
	query := url.Values{}
	setNumber(query, "after", int64(r.After))
	setNumber(query, "limit", int64(r.Limit))
	var answer wire.History
	err := c.about(ctx, r.Election, call{name: "events", method: http.MethodGet, suffix: wire.Events, query: query, answer: &answer})
	if err != nil {
		return nil, err
	}
	events, err := answer.Leadership()
	if err == nil {
		err = matchEvents(r.Election, events)
	}
	if err != nil {
		return nil, misread("events", false, err)
	}
	return events, nil
}

// conditionTries is how often a change is sent that its caller makes whatever the revision.
const conditionTries = 8

// decided makes an operator's change of an election, at the revision that the operator has decided
// on. With none, it is made at the revision that there is: a refused change was not made and tells
// the revision, so it is sent again with that. Each copy that comes late is refused.
func (c *Client) decided(ctx context.Context, e leadership.Election, on, first leadership.Revision, k call) (lease leadership.Lease, err error) {
	at := cmp.Or(on, first)
	for range conditionTries {
		k.header = wire.Condition(at)
		lease, err = c.lease(ctx, expected{election: e}, k)
		refusal, ok := errors.AsType[*leadership.Error](err)
		if on != 0 || !ok || refusal.Code != leadership.RevisionMismatch || refusal.Lease == nil || refusal.Lease.Revision < 1 {
			break
		}
		at = refusal.Lease.Revision
	}
	return lease, err
}

// Configure sets an election's configuration. Without IfRevision it does so whatever the revision.
func (c *Client) Configure(ctx context.Context, r leadership.ConfigureRequest) (leadership.Lease, error) {
	return c.decided(ctx, r.Election, r.IfRevision, leadership.NeverSeen, call{
		name: "configure", method: http.MethodPut, mutates: wire.VerbConfigure.Row().Changes(), body: wire.NewConfigureRequest(r.Config),
	})
}

// Delete deletes an election. Without IfRevision it does so whatever the revision.
func (c *Client) Delete(ctx context.Context, r leadership.DeleteRequest) (leadership.Lease, error) {
	query := url.Values{}
	if r.Force {
		query.Set("force", "true")
	}
	return c.decided(ctx, r.Election, r.IfRevision, 1, call{
		name: "delete", method: http.MethodDelete, mutates: wire.VerbDelete.Row().Changes(), query: query,
	})
}

// Unlock ends a lease or a lock before its time; see leadership.Unlock. Two candidates may then
// believe that they lead. Without the acknowledgement that the error LeaseHeld states it does
// nothing.
func (c *Client) Unlock(ctx context.Context, r leadership.UnlockRequest) (leadership.Lease, error) {
	return c.lease(ctx, expected{election: r.Election}, call{
		name: "unlock", method: http.MethodPost, suffix: wire.Unlock, mutates: wire.VerbUnlock.Row().Changes(), body: wire.NewUnlockRequest(r.UnlockCommand),
	})
}

// Order gives an operator's order; see leadership.Order. Without IfRevision it does so whatever the
// revision; an eviction needs the revision or the token then.
func (c *Client) Order(ctx context.Context, r leadership.OrderRequest) (leadership.Lease, error) {
	row := wire.Verb(r.Kind).Row()
	if !slices.Contains(leadership.Orders(), r.Kind) {
		return leadership.Lease{}, &leadership.Error{Code: leadership.InvalidArgument, Field: "order", Detail: fmt.Sprintf("there is no order %q", r.Kind)}
	}
	if r.Kind == leadership.OrderEvict && r.Token == 0 && r.IfRevision == 0 {
		return leadership.Lease{}, &leadership.Error{Code: leadership.InvalidArgument, Field: "fencingToken", Detail: "say which term is to end: send its fencing token, or the revision at which it was read"}
	}
	return c.decided(ctx, r.Election, r.IfRevision, 1, call{
		name: string(r.Kind), method: row.Method, suffix: ":" + string(r.Kind), mutates: row.Changes(),
		body: wire.NewOrderRequest(r.OrderCommand),
	})
}

// Overrides reads the standing orders of an election, the oldest first.
func (c *Client) Overrides(ctx context.Context, e leadership.Election) ([]leadership.Override, error) {
	var answer wire.Overrides
	if err := c.about(ctx, e, call{name: "overrides", method: http.MethodGet, suffix: wire.AllOverrides, answer: &answer}); err != nil {
		return nil, err
	}
	return answer.Leadership(), nil
}

// Judge gives a verdict on the leader's work; see leadership.Judge. Without IfRevision it does so
// whatever the revision.
func (c *Client) Judge(ctx context.Context, r leadership.JudgeRequest) (leadership.Lease, error) {
	return c.decided(ctx, r.Election, r.IfRevision, 1, call{
		name: "judge", method: http.MethodPost, suffix: wire.Judge, mutates: wire.VerbJudge.Row().Changes(), body: wire.NewJudgeRequest(r.JudgeCommand),
	})
}

// StepDown ends the caller's lease and says why; see leadership.StepDown.
func (c *Client) StepDown(ctx context.Context, r leadership.StepDownRequest) (leadership.Lease, error) {
	return c.lease(ctx, expected{election: r.Election}, call{
		name: "step down", method: http.MethodPost, suffix: wire.StepDown, mutates: wire.VerbStepDown.Row().Changes(), body: wire.NewStepDownRequest(r),
	})
}

// RequestApproval asks operators to approve of the caller's term; see leadership.RequestApproval.
func (c *Client) RequestApproval(ctx context.Context, r leadership.ApprovalNote) (leadership.Lease, error) {
	return c.lease(ctx, expected{election: r.Election}, call{
		name: "request approval", method: http.MethodPost, suffix: wire.RequestApproval, mutates: wire.VerbRequestApproval.Row().Changes(), body: wire.NewApprovalNote(r),
	})
}

// Explain says why a candidate does not lead.
func (c *Client) Explain(ctx context.Context, r leadership.ExplainRequest) (leadership.Explanation, error) {
	if err := r.CandidateID.Validate(); err != nil {
		return leadership.Explanation{}, &leadership.Error{Code: leadership.InvalidArgument, Field: "candidateId", Detail: err.Error()}
	}
	var answer wire.Explanation
	suffix := wire.Candidates + "/" + string(r.CandidateID) + wire.Explain
	if err := c.about(ctx, r.Election, call{name: "explain", method: http.MethodGet, suffix: suffix, answer: &answer}); err != nil {
		return leadership.Explanation{}, err
	}
	return answer.Leadership(), nil
}

// lease makes a call whose reply is a lease, and checks that the lease matches x.
func (c *Client) lease(ctx context.Context, x expected, k call) (leadership.Lease, error) {
	var answer wire.Lease
	k.answer = &answer
	if err := c.about(ctx, x.election, k); err != nil {
		return leadership.Lease{}, err
	}
	lease, err := answer.Leadership()
	if err == nil {
		err = x.match(lease)
	}
	if err != nil {
		return leadership.Lease{}, misread(k.name, k.mutates, err)
	}
	return lease, nil
}

// about makes a call about one election. It refuses invalid names itself, with the server's
// message, because such a name could change the meaning of the path.
func (c *Client) about(ctx context.Context, e leadership.Election, k call) error {
	if err := e.Validate(); err != nil {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "election", Detail: err.Error()}
	}
	k.path = wire.Path(e, k.suffix)
	return c.do(ctx, k)
}

func setText(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setNumber(query url.Values, name string, value int64) {
	if value != 0 {
		query.Set(name, strconv.FormatInt(value, 10))
	}
}
