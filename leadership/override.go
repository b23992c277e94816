package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of overrides.
const (
	MaxOverrides     = 32      // of one election
	maxOverrideBytes = 8 << 10 // of all of them, encoded
	MaxActorBytes    = 256
)

// OverrideID names a standing order within its election, as "ban-17".
type OverrideID string

// OverrideKind is what a standing order does.
type OverrideKind string

// The kinds of standing orders.
const (
	OverrideAssign   OverrideKind = "assign"   // only CandidateID is granted
	OverridePause    OverrideKind = "pause"    // no candidate is granted
	OverrideBan      OverrideKind = "ban"      // CandidateID is not granted, or no candidate of Principal
	OverrideCooldown OverrideKind = "cooldown" // so, because the policy has ended its term
)

// PauseMode says what a pause does to the present leader.
type PauseMode string

// The modes of a pause.
const (
	PauseFreeze PauseMode = "freeze" // it goes on
	PauseDrain  PauseMode = "drain"  // its term ends at the end already promised
)

// Override is a standing order: it counts until its end, by the store's clock.
type Override struct {
	ID          OverrideID   `json:"id"`
	Kind        OverrideKind `json:"kind"`
	CandidateID CandidateID  `json:"candidateId,omitempty"`
	Principal   string       `json:"principal,omitempty"`
	Mode        PauseMode    `json:"mode,omitempty"`
	Actor       string       `json:"actor"` // the principal that gave it; "policy" of a cooldown
	Reason      string       `json:"reason"`
	Since       time.Time    `json:"since"`
	Until       time.Time    `json:"until"`

	Left time.Duration `json:"-"` // until its end, when it was read
}

// bars reports whether the order is against a grant to the candidate, which calls as the principal.
func (o Override) bars(c CandidateID, principal []string) bool {
	switch {
	case o.Kind == OverridePause:
		return true
	case o.Kind == OverrideAssign:
		return o.CandidateID != c
	case o.Principal != "":
		return slices.Contains(principal, o.Principal)
	}
	return o.CandidateID == c
}

// repeats reports whether the order is the same as another one, given once more.
func (o Override) repeats(other Override) bool {
	return o.Kind == other.Kind && o.CandidateID == other.CandidateID && o.Principal == other.Principal && o.Mode == other.Mode &&
		o.Actor == other.Actor && o.Reason == other.Reason && o.Until.Sub(o.Since) == other.Until.Sub(other.Since)
}

func (o Override) validate() error {
	if o.CandidateID != "" {
		if err := o.CandidateID.Validate(); err != nil {
			return err
		}
	}
	switch {
	case o.Kind != OverrideAssign && o.Kind != OverridePause && o.Kind != OverrideBan:
		return fmt.Errorf("%s is no kind of override", shown(string(o.Kind)))
	case (o.CandidateID == "" && o.Principal == "") != (o.Kind == OverridePause) || (o.Mode == "") == (o.Kind == OverridePause),
		o.Principal != "" && (o.Kind != OverrideBan || o.CandidateID != ""):
		return fmt.Errorf("override %s has not what its kind needs", shown(string(o.ID)))
	case o.ID == "" || o.Until.IsZero() || !o.Until.After(o.Since):
		return errors.New("an override has no id, or no end")
	}
	if err := validateInstants(o.Since, o.Until); err != nil {
		return err
	}
	return cmp.Or(validateText(o.Principal), validateText(o.Reason))
}

// Overrides are standing orders as a JSON array; "" if there is none.
type Overrides string

// NewOverrides returns the text of standing orders.
func NewOverrides(all []Override) Overrides { return Overrides(writeList(all)) }

// List returns the orders, the oldest first.
func (o Overrides) List() []Override { return readList[Override](string(o)) }

// At returns the orders as they are at the instant.
func (o Overrides) At(now time.Time) []Override {
	all := o.List()
	for i := range all {
		all[i].Left = max(all[i].Until.Sub(now), 0)
	}
	return all
}

