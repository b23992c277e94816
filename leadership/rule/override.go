package rule

import (
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// maxOverrideBytes limits all overrides of an election together, encoded.
const maxOverrideBytes = 8 << 10

// bars reports whether the order forbids a grant to candidate c, which calls as the principal.
func bars(o leadership.Override, c leadership.CandidateID, principal []string) bool {
	switch {
	case o.Kind == leadership.OverridePause:
		return true
	case o.Kind == leadership.OverrideAssign:
		return o.CandidateID != c
	case o.Principal != "" && slices.Contains(principal, o.Principal):
		return true
	}
	return o.CandidateID.Covers(c)
}

// repeats reports whether o is other, given once more.
func repeats(o leadership.Override, other leadership.Override) bool {
	return o.Kind == other.Kind && o.Elections == other.Elections && o.CandidateID == other.CandidateID && o.Principal == other.Principal && o.Mode == other.Mode &&
		o.Actor == other.Actor && o.Reason == other.Reason && o.Until.Sub(o.Since) == other.Until.Sub(other.Since)
}

// overrides returns the standing orders that are in force at now.
func (s Standing) overrides(now time.Time) []leadership.Override {
	return slices.DeleteFunc(s.Overrides.List(), func(o leadership.Override) bool { return !now.Before(o.Until) })
}

// Orders returns all orders that are in force at the moment of the snapshot, including the
// cooldowns of tripped candidates.
func (s *Snapshot) Orders() leadership.Overrides {
	standing := s.Record.Standing
	if standing.Overrides == "" && standing.Breakers == "" { // most elections, at each read
		return ""
	}
	all := standing.overrides(s.Now)
	for _, b := range standing.Breakers.list() {
		if s.Now.Before(b.Until) {
			all = append(all, b.override())
		}
	}
	return leadership.NewOverrides(all)
}

func order(s Snapshot, c leadership.Order) (Change, error) {
	switch {
	case !s.Exists() && c.Kind == leadership.OrderUnhalt:
		return Change{}, s.Refuse(leadership.NotFound, "no elections were ever halted")
	case !s.Exists() && c.Kind != leadership.OrderHalt:
		return Change{}, s.RefuseUnseen()
	case s.Record.Deleted:
		return Change{}, s.Refuse(leadership.ElectionDeleted, "election %q is deleted, so there is nothing to order; bring it back by configuring it", s.Record.Election)
	}
	if err := s.refuseOrder(c); err != nil {
		return Change{}, err
	}
	ch := s.change()
	if s.Record.LeaderID != "" && !s.Live() { // the order applies to the next term
		ch.expire(s.Guard)
	}
	recorded := len(ch.Events)
	if err := ch.order(s, c); err != nil {
		return Change{}, err
	}
	if len(ch.Events) == recorded {
		return Change{}, nil
	}
	if err := s.require(c.IfRevision); err != nil && s.Exists() {
		return Change{}, err
	}
	if !s.Exists() { // the first halt
		ch.Record.Standing.Created = s.Now.Unix()
		ch.countVacancy(s.Now)
	}
	ch.dropBarred(s.Now)
	for i := recorded; i < len(ch.Events); i++ {
		ch.Events[i].Reason, ch.Events[i].Actor = c.Reason, c.Actor
	}
	most, bytes := leadership.MaxOverrides, maxOverrideBytes
	if c.Kind == leadership.OrderHalt && c.Election != "*" { // keep room for a halt of all elections
		most, bytes = most-1, bytes*3/4
	}
	if err := limitOverrides(ch.Record.Standing.Overrides, s, most, bytes); err != nil {
		return Change{}, err
	}
	return ch, nil
}

// refuseOrder refuses an order that a seat does not take, and says what to order instead.
func (s Snapshot) refuseOrder(c leadership.Order) error {
	if c.Kind == leadership.OrderAssign || c.Kind == leadership.OrderLift || c.Kind == leadership.OrderEvict && c.Ban == 0 {
		return nil
	}
	of, _, _ := s.Record.Election.SeatOf()
	instead := c.Kind
	if instead == leadership.OrderEvict {
		instead = leadership.OrderBan
	}
	return s.ofSeat(fmt.Sprintf("takes no order but assign, lift, and evict without a ban; %s %q instead, for all its seats", instead, of))
}

// limitOverrides returns LimitExceeded if there are more than most orders, or they have more bytes.
func limitOverrides(o leadership.Overrides, s Snapshot, most, bytes int) error {
	if len(o) <= bytes && len(o.List()) <= most {
		return nil
	}
	return s.Refuse(leadership.LimitExceeded, "election %q has %d overrides already, and this one would be too much: there is room for %d, of %d bytes together; lift one first",
		s.Record.Election, len(s.Record.Standing.overrides(s.Now)), most, bytes)
}

// order carries out the order, with an event if it changes the record.
func (c *Change) order(s Snapshot, cmd leadership.Order) error {
	switch cmd.Kind {
	case leadership.OrderAssign:
		if c.Record.Policy.Seats > 0 {
			return leadership.Invalid("election", fmt.Errorf("election %q has seats, each of which is assigned by itself; assign one, such as %q", c.Record.Election, c.Record.Election.Seat(1)))
		}
		c.assign(s, cmd)
	case leadership.OrderEvict:
		return c.evict(s, cmd)
	case leadership.OrderPause:
		c.pause(s, cmd)
	case leadership.OrderResume:
		c.lift(s, func(o leadership.Override) bool { return o.Kind == leadership.OverridePause }, leadership.EventResumed)
	case leadership.OrderBan:
		c.stand(s, leadership.EventBanned, overrideOf(cmd, leadership.OverrideBan, cmd.CandidateID, cmd.For, s.Now))
	case leadership.OrderApprove:
		return c.approve(s, cmd)
	case leadership.OrderLift:
		c.liftNamed(s, cmd.Override)
	case leadership.OrderHalt:
		o := overrideOf(cmd, leadership.OverrideHalt, "", cmd.For, s.Now)
		o.Elections = cmd.Election
		c.stand(s, leadership.EventHalted, o)
	case leadership.OrderUnhalt:
		c.lift(s, func(o leadership.Override) bool { return o.Elections == cmd.Election }, leadership.EventLifted)
	}
	return nil
}

// overrideOf returns the standing order that a command gives.
func overrideOf(c leadership.Order, kind leadership.OverrideKind, candidate leadership.CandidateID, d time.Duration, now time.Time) leadership.Override {
	since := form.Later(now, 0)
	return leadership.Override{Kind: kind, CandidateID: candidate, Principal: c.Principal, Mode: c.Mode, Actor: c.Actor, Reason: c.Reason, Since: since, Until: since.Add(d)}
}

// stand adds a standing order, with an event, unless the same order stands already. It replaces an
// order of the same kind (a ban: of the same candidate, pattern or principal; a halt: of the same
// pattern). It reports whether it added the order.
func (c *Change) stand(s Snapshot, t leadership.EventType, o leadership.Override) bool {
	all := c.Record.Standing.overrides(s.Now)
	if slices.ContainsFunc(all, func(other leadership.Override) bool { return repeats(o, other) }) {
		return false
	}
	all = slices.DeleteFunc(all, func(other leadership.Override) bool {
		return other.Kind == o.Kind && other.Elections == o.Elections && (o.Kind != leadership.OverrideBan || other.CandidateID == o.CandidateID && other.Principal == o.Principal)
	})
	c.Record.Standing.closeBallot() // bids of barred candidates would keep the others waiting
	c.announce(t, "")
	o.ID = leadership.OverrideID(fmt.Sprintf("%s-%d", o.Kind, c.Record.Revision))
	c.Record.Standing.Overrides = leadership.NewOverrides(append(all, o))
	c.explain("", detailOf(o))
	return true
}

// detailOf returns the event detail that describes the order.
func detailOf(o leadership.Override) leadership.Detail {
	return leadership.Detail{CandidateID: o.CandidateID, Elections: o.Elections, Mode: o.Mode, Override: o.ID, Principal: o.Principal, Until: o.Until.UTC()}
}

func (c *Change) assign(s Snapshot, cmd leadership.Order) {
	if !c.stand(s, leadership.EventAssigned, overrideOf(cmd, leadership.OverrideAssign, cmd.CandidateID, cmd.For, s.Now)) {
		return
	}
	if leader := c.Record.LeaderID; leader != "" && leader != cmd.CandidateID {
		c.endsOrdered(leadership.EndsHandOver)
		if !c.Record.Yielded() {
			c.Record.Standing.Succession.bind(cmd.CandidateID, cmd.ToKey)
		}
	} else {
		c.endsNoLonger(leadership.EndsHandOver, s.Now)
	}
}

func (c *Change) pause(s Snapshot, cmd leadership.Order) {
	if cmd.Mode == "" {
		cmd.Mode = leadership.PauseFreeze
	}
	if !c.stand(s, leadership.EventPaused, overrideOf(cmd, leadership.OverridePause, "", cmd.For, s.Now)) {
		return
	}
	if cmd.Mode == leadership.PauseDrain && c.Record.LeaderID != "" {
		c.endsOrdered(leadership.EndsDrained)
	} else {
		c.endsNoLonger(leadership.EndsDrained, s.Now)
	}
}

// evict ends the present term, and may ban its candidate.
func (c *Change) evict(s Snapshot, cmd leadership.Order) error {
	r := &c.Record
	evicted := r.Standing.Ends.Because == leadership.EndsEvicted
	switch {
	case r.Policy.Seats > 0:
		return leadership.Invalid("election", fmt.Errorf("election %q has seats, each with a leader of its own; evict that of one, such as %q", r.Election, r.Election.Seat(1)))
	case cmd.Token > r.Token:
		return s.Refuse(leadership.TokenStale, "fencing token %d of election %q was never granted; the newest is %d", cmd.Token, r.Election, r.Token)
	case r.GoesOnFrom(cmd.Token) && !evicted:
		return s.Refuse(leadership.TokenStale, "the leader with fencing token %d of election %q goes on in a new epoch; evict it by its fencing token %d", cmd.Token, r.Election, r.Token)
	case r.LeaderID == "" && cmd.Token == 0:
		return s.Refuse(leadership.TokenStale, "election %q has no leader, so there is no term to end; ban a candidate by its id", r.Election)
	case r.LeaderID == "" || cmd.Token != 0 && cmd.Token < r.Token && !r.GoesOnFrom(cmd.Token):
		return c.evictedBefore(s, cmd)
	case cmd.CandidateID != "" && !cmd.CandidateID.Covers(r.LeaderID):
		return leadership.Invalid("candidateId", fmt.Errorf("%q leads election %q, and %q does not cover it; ban other candidates with an order of their own", r.LeaderID, r.Election, cmd.CandidateID))
	}
	if cmd.CandidateID == "" && cmd.Principal == "" {
		cmd.CandidateID = r.LeaderID
	}
	banned := cmd.Ban > 0 && c.stand(s, leadership.EventEvicted, overrideOf(cmd, leadership.OverrideBan, cmd.CandidateID, cmd.Ban, s.Now))
	if evicted {
		return nil
	}
	c.endsOrdered(leadership.EndsEvicted)
	if !banned {
		c.announce(leadership.EventEvicted, "")
		c.explain("", leadership.Detail{EndsBy: r.LeaseEnd().UTC()})
	}
	return nil
}

// evictedBefore answers an order to end a term that is already over. It is carried out already,
// unless it asks for a ban that does not stand: then it is refused with TokenStale.
func (c *Change) evictedBefore(s Snapshot, cmd leadership.Order) error {
	stands := func(o leadership.Override) bool {
		return o.Kind == leadership.OverrideBan && o.Actor == cmd.Actor && o.Reason == cmd.Reason && o.Until.Sub(o.Since) == cmd.Ban
	}
	if cmd.Ban == 0 || slices.ContainsFunc(c.Record.Standing.overrides(s.Now), stands) {
		return nil
	}
	return s.Refuse(leadership.TokenStale, "the term that is to end is over, and no candidate was banned; ban one by its id")
}

// lift ends the standing orders that match, with the event of the first of them.
func (c *Change) lift(s Snapshot, match func(leadership.Override) bool, t leadership.EventType) {
	r := &c.Record
	all := r.Standing.overrides(s.Now)
	i := slices.IndexFunc(all, match)
	if i < 0 {
		return
	}
	o := all[i]
	r.Standing.Overrides = leadership.NewOverrides(slices.Delete(all, i, i+1))
	switch o.Kind {
	case leadership.OverridePause:
		c.endsNoLonger(leadership.EndsDrained, s.Now)
	case leadership.OverrideAssign:
		c.endsNoLonger(leadership.EndsHandOver, s.Now)
	}
	c.announce(t, "")
	c.explain("", detailOf(o))
}

// liftNamed ends the standing order, or the cooldown, with that id. It does nothing if there is
// none or if it is over already.
func (c *Change) liftNamed(s Snapshot, id leadership.OverrideID) {
	standing := &c.Record.Standing
	for _, b := range standing.Breakers.list() {
		if o := b.override(); o.ID == id && s.Now.Before(b.Until) {
			standing.Breakers = standing.Breakers.without(b.CandidateID, b.Principal)
			c.announce(leadership.EventLifted, "")
			c.explain("", detailOf(o))
			return
		}
	}
	c.lift(s, func(o leadership.Override) bool { return o.ID == id }, leadership.EventLifted)
}
