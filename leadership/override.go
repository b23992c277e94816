package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"regent/leadership/internal/form"
)

// Limits of overrides.
const (
	MaxOverrides  = 32 // of one election
	MaxActorBytes = 256
)

// HaltsElection holds the halts: each of its standing orders covers all elections that match a
// pattern, including those that do not exist yet. It has a history and a stream like any other
// election, but no candidate can lead it, and it cannot be configured or deleted.
const HaltsElection Election = "regent.halts"

// MovedElection marks a store whose elections were moved to another one: unless it is deleted, no
// server may use the store. Its description says where they are.
const MovedElection Election = "regent.moved"

// FloorElection is the floor of a store that was restored from a backup: elections that the store
// has never seen begin above its token, and are granted when its lock has ended.
const FloorElection Election = "regent.floor"

// refuseReserved refuses to lead, configure or delete the elections that have another purpose.
func refuseReserved(e Election) error {
	if e == HaltsElection || e == MovedElection || e == FloorElection {
		return Invalid("election", fmt.Errorf("election %q is reserved for Regent's own use; choose another name", e))
	}
	return nil
}

// OverrideID names a standing order within its election, as "ban-17".
type OverrideID string

// OverrideKind is the kind of a standing order.
type OverrideKind string

const (
	OverrideAssign   OverrideKind = "assign"   // only CandidateID is granted
	OverridePause    OverrideKind = "pause"    // no candidate is granted
	OverrideBan      OverrideKind = "ban"      // no candidate that matches CandidateID or calls as Principal is granted
	OverrideCooldown OverrideKind = "cooldown" // a ban that the policy made when it ended the candidate's term
	OverrideHalt     OverrideKind = "halt"     // no candidate is granted any of Elections; only in HaltsElection
)

// PauseMode says what a pause does to the present leader.
type PauseMode string

const (
	PauseFreeze PauseMode = "freeze" // the leader goes on
	PauseDrain  PauseMode = "drain"  // the term ends at the end already promised
)

// Override is a standing order, in force until Until by the store's clock.
type Override struct {
	ID          OverrideID   `json:"id"`
	Kind        OverrideKind `json:"kind"`
	CandidateID CandidateID  `json:"candidateId,omitempty"` // of a ban, perhaps a pattern of ids
	Principal   string       `json:"principal,omitempty"`
	Mode        PauseMode    `json:"mode,omitempty"`
	Elections   Election     `json:"elections,omitempty"` // of a halt: a pattern of names
	Actor       string       `json:"actor"`               // the principal that gave it; "policy" for a cooldown
	Reason      string       `json:"reason"`
	Since       time.Time    `json:"since"`
	Until       time.Time    `json:"until"`

	Left time.Duration `json:"-"` // from the read until Until
}

// Validate returns an error unless each part is within its bounds.
func (o Override) Validate() error {
	if err := o.CandidateID.ValidatePattern(); o.CandidateID != "" && err != nil {
		return err
	}
	halt := o.Kind == OverrideHalt
	switch {
	case o.Kind != OverrideAssign && o.Kind != OverridePause && o.Kind != OverrideBan && !halt:
		return fmt.Errorf("%s is no kind of override", form.Shown(string(o.Kind)))
	case halt != o.Elections.IsPattern() || o.Elections.IsPattern() != (o.Elections != "") || halt && o.Elections.ValidatePattern() != nil,
		(o.CandidateID == "" && o.Principal == "") != (o.Kind == OverridePause || halt) || (o.Mode == "") == (o.Kind == OverridePause),
		o.Kind != OverrideBan && (o.Principal != "" || o.CandidateID.IsPattern()), o.Principal != "" && o.CandidateID != "":
		return fmt.Errorf("override %s has not what its kind needs", form.Shown(string(o.ID)))
	case o.ID == "" || o.Until.IsZero() || !o.Until.After(o.Since):
		return errors.New("an override has no id, or no end")
	}
	if err := form.Instants(o.Since, o.Until); err != nil {
		return err
	}
	return cmp.Or(form.Text(o.Principal), form.Text(o.Reason))
}

// Overrides are standing orders as a JSON array; "" if there is none.
type Overrides string

// NewOverrides returns the orders as text.
func NewOverrides(all []Override) Overrides { return Overrides(form.WriteList(all)) }

// List returns the orders, the oldest first.
func (o Overrides) List() []Override { return form.List[Override](string(o)) }