// overrides are the orders that count at the instant.
func (s Standing) overrides(now time.Time) []Override {
	return slices.DeleteFunc(s.Overrides.List(), func(o Override) bool { return !now.Before(o.Until) })
}

// Orders are all orders that count at the moment of the snapshot, the cooldowns of tripped
// candidates included.
func (s Snapshot) Orders() Overrides {
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
	return NewOverrides(all)
}

// OrderKind names an operator's order.
type OrderKind string

// The orders.
const (
	OrderAssign  OrderKind = "assign"  // only one candidate is granted for a time
	OrderEvict   OrderKind = "evict"   // the present term ends at the end already promised
	OrderPause   OrderKind = "pause"   // no candidate is granted for a time
	OrderResume  OrderKind = "resume"  // the pause is over
	OrderBan     OrderKind = "ban"     // a candidate is not granted for a time
	OrderApprove OrderKind = "approve" // the leader may go on
	OrderLift    OrderKind = "lift"    // one standing order is over
)

// Order is an operator's order. Each kind takes the fields that are named with it, and Reason,
// Actor and IfRevision. It never ends a lease before the end that its leader was promised: a
// leader that obeys its deadline obeys every order.
//
// Idempotent: an order that is already carried out, or that stands with the same actor, reason and
// duration, writes nothing, and then ignores the condition, as Configure does. The same order with
// another reason or duration takes the place of the one that stands.
//
// Errors: NotFound; ElectionDeleted; RevisionMismatch; InvalidArgument; TokenStale, if the order is
// about a term that is over; LimitExceeded.
type Order struct {
	Election    Election
	Kind        OrderKind
	CandidateID CandidateID   // assign, ban
	Principal   string        // ban, in place of CandidateID: as the history names it, or "ISSUER|SUBJECT"
	For         time.Duration // assign, pause, ban: 1 s to 30 days; approve: so, or 0 for the policy's
	Mode        PauseMode     // pause; "" for PauseFreeze
	Token       Token         // approve; evict: the term to end, or 0 for the present one (do not repeat that blindly)
	Ban         time.Duration // evict: how long its candidate is banned; 0: not
	NewEpoch    bool          // approve: the leader goes on under the next token
	Override    OverrideID    // lift
	ToKey       KeyHash       // assign: as in HandOver, for the term that it ends; set by an Instance
	Reason      string        // for people: one line of 1 to MaxReasonBytes bytes
	Actor       string        // the principal that gives the order
	IfRevision  Revision      // as in Delete
}

// OrderFields are the fields that a kind of order takes beside those that all have, as the API
// spells them.
type OrderFields struct{ Needed, Optional []string }

var orderFields = map[OrderKind]OrderFields{
	OrderAssign:  {Needed: []string{"candidateId", "for"}},
	OrderEvict:   {Optional: []string{"fencingToken", "ban"}},
	OrderPause:   {Needed: []string{"for"}, Optional: []string{"mode"}},
	OrderResume:  {},
	OrderBan:     {Needed: []string{"for"}, Optional: []string{"candidateId", "principal"}},
	OrderApprove: {Needed: []string{"fencingToken"}, Optional: []string{"for", "newEpoch"}},
	OrderLift:    {Needed: []string{"override"}},
}

// Fields returns the fields that the kind of order takes.
func (k OrderKind) Fields() OrderFields { return orderFields[k] }

// Has reports whether the field is one of them.
func (f OrderFields) Has(name string) bool {
	return slices.Contains(f.Needed, name) || slices.Contains(f.Optional, name)
}

// orderField is the value of a field that some kinds of order take.
type orderField struct {
	name     string
	set      bool
	validate func() error // of a value that is set; nil if there is none that is wrong
}

func (c Order) fields() []orderField {
	return []orderField{
		{"candidateId", c.CandidateID != "", c.CandidateID.Validate},
		{"principal", c.Principal != "", func() error { return validateLine("principal", c.Principal) }},
		{"for", c.For != 0, func() error { return OrderBounds.Check("for", c.For) }},
		{"mode", c.Mode != "", c.Mode.validate},
		{"fencingToken", c.Token != 0, c.Token.validate},
		{"ban", c.Ban != 0, func() error { return OrderBounds.Check("ban", c.Ban) }},
		{"newEpoch", c.NewEpoch, nil},
		{"override", c.Override != "", c.Override.validate},
	}
}

