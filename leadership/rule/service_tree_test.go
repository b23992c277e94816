package rule_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

// tree is a service on a store in memory, whose clock the test moves.
type tree struct {
	*testing.T
	*service.Service
	store service.Store
	now   time.Time
	peer  leadership.Lease // what the one peer answers
	lost  bool             // the peer cannot be reached
	stale bool             // the peer says so
	gone  func()           // if set, cancels the call while the peer is asked
}

func newTree(t *testing.T) *tree {
	tr := &tree{T: t, now: noon}
	store := memory.New(memory.Config{Now: func() time.Time { return tr.now }})
	t.Cleanup(func() { store.Close() })
	tr.store = store
	tr.Service = service.New(store).WithPeers(tr)
	return tr
}

// Check implements service.Peers.
func (tr *tree) Check(ctx context.Context, peer string, c leadership.TokenCheck) (leadership.Lease, error) {
	if tr.gone != nil {
		tr.gone()
		return leadership.Lease{}, ctx.Err()
	}
	switch {
	case peer != "eu":
		return leadership.Lease{}, &leadership.Error{Code: leadership.InvalidArgument, Field: "via.peer", Detail: "no such peer"}
	case tr.lost:
		return leadership.Lease{}, leadership.StoreUnavailable
	case tr.stale || c.Token != tr.peer.Token:
		return leadership.Lease{}, leadership.TokenStale
	}
	return tr.peer, nil
}

func (tr *tree) configure(e leadership.Election, c leadership.Config) {
	tr.Helper()
	_, err := tr.Do(tr.Context(), leadership.Configure{Election: e, Config: c})
	require.NoError(tr, err)
}

func (tr *tree) ask(e leadership.Election, id leadership.CandidateID, lease time.Duration, via leadership.Via) (leadership.Grant, error) {
	key := leadership.Key{id[0]}
	return tr.Acquire(tr.Context(), leadership.AcquireRequest{Election: e, CandidateID: id, Key: &key, LeaseDuration: lease, Via: via})
}

func (tr *tree) grant(e leadership.Election, id leadership.CandidateID, lease time.Duration, via leadership.Via) leadership.Grant {
	tr.Helper()
	g, err := tr.ask(e, id, lease, via)
	require.NoError(tr, err, "%s acquires %s", id, e)
	return g
}

func lease(g leadership.Grant) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}
}

// left is what a renewal leaves of the lease.
func (tr *tree) left(g leadership.Grant) time.Duration {
	tr.Helper()
	l, err := tr.Renew(tr.Context(), lease(g))
	if err != nil {
		tr.Fatalf("%s renews %s: %v", g.LeaderID, g.Election, err)
	}
	return l.ExpiresIn
}

func (tr *tree) wantLeft(what string, g leadership.Grant, want time.Duration) {
	tr.Helper()
	if got := tr.left(g); got != want {
		tr.Errorf("%s: %v are left, want %v", what, got, want)
	}
}

