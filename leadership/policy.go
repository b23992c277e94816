package leadership

import (
	"cmp"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Config is the configuration of an election, set by an operator. The zero Config is valid. Its
// durations are bounded by LeaseBounds and the others there.
type Config struct {
	// LeaseDuration is the duration of a lease unless its candidate asks for another; 0 is
	// DefaultLeaseDuration.
	LeaseDuration time.Duration
	// MaxLeaseDuration is the longest lease that a candidate may ask for: at least LeaseDuration,
	// or 0 for this package's MaxLeaseDuration. Lowering the limit does not shorten a held lease or
	// its renewals, because its leader was promised that duration. The next grant obeys the limit.
	MaxLeaseDuration time.Duration
	// LockDelay is how long no lease is granted after one that ended without a release. It gives a
	// leader that was cut off time to notice, at the price of a slower takeover.
	LockDelay time.Duration
	// RetireAfter is how long the election may be vacant before it is deleted; see the rule Retire.
	// 0 is never.
	RetireAfter time.Duration
	// Term limits the term of a leader.
	Term TermPolicy
	// Ballot says which candidate should lead.
	Ballot BallotPolicy
	// Promotion keeps a new leader from serving until it says that it serves: see SayServing.
	Promotion bool
	// LeadersOf, if not empty, is a prefix of names: only candidates may lead that also lead an
	// election with that prefix that an operator has configured. See Via.
	LeadersOf string
	// Delegation limits what the leader may delegate, and names the parent of a delegated election.
	Delegation Delegation
	// Seats, if not 0, is the most leaders that the election has at a time, each at a seat: an
	// election of its own, named as Election.Seat says. An acquire names the whole election, and is
	// granted a seat. Once an election has seats, it keeps at least one.
	Seats int
	// Description tells people what the election is for: one line of at most 256 bytes.
	Description string
}

func (c Config) EffectiveLease() time.Duration {
	return cmp.Or(c.LeaseDuration, DefaultLeaseDuration)
}

// Explicit returns c with the defaults filled in.
func (c Config) Explicit() Config {
	c.LeaseDuration = c.EffectiveLease()
	c.Term = c.Term.explicit()
	c.Ballot = c.Ballot.Explicit()
	return c
}

// Check returns an error unless c is valid, and the name of the wrong field in the API.
func (c Config) Check() (field string, err error) {
	if field, err := validateBounds(
		bounded{"leaseDuration", c.LeaseDuration, LeaseBounds},
		bounded{"maxLeaseDuration", c.MaxLeaseDuration, MaxLeaseBounds},
		bounded{"lockDelay", c.LockDelay, LockBounds},
		bounded{"retireAfter", c.RetireAfter, RetireBounds},
	); err != nil {
		return field, err
	}
	if lease, most := c.EffectiveLease(), c.MaxLeaseDuration; most != 0 && lease > most {
		return "maxLeaseDuration", fmt.Errorf("maxLeaseDuration is at least leaseDuration (%s), not %s; set a shorter leaseDuration too", form.Spoken(lease), form.Spoken(most))
	}
	if field, err := c.Term.validate(c.EffectiveLease()); err != nil {
		return field, err
	}
	if field, err := c.Ballot.validate(); err != nil {
		return field, err
	}
	if field, err := c.validateHierarchy(); err != nil {
		return field, err
	}
	if field, err := c.validateSeats(); err != nil {
		return field, err
	}
	return "description", form.Line("description", c.Description)
}