// Orders returns all kinds of orders.
func Orders() []OrderKind {
	return []OrderKind{OrderAssign, OrderEvict, OrderPause, OrderResume, OrderBan, OrderApprove, OrderLift}
}

// In is the order about an election.
func (c Order) In(e Election) Order {
	c.Election = e
	return c
}

// Name implements Command. Each kind of order is a verb of its own.
func (c Order) Name() string { return string(c.Kind) }

// Target implements Command.
func (c Order) Target() Target { return Target{Election: c.Election, Reason: c.Reason} }

// Validate implements Command.
func (c Order) Validate() error {
	if field, err := c.validate(); err != nil {
		return invalid(field, err)
	}
	return validateCondition(c.IfRevision)
}

func (c Order) validate() (field string, err error) {
	takes, known := orderFields[c.Kind]
	if !known {
		return "order", fmt.Errorf("there is no order %s", shown(string(c.Kind)))
	}
	all := c.fields()
	for _, f := range all {
		switch {
		case f.set && !takes.Has(f.name):
			return f.name, fmt.Errorf("%s takes no %s; leave it out", c.Kind, f.name)
		case !f.set && slices.Contains(takes.Needed, f.name):
			return f.name, fmt.Errorf("%s is missing: %s needs it", f.name, c.Kind)
		}
	}
	switch {
	case c.Kind == OrderBan && c.CandidateID == "" && c.Principal == "":
		return "candidateId", errors.New("candidateId is missing: ban needs it, or a principal")
	case c.CandidateID != "" && c.Principal != "":
		return "principal", errors.New("ban takes a candidateId or a principal, not both; give two orders")
	}
	for _, f := range all {
		if f.set && f.validate != nil {
			if err := f.validate(); err != nil {
				return f.name, err
			}
		}
	}
	return validateWord(c.Actor, c.Reason)
}

func (m PauseMode) validate() error {
	if m != PauseFreeze && m != PauseDrain {
		return fmt.Errorf("mode is %q or %q, not %s", PauseFreeze, PauseDrain, shown(string(m)))
	}
	return nil
}

// validateWordAs is validateWord for a reason that has another name.
func validateWordAs(name, actor, reason string) error {
	field, err := validateWord(actor, reason)
	if field == "reason" {
		field, err = name, errors.New(strings.Replace(err.Error(), "reason", name, 1))
	}
	return fields(field, err)
}

// validateWord checks a person's name and reason.
func validateWord(actor, reason string) (field string, err error) {
	if reason == "" {
		return "reason", errors.New("reason is missing: say why in a line; the election's history keeps it")
	}
	if err := validateLine("reason", reason); err != nil {
		return "reason", err
	}
	if actor == "" {
		return "actor", errors.New("actor is missing: say who gives the order; a server that verifies its callers knows it")
	}
	return "actor", validateLine("actor", actor)
}

// Apply implements Command.
func (c Order) Apply(s Snapshot) (Change, error) {
	switch {
	case !s.exists():
		return Change{}, s.refuseUnseen()
	case s.Record.Deleted:
		return Change{}, s.refuse(ElectionDeleted, "election %q is deleted, so there is nothing to order; bring it back by configuring it", s.Record.Election)
	}
	ch := s.change()
	if s.Record.LeaderID != "" && !s.Live() { // the order is about what comes next
		ch.expire(s.Guard)
	}
	recorded := len(ch.Events)
	if err := ch.order(s, c); err != nil {
		return Change{}, err
	}
	if len(ch.Events) == recorded {
		return Change{}, nil
	}
	if err := s.require(c.IfRevision); err != nil {
		return Change{}, err
	}
	ch.dropBarred(s.Now)
	for i := recorded; i < len(ch.Events); i++ {
		ch.Events[i].Reason, ch.Events[i].Actor = c.Reason, c.Actor
	}
	if err := ch.Record.Standing.Overrides.limit(s, MaxOverrides, maxOverrideBytes); err != nil {
		return Change{}, err
	}
	return ch, nil
}

