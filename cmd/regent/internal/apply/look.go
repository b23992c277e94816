package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// Options allow steps that are otherwise refused.
type Options struct {
	Restore   bool     // restore deleted elections
	Prune     []string // delete the elections under these prefixes that are in no file
	PruneHeld bool     // also delete elections that have a leader
}

// few is the most elections that are read one by one. More are listed, in pages of
// leadership.MaxPageSize.
const few = 10

// Look reads the elections and returns the steps that make them as declared. declared must be in
// the order of names, as Read returns it. Steps that delete come last. Elections that are as
// declared also have a step. Look writes nothing.
func Look(ctx context.Context, server Server, declared []Declared, o Options) ([]Step, error) {
	var others []leadership.Election // declared elections under no prefix to prune
	for _, d := range declared {
		if !under(o.Prune, d.Election) {
			others = append(others, d.Election)
		}
	}
	prefixes := slices.Clone(o.Prune)
	if len(others) > few {
		prefixes = append(prefixes, common(others))
	}
	listed := map[leadership.Election]leadership.Lease{}
	for _, prefix := range prefixes {
		all, err := List(ctx, server, prefix)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			listed[l.Election] = l
		}
	}
	steps := make([]Step, 0, len(declared))
	for _, d := range declared {
		now, found := listed[d.Election]
		delete(listed, d.Election)
		var deleted bool
		var err error
		if !found { // it may be deleted
			if now, deleted, err = Find(ctx, server, d.Election); err != nil {
				return nil, err
			}
		}
		steps = append(steps, step(d, now, deleted, o))
	}
	for _, e := range slices.Sorted(maps.Keys(listed)) {
		if listed[e].Seat > 0 { // a seat is deleted with its election
			continue
		}
		if under(o.Prune, e) && !strings.HasPrefix(string(e), wire.OwnPrefix) {
			steps = append(steps, prune(listed[e], o))
		}
	}
	return steps, nil
}

// common returns the longest text with which all names begin. The names are sorted.
func common(names []leadership.Election) string {
	first, last := string(names[0]), string(names[len(names)-1])
	n := 0
	for n < len(first) && n < len(last) && first[n] == last[n] {
		n++
	}
	return first[:n]
}

// List returns the elections whose names begin with the prefix, in their order.
func List(ctx context.Context, server Server, prefix string) (all []leadership.Lease, err error) {
	r := leadership.ListRequest{Prefix: prefix, Limit: leadership.MaxPageSize}
	for {
		page, err := server.List(ctx, r)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Leases...)
		if page.Next == "" {
			return all, nil
		}
		r.After = page.Next
	}
}

// step compares a declared election with its state as read.
func step(d Declared, now leadership.Lease, deleted bool, o Options) Step {
	s := Step{Election: d.Election, Place: d.Place, want: d.Config, revision: now.Revision}
	switch {
	case deleted:
		s.Action, s.Diff = Restore, diff(nil, &d.Config)
		if !o.Restore {
			s.Refused = &leadership.Error{
				Code:   leadership.ElectionDeleted,
				Detail: fmt.Sprintf("%s: election %q was deleted, by an operator or because it was vacant for its retireAfter; give --restore to bring it back, or take it out of the file", d.Place, d.Election),
			}
		}
	case now.Revision == 0:
		s.Action, s.Diff, s.revision = Create, diff(nil, &d.Config), leadership.NeverSeen
	default:
		s.Action, s.Diff, s.was = None, diff(&now.Config, &d.Config), now.Config
		if len(s.Diff) > 0 {
			s.Action = Change
		}
	}
	if parent := now.Config.Delegation.Parent; s.Refused == nil && parent != "" && d.Config.Delegation.Parent != parent {
		s.Refused = &leadership.Error{
			Code:   leadership.InvalidArgument,
			Detail: fmt.Sprintf("%s: election %q was delegated by the leader of %q, which sets its limits, and would no longer be a part of that; take it out of the file, or declare the policy.delegation that it has", d.Place, d.Election, parent),
		}
	}
	return s
}

func prune(now leadership.Lease, o Options) Step {
	s := Step{Election: now.Election, Action: Delete, Diff: diff(&now.Config, nil), was: now.Config, revision: now.Revision, force: o.PruneHeld}
	if now.State == leadership.Held && !o.PruneHeld {
		s.Refused = refuseHeld(now.Election, fmt.Sprintf("%q", now.LeaderID))
	}
	return s
}

func refuseHeld(e leadership.Election, leader string) error {
	return &leadership.Error{
		Code:   leadership.LeaseHeld,
		Detail: fmt.Sprintf("election %q is in no file, and %s leads it; give --prune-held to end its lease and delete it, or wait until it is vacant", e, leader),
	}
}
