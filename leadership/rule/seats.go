package rule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// An election that has seats, the whole, is never granted itself. A seat's record has the newest
// revision of the whole that the seat has heard of, and a grant takes the whole at that revision or
// a later one: so its number of seats, its policy and its standing orders count for every grant,
// whichever copy of the whole a caller has read. Whoever changes the whole tells all its seats
// before the change is answered; until then Standing.Untold says that some may not know.

// NeedsSeat is the error of Acquire for an election that has seats, if nothing in it bars the
// candidate: one of its seats is to be acquired, with the whole in AcquireCommand.Whole. If some
// seats may not have heard of its last change, they are to be told first. It is also that of Delete
// without force: RefuseLed is to be asked of each seat, and if all agree, Delete is to be forced.
type NeedsSeat struct {
	Whole Snapshot
	// Refused bars the candidate, once the seats were told; nil if nothing does.
	Refused error
}

func (e *NeedsSeat) Error() string {
	if e.Refused != nil {
		return e.Refused.Error()
	}
	return fmt.Sprintf("a seat of %q is to be acquired", e.Whole.Record.Election)
}

func (e *NeedsSeat) Unwrap() error { return e.Refused }

// NeedsWhole says that a rule has to be run again with that election, of which the one that it was
// run for is a seat.
type NeedsWhole struct{ Whole leadership.Election }

func (e *NeedsWhole) Error() string { return fmt.Sprintf("%q is needed", e.Whole) }

// seated is the election with what the whole says, if it is a seat, or is to be one.
//
// Errors: NeedsWhole; LeaseHeld if it is no seat, as it is used for something else, if it is none
// any more, or if the whole bars the candidate.
func (s Snapshot) seated(c AcquireCommand) (Snapshot, error) {
	r := &s.Record
	if c.Whole == nil && r.Standing.Seat == 0 {
		return s, nil
	}
	of, n, _ := r.Election.SeatOf()
	if c.Whole == nil || c.Whole.Record.Revision < r.Standing.Seat {
		return s, &NeedsWhole{of}
	}
	if s.foreign() {
		err := s.Refuse(leadership.LeaseHeld, "election %q is no seat of %q, as it has a configuration or orders of its own; delete it and configure %q again, or give that fewer seats", r.Election, of, of)
		err.Reason = leadership.ReasonSeats
		return s, err
	}
	whole := *c.Whole
	whole.Now = s.Now
	if !whole.hasSeat(n) {
		return s, s.refuseFor(leadership.Cause{Code: leadership.ReasonSeats}, 0, "election %q has no seat %d any more; acquire %q", of, n, of)
	}
	if barriers := whole.barriers(c.CandidateID, c.Principal); len(barriers) > 0 {
		return s, whole.refuseBarred(c.CandidateID, barriers)
	}
	r.Policy.Config, r.Standing.Seat = whole.seatConfig(), whole.Record.Revision
	return s, nil
}

// acquireUntold is Acquire of an election whose seats may not all have heard of its last change.
func (s Snapshot) acquireUntold(c AcquireCommand) (Change, error) {
	told := s
	told.Record.Standing.Untold = 0
	_, err := Acquire(told, c)
	if _, ok := errors.AsType[*NeedsSeat](err); ok {
		err = nil
	}
	return Change{}, &NeedsSeat{Whole: s, Refused: err}
}

// acquireWhole is Acquire of an election that has seats. If its policy asks for a ballot and a seat
// is free, the change is the candidate's bid in the one ballot for all seats. NeedsSeat means that
// the candidate may ask for a seat.
func (s Snapshot) acquireWhole(c AcquireCommand) (Change, error) {
	if witness(c.Candidacy) {
		return Change{}, s.Refuse(leadership.NotEligible, "election %q has seats, and no ballot in which a witness would count", s.Record.Election)
	}
	if err := cmp.Or(s.refuseIneligible(c), s.refuseOrphan(c)); err != nil {
		return Change{}, err
	}
	if barriers := s.barriers(c.CandidateID, c.Principal); len(barriers) > 0 {
		return Change{}, s.refuseBarred(c.CandidateID, barriers)
	}
	if free := slices.ContainsFunc(c.Seats, vacant); !free || !s.Record.Policy.Ballot.HasBallot() {
		return Change{}, &NeedsSeat{Whole: s}
	}
	switch b := s.ballot(c); {
	case b.bids(s.Now):
		ch := s.change()
		ch.write(b)
		return ch, nil
	case !b.wins(s.Now):
		return Change{}, s.refuseBid(c)
	}
	return Change{}, &NeedsSeat{Whole: s}
}

// vacant reports whether the seat is one of those that a ballot is about.
func vacant(s leadership.Seat) bool { return s.Left == 0 && s.For == "" }