// limit refuses more orders than there may be.
func (o Overrides) limit(s Snapshot, most, bytes int) error {
	if len(o) <= bytes && len(o.List()) <= most {
		return nil
	}
	return s.refuse(LimitExceeded, "election %q has %d overrides already, and this one would be too much: there is room for %d, of %d bytes together; lift one first",
		s.Record.Election, len(s.Record.Standing.overrides(s.Now)), most, bytes)
}

// order changes the record, with an event if there is something to change.
func (c *Change) order(s Snapshot, cmd Order) error {
	switch cmd.Kind {
	case OrderAssign:
		c.assign(s, cmd)
	case OrderEvict:
		return c.evict(s, cmd)
	case OrderPause:
		c.pause(s, cmd)
	case OrderResume:
		c.lift(s, func(o Override) bool { return o.Kind == OverridePause }, EventResumed)
	case OrderBan:
		c.stand(s, EventBanned, cmd.override(OverrideBan, cmd.CandidateID, cmd.For, s.Now))
	case OrderApprove:
		return c.approve(s, cmd)
	case OrderLift:
		c.liftNamed(s, cmd.Override)
	}
	return nil
}

// override is the standing order of a command.
func (c Order) override(kind OverrideKind, candidate CandidateID, d time.Duration, now time.Time) Override {
	since := later(now, 0)
	return Override{Kind: kind, CandidateID: candidate, Principal: c.Principal, Mode: c.Mode, Actor: c.Actor, Reason: c.Reason, Since: since, Until: since.Add(d)}
}

// stand adds a standing order in the place of the one of the same kind (of a ban: for the same
// candidate or principal), with an event, unless it stands already. It reports whether it did.
func (c *Change) stand(s Snapshot, t EventType, o Override) bool {
	all := c.Record.Standing.overrides(s.Now)
	if slices.ContainsFunc(all, o.repeats) {
		return false
	}
	all = slices.DeleteFunc(all, func(other Override) bool {
		return other.Kind == o.Kind && (o.Kind != OverrideBan || other.CandidateID == o.CandidateID && other.Principal == o.Principal)
	})
	c.Record.Standing.closeBallot() // bids that stood before the order would keep the others waiting
	c.announce(t, "")
	o.ID = OverrideID(fmt.Sprintf("%s-%d", o.Kind, c.Record.Revision))
	c.Record.Standing.Overrides = NewOverrides(append(all, o))
	c.explain("", o.detail())
	return true
}

// detail is the order for an event.
func (o Override) detail() Detail {
	return Detail{CandidateID: o.CandidateID, Mode: o.Mode, Override: o.ID, Principal: o.Principal, Until: o.Until.UTC()}
}

func (c *Change) assign(s Snapshot, cmd Order) {
	if !c.stand(s, EventAssigned, cmd.override(OverrideAssign, cmd.CandidateID, cmd.For, s.Now)) {
		return
	}
	if leader := c.Record.LeaderID; leader != "" && leader != cmd.CandidateID {
		c.endsOrdered(EndsHandOver)
		if !c.Record.yielded() {
			c.Record.Standing.Succession.bind(cmd.CandidateID, cmd.ToKey)
		}
	} else {
		c.endsNoLonger(EndsHandOver, s.Now)
	}
}

func (c *Change) pause(s Snapshot, cmd Order) {
	if cmd.Mode == "" {
		cmd.Mode = PauseFreeze
	}
	if !c.stand(s, EventPaused, cmd.override(OverridePause, "", cmd.For, s.Now)) {
		return
	}
	if cmd.Mode == PauseDrain && c.Record.LeaderID != "" {
		c.endsOrdered(EndsDrained)
	} else {
		c.endsNoLonger(EndsDrained, s.Now)
	}
}