func TestOnlyLeadersOfTheElectionsThatThePolicyNamesLead(t *testing.T) {
	tr := newTree(t)
	tr.configure("global", leadership.Config{LeadersOf: "orders."})
	tr.configure("orders.eu", leadership.Config{})
	eu := tr.grant("orders.eu", "ann", time.Minute, leadership.Via{})
	fake := tr.grant("orders.fake", "ann", time.Minute, leadership.Via{})
	_, err := tr.delegate(eu, "part", asParent)
	require.NoError(t, err)
	part := tr.grant("orders.eu.part", "ann", time.Minute, leadership.Via{})
	other := tr.grant("stock.eu", "ann", time.Minute, leadership.Via{})
	for what, c := range map[string]struct {
		id  leadership.CandidateID
		via leadership.Via
	}{
		"without via":             {"ann", leadership.Via{}},
		"a leader of another":     {"ann", leadership.Via{Election: "stock.eu", Token: other.Token}},
		"another candidate":       {"bob", leadership.Via{Election: "orders.eu", Token: eu.Token}},
		"a token never granted":   {"ann", leadership.Via{Election: "orders.eu", Token: 9}},
		"an election never seen":  {"ann", leadership.Via{Election: "orders.us", Token: 1}},
		"a token that is too low": {"ann", leadership.Via{Election: "global", Token: 1}},
		"one that it has made":    {"ann", leadership.Via{Election: "orders.fake", Token: fake.Token}},
		"a part of its own task":  {"ann", leadership.Via{Election: "orders.eu.part", Token: part.Token}},
	} {
		_, err := tr.ask("global", c.id, 0, c.via)
		assert.ErrorIs(t, err, leadership.NotEligible, what)
	}
	g := tr.grant("global", "ann", 0, leadership.Via{Election: "orders.eu", Token: eu.Token})
	if g.Parent.Election != "orders.eu" || g.Parent.Token != eu.Token {
		t.Errorf("it stands on %+v", g.Parent)
	}
	_, err = tr.Do(t.Context(), leadership.Release{LeaseRequest: lease(eu)})
	require.NoError(t, err)
	_, err = tr.ask("global", "bob", 0, leadership.Via{Election: "orders.eu", Token: eu.Token})
	assert.ErrorIs(t, err, leadership.NotEligible, "a lease that was released")
	tr.configure("orders.fake", leadership.Config{}) // as it is, but by an operator
	tr.now = tr.now.Add(30 * time.Second)
	_, err = tr.Do(t.Context(), leadership.Release{LeaseRequest: lease(g)})
	require.NoError(t, err)
	tr.grant("global", "ann", 0, leadership.Via{Election: "orders.fake", Token: fake.Token})
}

func TestOnlyElectionsThatAPeersOperatorHasConfiguredCount(t *testing.T) {
	tr := newTree(t)
	tr.configure("global", leadership.Config{LeadersOf: "orders."})
	via := leadership.Via{Peer: "eu", Election: "orders.eu", Token: 7}
	tr.peer = leadership.Lease{Election: "orders.eu", State: leadership.Held, LeaderID: "ann", Token: 7, ExpiresIn: 10 * time.Second}
	_, err := tr.ask("global", "ann", 0, via)
	assert.ErrorIs(t, err, leadership.NotEligible, "a candidate's")
	tr.peer.Configured = true
	tr.grant("global", "ann", 0, via)
}

// readTwice is the store, on which something happens before the second read of election task.
func readTwice(s service.Store, second func()) *storetest.Fake {
	reads := 0
	return &storetest.Fake{Store: s, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == "Get" && c.Election == "task" {
			if reads++; reads == 2 {
				second()
			}
		}
		return next(ctx)
	}}
}

func TestNoLeaseIsGrantedOnOneThatEndedMeanwhile(t *testing.T) {
	ends := map[string]func(*tree, leadership.Grant){
		"released": func(tr *tree, g leadership.Grant) { tr.Do(tr.Context(), leadership.Release{LeaseRequest: lease(g)}) },
		"deleted": func(tr *tree, g leadership.Grant) {
			tr.Do(tr.Context(), leadership.Delete{Election: g.Election, Force: true})
		},
		"led by another": func(tr *tree, g leadership.Grant) {
			tr.Do(tr.Context(), leadership.Release{LeaseRequest: lease(g)})
			tr.grant(g.Election, "zoe", 0, leadership.Via{})
		},
	}
	for how, end := range ends {
		for e, want := range map[leadership.Election]leadership.Code{"task.a": leadership.LeaseHeld, "global": leadership.NotEligible} {
			tr := newTree(t)
			root := tr.grant("task", "ann", 30*time.Second, leadership.Via{})
			_, err := tr.delegate(root, "a", asParent)
			require.NoError(t, err)
			var via leadership.Via
			if e == "global" {
				via = leadership.Via{Election: "task", Token: root.Token}
			}
			tr.Service = service.New(readTwice(tr.store, func() { end(tr, root) }))
			g, err := tr.ask(e, "ann", time.Minute, via)
			if !errors.Is(err, want) {
				t.Errorf("the parent is %s: %s is granted %+v, %v; want %s", how, e, g.Lease, err, want)
			}
			if l, err := tr.Get(t.Context(), e); err != nil || l.State != leadership.Vacant || l.Token != 1 || l.LockedFor != 0 {
				t.Errorf("the parent is %s: %s is %+v, %v; want it given back", how, e, l, err)
			}
		}
	}
}

