package test

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
)

// mutation is one kind of call, and the state that it finds its elections in.
type mutation struct {
	name      string
	elections int    // that the call is about; 0 is one
	before    []step // done before it
	later     bool   // time has to pass before it
	meanwhile step   // what another client does while it is made; nil for nothing
	call      step
	history   string // that one call leaves: each event and its token
}

// step is a call about elections.
type step func(context.Context, instance.Protocol, []leadership.Election) ([]leadership.Lease, error)

// mutations are all kinds of calls that change something. Each finds its elections in a state that
// it changes.
var mutations = []mutation{
	{name: "acquire", call: acquires("ann"), history: "acquired 1"},
	{name: "acquire, with a wait, of a free election", call: waits("ann"), history: "acquired 1"},
	{
		name: "acquire, waiting in line", before: []step{acquires("bob")}, meanwhile: releases("bob"), call: waits("ann"),
		history: "acquired 1, released 1, acquired 2",
	},
	{
		name: "acquire after a release", before: []step{acquires("bob"), releases("bob")}, call: acquires("ann"),
		history: "acquired 1, released 1, acquired 2",
	},
	{
		name: "acquire after the end", before: []step{acquiresFor("bob", time.Second)}, later: true, call: acquires("ann"),
		history: "acquired 1, expired 1, acquired 2",
	},
	{name: "acquire for longer", before: []step{acquiresFor("ann", time.Minute)}, call: acquires("ann"), history: "acquired 1, updated 1"},
	{name: "renew", before: []step{acquires("ann")}, later: true, call: renews("ann"), history: "acquired 1"},
	{name: "renew many", elections: 3, before: []step{acquiresWide("ann")}, later: true, call: renewsAll("ann"), history: "acquired 1"},
	{name: "release", before: []step{acquires("ann")}, call: releases("ann"), history: "acquired 1, released 1"},
	{name: "configure, to create", call: configures(lively, 0), history: "configured 0"},
	{name: "configure, to change", before: []step{configures(lively, 0)}, call: configures(calm, 1), history: "configured 0, configured 0"},
	{
		name: "configure while it is led", before: []step{acquires("ann")}, call: configures(calm, 1),
		history: "acquired 1, configured 1",
	},
	{
		name: "configure, to bring back", before: []step{acquires("bob"), releases("bob"), deletes(false, 0)}, call: configures(calm, 3),
		history: "acquired 1, released 1, deleted 1, recreated 1",
	},
	{name: "delete", before: []step{acquires("bob"), releases("bob")}, call: deletes(false, 2), history: "acquired 1, released 1, deleted 1"},
	{name: "delete by force", before: []step{acquires("bob")}, call: deletes(true, 1), history: "acquired 1, deleted 1"},
}

// Two ways to configure an election.
var (
	lively = leadership.Config{LeaseDuration: time.Minute}
	calm   = leadership.Config{LeaseDuration: time.Hour, LockDelay: time.Minute}
)

// keyOf is the key of a candidate, the same for each call of it.
func keyOf(c leadership.CandidateID) (k leadership.Key) {
	copy(k[:], c)
	return k
}

// forEach makes a call for one election after the other.
func forEach(call func(context.Context, instance.Protocol, leadership.Election) (leadership.Lease, error)) step {
	return func(ctx context.Context, p instance.Protocol, elections []leadership.Election) ([]leadership.Lease, error) {
		leases := make([]leadership.Lease, len(elections))
		for i, e := range elections {
			var err error
			if leases[i], err = call(ctx, p, e); err != nil {
				return nil, err
			}
		}
		return leases, nil
	}
}

func acquires(who leadership.CandidateID) step { return acquiresFor(who, time.Hour) }

func acquiresFor(who leadership.CandidateID, d time.Duration) step {
	return asks(leadership.AcquireRequest{CandidateID: who, LeaseDuration: d})
}

// acquiresWide acquires with so much metadata that a reply about several elections is sent in
// chunks, without a Content-Length.
func acquiresWide(who leadership.CandidateID) step {
	const some = 350
	return asks(leadership.AcquireRequest{CandidateID: who, LeaseDuration: time.Hour, Metadata: fmt.Appendf(nil, `{"note": "%0*d"}`, some, 0)})
}

func waits(who leadership.CandidateID) step {
	return asks(leadership.AcquireRequest{CandidateID: who, LeaseDuration: time.Hour, Wait: leadership.MaxWait})
}

func asks(r leadership.AcquireRequest) step {
	return forEach(func(ctx context.Context, p instance.Protocol, e leadership.Election) (leadership.Lease, error) {
		mine := r
		mine.Election, mine.Key = e, new(keyOf(r.CandidateID))
		grant, err := p.Acquire(ctx, mine)
		return grant.Lease, err
	})
}

// first names the first lease of an election, which that candidate was granted.
func first(who leadership.CandidateID, e leadership.Election) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: who, Key: keyOf(who), Token: 1}
}

func renews(who leadership.CandidateID) step {
	return forEach(func(ctx context.Context, p instance.Protocol, e leadership.Election) (leadership.Lease, error) {
		return p.Renew(ctx, first(who, e))
	})
}

// renewsAll renews in one call.
func renewsAll(who leadership.CandidateID) step {
	return func(ctx context.Context, p instance.Protocol, elections []leadership.Election) ([]leadership.Lease, error) {
		var batch []leadership.LeaseRequest
		for _, e := range elections {
			batch = append(batch, first(who, e))
		}
		results, err := p.BatchRenew(ctx, batch)
		var leases []leadership.Lease
		for _, r := range results {
			leases, err = append(leases, r.Lease), cmp.Or(err, r.Err)
		}
		return leases, err
	}
}

func releases(who leadership.CandidateID) step {
	return forEach(func(ctx context.Context, p instance.Protocol, e leadership.Election) (leadership.Lease, error) {
		return p.Release(ctx, first(who, e))
	})
}

func configures(c leadership.Config, at leadership.Revision) step {
	return forEach(func(ctx context.Context, p instance.Protocol, e leadership.Election) (leadership.Lease, error) {
		return p.Configure(ctx, leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{Config: c, IfRevision: at}})
	})
}

func deletes(force bool, at leadership.Revision) step {
	return forEach(func(ctx context.Context, p instance.Protocol, e leadership.Election) (leadership.Lease, error) {
		return p.Delete(ctx, leadership.DeleteRequest{Election: e, DeleteCommand: leadership.DeleteCommand{Force: force, IfRevision: at}})
	})
}
