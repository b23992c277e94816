package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"regent/leadership"
	"regent/leadership/internal/form"
	"regent/leadership/rule"
)

// Delegate makes an election below one that the caller leads, and returns it: its name is the
// parent's, a dot, and r.Child. A lease of the child ends with the parent's lease at the latest.
// Idempotent.
//
// Errors: those of the rules Delegate and MakeChild.
func (s *Service) Delegate(ctx context.Context, r leadership.DelegateRequest) (leadership.Lease, error) {
	c, err := renewal(r.LeaseRequest)
	if err != nil {
		return leadership.Lease{}, err
	}
	child := leadership.Election(string(r.Election) + "." + r.Child)
	if err := child.Validate(); err != nil || !child.ChildOf(r.Election) {
		return leadership.Lease{}, leadership.Invalid("child", fmt.Errorf("child is one more part of a name, so that %s is one; %s is not", form.Shown(string(r.Election)+".part"), form.Shown(string(child))))
	}
	if err := cmp.Or(leadership.Delete{Election: child}.Validate(), r.Limits.Validate()); err != nil { // the election of the halts is no child
		return leadership.Lease{}, err
	}
	command := rule.DelegateCommand{Renewal: c, Child: child, Limits: r.Limits}
	for {
		found, err := s.store.Get(ctx, child) // each time: a copy of this call may have made it, and an existing child is not counted
		if err != nil {
			return leadership.Lease{}, err
		}
		if found.Record.Deleted { // before it is counted
			return leadership.Lease{}, found.RefuseDeleted()
		}
		command.Is, command.Exists = found.Record.Policy.Delegation, found.Exists()
		parent, err := s.update(ctx, r.Election, rule.Expect{Change: true}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Delegate(snap, command) })
		missing, ok := errors.AsType[*rule.NeedsChild](err)
		switch {
		case ok && missing.Child != command.Made:
			if parent, err = s.look(ctx, r.Election); err == nil {
				_, err = s.makeChild(ctx, parent.Record.Policy.Config, r.Election, missing.Child, missing.Limits)
			}
			if err != nil && !errors.Is(err, leadership.InvalidArgument) && !errors.Is(err, leadership.ElectionDeleted) { // made otherwise meanwhile, or before
				return leadership.Lease{}, err
			}
			command.Made = missing.Child
		case err != nil:
			return leadership.Lease{}, err
		default:
			limits := rule.ChildLimits(r.Limits, parent.Record.Policy.Delegation.Limits())
			return s.makeChild(ctx, parent.Record.Policy.Config, r.Election, child, limits)
		}
	}
}

func (s *Service) makeChild(ctx context.Context, parent leadership.Config, of, child leadership.Election, l leadership.Limits) (leadership.Lease, error) {
	config := rule.ChildConfig(parent, of, l)
	return s.lease(ctx, child, rule.Expect{Change: true}, func(snap rule.Snapshot) (rule.Change, error) { return rule.MakeChild(snap, config) })
}

// errFullTree ends the walk of a tree at its limits.
var errFullTree = errors.New("the tree is full")

// Tree reads an election and the elections delegated below it, up to MaxTree elections: one strong
// read, and pages of MaxPageSize in the order of names, of MaxTreeReads elections in all. At these
// limits a large subtree hides the elections that come after it.
func (s *Service) Tree(ctx context.Context, root leadership.Election) (leadership.Tree, error) {
	top, err := s.Get(ctx, root)
	if err != nil {
		return leadership.Tree{}, err
	}
	t := leadership.Tree{Leases: []leadership.Lease{top}}
	in := map[leadership.Election]bool{root: true}
	err = s.walk(ctx, string(root)+".", func(snap rule.Snapshot) error {
		r := snap.Record
		switch t.Read++; {
		case t.Read > leadership.MaxTreeReads:
			return errFullTree
		case r.Deleted || !in[r.Policy.Delegation.Parent]:
			return nil
		case len(t.Leases) == leadership.MaxTree:
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
