package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// acquireSeat asks for one seat of the whole after the other, until it is granted one; where there
// is a ballot for those that are free, once the candidate's turn has come. A key of the candidate's
// own gets back the seat that an earlier call was granted, as far as Seating.Known knows of it.
func (s *Service) acquireSeat(ctx context.Context, r leadership.AcquireRequest, whole rule.Snapshot) (leadership.Grant, error) {
	if r.Key == nil {
		r.Key = new(leadership.NewKey())
	}
	seating := r.InLine.Seats
	if seating == nil {
		seating = &leadership.Seating{Known: s.seats, Refused: func(*leadership.Error) {}}
	}
	known, err := seating.Known(ctx, whole.Lease())
	if err != nil {
		return leadership.Grant{}, err
	}
	order := leadership.OrderSeats(known, r.CandidateID)
	refused := whole.Refuse(leadership.LeaseHeld, "election %q has no seat that can be acquired now", whole.Record.Election)
	refused.Reason = leadership.ReasonHeld
	foreign, bids := false, whole.Record.Policy.Ballot.HasBallot()
	var turn *leadership.Error
	for _, seat := range order {
		if bids && seat.Left == 0 && seat.For == "" {
			if whole, err = s.bid(ctx, r, whole, known); err != nil {
				return leadership.Grant{}, err
			}
			bids = false
		} else if turn != nil && seat.Left > 0 {
			break
		}
		r.Election = seat.Election
		g, err := s.acquire(ctx, r, &whole, known)
		refusal, ok := errors.AsType[*leadership.Error](err)
		switch {
		case ok && (refusal.Reason == leadership.ReasonBallot || refusal.Reason == leadership.ReasonOutranked): // it is vacant
			seating.Refused(refusal)
			refusal.Lease = new(whole.Lease())
			if bids { // it was not known to be vacant
				known = append(slices.DeleteFunc(known, func(k leadership.Seat) bool { return k.Election == seat.Election }), leadership.Seat{Election: seat.Election, Since: seat.Since})
				if whole, err = s.bid(ctx, r, whole, known); err != nil {
					return leadership.Grant{}, err
				}
				bids = false
			}
			if turn == nil || refusal.RetryAfter < turn.RetryAfter {
				turn = refusal
			}
		case ok && refusal.Code == leadership.LeaseHeld && refusal.Lease != nil && refusal.Lease.Election == seat.Election:
			if seating.Refused(refusal); !foreign && (refusal.Cause == nil || refused.Lease.Election == whole.Record.Election) {
				refused = refusal // a halt of one seat is nothing to those who wait for another
			}
			foreign = foreign || refusal.Reason == leadership.ReasonSeats && refusal.Cause == nil // no time or order changes that
		case ok && (refusal.Code == leadership.ElectionDeleted || refusal.Code == leadership.RecordCorrupt): // the others are as they were
		default:
			if err == nil {
				s.seated(ctx, r, whole, known, g)
			}
			return g, err
		}
	}
	if turn != nil {
		return leadership.Grant{}, turn
	}
	return leadership.Grant{}, refused
}

// bid lets the candidate bid for the seats of the whole that are free. If its turn has come, bid
// returns the whole as it was read; otherwise the refusal.
func (s *Service) bid(ctx context.Context, r leadership.AcquireRequest, whole rule.Snapshot, seats []leadership.Seat) (rule.Snapshot, error) {
	cmd, _, err := command(r)
	if err != nil {
		return rule.Snapshot{}, err
	}
	cmd.Principal, cmd.Seats = principal(ctx), seats
	if r.Via != (leadership.Via{}) {
		if cmd.Parent, err = s.held(ctx, r.Via, r.CandidateID); err != nil {
			return rule.Snapshot{}, err
		}
	}
	if r.InLine.Seats != nil {
		cmd.Along = r.InLine.Seats.Along
	}
	decide := func(snap rule.Snapshot) (rule.Change, error) { return rule.Acquire(snap, cmd) }
	if _, err = decide(whole); err == nil { // and else the store would write nothing either
		if whole, err = s.update(ctx, whole.Record.Election, rule.Expect{Change: true}, decide); err == nil {
			err = whole.RefuseWaiting(cmd)
		}
	}
	if needs, ok := errors.AsType[*rule.NeedsSeat](err); ok {
		return needs.Whole, nil
	}
	return rule.Snapshot{}, err
}

// seated notes the grant in the whole, if the next draw depends on it. If that fails, the next draw
// is as if there had been no grant.
func (s *Service) seated(ctx context.Context, r leadership.AcquireRequest, whole rule.Snapshot, seats []leadership.Seat, g leadership.Grant) {
	strategy := whole.Record.Policy.Ballot.Strategy
	if counts := strategy == leadership.StrategyRandom || strategy == leadership.StrategyRoundRobin; !counts || !g.AcquiredAt.Equal(g.LastHeartbeat) {
		return
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lapseTimeout)
	defer cancel()
	cmd, _, _ := command(r) // which was granted
	cmd.Seats = seats
	_, _ = s.update(late, whole.Record.Election, rule.Expect{Change: true}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Seated(snap, cmd, g.AcquiredAt) })
}