// At returns the orders, oldest first, with Left counted from now.
func (o Overrides) At(now time.Time) []Override {
	all := o.List()
	for i := range all {
		all[i].Left = max(all[i].Until.Sub(now), 0)
	}
	return all
}

// Halting returns the halts that cover the election and are in force at now.
func (o Overrides) Halting(e Election, now time.Time) []Override {
	return slices.DeleteFunc(o.List(), func(o Override) bool {
		return o.Kind != OverrideHalt || !o.Elections.Covers(e) || !now.Before(o.Until)
	})
}

// Assigned returns the only candidate that is granted, and until when; "" if each may be.
func (o Overrides) Assigned(now time.Time) (to CandidateID, until time.Time) {
	if o == "" {
		return "", time.Time{}
	}
	for _, one := range o.List() {
		if one.Kind == OverrideAssign && now.Before(one.Until) {
			return one.CandidateID, one.Until
		}
	}
	return "", time.Time{}
}

// OrderKind names an operator's order.
type OrderKind string

const (
	OrderAssign  OrderKind = "assign"  // only one candidate is granted for a time
	OrderEvict   OrderKind = "evict"   // the present term ends at the end already promised
	OrderPause   OrderKind = "pause"   // no candidate is granted for a time
	OrderResume  OrderKind = "resume"  // the pause is over
	OrderBan     OrderKind = "ban"     // a candidate is not granted for a time
	OrderApprove OrderKind = "approve" // the leader may go on
	OrderLift    OrderKind = "lift"    // one standing order is over
	OrderHalt    OrderKind = "halt"    // no candidate is granted any election of a pattern for a time
	OrderUnhalt  OrderKind = "unhalt"  // the halt of that pattern is over
)

// Halts reports whether the order is for a pattern of elections and is kept in HaltsElection.
func (k OrderKind) Halts() bool { return k == OrderHalt || k == OrderUnhalt }

// Order is an operator's order. Each kind takes Reason, Actor, IfRevision and the fields whose
// comments name it. It never ends a lease before the end that its leader was promised, so a leader
// that obeys its deadline obeys every order.
//
// Idempotent: an order that is already carried out, or that stands with the same actor, reason and
// duration, writes nothing and ignores the condition, as Configure does. The same order with
// another reason or duration replaces the standing one.
//
// Errors: NotFound; ElectionDeleted; RevisionMismatch; InvalidArgument; TokenStale, if the term
// that the order names is over; LimitExceeded.
type Order struct {
	Election    Election // halt and unhalt: a pattern of names, such as "jobs.*", or "*" for all
	Kind        OrderKind
	CandidateID CandidateID   // assign: the candidate; ban, and evict with Ban: a candidate or a pattern of ids
	Principal   string        // ban and evict, in place of CandidateID: as the history names it, or "ISSUER|SUBJECT"
	For         time.Duration // assign, pause, ban, halt: 1 s to 30 days; approve: the same, or 0 for the policy's
	Mode        PauseMode     // pause; "" for PauseFreeze
	Token       Token         // approve; evict: the term to end, or 0 for the present one (do not repeat that blindly)
	Ban         time.Duration // evict: how long to ban CandidateID or Principal or, without these, the leader; 0: no ban
	NewEpoch    bool          // approve: the leader goes on under the next token
	Override    OverrideID    // lift
	ToKey       KeyHash       // assign: as in HandOver, for the term that the order ends; set by an Instance
	Reason      string        // for people: one line of 1 to MaxReasonBytes bytes
	Actor       string        // the principal that gives the order
	IfRevision  Revision      // as in Delete
}

// OrderFields lists the fields, as the API spells them, that a kind of order takes in addition to
// those that all kinds take.
type OrderFields struct{ Needed, Optional []string }

var orderFields = map[OrderKind]OrderFields{
	OrderAssign:  {Needed: []string{"candidateId", "for"}},
	OrderEvict:   {Optional: []string{"fencingToken", "ban", "candidateId", "principal"}},
	OrderPause:   {Needed: []string{"for"}, Optional: []string{"mode"}},
	OrderResume:  {},
	OrderBan:     {Needed: []string{"for"}, Optional: []string{"candidateId", "principal"}},
	OrderApprove: {Needed: []string{"fencingToken"}, Optional: []string{"for", "newEpoch"}},
	OrderLift:    {Needed: []string{"override"}},
	OrderHalt:    {Needed: []string{"for"}},
	OrderUnhalt:  {},
}

// Fields returns the fields of its own that the kind of order takes.
func (k OrderKind) Fields() OrderFields { return orderFields[k] }

