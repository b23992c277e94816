package leadership

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Peers are other services of the same kind, which their operator has named.
type Peers interface {
	// Check asks the peer for the lease of the election, if the token is that of its present
	// leader. The answer's ExpiresIn counts from an instant after the call.
	Check(ctx context.Context, peer string, c TokenCheck) (Lease, error)
}

// WithPeers returns the service with peers that a candidate's Via may name.
func (s *Service) WithPeers(p Peers) *Service {
	with := *s
	with.peers = p
	return &with
}

// held looks the lease up that a candidate says it holds, strongly.
//
// Errors: NotEligible, if it does not hold it; InvalidArgument, if there is no such peer.
func (s *Service) held(ctx context.Context, v Via, by CandidateID) (ParentLease, error) {
	p, err := s.parentLease(ctx, v)
	switch {
	case errors.Is(err, TokenStale), errors.Is(err, NotFound), err == nil && p.LeaderID != by:
		return ParentLease{}, &Error{Code: NotEligible, Detail: fmt.Sprintf(
			"%q does not lead election %q with fencing token %d, which via names; acquire there first, and send its token", by, v.Election, v.Token)}
	case err != nil:
		return ParentLease{}, err
	}
	return p, nil
}

// parentLease reads the lease with the token, strongly. Its end is one by this store's clock.
func (s *Service) parentLease(ctx context.Context, v Via) (ParentLease, error) {
	if v.Peer == "" {
		snap, err := s.look(ctx, v.Election)
		if err == nil {
			err = Check(snap, v.Token)
		}
		if err != nil {
			return ParentLease{}, err
		}
		return snap.asParent(), nil
	}
	if s.peers == nil {
		return ParentLease{}, invalid("via.peer", fmt.Errorf("this service has no peer %s; its operator names peers", shown(v.Peer)))
	}
	snap, err := s.store.Get(ctx, "now") // before the peer is asked: so its lease ends no earlier than is computed here
	if err != nil {
		return ParentLease{}, err
	}
	l, err := s.peers.Check(ctx, v.Peer, TokenCheck{Election: v.Election, Token: v.Token})
	if err != nil {
		return ParentLease{}, err
	}
	left := l.ExpiresIn - l.ExpiresIn/Drift
	until := snap.Now.Add(left - snap.Guard).UTC().Truncate(instantPrecision)
	return ParentLease{Parent: Parent{v.Peer, v.Election, v.Token, until}, LeaderID: l.LeaderID}, nil
}

// asParent is the present lease as one that others may stand on.
func (s Snapshot) asParent() ParentLease {
	r := s.Record
	if !s.Live() || r.yielded() {
		return ParentLease{Parent: Parent{Election: r.Election, Token: max(r.Token, 1), Until: later(s.Now, 0)}}
	}
	return ParentLease{Parent: Parent{Election: r.Election, Token: r.Token, Until: r.LeaseEnd().UTC().Truncate(instantPrecision)}, LeaderID: r.LeaderID}
}

// parent reads the present lease of the election that another one is a part of. LeaderID is empty
// if there is none.
func (s *Service) parent(ctx context.Context, e Election) (ParentLease, error) {
	snap, err := s.store.Get(ctx, e)
	if err != nil {
		return ParentLease{}, err
	}
	snap.Record.Election = e
	return snap.asParent(), nil
}

// followsUp reports whether a renewal of the lease needs more than a heartbeat.
func (r Record) followsUp() bool { return r.Standing.Parent.Token > 0 || r.yielded() }

