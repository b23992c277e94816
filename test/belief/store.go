package belief

import (
	"cmp"
	"time"

	"regent/leadership"
)

// lease is what the store knows of the election, but for the token, which is only known to be the newest.
type lease struct {
	leader int8  // a candidate's number, from 1; 0 for none
	former bool  // it was granted to a key that the candidate no longer has
	age    uint8 // of the last heartbeat in seconds, up to the lease's
}

// heldBy says whether the candidate leads by its present key.
func (l lease) heldBy(who int8, duration int) bool {
	return l.leader == who+1 && !l.former && int(l.age) < duration
}

// request is a call as the store sees it.
type request struct {
	verb   verb // silence: nobody calls, and the store looks whether the lease is over
	who    int8
	former bool // with a key that the candidate no longer has
	behind bool // with a token that is not the newest
}

// decision is what came of it.
type decision struct {
	lease   lease
	granted bool  // with the next token
	done    bool  // not refused
	left    uint8 // of the lease, if the caller holds it
	broken  Property
}

// input is all that a decision depends on.
type input struct {
	lease
	request
}

// decide runs the rule, once for each input: it is pure.
func (x *search) decide(l lease, r request) decision {
	in := input{l, r}
	d, ok := x.decided[in]
	if !ok {
		d = x.model.decide(l, r)
		x.decided[in] = d
	}
	x.broken = cmp.Or(x.broken, d.broken)
	return d
}

// The store's time and newest token in every decision. Any will do.
const newest leadership.Token = 7

var now = time.Unix(1_000_000, 0)

// decide lets the real rule decide.
func (m *Model) decide(l lease, r request) decision {
	s := leadership.Snapshot{Record: m.record(l), Now: now}
	change, err := rule(s, r, time.Duration(m.Lease)*second)
	if err != nil || change.Empty() {
		return decision{lease: l, done: err == nil}
	}
	if change.Heartbeat {
		change.Record.HeartbeatAt = now
	}
	s.Record = change.Record
	d := decision{lease: m.lease(s.Record, l, r), granted: s.Record.Token != newest, done: true}
	if s.Record.LeaderID != "" {
		d.left = uint8(s.Lease().ExpiresIn / second)
	}
	switch {
	case d.granted && s.Record.Token != newest+1 && m.minds(TokensRise):
		d.broken = TokensRise
	case d.granted && l.leader != 0 && int(l.age) < m.Lease && m.minds(OneLeaseATime):
		d.broken = OneLeaseATime
	}
	return d
}

func rule(s leadership.Snapshot, r request, duration time.Duration) (leadership.Change, error) {
	id, key := name(r.who), key(r.who, r.former)
	renewal := leadership.Renewal{Election: s.Record.Election, CandidateID: id, KeyHash: key, Token: newest}
	if r.behind {
		renewal.Token--
	}
	switch r.verb {
	case acquire:
		return leadership.Acquire(s, leadership.AcquireCommand{CandidateID: id, KeyHash: key, LeaseDuration: duration})
	case renew:
		return leadership.Renew(s, renewal)
	case release:
		return leadership.Release(s, renewal)
	}
	return leadership.Expire(s)
}

// record is the lease as the store has it.
func (m *Model) record(l lease) leadership.Record {
	r := leadership.Record{Election: "reports", Token: newest, Revision: leadership.Revision(2 * newest), EndedAt: now.Add(-second)}
	if l.leader != 0 {
		r.LeaderID, r.KeyHash = name(l.leader-1), key(l.leader-1, l.former)
		r.LeaseDuration, r.HeartbeatAt, r.EndedAt = time.Duration(m.Lease)*second, now.Add(-time.Duration(l.age)*second), time.Time{}
	}
	return r
}

// lease is what matters of the record that the request has left.
func (m *Model) lease(r leadership.Record, before lease, from request) lease {
	switch {
	case r.LeaderID == "":
		return lease{}
	case r.Token != newest:
		before = lease{leader: from.who + 1, former: from.former}
	}
	before.age = uint8(now.Sub(r.HeartbeatAt) / second)
	return before
}

func name(who int8) leadership.CandidateID {
	return [most]leadership.CandidateID{"ann", "bob", "cy"}[who]
}

// key is the hash of a candidate's present key, or of one that it had before.
func key(who int8, former bool) leadership.KeyHash {
	h := leadership.KeyHash{byte(who + 1)}
	if former {
		h[1] = 1
	}
	return h
}
