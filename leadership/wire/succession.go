package wire

import (
	"time"

	"regent/leadership"
)

// Succession is the hand-over of the present term.
type Succession struct {
	To      leadership.CandidateID `json:"to"`
	Since   time.Time              `json:"since,omitzero"` // left out if a better candidate has challenged the leader
	UntilMs int64                  `json:"untilMs"`        // the time until the present term ends, rounded down
	Ready   bool                   `json:"ready"`          // the successor has said that it is ready
	Yielded bool                   `json:"yielded,omitzero"`
}

func newSuccession(s leadership.Succession) *Succession {
	if s.To == "" {
		return nil
	}
	return &Succession{s.To, s.Since.UTC(), millisDown(s.Left), s.Ready, s.Yielded}
}

func (w *Succession) leadership() leadership.Succession {
	if w == nil {
		return leadership.Succession{}
	}
	return leadership.Succession{To: w.To, Since: w.Since, Left: fromMillis(w.UntilMs), Ready: w.Ready, Yielded: w.Yielded}
}

// Via names a lease that another one stands on.
type Via struct {
	Election     leadership.Election `json:"election"`
	FencingToken leadership.Token    `json:"fencingToken"`
	Peer         *string             `json:"peer,omitzero"` // the operator's name for another service
}

func newVia(peer string, e leadership.Election, t leadership.Token) *Via {
	if e == "" {
		return nil
	}
	return &Via{e, t, optional(peer)}
}

// leadership reads the via of a request. It refuses zero values, which package leadership would
// take for no via: a lease that was to stand on another one must not stand alone.
func (w *Via) leadership() (v leadership.Via, err error) {
	switch {
	case w == nil:
		return v, nil
	case w.Election == "":
		return v, malformed("/via/election", "via.election is empty; name the election that you lead, or leave via out")
	case w.FencingToken < 1:
		return v, malformed("/via/fencingToken", "via.fencingToken is the token of your lease of %s, an integer from 1, not %d", Quote(string(w.Election)), w.FencingToken)
	case isEmpty(w.Peer):
		return v, malformed("/via/peer", "via.peer is empty; name another service, or leave it out for this one")
	}
	return leadership.Via{Peer: given(w.Peer), Election: w.Election, Token: w.FencingToken}, nil
}

// DelegateRequest is the body that makes an election for a part of a task.
type DelegateRequest struct {
	Holder
	Child  string  `json:"child"`
	Limits *Limits `json:"limits,omitzero"`
}

// Limits bound what the leader of a delegated election may delegate in turn. A limit that is left
// out is leadership.AsParent.
type Limits struct {
	Depth    *int   `json:"depth,omitzero"`
	Children *int   `json:"children,omitzero"`
	Budget   *int64 `json:"budget,omitzero"`
}

// NewDelegateRequest writes a request.
func NewDelegateRequest(r leadership.DelegateRequest) DelegateRequest {
	w := DelegateRequest{Holder: NewHolder(r.LeaseRequest), Child: r.Child}
	var l Limits
	if r.Limits.Depth != leadership.AsParent {
		l.Depth = &r.Limits.Depth
	}
	if r.Limits.Children != leadership.AsParent {
		l.Children = &r.Limits.Children
	}
	if r.Limits.Budget != leadership.AsParent {
		l.Budget = &r.Limits.Budget
	}
	if l != (Limits{}) {
		w.Limits = &l
	}
	return w
}

// Leadership reads a request about the election.
func (w DelegateRequest) Leadership(e leadership.Election) (leadership.DelegateRequest, error) {
	r := leadership.DelegateRequest{Child: w.Child, Limits: leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: leadership.AsParent}}
	l := given(w.Limits)
	for _, limit := range []struct {
		name  string
		given *int
		into  *int
	}{{"depth", l.Depth, &r.Limits.Depth}, {"children", l.Children, &r.Limits.Children}} {
		if limit.given == nil {
			continue
		}
		if *limit.given < 0 {
			return r, malformed("/limits/"+limit.name, "limits.%s is 0 or more, not %d", limit.name, *limit.given)
		}
		*limit.into = *limit.given
	}
	if l.Budget != nil {
		if *l.Budget < 0 {
			return r, malformed("/limits/budget", "limits.budget is 0 or more, not %d", *l.Budget)
		}
		r.Limits.Budget = *l.Budget
	}
	var err error
	r.LeaseRequest, err = w.Holder.Leadership(e)
	return r, err
}

// Delegation limits what an election's leader may delegate in total. A limit that is left out has
// its default, without a parent; with a parent it is 0, which allows none.
type Delegation struct {
	Parent   *leadership.Election `json:"parent,omitzero"`
	Depth    *int                 `json:"depth,omitzero"`
	Children *int                 `json:"children,omitzero"`
	Budget   *int64               `json:"budget,omitzero"`
}

func newDelegation(d leadership.Delegation) *Delegation {
	switch {
	case d == leadership.Delegation{}:
		return nil
	case d.Parent == "":
		return &Delegation{nil, optional(d.Depth), optional(d.Children), optional(d.Budget)}
	}
	return &Delegation{&d.Parent, &d.Depth, &d.Children, &d.Budget}
}

func (w *Delegation) leadership() (d leadership.Delegation, err error) {
	if w == nil {
		return d, nil
	}
	d = leadership.Delegation{Parent: given(w.Parent), Depth: given(w.Depth), Children: given(w.Children), Budget: given(w.Budget)}
	const at, without = "/policy/delegation/", "is 1 or more in an election without a parent, not 0; leave it out for"
	switch {
	case isEmpty(w.Parent):
		return d, malformed(at+"parent", "policy.delegation.parent is empty; name the election of which this one is a part, or leave it out")
	case w.Parent != nil:
	case isEmpty(w.Depth):
		return d, malformed(at+"depth", "policy.delegation.depth %s %d", without, leadership.DefaultDepth)
	case isEmpty(w.Children):
		return d, malformed(at+"children", "policy.delegation.children %s %d", without, leadership.DefaultChildren)
	case isEmpty(w.Budget):
		return d, malformed(at+"budget", "policy.delegation.budget %s no limit", without)
	}
	return d, nil
}

// Tree is an election with the elections delegated below it.
type Tree struct {
	Lease
	Complete bool   `json:"complete"` // on the root: the tree was not cut off
	Children []Node `json:"children"`
}

// Node is one election of a tree, below the root.
type Node struct {
	Lease
	Children []Node `json:"children"`
}

// NewTree writes a tree.
func NewTree(t leadership.Tree) Tree {
	below := make(map[leadership.Election][]leadership.Lease)
	for _, l := range t.Leases[1:] {
		below[l.Config.Delegation.Parent] = append(below[l.Config.Delegation.Parent], l)
	}
	var children func(leadership.Election) []Node
	children = func(e leadership.Election) []Node {
		all := []Node{}
		for _, l := range below[e] {
			all = append(all, Node{NewLease(l), children(l.Election)})
		}
		return all
	}
	root := t.Leases[0]
	return Tree{NewLease(root), t.Complete, children(root.Election)}
}

// Leadership reads a tree.
func (w Tree) Leadership() (leadership.Tree, error) {
	root, err := w.Lease.Leadership()
	t := leadership.Tree{Leases: []leadership.Lease{root}, Complete: w.Complete}
	var add func([]Node)
	add = func(all []Node) {
		for _, n := range all {
			l, failed := n.Lease.Leadership()
			if failed != nil && err == nil {
				err = failed
			}
			t.Leases = append(t.Leases, l)
			add(n.Children)
		}
	}
	add(w.Children)
	return t, err
}
