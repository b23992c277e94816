package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"regent/leadership"
	"regent/leadership/wire"
)

// bare calls Regent as a load tool does: it writes requests that were prepared before, and reads of an answer what it needs. Where a
// client takes as much of the processors as the server, this says what the server can do. The leases are those of the agents.
type bare struct{ *regent }

// cycles acquires and releases an election that nobody else wants.
func (s bare) cycles(_ context.Context, i int) (step, error) {
	a, err := s.agent(i)
	if err != nil {
		return nil, err
	}
	t, err := s.turn(leadership.Election(fmt.Sprintf("cycle-%d", i)), a.id)
	c := s.socket()
	return func(ctx context.Context) (int, error) { return 1, t.take(ctx, c) }, err
}

// turn is a grant and its release, with gaps for what is new each time.
type turn struct {
	acquire, release []byte
	key, again       []byte // where it stands in the one and in the other
	token            []byte
}

// turn prepares the requests. In the gaps stands something of the right length.
func (s bare) turn(e leadership.Election, id leadership.CandidateID) (turn, error) {
	var key leadership.Key
	const token = leadership.MaxToken
	acquire, err := s.post(wire.Path(e, wire.Acquire),
		wire.NewAcquireRequest(leadership.AcquireRequest{CandidateID: id, Key: &key, LeaseDuration: aLongTime}))
	if err != nil {
		return turn{}, err
	}
	release, err := s.post(wire.Path(e, wire.Release), wire.NewLeaseRequest(leadership.LeaseRequest{CandidateID: id, Key: key, Token: token}))
	if err != nil {
		return turn{}, err
	}
	return turn{
		acquire: acquire, release: release,
		key: gap(acquire, key.Text()), again: gap(release, key.Text()), token: gap(release, strconv.FormatInt(int64(token), 10)),
	}, nil
}

func (t turn) take(ctx context.Context, c *socket) error {
	key := leadership.NewKey().Text()
	copy(t.key, key)
	copy(t.again, key)
	grant, err := c.call(ctx, t.acquire)
	if err != nil {
		return err
	}
	if err := putToken(t.token, grant); err != nil {
		return err
	}
	_, err = c.call(ctx, t.release)
	return err
}

// gap is where the text stands in the request, to be overwritten.
func gap(request []byte, text string) []byte {
	at := bytes.Index(request, []byte(text))
	return request[at : at+len(text)]
}

// putToken puts the token of a grant into the gap, with spaces before it: so a request is always as long as it says.
func putToken(gap, grant []byte) error {
	_, rest, found := bytes.Cut(grant, []byte(`"fencingToken":`))
	end := bytes.IndexAny(rest, ",}")
	if !found || end < 1 || end > len(gap) {
		return fmt.Errorf("a grant without a token: %s", grant)
	}
	copy(gap, fmt.Sprintf("%*s", len(gap), rest[:end]))
	return nil
}

// renewals renews one lease.
func (s bare) renewals(ctx context.Context, i int) (step, error) {
	a, err := s.lead(ctx, i, 1)
	if err != nil {
		return nil, err
	}
	request, err := s.post(wire.Path(a.leases[0].Election, wire.Renew), wire.NewLeaseRequest(a.leases[0]))
	return s.socket().repeat(request), err
}

// batches renews many leases in one call.
func (s bare) batches(ctx context.Context, i int) (step, error) {
	a, err := s.lead(ctx, i, batchSize)
	if err != nil {
		return nil, err
	}
	request, err := s.post(wire.PathBatchRenew, wire.NewRenewals(a.leases[:batchSize]))
	c := s.socket()
	return func(ctx context.Context) (int, error) {
		results, err := c.call(ctx, request)
		if err != nil {
			return 0, err
		}
		return renewed(results)
	}, err
}

// renewed counts the leases in the answer to a batch, of which all must be renewed.
func renewed(results []byte) (int, error) {
	n := bytes.Count(results, []byte(`"lease":{`))
	if n != batchSize {
		return n, fmt.Errorf("%d of %d were renewed: %s", n, batchSize, results)
	}
	return n, nil
}

// reads reads the election that the agent leads.
func (s bare) reads(strong bool) ready {
	query := ""
	if strong {
		query = "?consistency=strong"
	}
	return func(ctx context.Context, i int) (step, error) {
		a, err := s.lead(ctx, i, 1)
		if err != nil {
			return nil, err
		}
		path := wire.Path(a.leases[0].Election, "") + query
		return s.socket().repeat(fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, s.address)), nil
	}
}

// post prepares a request.
func (s bare) post(path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, s.address, wire.ContentType, len(text), text), err
}

func (s bare) socket() *socket { return &socket{address: s.address} }