// A copy of the call that was answered meanwhile keeps the lease: its caller acts on it.
func TestAGrantThatACopyWasToldOfIsNotGivenBack(t *testing.T) {
	tr := newTree(t)
	root := tr.grant("task", "ann", 30*time.Second, leadership.Via{})
	via := leadership.Via{Election: "task", Token: root.Token}
	direct := service.New(tr.store)
	tr.Service = service.New(readTwice(tr.store, func() {
		tr.now = tr.now.Add(time.Second)
		key := leadership.Key{'a'}
		g, err := direct.Acquire(t.Context(), leadership.AcquireRequest{Election: "global", CandidateID: "ann", Key: &key, Via: via})
		if err != nil || g.Token != 1 {
			t.Errorf("the copy: %+v, %v", g.Lease, err)
		}
		_, err = direct.Do(t.Context(), leadership.Release{LeaseRequest: lease(root)})
		assert.NoError(t, err)
	}))
	_, err := tr.ask("global", "ann", 0, via)
	assert.ErrorIs(t, err, leadership.NotEligible)
	if l, err := tr.Get(t.Context(), "global"); err != nil || l.State != leadership.Held || l.Token != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestALeaseShorterThanItsParentsIsNotRenewedLongAfterThatIsOver(t *testing.T) {
	tr := newTree(t)
	parent := tr.grant("orders.eu", "ann", time.Hour, leadership.Via{})
	g := tr.grant("global", "ann", 30*time.Second, leadership.Via{Election: "orders.eu", Token: parent.Token})
	_, err := tr.Do(t.Context(), leadership.Release{LeaseRequest: lease(parent)})
	require.NoError(t, err)
	tr.now = tr.now.Add(10 * time.Second)
	tr.wantLeft("the last extension", g, 30*time.Second)
	tr.now = tr.now.Add(10 * time.Second)
	tr.wantLeft("the end stands", g, 20*time.Second)
	tr.now = tr.now.Add(20 * time.Second)
	_, err = tr.Renew(t.Context(), lease(g))
	assert.ErrorIs(t, err, leadership.LeaseLost)
}

func TestALeaseOnAPeersLastsAsLongAsThePeerSays(t *testing.T) {
	tr := newTree(t)
	tr.peer = leadership.Lease{Election: "orders.eu", State: leadership.Held, LeaderID: "ann", Token: 7, ExpiresIn: 10 * time.Second}
	via := leadership.Via{Peer: "eu", Election: "orders.eu", Token: 7}
	_, err := tr.ask("global", "bob", 0, via)
	assert.ErrorIs(t, err, leadership.NotEligible, "another candidate")
	drift := tr.peer.ExpiresIn / leadership.Drift
	g := tr.grant("global", "ann", time.Minute, via)
	if g.ExpiresIn != 10*time.Second-drift {
		t.Errorf("%v are left", g.ExpiresIn)
	}
	tr.now = tr.now.Add(5 * time.Second)
	tr.wantLeft("the peer's was renewed", g, 10*time.Second-drift)
	tr.lost = true
	tr.now = tr.now.Add(5 * time.Second)
	tr.wantLeft("the peer cannot be reached", g, 5*time.Second-drift)
	tr.lost, tr.stale = false, true
	tr.wantLeft("the peer's has ended", g, 5*time.Second-drift)
}

func TestACandidateWhosePeerCannotBeAskedIsRefusedForNow(t *testing.T) {
	tr := newTree(t)
	tr.peer = leadership.Lease{Election: "orders.eu", State: leadership.Held, LeaderID: "ann", Token: 7, ExpiresIn: 10 * time.Second}
	via := leadership.Via{Peer: "eu", Election: "orders.eu", Token: 7}
	tr.lost = true
	_, err := tr.ask("global", "ann", 0, via)
	e, ok := errors.AsType[*leadership.Error](err)
	if !ok || e.Code != leadership.NotEligible || e.RetryAfter != time.Second || !strings.Contains(e.Detail, `peer "eu" cannot be asked now: `) || !strings.HasSuffix(e.Detail, "try again") {
		t.Errorf("got %v, want NOT_ELIGIBLE for a second", err)
	}
	assert.NotErrorIs(t, err, leadership.StoreUnavailable, "of the store, for which all candidates wait")
	ctx, cancel := context.WithCancel(t.Context())
	tr.gone = cancel
	_, err = tr.Acquire(ctx, leadership.AcquireRequest{Election: "global", CandidateID: "ann", Via: via})
	if !errors.Is(err, context.Canceled) || errors.Is(err, leadership.NotEligible) {
		t.Errorf("the caller has gone: got %v", err)
	}
	tr.gone = nil
	_, err = tr.ask("global", "ann", 0, leadership.Via{Peer: "us", Election: "orders.eu", Token: 7})
	assert.ErrorIs(t, err, leadership.InvalidArgument, "no such peer")
	tr.lost, tr.stale = false, true
	_, err = tr.ask("global", "ann", 0, via)
	if e, ok := errors.AsType[*leadership.Error](err); !ok || e.Code != leadership.NotEligible || e.RetryAfter != 0 {
		t.Errorf("the peer says no: got %v, want NOT_ELIGIBLE for good", err)
	}
}

// After a boot the local store lets leases begin anew, with their ends as far away as they were.
// The lease of a peer has gone on meanwhile.
func TestALeaseOnAPeersIsNotRenewedOnItsOldEndAfterABoot(t *testing.T) {
	tr := newTree(t)
	tr.peer = leadership.Lease{Election: "orders.eu", State: leadership.Held, LeaderID: "ann", Token: 7, ExpiresIn: 10 * time.Second}
	g := tr.grant("global", "ann", 2*time.Hour, leadership.Via{Peer: "eu", Election: "orders.eu", Token: 7})
	tr.now = tr.now.Add(time.Hour)
	_, err := tr.store.Update(t.Context(), "global", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record}
		r := &ch.Record
		was := r.Standing.Parent
		if r.Standing = r.Standing.TermMoved(time.Hour); r.Standing.Parent != was {
			t.Errorf("the parent was %+v, and is %+v", was, r.Standing.Parent)
		}
		r.EndsBy = r.EndsBy.Add(time.Hour)
		r.Revision++
		ch.Events = []leadership.Event{{Election: "global", Revision: r.Revision, Type: "moved", LeaderID: "ann", Token: r.Token}}
		return ch, nil
	})
	require.NoError(t, err)
	tr.lost = true
	_, err = tr.Renew(t.Context(), lease(g))
	assert.ErrorIs(t, err, leadership.LeaseLost, "the peer cannot be reached")
	tr.lost = false
	tr.wantLeft("the peer says that it goes on", g, 10*time.Second-tr.peer.ExpiresIn/leadership.Drift)
}

