package client

import (
	"cmp"
	"context"
	"errors"
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
		return leadership.Grant{}, invalid("metadata", "%v", err)
	}
	r.Metadata = []byte(metadata)
	var answer wire.Grant
	k := post("acquire", wire.VerbAcquire, wire.NewAcquireRequest(r))
	k.wait = min(max(r.Wait, 0), leadership.MaxWait)
	lease, err := askFor(ctx, c, r.Election, k, &answer, expected{election: r.Election, seats: true, held: true, leader: r.CandidateID}.match)
	if err != nil {
		return leadership.Grant{}, err
	}
	grant := leadership.Grant{
		Lease: lease, Waited: waited(r, answer),
		Inherited: answer.Inherited, InDoubt: answer.InDoubt, Proposals: answer.Proposals,
	}
	if r.Key != nil {
		grant.Key = *r.Key
	} else if grant.Key, err = leadership.ParseKey(answer.Key); err != nil {
		return leadership.Grant{}, misread(k.name, k.mutates, err)
	}
	return grant, nil
}

// waited returns how long the request waited in line, capped at the wait that was asked for: a
// longer wait moves the leader's deadline later, so it must not be too long.
func waited(r leadership.AcquireRequest, answer wire.Grant) time.Duration {
	most := max(r.Wait.Milliseconds(), 0)
	return time.Duration(min(max(answer.WaitedMs, 0), most)) * time.Millisecond
}

// Renew renews the caller's lease. Set r.Ticket to the Ticket of the last answer to save the store
// a read. An older server refuses a Ticket with InvalidArgument: renew without it then.
func (c *Client) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return c.lease(ctx, ofRenewal(r), post("renew", wire.VerbRenew, wire.NewLeaseRequest(r)))
}

// CheckToken returns the lease if the token is the current leader's.
func (c *Client) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	return c.lease(ctx, ofCheck(r), post("check token", wire.VerbCheckToken, wire.NewTokenCheck(r)))
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

