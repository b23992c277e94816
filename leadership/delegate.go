package leadership

import (
	"cmp"
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
	// AsParent, as a limit of a child, derives the limit from its parent: one level less, the same
	// number of children, and no part of the budget.
	AsParent = -1
)

// Delegation is the part of a Config that limits what a leader may delegate. Without a parent, a 0
// stands for the default, and as the budget for no limit; with a parent, a 0 allows none.
type Delegation struct {
	Parent   Election `json:"parent,omitempty"`   // the election that this one is a part of; its name and a dot begin this one's name
	Depth    int      `json:"depth,omitempty"`    // levels of elections below this one: up to MaxDepth
	Children int      `json:"children,omitempty"` // elections ever made directly below this one: up to MaxChildren
	Budget   int64    `json:"budget,omitempty"`   // units of the caller's choice for all children together: up to MaxBudget
}

// Validate returns an error unless each part is within its bounds.
func (d Delegation) Validate() error {
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

// Limits returns the limits with the defaults filled in. A budget of 0 is no limit if the election
// has no parent.
func (d Delegation) Limits() Limits {
	if d.Parent == "" {
		d.Depth, d.Children = cmp.Or(d.Depth, DefaultDepth), cmp.Or(d.Children, DefaultChildren)
	}
	return Limits{Depth: d.Depth, Children: d.Children, Budget: d.Budget}
}

// Limits bound what the leader of a delegated election may delegate in turn.
type Limits struct {
	Depth    int   `json:"depth,omitempty"`
	Children int   `json:"children,omitempty"`
	Budget   int64 `json:"budget,omitempty"`
}

// Validate returns an error with the code InvalidArgument unless each limit is within its bounds.
func (l Limits) Validate() error {
	switch {
	case l.Depth < AsParent || l.Depth > MaxDepth:
		return Invalid("limits.depth", fmt.Errorf("limits.depth is from 0 to %d, not %d", MaxDepth, l.Depth))
	case l.Children < AsParent || l.Children > MaxChildren:
		return Invalid("limits.children", fmt.Errorf("limits.children is from 0 to %d, not %d", MaxChildren, l.Children))
	case l.Budget < AsParent || l.Budget > MaxBudget:
		return Invalid("limits.budget", fmt.Errorf("limits.budget is from 0 to %d, not %d", MaxBudget, l.Budget))
	}
	return nil
}

// validateHierarchy checks LeadersOf and Delegation, which refer to other elections.
func (c Config) validateHierarchy() (field string, err error) {
	if c.LeadersOf != "" {
		if err := validatePrefix(c.LeadersOf); err != nil {
			return "policy.leadersOf", fmt.Errorf("policy.leadersOf: %w", err)
		}
		if c.Delegation.Parent != "" {
			return "policy.leadersOf", errors.New("policy.leadersOf does not go with policy.delegation.parent: a lease stands on one other lease")
		}
	}
	return "policy.delegation", c.Delegation.Validate()
}

// ChildOf reports whether e is the name of a direct child of parent.
func (e Election) ChildOf(parent Election) bool {
	rest, below := strings.CutPrefix(string(e), string(parent)+".")
	return below && rest != "" && !strings.Contains(rest, ".")
}

// DelegateRequest makes an election for a part of the caller's task.
type DelegateRequest struct {
	LeaseRequest
	Child  string // the last part of the new election's name; the first is the parent's name
	Limits Limits // AsParent for what the parent has
}

// Limits of reading a tree.
const (
	MaxTree = 1000 // elections that a tree may have
	// MaxTreeReads is how many elections are read for a tree. All whose names begin with the root's
	// and a dot are read, delegated or not, deleted or not.
	MaxTreeReads = 10 * MaxTree
)

// Tree is an election with the elections delegated below it.
type Tree struct {
	Leases   []Lease // parents before their children
	Complete bool    // no limit was hit: the tree has no other elections
	Read     int     // how many elections were read below the first; not told to clients
}