// evict ends the present term, and may ban its candidate.
func (c *Change) evict(s Snapshot, cmd Order) error {
	r := &c.Record
	evicted := r.Standing.Ends.Because == EndsEvicted
	switch {
	case cmd.Token > r.Token:
		return s.refuse(TokenStale, "fencing token %d of election %q was never granted; the newest is %d", cmd.Token, r.Election, r.Token)
	case r.goesOnFrom(cmd.Token) && !evicted:
		return s.refuse(TokenStale, "the leader with fencing token %d of election %q goes on in a new epoch; evict it by its fencing token %d", cmd.Token, r.Election, r.Token)
	case r.LeaderID == "" && cmd.Token == 0:
		return s.refuse(TokenStale, "election %q has no leader, so there is no term to end; ban a candidate by its id", r.Election)
	case r.LeaderID == "" || cmd.Token != 0 && cmd.Token < r.Token && !r.goesOnFrom(cmd.Token):
		return c.evictedBefore(s, cmd)
	}
	banned := cmd.Ban > 0 && c.stand(s, EventEvicted, cmd.override(OverrideBan, r.LeaderID, cmd.Ban, s.Now))
	if evicted {
		return nil
	}
	c.endsOrdered(EndsEvicted)
	if !banned {
		c.announce(EventEvicted, "")
		c.explain("", Detail{EndsBy: r.LeaseEnd().UTC()})
	}
	return nil
}

// evictedBefore answers an order to end a term that is over: that is what it asks for, but for a
// ban that does not stand.
func (c *Change) evictedBefore(s Snapshot, cmd Order) error {
	stands := func(o Override) bool {
		return o.Kind == OverrideBan && o.Actor == cmd.Actor && o.Reason == cmd.Reason && o.Until.Sub(o.Since) == cmd.Ban
	}
	if cmd.Ban == 0 || slices.ContainsFunc(c.Record.Standing.overrides(s.Now), stands) {
		return nil
	}
	return s.refuse(TokenStale, "the term that is to end is over, and no candidate was banned; ban one by its id")
}

// lift ends the standing orders that match.
func (c *Change) lift(s Snapshot, match func(Override) bool, t EventType) {
	r := &c.Record
	all := r.Standing.overrides(s.Now)
	i := slices.IndexFunc(all, match)
	if i < 0 {
		return
	}
	o := all[i]
	r.Standing.Overrides = NewOverrides(slices.Delete(all, i, i+1))
	switch o.Kind {
	case OverridePause:
		c.endsNoLonger(EndsDrained, s.Now)
	case OverrideAssign:
		c.endsNoLonger(EndsHandOver, s.Now)
	}
	c.announce(t, "")
	c.explain("", o.detail())
}

// liftNamed ends the standing order, or the cooldown, of that name. One that is over already needs
// no lifting.
func (c *Change) liftNamed(s Snapshot, id OverrideID) {
	standing := &c.Record.Standing
	for _, b := range standing.Breakers.list() {
		if o := b.override(); o.ID == id && s.Now.Before(b.Until) {
			standing.Breakers = standing.Breakers.without(b.CandidateID)
			c.announce(EventLifted, "")
			c.explain("", o.detail())
			return
		}
	}
	c.lift(s, func(o Override) bool { return o.ID == id }, EventLifted)
}

// validate accepts what may be, or have been, the id of a standing order.
func (id OverrideID) validate() error {
	kind, rest, _ := strings.Cut(string(id), "-")
	switch OverrideKind(kind) {
	case OverrideCooldown:
		token, candidate, _ := strings.Cut(rest, "-")
		if n, err := strconv.ParseInt(token, 10, 64); err == nil && Token(n).validate() == nil {
			return CandidateID(candidate).Validate()
		}
	case OverrideAssign, OverridePause, OverrideBan:
		if n, err := strconv.ParseUint(rest, 10, 63); err == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s is no id of an override; they are as \"ban-17\" and \"cooldown-16-CANDIDATE\": read the overrides", shown(string(id)))
}
