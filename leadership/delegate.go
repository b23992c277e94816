package leadership

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of delegation.
const (
	DefaultDepth    = 8 // levels below an election that was not delegated itself
	MaxDepth        = 32
	DefaultChildren = 64 // of one election
	MaxChildren     = 10_000
	MaxBudget       = int64(MaxToken)
	// AsParent, as a limit of a child, stands for what its parent has: one level less, so many
	// children, and none of its budget.
	AsParent = -1
)

// Delegation is the part of a Config that limits what a leader may delegate. In an election without
// a parent, 0 stands for the default, and for a budget without limit; in one with a parent, for
// none.
type Delegation struct {
	Parent   Election `json:"parent,omitempty"`   // of which the election is a part; its name begins with the parent's and a dot
	Depth    int      `json:"depth,omitempty"`    // levels of elections below this one: up to MaxDepth
	Children int      `json:"children,omitempty"` // elections that are made right below this one, in all: up to MaxChildren
	Budget   int64    `json:"budget,omitempty"`   // units of the caller's choice that its children get together: up to MaxBudget
}

func (d Delegation) validate() error {
	if d.Parent != "" {
		if err := d.Parent.Validate(); err != nil {
			return fmt.Errorf("policy.delegation.parent: %w", err)
		}
	}
	switch {
	case d.Depth < 0 || d.Depth > MaxDepth:
		return fmt.Errorf("policy.delegation.depth is from 0 to %d, not %d", MaxDepth, d.Depth)
	case d.Children < 0 || d.Children > MaxChildren:
		return fmt.Errorf("policy.delegation.children is from 0 to %d, not %d", MaxChildren, d.Children)
	case d.Budget < 0 || d.Budget > MaxBudget:
		return fmt.Errorf("policy.delegation.budget is from 0 to %d, not %d", MaxBudget, d.Budget)
	}
	return nil
}

// Limits are those that count: the defaults are filled in. A budget of 0 is no limit if the
// election has no parent.
func (d Delegation) Limits() Limits {
	if d.Parent == "" {
		if d.Depth == 0 {
			d.Depth = DefaultDepth
		}
		if d.Children == 0 {
			d.Children = DefaultChildren
		}
	}
	return Limits{Depth: d.Depth, Children: d.Children, Budget: d.Budget}
}

// Limits are what the leader of a delegated election may delegate in turn.
type Limits struct {
	Depth    int   `json:"depth,omitempty"`
	Children int   `json:"children,omitempty"`
	Budget   int64 `json:"budget,omitempty"`
}

// of fills in what a child gets from its parent.
func (l Limits) of(parent Limits) Limits {
	if l.Depth == AsParent {
		l.Depth = max(parent.Depth-1, 0)
	}
	if l.Children == AsParent {
		l.Children = parent.Children
	}
	if l.Budget == AsParent {
		l.Budget = 0
	}
	return l
}

func (l Limits) validate() (field string, err error) {
	switch {
	case l.Depth < AsParent || l.Depth > MaxDepth:
		return "limits.depth", fmt.Errorf("limits.depth is from 0 to %d, not %d", MaxDepth, l.Depth)
	case l.Children < AsParent || l.Children > MaxChildren:
		return "limits.children", fmt.Errorf("limits.children is from 0 to %d, not %d", MaxChildren, l.Children)
	case l.Budget < AsParent || l.Budget > MaxBudget:
		return "limits.budget", fmt.Errorf("limits.budget is from 0 to %d, not %d", MaxBudget, l.Budget)
	}
	return "", nil
}

// delegated counts what an election has delegated since its limits were configured. The child that
// was counted last is remembered until the next one, so that a call that is repeated, because the
// first had no answer, counts once.
type delegated struct {
	Children int      `json:"children,omitempty"`
	Budget   int64    `json:"budget,omitempty"`
	Last     Election `json:"last,omitempty"`
	Limits   Limits   `json:"limits,omitzero"` // of Last
}

func (d delegated) validate() error {
	if d.Children < 1 || d.Budget < 0 || d.Limits.Budget < 0 || d.Limits.Depth < 0 || d.Limits.Children < 0 {
		return errors.New("a count of delegated elections is impossible")
	}
	return d.Last.Validate()
}

// DelegateCommand makes an election for a part of the caller's task.
type DelegateCommand struct {
	Renewal
	Child  Election // its whole name: the parent's, a dot, and one more part
	Limits Limits
	// Made is a child that is known to exist, so that it need not be remembered any more.
	Made Election
	// Exists says that there is an election of the child's name already, delegated as Is.
	Exists bool
	Is     Delegation
}

