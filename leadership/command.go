package leadership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Command is a change of one election that a caller asks for, as data: Service.Do carries it out,
// and each door and client carries it there. Its methods are pure. The commands are the structs of
// this package that have them, and not pointers to these.
type Command interface {
	// Name is the verb's name, as in the API: "stepDown".
	Name() string
	// Target says which election the command is about, and what else a gate has to know.
	Target() Target
	// Validate returns what is wrong with the command itself, with the code InvalidArgument.
	Validate() error
	// Apply is the rule. It decides on a command that is valid; a store may run it more than once.
	Apply(s Snapshot) (Change, error)
}

// Target is what a command is about.
type Target struct {
	Election  Election
	Candidate CandidateID // of a command that is given as one
	// Token is the one that the caller acts under. A release has none: its caller has stopped.
	Token  Token
	Reason string // in the caller's words
}

// Target is that of a candidate that does not act as the leader.
func (r LeaseRequest) Target() Target {
	return Target{Election: r.Election, Candidate: r.CandidateID}
}

// acting is the target of a leader.
func (r LeaseRequest) acting() Target {
	return Target{Election: r.Election, Candidate: r.CandidateID, Token: r.Token}
}

// Do carries out a command. Where the caller is verified, that principal is the actor of an order,
// an unlock and a verdict. The lease that an order returns has the overrides.
//
// Errors: those of Validate and of Apply.
func (s *Service) Do(ctx context.Context, c Command) (Lease, error) {
	e := c.Target().Election
	if err := e.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	c, err := signed(ctx, c)
	if err != nil {
		return Lease{}, err
	}
	if err := c.Validate(); err != nil {
		return Lease{}, err
	}
	order, ordered := c.(Order)
	if ordered && order.Principal != "" && Actor(ctx) == "" {
		return Lease{}, invalid("principal", errors.New("this server does not verify its callers (serve --auth), so it knows no principals; ban a candidate by its id"))
	}
	_, unlocks := c.(Unlock) // the first one is refused, and changes nothing
	snap, err := s.update(ctx, e, Expect{Change: !unlocks}, c.Apply)
	if err != nil {
		return Lease{}, err
	}
	l := snap.Lease()
	if ordered {
		l.Overrides = snap.Orders()
	}
	return l, nil
}

// signed is the command with the principal that gives it, where it has one. A type that is not
// listed is refused, a pointer to a command too: its actor would go unchecked.
func signed(ctx context.Context, c Command) (Command, error) {
	var err error
	switch c := c.(type) {
	case Order:
		c.Actor, err = actor(ctx, c.Actor)
		return c, err
	case Unlock:
		c.Actor, err = actor(ctx, c.Actor)
		return c, err
	case Judge:
		c.Actor, err = actor(ctx, c.Actor)
		return c, err
	case Release, StepDown, RequestApproval, HandOver, SayReady, Yield, Configure, Delete, Withdraw:
		return c, nil
	}
	return nil, fmt.Errorf("leadership: a %T is no command", c)
}

// actor is the principal that makes a call: the verified one, or the one named if none is. A name
// that is too long for an order is cut, and ends with what tells it apart.
func actor(ctx context.Context, named string) (string, error) {
	verified := Actor(ctx)
	if verified != "" && named != "" {
		return "", invalid("actor", fmt.Errorf("the actor is the verified caller, %q; leave actor out", verified))
	}
	if len(verified) > MaxActorBytes {
		digest := digestOf(verified)
		verified = strings.ToValidUTF8(verified[:MaxActorBytes-len(digest)-1], "") + "#" + digest
	}
	return cmp.Or(verified, named), nil
}

// fields makes the error of a Validate from the field that is wrong.
func fields(field string, err error) error {
	if err != nil {
		return invalid(field, err)
	}
	return nil
}