func (tr *tree) delegate(g leadership.Grant, child string, l leadership.Limits) (leadership.Lease, error) {
	return tr.Delegate(tr.Context(), leadership.DelegateRequest{LeaseRequest: lease(g), Child: child, Limits: l})
}

var asParent = leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: leadership.AsParent}

func TestLimitsOfATreeAreCopiedDownAndCounted(t *testing.T) {
	tr := newTree(t)
	tr.configure("task", leadership.Config{LeaseDuration: 20 * time.Second, Delegation: leadership.Delegation{Depth: 2, Children: 2, Budget: 100}})
	root := tr.grant("task", "ann", 0, leadership.Via{})
	for what, c := range map[string]struct {
		limits leadership.Limits
		want   leadership.Code
	}{
		"too deep":          {leadership.Limits{Depth: 2}, leadership.DepthExceeded},
		"too many children": {leadership.Limits{Children: 3}, leadership.LimitExceeded},
		"too much budget":   {leadership.Limits{Budget: 101}, leadership.LimitExceeded},
	} {
		_, err := tr.delegate(root, "a", c.limits)
		assert.ErrorIs(t, err, c.want, what)
	}
	a, err := tr.delegate(root, "a", leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: 60})
	want := leadership.Delegation{Parent: "task", Depth: 1, Children: 2, Budget: 60}
	if err != nil || a.Election != "task.a" || a.Config.Delegation != want || a.Config.LeaseDuration != 20*time.Second {
		t.Fatalf("got %+v, %v; want %+v", a, err, want)
	}
	_, err = tr.delegate(root, "b", leadership.Limits{Budget: 41})
	assert.ErrorIs(t, err, leadership.LimitExceeded, "more than is left")
	_, err = tr.delegate(root, "b", leadership.Limits{Budget: 40})
	require.NoError(t, err)
	_, err = tr.delegate(root, "c", leadership.Limits{})
	assert.ErrorIs(t, err, leadership.LimitExceeded, "a third child")
	tr.configure("task", leadership.Config{Delegation: leadership.Delegation{Depth: 2, Children: 1}})
	_, err = tr.delegate(root, "c", leadership.Limits{Budget: 1000})
	assert.NoError(t, err, "the first under new limits, of which none is of the budget")
	child := tr.grant("task.a", "bob", 0, leadership.Via{})
	grandchild, err := tr.delegate(child, "x", asParent)
	if want := (leadership.Delegation{Parent: "task.a", Children: 2}); err != nil || grandchild.Config.Delegation != want {
		t.Fatalf("got %+v, %v; want %+v", grandchild, err, want)
	}
	leaf := tr.grant("task.a.x", "cy", 0, leadership.Via{})
	_, err = tr.delegate(leaf, "y", asParent)
	assert.ErrorIs(t, err, leadership.DepthExceeded, "below the last level")
	all, err := tr.Tree(t.Context(), "task")
	if names := electionsOf(all); err != nil || !all.Complete || names != "task task.a task.a.x task.b task.c " {
		t.Errorf("the tree is %s, %v", names, err)
	}
}

