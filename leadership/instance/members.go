package instance

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/service"
)

// Join makes the caller a member until its ttl has passed, and reads the election, from the cache
// if it can. Errors: those of Read, so NotFound for an election that was never seen, or is deleted;
// LimitExceeded if this instance has no room.
func (i *Instance) Join(ctx context.Context, r leadership.JoinRequest) (leadership.Reading, error) {
	if err := r.Validate(); err != nil {
		return leadership.Reading{}, err
	}
	defer i.hub.Hold(r.Election)() // the view keeps the election until it has a member
	reading, err := i.Read(ctx, leadership.ReadRequest{Election: r.Election})
	if err == nil {
		err = i.roll.join(leadership.Actor(ctx), r)
	}
	return reading, err
}

// Leave ends a membership that Join began, at this instance or at another. Idempotent.
func (i *Instance) Leave(_ context.Context, r leadership.LeaveRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	i.roll.leave(r)
	return nil
}

// Members reads an election, from the cache if it can, with its members, and those of its seats.
// Errors are those of Read.
func (i *Instance) Members(ctx context.Context, e leadership.Election) (leadership.Members, error) {
	m, err := i.membersOf(ctx, e)
	if err != nil || m.Seats == 0 {
		return m, err
	}
	seats, errs := make([]leadership.Members, m.Seats), make([]error, m.Seats)
	service.Each(len(seats), len(seats), func(n int) { seats[n], errs[n] = i.membersOf(ctx, e.Seat(n+1)) })
	follow := m.Participation * float64(len(m.Members))
	for n, seat := range seats {
		switch {
		case errors.Is(errs[n], leadership.NotFound): // the seat was never granted
			continue
		case errs[n] != nil:
			return leadership.Members{}, errs[n]
		case seat.Status == leadership.MembersDiverged, seat.LeaderID != "" && m.Status == leadership.MembersNoLeader:
			m.Status = seat.Status
		}
		follow += seat.Participation * float64(len(seat.Members))
		for _, one := range seat.Members {
			one.Seat = n + 1
			m.Members = append(m.Members, one)
		}
	}
	if len(m.Members) > 0 {
		m.Participation = follow / float64(len(m.Members))
	}
	slices.SortFunc(m.Members, func(a, b leadership.Member) int { return cmp.Or(cmp.Compare(a.ID, b.ID), a.Seat-b.Seat) })
	return m, nil
}

// membersOf is Members without the members of seats.
func (i *Instance) membersOf(ctx context.Context, e leadership.Election) (leadership.Members, error) {
	reading, err := i.Read(ctx, leadership.ReadRequest{Election: e})
	if err != nil {
		return leadership.Members{}, err
	}
	l := reading.Lease
	all, status := i.roll.members(l, reading.Age)
	m := leadership.Members{
		Election: e, LeaderID: l.LeaderID, Token: l.Token, Status: leadership.MembersHealthy, Participation: status.Participation,
		Complete: i.roll.complete(), ReadOnly: status.ReadOnly, Journal: i.roll.journal(e), Seats: l.Config.Seats, Members: all,
	}
	q := l.Config.Ballot.Quorum
	if need := q.Needed(); need > 0 {
		m.Quorum = &leadership.QuorumStatus{Size: q.Size(), Need: need, Present: status.Present, ToleratedFailures: q.ToleratedFailures()}
	}
	switch {
	case m.Quorum != nil && m.Quorum.Present < m.Quorum.Need:
		m.Status = leadership.MembersNoQuorum
	case l.LeaderID == "":
		m.Status = leadership.MembersNoLeader
	case status.Diverged:
		m.Status = leadership.MembersDiverged
	}
	return m, nil
}

// AwaitAcknowledgement blocks until r.Need members other than the leader follow r.Token or a later
// one, and have applied the journal up to r.JournalIndex, if these are set; or until r.Wait is
// over. It returns which members do. A candidate in line follows the token that its instance knows.
// The store is read at most once.
//
// Errors: those of CheckToken, such as TokenStale if the token is not that of the present leader or
// becomes stale while waiting; the cause of Drain.
func (i *Instance) AwaitAcknowledgement(ctx context.Context, r leadership.AcknowledgementRequest) (leadership.Acknowledgement, error) {
	if err := r.Validate(); err != nil {
		return leadership.Acknowledgement{}, err
	}
	reading, err := i.Read(ctx, leadership.ReadRequest{Election: r.Election})
	if err != nil {
		return leadership.Acknowledgement{}, err
	}
	l := reading.Lease
	if r.Token > 0 && (l.LeaderID == "" || l.Token != r.Token) { // the token may have been granted since the cached read
		if l, err = i.service.CheckToken(ctx, leadership.TokenCheck{Election: r.Election, Token: r.Token}); err != nil {
			return leadership.Acknowledgement{}, err
		}
	}
	if r.Wait > 0 {
		watch := i.hub.Watch(r.Election, l.Revision) // to hear of the end of the term
		defer watch.Close()
	}
	waiting, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	var a leadership.Acknowledgement
	stale := false
	err = i.roll.until(waiting, r.Election, func() bool {
		a, stale = i.roll.acknowledgement(r, l)
		return a.Done || stale
	})
	switch {
	case stale:
		_, err = i.service.CheckToken(ctx, leadership.TokenCheck{Election: r.Election, Token: r.Token})
	case ctx.Err() == nil && waiting.Err() != nil:
		err = nil
	}
	return a, err
}

// CheckToken asks the store whether a token is the present leader's; see service.Service. With
// r.Write it also returns ReadOnly while the election has lost its quorum, as far as this instance
// knows.
func (i *Instance) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	l, err := i.service.CheckToken(ctx, r)
	if err == nil && r.Write {
		err = i.roll.refuseWrite(l)
	}
	if err != nil {
		return leadership.Lease{}, err
	}
	return l, nil
}

// BatchCheckTokens checks many tokens; see CheckToken.
func (i *Instance) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	results, err := i.service.BatchCheckTokens(ctx, batch)
	for n := range results {
		if results[n].Err == nil && batch[n].Write {
			if err := i.roll.refuseWrite(results[n].Lease); err != nil {
				results[n] = leadership.Result{Err: err}
			}
		}
	}
	return results, err
}

// present reports whether the instance has heard of the member lately, for a candidate's bid.
func (i *Instance) present(e leadership.Election, id leadership.CandidateID) bool {
	return i.roll.present(e, id)
}

// MemberStats returns the number of members at this instance by role and, for all elections with
// known members, how many are read-only, and the lowest participation (1 if there are none).
func (i *Instance) MemberStats() (byRole map[leadership.Role]int64, readOnly int64, lowest float64) {
	return i.roll.stats()
}

// accompany returns the hub.Members of a watch. With r.Member, that member counts as a follower
// while the watch is open; it is refused if there is no room.
func (i *Instance) accompany(ctx context.Context, r leadership.WatchRequest, seen leadership.Token) (hub.Members, error) {
	if r.Member != "" {
		if err := r.Member.Validate(); err != nil {
			return nil, &leadership.Error{Code: leadership.InvalidArgument, Field: "member", Detail: err.Error()}
		}
	}
	return i.roll.accompany(leadership.Actor(ctx), r, seen)
}