// elect grants a seat, which ch has as vacant, if it is the candidate's turn in the ballot of the
// whole as that was read: also a window after the seat could be granted first. A seat that is
// assigned to the candidate needs no ballot.
func (s *Snapshot) elect(ch Change, c AcquireCommand) (Change, error) {
	if to, _ := s.Record.Standing.Overrides.Assigned(s.Now); to == c.CandidateID && !witness(c.Candidacy) {
		ch.grant(c, s.Now)
		return ch, nil
	}
	of := c.Whole.Record.Election
	if c.Seats == nil {
		return Change{}, s.Refuse(leadership.NotEligible, "election %q is a seat of %q, whose policy says which of all candidates is granted a seat; acquire %q", s.Record.Election, of, of)
	}
	b := c.Whole.ballot(c)
	b.vacant = ch.Record.EndedAt.Add(ch.Record.LockFor)
	if now := c.Whole.Now; !b.wins(now) {
		refused := c.Whole.refuseTurn(c, b.cause(now))
		if refusal, ok := errors.AsType[*leadership.Error](refused); ok {
			refusal.Lease = new(s.Lease()) // the caller may not know that the seat is vacant
		}
		return Change{}, refused
	}
	ch.grant(c, s.Now)
	ch.Events[len(ch.Events)-1].Detail = b.result()
	return ch, nil
}

