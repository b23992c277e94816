package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/internal/form"
	"regent/leadership/rule"
)

// Do carries out a command. Where the caller is verified, that principal is the actor of an order,
// an unlock and a verdict. The lease that an order returns has the overrides.
//
// A change of an election that has seats is told to all of them before it is answered. After an
// error it may be made, and not all may have heard: the same again tells them, or the next acquire
// or tick. It is OutcomeUnknown if one that was to be a seat was configured for itself meanwhile.
//
// Errors: those of Validate and of Apply.
func (s *Service) Do(ctx context.Context, c leadership.Command) (leadership.Lease, error) {
	e := c.Target().Election
	order, ordered := c.(leadership.Order)
	if ordered {
		e = order.Record()
	}
	if err := e.Validate(); err != nil {
		return leadership.Lease{}, leadership.Invalid("election", err)
	}
	c, err := signed(ctx, c)
	if err != nil {
		return leadership.Lease{}, err
	}
	if err := c.Validate(); err != nil {
		return leadership.Lease{}, err
	}
	if ordered && order.Principal != "" && leadership.Actor(ctx) == "" {
		return leadership.Lease{}, leadership.Invalid("principal", errors.New("this server does not verify its callers (serve --auth), so it knows no principals; ban a candidate by its id"))
	}
	var unheard int
	if configure, ok := c.(leadership.Configure); ok && configure.Config.Seats > 0 {
		if unheard, err = s.refuseSeats(ctx, configure); err != nil {
			return leadership.Lease{}, err
		}
	}
	_, unlocks := c.(leadership.Unlock) // the first one is refused, and changes nothing
	snap, err := s.update(ctx, e, rule.Expect{Change: !unlocks}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Apply(snap, c) })
	if needs, ok := errors.AsType[*rule.NeedsSeat](err); ok {
		return s.removeSeats(ctx, c.(leadership.Delete), needs.Whole)
	}
	if snap.Record.Standing.Untold = max(snap.Record.Standing.Untold, unheard); err == nil && snap.Record.Standing.Untold > 0 {
		err = s.tellAfter(ctx, snap)
	}
	if err != nil {
		return leadership.Lease{}, err
	}
	l := snap.Lease()
	if ordered {
		l.Overrides = snap.Orders()
	}
	return l, nil
}

// signed is the command with the principal that gives it, where it has one.
func signed(ctx context.Context, c leadership.Command) (leadership.Command, error) {
	var err error
	switch c := c.(type) {
	case leadership.Order:
		c.Actor, err = actor(ctx, c.Actor)
		return c, err
	case leadership.Unlock:
		c.Actor, err = actor(ctx, c.Actor)
		return c, err
	case leadership.Judge:
		c.Actor, err = actor(ctx, c.Actor)
		return c, err
	}
	return c, nil // that of a pointer to one of these goes unchecked: rule.Apply refuses it
}

// actor is the principal that makes a call: the verified one, or the one named if none is. A name
// that is too long for an order is cut, and ends with what tells it apart.
func actor(ctx context.Context, named string) (string, error) {
	verified := leadership.Actor(ctx)
	if verified != "" && named != "" {
		return "", leadership.Invalid("actor", fmt.Errorf("the actor is the verified caller, %q; leave actor out", verified))
	}
	return cmp.Or(bounded(verified), named), nil
}

// bounded is a principal's name, cut if it is too long.
func bounded(name string) string {
	if len(name) <= leadership.MaxActorBytes {
		return name
	}
	digest := form.Digest(name)
	return strings.ToValidUTF8(name[:leadership.MaxActorBytes-len(digest)-1], "") + "#" + digest
}

// principal is the names of the verified principal, as a record may keep them.
func principal(ctx context.Context) []string {
	names := leadership.Principal(ctx)
	for i, name := range names {
		if short := bounded(name); short != name {
			names = slices.Clone(names)
			names[i] = short
		}
	}
	return names
}
