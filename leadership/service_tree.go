package leadership

import (
	"context"
	"errors"
	"fmt"
)

// DelegateRequest makes an election for a part of the caller's task.
type DelegateRequest struct {
	LeaseRequest
	Child  string // the last part of its name: the first is the parent's
	Limits Limits // AsParent for what the parent has
}

// Delegate makes an election below that of the caller, which leads it: its name is the parent's, a
// dot, and the child's. Its lease ends by the end that the parent's was promised. Idempotent. It
// returns the child.
//
// Errors: those of the rules Delegate and MakeChild.
func (s *Service) Delegate(ctx context.Context, r DelegateRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	child := Election(string(r.Election) + "." + r.Child)
	if err := child.Validate(); err != nil || !child.childOf(r.Election) {
		return Lease{}, invalid("child", fmt.Errorf("child is one more part of a name, so that %s is one; %s is not", shown(string(r.Election)+".part"), shown(string(child))))
	}
	if field, err := r.Limits.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	found, err := s.store.Get(ctx, child)
	if err != nil {
		return Lease{}, err
	}
	if found.Record.Deleted { // before it is counted
		return Lease{}, found.refuseDeleted()
	}
	command := DelegateCommand{Renewal: c, Child: child, Limits: r.Limits, Is: found.Record.Policy.Delegation}
	command.Exists = found.exists()
	for {
		parent, err := s.update(ctx, r.Election, Expect{Change: true}, func(snap Snapshot) (Change, error) { return Delegate(snap, command) })
		missing, ok := errors.AsType[*needsChild](err)
		switch {
		case ok && missing.child != command.Made:
			if parent, err = s.look(ctx, r.Election); err == nil {
				_, err = s.makeChild(ctx, parent.Record.Policy.Config, r.Election, missing.child, missing.limits)
			}
			if err != nil && !errors.Is(err, InvalidArgument) && !errors.Is(err, ElectionDeleted) { // made otherwise meanwhile, or before
				return Lease{}, err
			}
			command.Made = missing.child
		case err != nil:
			return Lease{}, err
		default:
			limits := r.Limits.of(parent.Record.Policy.Delegation.Limits())
			return s.makeChild(ctx, parent.Record.Policy.Config, r.Election, child, limits)
		}
	}
}

func (s *Service) makeChild(ctx context.Context, parent Config, of, child Election, l Limits) (Lease, error) {
	config := parent.child(of, l)
	return s.lease(ctx, child, Expect{Change: true}, func(snap Snapshot) (Change, error) { return MakeChild(snap, config) })
}

// Limits of reading a tree.
const (
	MaxTree = 1000 // elections that a tree may have
	// MaxTreeReads is how many elections are read for a tree. They are all whose names begin as
	// those below the root do, delegated or not, deleted or not.
	MaxTreeReads = 10 * MaxTree
)

// Tree is an election with what was delegated below it.
type Tree struct {
	Leases   []Lease // the parents before their children
	Complete bool    // there were no more, and all that could have been were read
}

// errFullTree ends the walk of a tree at its limits.
var errFullTree = errors.New("the tree is full")

// Tree reads an election and what was delegated below it, up to MaxTree elections: one strong read,
// and pages of MaxPageSize in the order of names, of MaxTreeReads elections in all. Not by a
// parent's children: a large subtree hides those that come after it.
func (s *Service) Tree(ctx context.Context, root Election) (Tree, error) {
	top, err := s.Get(ctx, root)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Leases: []Lease{top}}
	in := map[Election]bool{root: true}
	reads := 0
	err = s.walk(ctx, string(root)+".", func(snap Snapshot) error {
		r := snap.Record
		switch reads++; {
		case reads > MaxTreeReads:
			return errFullTree
		case r.Deleted || !in[r.Policy.Delegation.Parent]:
			return nil
		case len(t.Leases) == MaxTree:
			return errFullTree
		}
		in[r.Election] = true
		t.Leases = append(t.Leases, snap.Lease())
		return nil
	})
	if errors.Is(err, errFullTree) {
		return t, nil
	}
	t.Complete = err == nil
	return t, err
}