// validateHierarchy checks the parts of a Config that are about other elections.
func (c Config) validateHierarchy() (field string, err error) {
	if c.LeadersOf != "" {
		if err := validatePrefix(c.LeadersOf); err != nil {
			return "policy.leadersOf", fmt.Errorf("policy.leadersOf: %w", err)
		}
		if c.Delegation.Parent != "" {
			return "policy.leadersOf", errors.New("policy.leadersOf does not go with policy.delegation.parent: a lease stands on one other lease")
		}
	}
	return "policy.delegation", c.Delegation.validate()
}

// childOf reports whether the name is that of a direct child.
func (e Election) childOf(parent Election) bool {
	rest, below := strings.CutPrefix(string(e), string(parent)+".")
	return below && rest != "" && !strings.Contains(rest, ".")
}

// Delegate counts a child of the election, whose leader the caller is, against the election's
// limits. Idempotent for a child that exists, and for the one that was counted last.
//
// Errors: LeaseLost; InvalidArgument, if there is an election of that name which was not delegated
// so; DepthExceeded; LimitExceeded.
func Delegate(s Snapshot, c DelegateCommand) (Change, error) {
	r := s.Record
	if !s.leads(c.Renewal) {
		return Change{}, s.refuseLost(c.Renewal)
	}
	now, most := r.Standing.Delegated, r.Policy.Delegation.Limits()
	limits := c.Limits.of(most)
	left := most.Budget - now.Budget
	bounded := most.Budget > 0 || r.Policy.Delegation.Parent != ""
	switch {
	case c.Exists && c.Is != limits.below(r.Election):
		return Change{}, refuseChild(c.Child)
	case c.Exists, now.Last == c.Child && now.Limits == limits:
		return Change{}, nil
	case now.Last != "" && now.Last != c.Made && now.Last != c.Child:
		return Change{}, &needsChild{now.Last, now.Limits}
	case most.Depth == 0:
		return Change{}, s.refuse(DepthExceeded, "election %q is as deep as its limits allow: its leader does the work itself", r.Election)
	case limits.Depth >= most.Depth:
		return Change{}, s.refuse(DepthExceeded, "below election %q there may be %d levels, so a child may have %d at most, not %d", r.Election, most.Depth, most.Depth-1, limits.Depth)
	case now.Children >= most.Children:
		return Change{}, s.refuse(LimitExceeded, "election %q has delegated %d elections, and may delegate no more", r.Election, now.Children)
	case limits.Children > most.Children:
		return Change{}, s.refuse(LimitExceeded, "election %q may delegate %d elections, and a child of it no more than that, not %d", r.Election, most.Children, limits.Children)
	case bounded && limits.Budget > left:
		return Change{}, s.refuse(LimitExceeded, "election %q has a budget of %d left, and the child asks for %d", r.Election, left, limits.Budget)
	}
	ch := s.change()
	next := delegated{Children: now.Children + 1, Budget: now.Budget + limits.Budget, Last: c.Child, Limits: limits}
	if next.Budget < 0 || next.Budget > MaxBudget {
		return Change{}, s.refuse(LimitExceeded, "election %q has delegated a budget of %d, and no more can be counted", r.Election, now.Budget)
	}
	ch.Record.Standing.Delegated = next
	ch.announce(EventDelegated, "")
	ch.explain("", Detail{Budget: &limits.Budget, Child: c.Child, Children: &limits.Children, Depth: &limits.Depth})
	return ch, nil
}

// needsChild says that the child that was counted last has to be made first.
type needsChild struct {
	child  Election
	limits Limits
}

func (e *needsChild) Error() string { return fmt.Sprintf("%q has to be made first", e.child) }

// below is the part of a child's configuration that limits what it may delegate.
func (l Limits) below(parent Election) Delegation {
	return Delegation{Parent: parent, Depth: l.Depth, Children: l.Children, Budget: l.Budget}
}

// child is the configuration of a child: the lengths of its parent's, and its own limits.
func (c Config) child(parent Election, l Limits) Config {
	return Config{LeaseDuration: c.LeaseDuration, MaxLeaseDuration: c.MaxLeaseDuration, LockDelay: c.LockDelay, Delegation: l.below(parent)}
}

// refuseChild refuses to delegate an election that exists and was not delegated so.
func refuseChild(e Election) error {
	return invalid("child", fmt.Errorf("election %q exists already, with another parent or other limits; choose another name", e))
}

// MakeChild creates an election that was delegated, if it was never seen. It leaves one that exists
// as it is: the leader of its parent is told if it is another than that. One that an operator has
// deleted, or let retire, only an operator brings back.
//
// Errors: InvalidArgument, if the election exists and was not delegated so; ElectionDeleted.
func MakeChild(s Snapshot, config Config) (Change, error) {
	r := s.Record
	switch {
	case r.Deleted:
		return Change{}, s.refuseDeleted()
	case s.exists() && r.Policy.Delegation == config.Delegation:
		return Change{}, nil
	case s.exists():
		return Change{}, refuseChild(r.Election)
	}
	return Configure{Config: config}.Apply(s)
}