// Seated notes in the whole what the next draw has to know of a grant of a seat by that command:
// the last leader, and another secret. While better candidates are to be granted by the same draw
// it stays as it is; the last leader then is the last of all that were.
func Seated(whole Snapshot, c AcquireCommand, granted time.Time) (Change, error) {
	ch, b := whole.change(), whole.ballot(c)
	if granted = granted.UTC().Truncate(form.Precision); b.better > 0 || !granted.After(whole.Record.Standing.Drawn) {
		return Change{}, nil
	}
	switch b.policy.Strategy {
	case leadership.StrategyRandom:
		ch.Record.Standing.Secret = secret(c.Secret)
	case leadership.StrategyRoundRobin:
		last := b.own
		for _, bid := range whole.liveBids() {
			if c.sits(bid) && bid.CandidateID != b.draw.Last && Better(b.policy, b.draw, last, bid) {
				last = bid
			}
		}
		ch.Record.Standing.LastLeader = last.CandidateID
	default:
		return Change{}, nil
	}
	ch.Record.Standing.Drawn, ch.Quiet = granted, true
	return ch, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// free is how many seats are free, and when one was last granted, as far as is known.
func (c AcquireCommand) free() (n int, granted time.Time) {
	for _, seat := range c.Seats {
		if granted = later(granted, seat.Since); vacant(seat) {
			n++
		}
	}
	return max(n, 1), granted
}

// sits reports whether the candidate of the bid was granted a seat since.
func (c AcquireCommand) sits(b leadership.Bid) bool {
	return slices.ContainsFunc(c.Seats, func(s leadership.Seat) bool { return s.Leader == b.CandidateID && !s.Since.Before(b.At) })
}

// bring adds the bids of those that stand behind the candidate in its line.
func (b *ballot) bring(all []leadership.Standby, now time.Time) {
	for _, a := range all {
		bid := NewBid(a.Candidacy, a.CandidateID, b.policy, form.Later(now, -a.Waited))
		bid.At, bid.Instance = b.own.At, b.own.Instance
		i := slices.IndexFunc(b.others, func(o leadership.Bid) bool { return o.CandidateID == bid.CandidateID })
		if i >= 0 {
			before := b.others[i]
			before.At, before.Since = bid.At, bid.Since
			if before == bid && b.fresh(b.others[i], now) {
				continue
			}
			b.others = slices.Delete(b.others, i, i+1)
		}
		b.others, b.along = append(b.others, bid), append(b.along, bid)
	}
}

// brings reports whether a bid that comes with the candidate's is of use.
func (b ballot) brings() bool {
	if len(b.along) == 0 {
		return false
	}
	kept := b.kept()
	return slices.ContainsFunc(kept[:min(len(kept), b.enough())], func(k leadership.Bid) bool { return slices.Contains(b.along, k) })
}

// hasSeat reports whether the whole has so many seats.
func (s *Snapshot) hasSeat(n int) bool { return !s.Record.Deleted && n <= s.Record.Policy.Seats }

// seatConfig is the configuration of each seat of the whole.
func (s *Snapshot) seatConfig() leadership.Config {
	c := s.Record.Policy.Config
	c.Seats = 0
	return c.Explicit()
}

// Tell lets a seat hear of the whole as it is now. It gets the policy of the whole. If the whole
// has fewer seats now, or is paused and drained, the term at the seat ends at the end that its
// leader was promised; one of too many seats that is vacant is deleted. A seat that has heard of
// that change, or of a later one, stays as it is.
//
// Error: InvalidArgument, if the election is no seat yet, and is used for something else.
func Tell(s, whole Snapshot) (Change, error) {
	r := s.Record
	of, n, ok := r.Election.SeatOf()
	switch {
	case !ok || of != whole.Record.Election:
		return Change{}, fmt.Errorf("leadership: %q is no seat of %q", r.Election, whole.Record.Election)
	case r.Standing.Seat >= whole.Record.Revision:
		return Change{}, nil
	}
	if err := RefuseSeat(s); err != nil {
		return Change{}, err
	}
	whole.Now = s.Now
	ch, config := s.change(), whole.seatConfig()
	if r.LeaderID != "" && !s.Live() {
		ch.expire(s.Guard)
	}
	if !s.Exists() || whole.hasSeat(n) && (r.Deleted || r.Policy.Config.Explicit() != config) {
		ch = s.reconfigure(config)
	}
	if r.Standing.Seat == 0 { // also what it has from before it was deleted
		standing := &ch.Record.Standing
		standing.Overrides, standing.Breakers, standing.Approval, standing.Series = "", "", approval{}, series{}
	}
	switch {
	case ch.Record.LeaderID == "" && !whole.hasSeat(n) && !ch.Record.Deleted:
		ch.Record.Deleted = true
		ch.announce(leadership.EventDeleted, "")
	case ch.Record.LeaderID != "" && s.Live() && ch.endsAtSeat(whole.endsSeat(n)) && len(ch.Events) == 0:
		ch.announce(leadership.EventConfigured, "")
	}
	ch.Record.Standing.Seat = whole.Record.Revision
	ch.Quiet = len(ch.Events) == 0
	return ch, nil
}

// RefuseSeat returns why an election that is no seat yet cannot become one: an operator uses it for
// something else. nil if it can.
func RefuseSeat(s Snapshot) error {
	if !s.foreign() {
		return nil
	}
	return leadership.Invalid("policy.seats", fmt.Errorf("election %q, which would be a seat, exists already, with a configuration or orders of its own; delete it, or choose another name or fewer seats", s.Record.Election))
}

// foreign reports whether an operator uses the election for something else than a seat.
func (s *Snapshot) foreign() bool {
	r := &s.Record
	return r.Standing.Seat == 0 && !r.Deleted && s.Exists() && (r.Policy.LeaseDuration > 0 || r.Standing.Overrides != "" || r.Standing.Breakers != "")
}

// endsSeat is why the term at the seat ends; "" if the whole lets it go on.
func (s *Snapshot) endsSeat(n int) leadership.EndReason {
	if !s.hasSeat(n) {
		return leadership.EndsSeats
	}
	for _, o := range s.Record.Standing.overrides(s.Now) {
		if o.Mode == leadership.PauseDrain {
			return leadership.EndsDrained
		}
	}
	return ""
}

// leave deletes a seat that there is no more, as far as it has heard, once its last term has ended.
func (c *Change) leave(before Snapshot) {
	if before.Record.Standing.Ends.Whole.Because == leadership.EndsSeats {
		c.Record.Deleted = true
		c.announce(leadership.EventDeleted, "")
	}
}

// endsAtSeat lets the term end at the end that was promised, because the whole says so, or no
// longer, with "". It reports whether that is a change.
func (c *Change) endsAtSeat(because leadership.EndReason) bool {
	e := &c.Record.Standing.Ends
	if e.Whole.Because == because {
		return false
	}
	promised := c.Record.LeaseEnd()
	switch {
	case because == "":
		e.Whole.At = time.Time{}
	case e.Whole.At.IsZero():
		e.Whole.At = form.Later(promised, 0)
	}
	e.Whole.Because = because
	c.limit(promised)
	return true
}

// Told notes in the whole that all its seats have heard of the change with that revision. If there
// was another since, whoever made it tells them.
func Told(whole Snapshot, r leadership.Revision) (Change, error) {
	if whole.Record.Standing.Untold == 0 || whole.Record.Revision != r {
		return Change{}, nil
	}
	ch := whole.change()
	ch.Record.Standing.Untold, ch.Quiet = 0, true
	return ch, nil
}

// untold notes in a change of the whole that its seats have not heard of it yet.
func (c *Change) untold(before Record) {
	if len(c.Events) > 0 {
		r := &c.Record
		r.Standing.Untold = max(r.Standing.Untold, before.Policy.Seats, r.Policy.Seats)
	}
}

// ofSeat refuses what is for the whole, or for elections that are no seats.
func (s *Snapshot) ofSeat(what string) error {
	of, _, ok := s.Record.Election.SeatOf()
	if !ok || s.Record.Standing.Seat == 0 {
		return nil
	}
	return leadership.Invalid("election", fmt.Errorf("election %q is a seat of %q, and %s", s.Record.Election, of, what))
}

// refuseSeats returns why the election cannot be configured so, because of seats; nil if it can.
func (s *Snapshot) refuseSeats(c leadership.Config) error {
	r := s.Record
	switch was := r.Policy.Seats; {
	case r.Standing.Seat > 0:
		return s.ofSeat("is configured with it")
	case was > 0 && c.Seats == 0:
		return leadership.Invalid("policy.seats", errors.New("an election that has seats keeps them, 1 at least, also if it was deleted: leaders at them may not have heard yet"))
	case was == 0 && c.Seats > 0 && s.Live():
		return s.Refuse(leadership.LeaseHeld, "election %q is led by %q; wait for its release, or evict it, before the election gets seats", r.Election, r.LeaderID)
	case c.Seats > 0 && r.Election.Seat(leadership.MaxSeats).Validate() != nil:
		return leadership.Invalid("policy.seats", fmt.Errorf("a name of %d characters is too long for an election with seats, whose names are longer", len(r.Election)))
	}
	return nil
}