func electionsOf(all leadership.Tree) (names string) {
	for _, l := range all.Leases {
		names += string(l.Election) + " "
	}
	return names
}

// A tree is read in a bounded number of pages, however many elections there are below its root.
func TestATreeIsReadWithinItsLimits(t *testing.T) {
	tr := newTree(t)
	var calls storetest.Counter
	reader := service.New(&storetest.Fake{Store: tr.store, Around: calls.Count})
	wants := func(what string, elections, most int, complete bool) {
		t.Helper()
		calls.Take()
		all, err := reader.Tree(t.Context(), "task")
		pages := calls.Take()["List"]
		if err != nil || len(all.Leases) != elections || all.Complete != complete || pages > most {
			t.Errorf("%s: %d elections in %d pages, complete is %v, %v; want %d in %d at most, %v", what, len(all.Leases), pages, all.Complete, err, elections, most, complete)
		}
	}
	makes := func(prefix string, n int, of leadership.Election) {
		t.Helper()
		for i := range n {
			tr.configure(leadership.Election(fmt.Sprintf("%s%05d", prefix, i)), leadership.Config{Delegation: leadership.Delegation{Parent: of}})
		}
	}
	tr.configure("task", leadership.Config{})
	makes("task.b", leadership.MaxTree-1, "task")
	wants("a full tree", leadership.MaxTree, 1, true)
	makes("task.c", 1, "task")
	wants("one child more", leadership.MaxTree, 1, false)
	makes("task.a", leadership.MaxTreeReads, "")
	wants("behind elections that are no children", 1, 1+leadership.MaxTreeReads/leadership.MaxPageSize, false)
}

func TestTheElectionOfTheHaltsIsNoChild(t *testing.T) {
	tr := newTree(t)
	tr.configure("regent", leadership.Config{Delegation: leadership.Delegation{Children: 2}})
	if l, err := tr.delegate(tr.grant("regent", "ann", 0, leadership.Via{}), "halts", asParent); !errors.Is(err, leadership.InvalidArgument) {
		t.Errorf("got %+v, %v", l, err)
	}
}

