package rule

import (
	"errors"
	"fmt"

	"regent/leadership"
)

// ChildLimits returns l with AsParent replaced by limits derived from the parent's.
func ChildLimits(l leadership.Limits, parent leadership.Limits) leadership.Limits {
	if l.Depth == leadership.AsParent {
		l.Depth = max(parent.Depth-1, 0)
	}
	if l.Children == leadership.AsParent {
		l.Children = parent.Children
	}
	if l.Budget == leadership.AsParent {
		l.Budget = 0
	}
	return l
}

// delegated counts the children that an election has delegated since its limits were configured.
// The last one is remembered, so that a repeated call counts once.
type delegated struct {
	Children int                 `json:"children,omitempty"`
	Budget   int64               `json:"budget,omitempty"`
	Last     leadership.Election `json:"last,omitempty"`
	Limits   leadership.Limits   `json:"limits,omitzero"` // of Last
}

func (d delegated) Validate() error {
	if d.Children < 1 || d.Budget < 0 || d.Limits.Budget < 0 || d.Limits.Depth < 0 || d.Limits.Children < 0 {
		return errors.New("a count of delegated elections is impossible")
	}
	return d.Last.Validate()
}

// DelegateCommand makes an election for a part of the caller's task.
type DelegateCommand struct {
	Renewal
	Child  leadership.Election // its whole name: the parent's, a dot, and one more part
	Limits leadership.Limits
	// Made is a child that is known to exist, so that the record may forget it as the last one.
	Made leadership.Election
	// Exists says that an election of the child's name exists, with the delegation Is.
	Exists bool
	Is     leadership.Delegation
}

// Delegate counts a child against the limits of the election, which the caller must lead.
// Idempotent for a child that exists, and for the one that was counted last.
//
// Errors: LeaseLost; InvalidArgument, if an election of that name exists that was not delegated
// with these limits; DepthExceeded; LimitExceeded.
func Delegate(s Snapshot, c DelegateCommand) (Change, error) {
	r := s.Record
	if !s.Leads(c.Renewal) {
		return Change{}, s.RefuseLost(c.Renewal)
	}
	now, most := r.Standing.Delegated, r.Policy.Delegation.Limits()
	limits := ChildLimits(c.Limits, most)
	left := most.Budget - now.Budget
	bounded := most.Budget > 0 || r.Policy.Delegation.Parent != ""
	switch {
	case c.Exists && c.Is != delegationOf(limits, r.Election):
		return Change{}, refuseChild(c.Child)
	case c.Exists, now.Last == c.Child && now.Limits == limits:
		return Change{}, nil
	case now.Last != "" && now.Last != c.Made:
		return Change{}, &NeedsChild{now.Last, now.Limits}
	case most.Depth == 0:
		return Change{}, s.Refuse(leadership.DepthExceeded, "election %q is as deep as its limits allow: its leader does the work itself", r.Election)
	case limits.Depth >= most.Depth:
		return Change{}, s.Refuse(leadership.DepthExceeded, "below election %q there may be %d levels, so a child may have %d at most, not %d", r.Election, most.Depth, most.Depth-1, limits.Depth)
	case now.Children >= most.Children:
		return Change{}, s.Refuse(leadership.LimitExceeded, "election %q has delegated %d elections, and may delegate no more", r.Election, now.Children)
	case limits.Children > most.Children:
		return Change{}, s.Refuse(leadership.LimitExceeded, "election %q may delegate %d elections, and a child of it no more than that, not %d", r.Election, most.Children, limits.Children)
	case bounded && limits.Budget > left:
		return Change{}, s.Refuse(leadership.LimitExceeded, "election %q has a budget of %d left, and the child asks for %d", r.Election, left, limits.Budget)
	}
	ch := s.change()
	next := delegated{Children: now.Children + 1, Budget: now.Budget + limits.Budget, Last: c.Child, Limits: limits}
	if next.Budget < 0 || next.Budget > leadership.MaxBudget {
		return Change{}, s.Refuse(leadership.LimitExceeded, "election %q has delegated a budget of %d, and no more can be counted", r.Election, now.Budget)
	}
	ch.Record.Standing.Delegated = next
	ch.announce(leadership.EventDelegated, "")
	ch.explain("", leadership.Detail{Budget: &limits.Budget, Child: c.Child, Children: &limits.Children, Depth: &limits.Depth})
	return ch, nil
}

// NeedsChild says that the child that was counted last must be made first.
type NeedsChild struct {
	Child  leadership.Election
	Limits leadership.Limits
}

func (e *NeedsChild) Error() string { return fmt.Sprintf("%q has to be made first", e.Child) }

// delegationOf returns the Delegation of a child of parent with the limits.
func delegationOf(l leadership.Limits, parent leadership.Election) leadership.Delegation {
	return leadership.Delegation{Parent: parent, Depth: l.Depth, Children: l.Children, Budget: l.Budget}
}

// ChildConfig returns the configuration of a child: its parent's durations, and its own limits.
func ChildConfig(c leadership.Config, parent leadership.Election, l leadership.Limits) leadership.Config {
	return leadership.Config{LeaseDuration: c.LeaseDuration, MaxLeaseDuration: c.MaxLeaseDuration, LockDelay: c.LockDelay, Delegation: delegationOf(l, parent)}
}

// refuseChild returns the error for a child that exists with another parent or other limits.
func refuseChild(e leadership.Election) error {
	return leadership.Invalid("child", fmt.Errorf("election %q exists already, with another parent or other limits; choose another name", e))
}

// MakeChild creates a delegated election, if it was never seen. It does nothing if the election
// exists with the same delegation. Only an operator brings back an election that was deleted or
// retired.
//
// Errors: InvalidArgument, if the election exists with another delegation; ElectionDeleted.
func MakeChild(s Snapshot, config leadership.Config) (Change, error) {
	r := s.Record
	switch {
	case r.Deleted:
		return Change{}, s.RefuseDeleted()
	case s.Exists() && r.Policy.Delegation == config.Delegation:
		return Change{}, nil
	case s.Exists():
		return Change{}, refuseChild(r.Election)
	}
	return configure(s, leadership.Configure{Config: config})
}
