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

// Do carries out a command. A verified caller is the actor of an order, an unlock or a verdict. The
// lease that an order returns has the overrides.
//
// Do tells all seats of an election of its change before it returns. After an error the change may
// be made without all seats being told: repeat the call to tell them, or leave it to the next
// acquire or tick. It returns OutcomeUnknown if an election that was to become a seat was
// configured for another use meanwhile.
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

// signed returns the command with its Actor set, if it has one.
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
	return c, nil // a pointer to one of these is not checked here: rule.Apply refuses it
}

// actor returns the principal that makes a call: the verified one, or named if the caller is not
// verified. See bounded.
func actor(ctx context.Context, named string) (string, error) {
	verified := leadership.Actor(ctx)
	if verified != "" && named != "" {
		return "", leadership.Invalid("actor", fmt.Errorf("the actor is the verified caller, %q; leave actor out", verified))
	}
	return cmp.Or(bounded(verified), named), nil
}

// bounded returns a principal's name; the end of one that is too long is replaced by its digest.
func bounded(name string) string {
	if len(name) <= leadership.MaxActorBytes {
		return name
	}
	digest := form.Digest(name)
	return strings.ToValidUTF8(name[:leadership.MaxActorBytes-len(digest)-1], "") + "#" + digest
}

// principal returns the names of the verified principal, each short enough for a record.
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