// What an operator has deleted, or configured otherwise, no leader of its parent brings back.
func TestADeletedChildIsNotDelegatedAgain(t *testing.T) {
	tr := newTree(t)
	tr.configure("task", leadership.Config{Delegation: leadership.Delegation{Children: 2}})
	root := tr.grant("task", "ann", 0, leadership.Via{})
	_, err := tr.delegate(root, "a", asParent)
	require.NoError(t, err)
	tr.configure("task.z", leadership.Config{Ballot: leadership.BallotPolicy{Require: "gpu"}})
	for _, e := range []leadership.Election{"task.a", "task.z"} {
		_, err := tr.Do(t.Context(), leadership.Delete{Election: e})
		require.NoError(t, err)
	}
	for _, child := range []string{"a", "z"} {
		if l, err := tr.delegate(root, child, asParent); !errors.Is(err, leadership.ElectionDeleted) {
			t.Errorf("task.%s: got %+v, %v", child, l, err)
		}
	}
	deleted, err := tr.store.Get(t.Context(), "task.a") // meanwhile
	require.NoError(t, err)
	_, err = rule.MakeChild(deleted, deleted.Record.Policy.Config)
	assert.ErrorIs(t, err, leadership.ElectionDeleted)
	_, err = tr.delegate(root, "b", asParent)
	assert.NoError(t, err, "another child, of two that may be")
	_, err = tr.ask("task.a", "bob", 0, leadership.Via{})
	assert.ErrorIs(t, err, leadership.ElectionDeleted)
}

func TestDelegatingAgainCountsNothing(t *testing.T) {
	tr := newTree(t)
	tr.configure("task", leadership.Config{Delegation: leadership.Delegation{Children: 2, Budget: 10}})
	root := tr.grant("task", "ann", 0, leadership.Via{})
	for range 3 {
		for _, child := range []string{"a", "b"} {
			_, err := tr.delegate(root, child, leadership.Limits{Budget: 5})
			require.NoError(t, err, child)
		}
	}
	_, err := tr.delegate(root, "a", leadership.Limits{Budget: 4})
	var e *leadership.Error
	if !errors.As(err, &e) || e.Code != leadership.InvalidArgument || e.Field != "child" {
		t.Errorf("with other limits: %v", err)
	}
	_, err = tr.Do(t.Context(), leadership.Release{LeaseRequest: lease(root)})
	require.NoError(t, err)
	_, err = tr.delegate(root, "a", leadership.Limits{Budget: 5})
	assert.ErrorIs(t, err, leadership.LeaseLost, "by a former leader")
}

// A copy that read before the child was made does not count it once more.
func TestALateCopyOfADelegationCountsNothing(t *testing.T) {
	tr := newTree(t)
	tr.configure("task", leadership.Config{Delegation: leadership.Delegation{Children: 2}})
	root := tr.grant("task", "ann", 0, leadership.Via{})
	late := &storetest.Fake{Store: tr.store, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == "Update" {
			for _, child := range []string{"a", "b"} {
				_, err := tr.delegate(root, child, leadership.Limits{})
				assert.NoError(t, err, child)
			}
		}
		return next(ctx)
	}}
	_, err := service.New(late).Delegate(t.Context(), leadership.DelegateRequest{LeaseRequest: lease(root), Child: "a"})
	assert.NoError(t, err)
	tr.configure("task", leadership.Config{Delegation: leadership.Delegation{Children: 3}})
	_, err = tr.delegate(root, "c", leadership.Limits{})
	assert.NoError(t, err, "a third child of three")
}

// The instance dies after the count and before the child is made: the next call makes it, whichever
// call that is, and nothing is counted twice.
func TestAChildThatWasCountedAndNotMadeIsMadeByTheNextCall(t *testing.T) {
	for _, next := range []string{"a", "b", "made otherwise", "with other limits"} {
		tr := newTree(t)
		tr.configure("task", leadership.Config{Delegation: leadership.Delegation{Children: 2}})
		root := tr.grant("task", "ann", 0, leadership.Via{})
		changes := 0
		store := &storetest.Fake{Store: tr.store, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			if c.Method == "Update" {
				if changes++; changes > 1 {
					return fmt.Errorf("%w: it has died", leadership.StoreUnavailable)
				}
			}
			return next(ctx)
		}}
		_, err := service.New(store).Delegate(t.Context(), leadership.DelegateRequest{LeaseRequest: lease(root), Child: "a"})
		require.ErrorIs(t, err, leadership.StoreUnavailable)
		children, want := []string{next, "a", "b"}, "task task.a task.b "
		switch next {
		case "made otherwise":
			tr.configure("task.a", leadership.Config{})
			children, want = children[2:], "task task.b "
		case "with other limits":
			children = children[1:]
			_, err := tr.delegate(root, "a", leadership.Limits{Children: 1})
			assert.ErrorIs(t, err, leadership.InvalidArgument, "with other limits")
		}
		for _, child := range children {
			_, err := tr.delegate(root, child, leadership.Limits{})
			require.NoError(t, err, child)
		}
		all, err := tr.Tree(t.Context(), "task")
		if names := electionsOf(all); err != nil || names != want {
			t.Errorf("the tree is %s, %v", names, err)
		}
	}
}