// reading makes a call whose reply is an election, which may be stale.
func (c *Client) reading(ctx context.Context, r leadership.ReadRequest, k call) (leadership.Reading, error) {
	var answer wire.Lease
	var header http.Header
	k.replyHeader = &header
	lease, err := askFor(ctx, c, r.Election, k, &answer, func(l leadership.Lease) error { return matchReading(r, l, answer.MaxStalenessMs) })
	if err != nil {
		return leadership.Reading{}, err
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
	k := look("events", wire.Events)
	k.query = query
	return askFor(ctx, c, r.Election, k, new(wire.History), func(events []leadership.Event) error { return matchEvents(r.Election, events) })
}

// conditionTries is how often a change without IfRevision is sent.
const conditionTries = 8

// Do carries out a command, such as
//
//	c.Do(ctx, leadership.Unlock{Election: "jobs", Reason: "the host is gone"})
//
// Without IfRevision it does so at any revision: the server's refusal tells the present revision,
// and Do sends the command again with that. So late copies of a request are refused. An eviction
// needs IfRevision or a token. Errors: those of the command.
func (c *Client) Do(ctx context.Context, command leadership.Command) (lease leadership.Lease, err error) {
	if err := checkOrder(command); err != nil {
		return leadership.Lease{}, err
	}
	sent, err := wire.Encode(command)
	if err != nil {
		return leadership.Lease{}, err
	}
	row := wire.Verb(command.Name()).Row()
	k := post(spoken(command.Name()), row.Verb, sent.Body)
	k.query = sent.Query
	x := expected{election: command.Target().Election}
	if order, ok := command.(leadership.Order); ok && order.Kind.Halts() {
		if err := order.Election.ValidatePattern(); err != nil { // a wrong one could change the meaning of the path
			return leadership.Lease{}, invalid("election", "%v", err)
		}
		x.election, k.path = order.Record(), wire.Path(order.Election, k.suffix)
	}
	if !row.Conditional {
		return c.lease(ctx, x, k)
	}
	at := cmp.Or(sent.At, 1)
	if sent.At == 0 && row.Creates {
		at = leadership.NeverSeen
	}
	for range conditionTries {
		k.header = wire.Condition(at)
		lease, err = c.lease(ctx, x, k)
		refusal, ok := errors.AsType[*leadership.Error](err)
		if sent.At != 0 || !ok || refusal.Code != leadership.RevisionMismatch || refusal.Lease == nil || refusal.Lease.Revision < 1 {
			break
		}
		at = refusal.Lease.Revision
	}
	return lease, err
}

// checkOrder refuses an unknown kind of order, an eviction that would evict the next leader if it
// were repeated, and an approval that could count in two rounds.
func checkOrder(command leadership.Command) error {
	order, ok := command.(leadership.Order)
	switch {
	case !ok:
		return nil
	case !slices.Contains(leadership.Orders(), order.Kind):
		return invalid("order", "there is no order %q", order.Kind)
	case order.Kind == leadership.OrderEvict && order.Token == 0 && order.IfRevision == 0:
		return invalid("fencingToken", "say which term is to end: send its fencing token, or the revision at which it was read")
	case order.Kind == leadership.OrderApprove && !order.NewEpoch && order.IfRevision == 0: // a new epoch is identified by its token
		return invalid("ifRevision", "say the revision at which the term was read, and the same again if the answer is lost: so the approval counts once")
	}
	return nil
}

// spoken writes a verb as words: "step down".
func spoken(verb string) string {
	var words []byte
	for _, b := range []byte(verb) {
		if 'A' <= b && b <= 'Z' {
			words = append(words, ' ', b-'A'+'a')
		} else {
			words = append(words, b)
		}
	}
	return string(words)
}

// Overrides reads the standing orders of an election, the oldest first.
func (c *Client) Overrides(ctx context.Context, e leadership.Election) ([]leadership.Override, error) {
	answer, err := ask(ctx, c, e, look("overrides", wire.AllOverrides), func(wire.Overrides) bool { return true }) // they name no election
	return answer.Leadership(), err
}

// Explain says why a candidate does not lead.
func (c *Client) Explain(ctx context.Context, r leadership.ExplainRequest) (leadership.Explanation, error) {
	if err := r.CandidateID.Validate(); err != nil {
		return leadership.Explanation{}, invalid("candidateId", "%v", err)
	}
	k := look("explain", wire.Candidates+"/"+string(r.CandidateID)+wire.Explain)
	answer, err := ask(ctx, c, r.Election, k, func(answer wire.Explanation) bool {
		return answer.Election == r.Election && answer.CandidateID == r.CandidateID
	})
	return answer.Leadership(), err
}

// lease makes a call whose reply is a lease, and checks that the lease matches x.
func (c *Client) lease(ctx context.Context, x expected, k call) (leadership.Lease, error) {
	return askFor(ctx, c, x.election, k, new(wire.Lease), x.match)
}

// askFor makes a call about an election, and returns the decoded answer, which match must accept.
func askFor[A interface{ Leadership() (L, error) }, L any](ctx context.Context, c *Client, e leadership.Election, k call, answer *A, match func(L) error) (L, error) {
	k.answer = answer
	if err := c.about(ctx, e, k); err != nil {
		return *new(L), err
	}
	said, err := (*answer).Leadership()
	if err == nil {
		err = match(said)
	}
	if err != nil {
		return *new(L), misread(k.name, k.mutates, err)
	}
	return said, nil
}

// about makes a call about one election. It refuses invalid names itself, with the server's
// message, because such a name could change the meaning of the path.
func (c *Client) about(ctx context.Context, e leadership.Election, k call) error {
	if err := e.Validate(); err != nil {
		return invalid("election", "%v", err)
	}
	if k.path == "" {
		k.path = wire.Path(e, k.suffix)
	}
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
