package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/load"
)

// bare calls Regent as a load tool does: it sends requests that were prepared before, and reads of
// an answer only what it needs. Where a client takes as much processor time as the server, this
// shows what the server can do. The leases are those of the agents.
type bare struct{ *regent }

func (s bare) socket() *load.Socket { return &load.Socket{Address: s.address} }

// repeat sends one request again and again.
func (s bare) repeat(request []byte) operation {
	c := s.socket()
	return func(ctx context.Context) (int, error) {
		_, err := c.Call(ctx, request)
		return 1, err
	}
}

// cycles acquires and releases an election that no one else wants.
func (s bare) cycles(_ context.Context, i int) (operation, error) {
	a, err := s.agents.at(i)
	if err != nil {
		return nil, err
	}
	t, err := s.newCycle(leadership.Election(fmt.Sprintf("cycle-%d", i)), a.id)
	c := s.socket()
	return func(ctx context.Context) (int, error) { return 1, t.run(ctx, c) }, err
}

// cycleRequests are a grant and its release, with gaps for the parts that change each time.
type cycleRequests struct {
	acquire, release []byte
	key, again       []byte // the gap for the key in each of them
	token            []byte
}

// newCycle prepares the requests. In the gaps stands text of the right length.
func (s bare) newCycle(e leadership.Election, id leadership.CandidateID) (cycleRequests, error) {
	var key leadership.Key
	const token = leadership.MaxToken
	acquire, err := load.Post(s.address, wire.Path(e, wire.Acquire),
		wire.NewAcquireRequest(leadership.AcquireRequest{CandidateID: id, Key: &key, LeaseDuration: longLease}))
	if err != nil {
		return cycleRequests{}, err
	}
	release, err := load.Post(s.address, wire.Path(e, wire.Release),
		wire.NewLeaseRequest(leadership.LeaseRequest{CandidateID: id, Key: key, Token: token}))
	if err != nil {
		return cycleRequests{}, err
	}
	return cycleRequests{
		acquire: acquire, release: release,
		key: gap(acquire, key.Text()), again: gap(release, key.Text()), token: gap(release, strconv.FormatInt(int64(token), 10)),
	}, nil
}

func (t cycleRequests) run(ctx context.Context, c *load.Socket) error {
	key := leadership.NewKey().Text()
	copy(t.key, key)
	copy(t.again, key)
	grant, err := c.Call(ctx, t.acquire)
	if err != nil {
		return err
	}
	if err := putToken(t.token, grant); err != nil {
		return err
	}
	_, err = c.Call(ctx, t.release)
	return err
}

// gap is where the text stands in the request, to be overwritten.
func gap(request []byte, text string) []byte {
	at := bytes.Index(request, []byte(text))
	return request[at : at+len(text)]
}

// putToken copies the token of a grant into the gap, with spaces before it, so that the length of
// the request does not change.
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
func (s bare) renewals(ctx context.Context, i int) (operation, error) {
	a, err := s.hold(ctx, i, 1, longLease)
	if err != nil {
		return nil, err
	}
	request, err := load.Post(s.address, wire.Path(a.leases[0].Election, wire.Renew), wire.NewLeaseRequest(a.leases[0]))
	return s.repeat(request), err
}

// batches renews many leases in one call.
func (s bare) batches(ctx context.Context, i int) (operation, error) {
	a, err := s.hold(ctx, i, batchSize, longLease)
	if err != nil {
		return nil, err
	}
	request, err := load.Post(s.address, wire.PathBatchRenew, wire.NewRenewals(a.leases[:batchSize]))
	c := s.socket()
	return func(ctx context.Context) (int, error) {
		results, err := c.Call(ctx, request)
		if err != nil {
			return 0, err
		}
		return renewed(results)
	}, err
}

// renewed counts the leases in the answer to a batch. It is an error if one was not renewed.
func renewed(results []byte) (int, error) {
	n := bytes.Count(results, []byte(`"lease":{`))
	if n != batchSize {
		return n, fmt.Errorf("%d of %d were renewed: %s", n, batchSize, results)
	}
	return n, nil
}

// reads reads the election that the agent leads.
func (s bare) reads(strong bool) prepare {
	query := ""
	if strong {
		query = "?consistency=strong"
	}
	return func(ctx context.Context, i int) (operation, error) {
		a, err := s.hold(ctx, i, 1, longLease)
		if err != nil {
			return nil, err
		}
		return s.repeat(load.Get(s.address, wire.Path(a.leases[0].Election, "")+query, "")), nil
	}
}