// A child that is granted the last moments of a parent that dies would change its leader again and
// again until the parent is gone.
func TestNoLeaseIsGrantedOnOneThatIsAboutToEnd(t *testing.T) {
	for parent, least := range map[time.Duration]time.Duration{30 * time.Second: time.Second, time.Second: 500 * time.Millisecond} {
		tr := newTree(t)
		tr.configure("task", leadership.Config{})
		root := tr.grant("task", "ann", parent, leadership.Via{})
		_, err := tr.delegate(root, "a", asParent)
		require.NoError(t, err)
		tr.configure("global", leadership.Config{LeadersOf: "task"})
		via := leadership.Via{Election: "task", Token: root.Token}
		tr.now = tr.now.Add(parent - least)
		var e *leadership.Error
		if _, err := tr.ask("task.a", "bob", 0, leadership.Via{}); !errors.As(err, &e) || e.Code != leadership.LeaseHeld || e.Reason != leadership.ReasonParent || e.RetryAfter != time.Second || !strings.Contains(e.Detail, "unless it is renewed") {
			t.Errorf("on one of %v with %v left: %v", parent, least, err)
		}
		if _, err := tr.ask("global", "ann", 0, via); !errors.As(err, &e) || e.Code != leadership.NotEligible || e.RetryAfter != time.Second {
			t.Errorf("by via, on one of %v with %v left: %v", parent, least, err)
		}
		if x, err := tr.Explain(t.Context(), leadership.ExplainRequest{Election: "task.a", CandidateID: "bob"}); err != nil || len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonParent {
			t.Errorf("explained as %+v, %v", x.Causes, err)
		}
		tr.now = tr.now.Add(-time.Millisecond)
		if g := tr.grant("task.a", "bob", 0, leadership.Via{}); g.ExpiresIn != least+time.Millisecond {
			t.Errorf("a millisecond earlier %v are granted", g.ExpiresIn)
		}
		tr.grant("global", "ann", 0, via)
	}
}

func TestALeaseGoesOnWithItsParentsNewEpoch(t *testing.T) {
	tr := newTree(t)
	parent := tr.grant("orders.eu", "ann", 30*time.Second, leadership.Via{})
	g := tr.grant("global", "ann", time.Minute, leadership.Via{Election: "orders.eu", Token: parent.Token})
	tr.now = tr.now.Add(10 * time.Second)
	_, err := tr.Do(t.Context(), leadership.Order{Election: "orders.eu", Kind: leadership.OrderApprove, Token: parent.Token, NewEpoch: true, Reason: "a new prompt", Actor: "dan"})
	require.NoError(t, err)
	via := leadership.Via{Election: "orders.eu", Token: parent.Token + 1}
	if again := tr.grant("global", "ann", time.Minute, via); again.Token != g.Token || again.ExpiresIn != 30*time.Second {
		t.Errorf("acquired again in the new epoch: %+v", again.Lease)
	}
	tr.wantLeft("a new epoch", g, 30*time.Second)
	if l, err := tr.Get(t.Context(), "global"); err != nil || l.Parent.Token != parent.Token+1 {
		t.Errorf("it stands on %+v, %v", l.Parent, err)
	}
	_, err = tr.ask("pages", "ann", 0, leadership.Via{Election: "orders.eu", Token: parent.Token})
	assert.ErrorIs(t, err, leadership.NotEligible, "a grant on the former epoch")
}