// seats is Seating.Known by what the store says.
func (s *Service) seats(ctx context.Context, whole leadership.Lease) ([]leadership.Seat, error) {
	seats, err := s.readSeats(ctx, whole.Election, whole.Config.Seats)
	if err != nil {
		return nil, err
	}
	var known []leadership.Seat
	for _, seat := range seats {
		l := seat.Lease()
		known = append(known, leadership.Seat{Election: l.Election, Leader: l.LeaderID, Since: l.AcquiredAt, Left: l.ExpiresIn + l.LockedFor, For: l.AssignedTo})
	}
	return known, nil
}

// readSeats reads the seats of an election that are not deleted, strongly.
func (s *Service) readSeats(ctx context.Context, whole leadership.Election, n int) ([]rule.Snapshot, error) {
	all := make([]rule.Snapshot, n)
	errs := make([]error, n)
	s.eachSeat(n, func(i int) { all[i], errs[i] = s.store.Get(ctx, whole.Seat(i+1)) })
	return slices.DeleteFunc(all, func(snap rule.Snapshot) bool { return snap.Record.Deleted }), errors.Join(errs...)
}

// whole reads the election that another one is a seat of.
func (s *Service) whole(ctx context.Context, e leadership.Election) (*rule.Snapshot, error) {
	snap, err := s.store.Get(ctx, e)
	return &snap, err
}

// tell lets all seats of the whole hear of its last change. If some could not be told, the next
// change of it, the same again too, the next acquire or the next tick tells them.
//
// Error: InvalidArgument, if one is used for something else. It has nothing to hear, and the others
// have heard.
func (s *Service) tell(ctx context.Context, whole rule.Snapshot) error {
	r := whole.Record
	errs := make([]error, r.Standing.Untold)
	s.eachSeat(len(errs), func(i int) {
		_, errs[i] = s.update(ctx, r.Election.Seat(i+1), rule.Expect{Change: true}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Tell(snap, whole) })
	})
	for _, err := range errs {
		if err != nil && !errors.Is(err, leadership.InvalidArgument) {
			return err
		}
	}
	_, err := s.update(ctx, r.Election, rule.Expect{Change: true}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Told(snap, r.Revision) })
	return cmp.Or(err, cmp.Or(errs...))
}

// tellAfter is tell for the caller that made the change, even if it goes away meanwhile. The change
// stands, also if one of the seats was given another use since refuseSeats.
func (s *Service) tellAfter(ctx context.Context, whole rule.Snapshot) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lapseTimeout)
	defer cancel()
	err := s.tell(late, whole)
	if err != nil { // STORE_UNAVAILABLE would say that nothing was done
		err = &leadership.Error{Code: leadership.OutcomeUnknown, Detail: fmt.Sprintf("election %q was changed, and not all of its seats have heard of it (%v); mend that, and make the same call again", whole.Record.Election, err)}
	}
	return err
}

// refuseSeats returns why one of the elections that would be seats cannot be one. unheard is the
// highest that is none yet, also if the election has as many seats already.
func (s *Service) refuseSeats(ctx context.Context, c leadership.Configure) (unheard int, err error) {
	seats, errs := make([]rule.Snapshot, c.Config.Seats), make([]error, c.Config.Seats)
	s.eachSeat(len(seats), func(i int) {
		if seats[i], errs[i] = s.store.Get(ctx, c.Election.Seat(i+1)); errs[i] == nil {
			errs[i] = rule.RefuseSeat(seats[i])
		}
	})
	for i, seat := range seats {
		if seat.Record.Standing.Seat == 0 {
			unheard = i + 1
		}
	}
	return unheard, cmp.Or(errs...)
}

// removeSeats deletes an election that has seats, unless one has a leader. One that is granted
// meanwhile goes on until the end that its leader is promised.
func (s *Service) removeSeats(ctx context.Context, c leadership.Delete, whole rule.Snapshot) (leadership.Lease, error) {
	seats, err := s.readSeats(ctx, c.Election, whole.Record.Policy.Seats)
	if err != nil {
		return leadership.Lease{}, err
	}
	for _, seat := range seats {
		if err := rule.RefuseLed(seat); err != nil {
			return leadership.Lease{}, err
		}
	}
	c.Force = true
	return s.Do(ctx, c)
}

// explainSeats says why the candidate leads at no seat of the whole, or at which it does: x is what
// the whole itself says. Why a seat cannot be granted is said of the one that can be first.
func (s *Service) explainSeats(ctx context.Context, whole rule.Snapshot, x leadership.Explanation) (leadership.Explanation, error) {
	seats, err := s.readSeats(ctx, whole.Record.Election, whole.Record.Policy.Seats)
	if err != nil {
		return leadership.Explanation{}, err
	}
	x.Reads = whole.Record.Policy.Seats
	var causes []leadership.Cause
	first := time.Duration(math.MaxInt64)
	for _, seat := range seats {
		seat.Halts = whole.Halts
		at := rule.Explain(seat, x.CandidateID)
		if at.Leads {
			at.Election, at.Seat, at.Reads = whole.Record.Election, seat.Lease().Seat, x.Reads
			return at, nil
		}
		var left time.Duration
		for _, cause := range at.Causes {
			left = max(left, cause.Left)
		}
		if left < first {
			first, causes = left, at.Causes
		}
	}
	halted := func(c leadership.Cause) bool { return c.Code == leadership.ReasonHalted } // as its seats are
	x.Causes = append(slices.DeleteFunc(x.Causes, halted), causes...)
	return x, nil
}