// follow lets a lease that was just renewed, and that stands on another one, last as long as that
// one does. If its parent has ended, or cannot be read, it ends when it was to. A leader that has
// yielded is told so.
func (s *Service) follow(ctx context.Context, snap Snapshot, c Renewal) (Snapshot, error) {
	r := snap.Record
	if r.yielded() {
		return Snapshot{}, snap.refuseLost(c)
	}
	at := r.Standing.Parent
	if at.Token == 0 {
		return snap, nil
	}
	parent, err := s.parentLease(ctx, Via{at.Peer, at.Election, at.Token})
	if err != nil || !parent.Until.After(at.Until) {
		if !snap.Now.Before(at.Until) { // a lease of a peer, and the store has been away: see TermMoved
			return Snapshot{}, snap.refuseLost(c)
		}
		return snap, nil //nolint:nilerr // the lease was renewed, up to the end that is known
	}
	c.Parent, c.Report, c.Ticket = parent, "", snap.Ticket
	moved, err := s.update(ExpectHeld(ctx, c), c.Election, func(snap Snapshot) (Change, error) { return Renew(snap, c) })
	switch {
	case errors.Is(err, LeaseLost):
		return Snapshot{}, err
	case err != nil:
		return snap, nil //nolint:nilerr // as above
	}
	return moved, nil
}

// DelegateRequest makes an election for a part of the caller's task.
type DelegateRequest struct {
	LeaseRequest
	Child  string // the last part of its name: the first is the parent's
	Limits Limits // AsParent for what the parent has
}

// Delegate makes an election below that of the caller, which leads it: its name is the parent's, a
// dot, and the child's. Whoever leads the child, its lease never outlives what the parent's was
// known to have. Idempotent. It returns the child.
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
	command := DelegateCommand{Renewal: c, Child: child, Limits: r.Limits, Is: found.Record.Policy.Delegation}
	command.Exists = found.exists() && !found.Record.Deleted
	for {
		parent, err := s.update(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Delegate(snap, command) })
		missing, ok := errors.AsType[*needsChild](err)
		switch {
		case ok && missing.child != command.Made:
			if parent, err = s.look(ctx, r.Election); err == nil {
				_, err = s.makeChild(ctx, parent.Record.Policy.Config, r.Election, missing.child, missing.limits)
			}
			if err != nil && !errors.Is(err, InvalidArgument) { // made otherwise meanwhile: it exists
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
	return s.lease(ExpectChange(ctx), child, func(snap Snapshot) (Change, error) { return MakeChild(snap, config) })
}

// MaxTree is how many elections a tree may have.
const MaxTree = 1000

// Tree is an election with what was delegated below it.
type Tree struct {
	Leases   []Lease // the parents before their children
	Complete bool    // no more than MaxTree elections were there
}

// errFullTree ends the walk of a tree that has MaxTree elections.
var errFullTree = errors.New("the tree is full")

// Tree reads an election and what was delegated below it, up to MaxTree elections.
func (s *Service) Tree(ctx context.Context, root Election) (Tree, error) {
	top, err := s.Get(ctx, root)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Leases: []Lease{top}}
	in := map[Election]bool{root: true}
	err = s.walk(ctx, string(root)+".", func(snap Snapshot) error {
		r := snap.Record
		switch {
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

// HandOver names the successor of the caller's term; see the rule of that name.
func (s *Service) HandOver(ctx context.Context, r HandOverRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	command := HandOverCommand{Renewal: c, To: r.To, Within: r.within(), Reason: r.Reason}
	if field, err := command.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) { return HandOver(snap, command) })
}

func (r HandOverRequest) within() time.Duration {
	if r.Within == 0 {
		return DefaultWithin
	}
	return r.Within
}

// SayReady says that the caller, a successor or a new leader, has loaded what it needs; see the
// rule of that name.
func (s *Service) SayReady(ctx context.Context, r ReadyRequest) (Lease, error) {
	if err := validateNames(r.Election, r.CandidateID); err != nil {
		return Lease{}, err
	}
	if err := r.Key.validate(); err != nil {
		return Lease{}, invalid("key", err)
	}
	c := ReadyCommand{CandidateID: r.CandidateID, KeyHash: r.Key.Hash()}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return SayReady(snap, c) })
}

// Yield says that the caller has stopped, so that its successor may lead; see the rule of that name.
func (s *Service) Yield(ctx context.Context, r LeaseRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) { return Yield(snap, c) })
}