// Has reports whether the field is needed or optional.
func (f OrderFields) Has(name string) bool {
	return slices.Contains(f.Needed, name) || slices.Contains(f.Optional, name)
}

// orderField is the value of a field that some kinds of order take.
type orderField struct {
	name     string
	set      bool
	validate func() error // checks a value that is set; nil if every value is valid
}

func (c Order) fields() []orderField {
	candidate := c.CandidateID.ValidatePattern
	if c.Kind == OrderAssign {
		candidate = c.CandidateID.Validate
	}
	return []orderField{
		{"candidateId", c.CandidateID != "", candidate},
		{"principal", c.Principal != "", func() error { return form.Line("principal", c.Principal) }},
		{"for", c.For != 0, func() error { return OrderBounds.Check("for", c.For) }},
		{"mode", c.Mode != "", c.Mode.validate},
		{"fencingToken", c.Token != 0, c.Token.Validate},
		{"ban", c.Ban != 0, func() error { return OrderBounds.Check("ban", c.Ban) }},
		{"newEpoch", c.NewEpoch, nil},
		{"override", c.Override != "", c.Override.validate},
	}
}

func Orders() []OrderKind {
	return []OrderKind{OrderAssign, OrderEvict, OrderPause, OrderResume, OrderBan, OrderApprove, OrderLift, OrderHalt, OrderUnhalt}
}

// In returns the order for election e.
func (c Order) In(e Election) Order {
	c.Election = e
	return c
}

// Name implements Command. Each kind of order is a verb of its own.
func (c Order) Name() string { return string(c.Kind) }

func (c Order) Target() Target { return Target{Election: c.Election, Reason: c.Reason} }

// Record returns the election whose record the order changes.
func (c Order) Record() Election {
	if c.Kind.Halts() {
		return HaltsElection
	}
	return c.Election
}

func (c Order) Validate() error {
	if field, err := c.validate(); err != nil {
		return Invalid(field, err)
	}
	return validateCondition(c.IfRevision)
}

func (c Order) validate() (field string, err error) {
	takes, known := orderFields[c.Kind]
	if !known {
		return "order", fmt.Errorf("there is no order %s", form.Shown(string(c.Kind)))
	}
	if c.Kind.Halts() {
		if err := c.Election.ValidatePattern(); err != nil {
			return "election", err
		}
		if !c.Election.IsPattern() {
			return "election", fmt.Errorf("%s is about all elections of a pattern, such as \"jobs.*\", and %q is one; pause that", c.Kind, c.Election)
		}
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
		return "principal", fmt.Errorf("%s takes a candidateId or a principal, not both; give two orders", c.Kind)
	case c.Kind == OrderEvict && c.Ban == 0 && (c.CandidateID != "" || c.Principal != ""):
		return "ban", errors.New("ban is missing: candidateId and principal say what evict bans, so say for how long; to name the term, give its fencingToken")
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
		return fmt.Errorf("mode is %q or %q, not %s", PauseFreeze, PauseDrain, form.Shown(string(m)))
	}
	return nil
}

// validateWordAs is validateWord for a reason whose field is called name.
func validateWordAs(name, actor, reason string) error {
	field, err := validateWord(actor, reason)
	if field == "reason" {
		field, err = name, errors.New(strings.Replace(err.Error(), "reason", name, 1))
	}
	return fields(field, err)
}

// validateWord checks the actor of an order and its reason.
func validateWord(actor, reason string) (field string, err error) {
	if reason == "" {
		return "reason", errors.New("reason is missing: say why in a line; the election's history keeps it")
	}
	if err := form.Line("reason", reason); err != nil {
		return "reason", err
	}
	if actor == "" {
		return "actor", errors.New("actor is missing: say who gives the order; a server that verifies its callers knows it")
	}
	return "actor", form.Line("actor", actor)
}

// validate accepts any id that a standing order has or may have had.
func (id OverrideID) validate() error {
	kind, rest, _ := strings.Cut(string(id), "-")
	switch OverrideKind(kind) {
	case OverrideCooldown:
		token, candidate, _ := strings.Cut(rest, "-")
		if n, err := strconv.ParseInt(token, 10, 64); err == nil && Token(n).Validate() == nil {
			return CandidateID(candidate).Validate()
		}
	case OverrideAssign, OverridePause, OverrideBan, OverrideHalt:
		if n, err := strconv.ParseUint(rest, 10, 63); err == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s is no id of an override; they are as \"ban-17\" and \"cooldown-16-CANDIDATE\": read the overrides", form.Shown(string(id)))
}
