package rule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// slowStore is one election whose commits take a while, as those of a cloud store may: the decision
// is made at one instant and committed at a later one.
type slowStore struct {
	service.Store // the calls that these tests do not make
	snap          rule.Snapshot
	commit        time.Duration // how long the next commit takes
	events        []leadership.Event
	reading       func()         // runs while the store reads, if set
	aborted       *rule.Snapshot // on which the next decision is made first, in vain
	interfere     func()         // runs between a commit and its reply
	lost          error          // takes the place of the reply
	expected      bool           // whether the last Update expected to write
	updates       int
	deciding      bool // an Update is under way
}

func (s *slowStore) Update(_ context.Context, e leadership.Election, x rule.Expect, decide decision) (rule.Snapshot, error) {
	s.snap.Record.Election = e
	s.expected = x.Change
	s.updates++
	s.deciding = true
	defer func() { s.deciding = false }()
	if s.reading != nil {
		s.reading()
	}
	if s.aborted != nil {
		if _, err := decide(*s.aborted); err != nil {
			return rule.Snapshot{}, err
		}
		s.aborted = nil
	}
	ch, err := decide(s.snap)
	if err != nil || ch.Empty() {
		return s.snap, err
	}
	s.snap.Now = s.snap.Now.Add(s.commit)
	s.commit = 0
	s.snap = apply(s.snap, ch)
	s.events = append(s.events, ch.Events...)
	done := s.snap
	if s.interfere != nil {
		s.interfere()
	}
	return done, s.lost
}

func (s *slowStore) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	if len(leases) == 0 || leases[0].Report != "" {
		return []rule.Renewed{{Err: errors.New("a store renews one lease at least, and takes no report")}}
	}
	end := s.snap.Record.LeaseEnd()
	snap, err := s.Update(ctx, leases[0].Election, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, leases[0]) })
	answer := snap.Renewed(end)
	answer.Err = err
	return []rule.Renewed{answer}
}

func slow(t *testing.T) (*slowStore, *service.Service, leadership.LeaseRequest) {
	t.Helper()
	store := &slowStore{snap: rule.Snapshot{Now: noon, Guard: guard}}
	s := service.New(store)
	g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
	require.NoError(t, err)
	store.snap.Now = store.snap.Now.Add(29 * time.Second)
	return store, s, leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}
}

func TestARenewalThatIsCommittedAfterTheEndIsTakenBackAndLost(t *testing.T) {
	for name, renew := range map[string]func(*service.Service, leadership.LeaseRequest) error{
		"renew": func(s *service.Service, r leadership.LeaseRequest) error {
			_, err := s.Renew(t.Context(), r)
			return err
		},
		"acquire again": func(s *service.Service, r leadership.LeaseRequest) error {
			_, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: r.Election, CandidateID: r.CandidateID, Key: &r.Key})
			return err
		},
		"batch": func(s *service.Service, r leadership.LeaseRequest) error {
			results, err := s.BatchRenew(t.Context(), []leadership.LeaseRequest{r})
			return errors.Join(err, results[0].Err)
		},
		"batch with a report": func(s *service.Service, r leadership.LeaseRequest) error {
			r.Report = []byte(`{"tasks":1}`)
			results, err := s.BatchRenew(t.Context(), []leadership.LeaseRequest{r})
			return errors.Join(err, results[0].Err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, s, lease := slow(t)
			store.commit = 2 * time.Second
			assert.ErrorIs(t, renew(s, lease), leadership.LeaseLost)
			r := store.snap.Record
			if last := store.events[len(store.events)-1]; r.LeaderID != "" || last.Type != leadership.EventExpired || !r.EndedAt.Equal(noon.Add(30*time.Second)) {
				t.Errorf("got %+v with %+v, want it expired at its old end", r, last)
			}
		})
	}
}

// Its end is not recorded then, but its leader is told the same.
func TestALateRenewalThatCannotBeTakenBackIsLost(t *testing.T) {
	store, s, lease := slow(t)
	store.commit = 2 * time.Second
	store.interfere = func() {
		store.reading = func() { store.lost = leadership.StoreUnavailable }
	}
	_, err := s.Renew(t.Context(), lease)
	if e := new(leadership.Error); !errors.As(err, &e) || e.Code != leadership.LeaseLost || e.Lease.Election != "jobs" || e.Lease.State != leadership.Vacant || e.Lease.Token != 1 {
		t.Errorf("got %v with %+v", err, e.Lease)
	}
}

// Its latest end was set when it was decided, and has passed when it is committed.
func TestAGrantThatIsCommittedAfterItsLatestEndIsNoLease(t *testing.T) {
	store := &slowStore{snap: rule.Snapshot{Now: noon, Guard: guard}}
	store.snap.Record.Policy.Term.MaxTerm = time.Minute
	s, key := service.New(store), leadership.NewKey()
	ask := leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &key}
	store.commit = 2 * time.Minute
	if g, err := s.Acquire(t.Context(), ask); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("got %+v, %v; want %s", g.Lease, err, leadership.OutcomeUnknown)
	}
	if g, err := s.Acquire(t.Context(), ask); err != nil || g.State != leadership.Held || g.Token != 2 {
		t.Errorf("asked again: got %+v, %v", g.Lease, err)
	}
}

func TestARenewalThatIsCommittedAtTheVeryEndIsLost(t *testing.T) {
	store, s, lease := slow(t)
	store.commit = time.Second
	if l, err := s.Renew(t.Context(), lease); !errors.Is(err, leadership.LeaseLost) {
		t.Errorf("got %v, %v; want %s", l.ExpiresIn, err, leadership.LeaseLost)
	}
	if r := store.snap.Record; r.LeaderID != "" {
		t.Errorf("%q still leads", r.LeaderID)
	}
}

func TestOrderThatIsCommittedAfterTheEndRevivesNoLease(t *testing.T) {
	for what, order := range map[string]leadership.Order{
		"an approval": {Kind: leadership.OrderApprove},
		"a new epoch": {Kind: leadership.OrderApprove, NewEpoch: true},
		"one alone":   {Kind: leadership.OrderApprove, NewEpoch: true},
	} {
		store, s, lease := slow(t)
		config := leadership.Config{Description: "no approvals"}
		if what != "one alone" {
			config.Term.Approval.Every = 20 * time.Second
		}
		_, err := s.Do(t.Context(), leadership.Release{LeaseRequest: lease})
		_, err2 := s.Do(t.Context(), leadership.Configure{Election: "jobs", Config: config})
		g, err3 := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
		require.NoError(t, errors.Join(err, err2, err3))
		end := store.snap.Record.LeaseEnd()
		store.snap.Now, store.commit = end.Add(-time.Second), 2*time.Second
		order.Token, order.Actor, order.Reason = g.Token, "op", "checked"
		l, err := s.Do(t.Context(), order.In("jobs"))
		if last := store.events[len(store.events)-1]; err != nil || l.State != leadership.Vacant || last.Type != leadership.EventExpired || !store.snap.Record.EndedAt.Equal(end) {
			t.Errorf("%s: %v, state %s, the last event is %s, the lease ended at %v; want vacant, expired at %v", what, err, l.State, last.Type, store.snap.Record.EndedAt, end)
		}
	}
}

func TestALateRenewalThatWasFollowedByAnotherIsNotTakenBack(t *testing.T) {
	store, s, lease := slow(t)
	store.commit = 2 * time.Second
	store.interfere = func() {
		store.interfere = nil
		store.snap.Now = store.snap.Now.Add(time.Second)
		_, err := s.Renew(t.Context(), lease)
		assert.NoError(t, err, "the other renewal")
	}
	_, err := s.Renew(t.Context(), lease)
	assert.ErrorIs(t, err, leadership.LeaseLost)
	assert.True(t, store.snap.Live(), "a lease whose leader was told that it stands has been taken away")
}

// told is a publisher that remembers what it was told.
type told []leadership.Event

func (p *told) Publish(events ...leadership.Event) { *p = append(*p, events...) }

// unseen is jobs before the first call for it.
var unseen = rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}

// annsAgain is ann, with the key of held.
var annsAgain = leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &leadership.Key{'a'}}

func TestUncommittedOrUnknownChangeIsNotObserved(t *testing.T) {
	for _, code := range []leadership.Code{leadership.StoreUnavailable, leadership.OutcomeUnknown} {
		var heard told
		store := &slowStore{snap: unseen, lost: code}
		s := service.New(store, &heard)
		_, err := s.Acquire(t.Context(), annsAgain)
		assert.ErrorIs(t, err, code)
		if len(store.events) != 1 || len(heard) > 0 {
			t.Errorf("%s: of %+v %v was told, want that nothing is told of one event", code, store.events, heard)
		}
	}
}

func TestOnlyTheRunThatIsCommittedCounts(t *testing.T) {
	for name, c := range map[string]struct {
		first, last rule.Snapshot // that the two runs see
		token       leadership.Token
		told        []leadership.Revision
	}{
		"a grant, and then a grant that ends a lease":   {unseen, held(t, 31*time.Second), 2, []leadership.Revision{2, 3}},
		"a renewal, and then a grant that ends a lease": {held(t, 29*time.Second), held(t, 31*time.Second), 2, []leadership.Revision{2, 3}},
		"a grant, and then a renewal":                   {unseen, held(t, 29*time.Second), 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var heard told
			s := service.New(&slowStore{snap: c.last, aborted: &c.first}, &heard)
			g, err := s.Acquire(t.Context(), annsAgain)
			if err != nil || g.Token != c.token || g.ExpiresIn != leadership.DefaultLeaseDuration {
				t.Errorf("got token %d with %v left, %v; want a full lease of token %d", g.Token, g.ExpiresIn, err, c.token)
			}
			var revisions []leadership.Revision
			for _, e := range heard {
				revisions = append(revisions, e.Revision)
				if !e.At.Equal(c.last.Now) {
					t.Errorf("revision %d is told as of %v, and was committed at %v", e.Revision, e.At, c.last.Now)
				}
			}
			if !slices.Equal(revisions, c.told) {
				t.Errorf("revisions %v were told, want %v", revisions, c.told)
			}
		})
	}
}

func TestDisconnectedCallerIsGrantedNothing(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	store := &slowStore{snap: unseen, reading: leave}
	_, err := service.New(store).Acquire(ctx, annsAgain)
	if store.snap != unseen {
		t.Errorf("wrote %+v", store.snap)
	}
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.StoreUnavailable, context.Canceled)
	}
}

// torn is a store whose list has a page, and breaks off.
type torn struct{ *slowStore }

func (s torn) List(_ context.Context, _ string, after leadership.Election, _ int) (rule.Listing, error) {
	if after != "" {
		return rule.Listing{}, leadership.StoreUnavailable
	}
	return rule.Listing{Snapshots: []rule.Snapshot{s.snap}, Next: s.snap.Record.Election}, nil
}

func (s torn) Get(context.Context, leadership.Election) (rule.Snapshot, error) {
	return s.snap, nil
}

func (s torn) Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	return s.List(ctx, "", after, limit)
}

// endless is a store with so many pages of held leases that no call comes to their end. Those of
// the last page are over.
type endless struct {
	*slowStore
	pages, perCall int
	read           []leadership.Election
	end            context.CancelFunc
}

func (s *endless) Held(ctx context.Context, after leadership.Election, _ int) (rule.Listing, error) {
	if ctx.Err() != nil {
		return rule.Listing{}, fmt.Errorf("%w: %w", leadership.StoreUnavailable, ctx.Err())
	}
	if s.read = append(s.read, after); len(s.read)%s.perCall == 0 {
		s.end()
	}
	n, _ := strconv.Atoi(string(after))
	if n+1 == s.pages {
		return rule.Listing{Snapshots: []rule.Snapshot{s.snap}}, nil
	}
	return rule.Listing{Next: leadership.Election(strconv.Itoa(n + 1))}, nil
}

func TestSweepsThatAreCutShortReachAllElectionsTogether(t *testing.T) {
	store, _, _ := slow(t)
	store.snap.Now = store.snap.Now.Add(2 * time.Second)
	held := &endless{slowStore: store, pages: 10, perCall: 4}
	s := service.New(held)
	expired := 0
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		held.end = cancel
		n, err := s.ExpireAll(ctx)
		if expired += n; !errors.Is(err, context.Canceled) {
			t.Errorf("a sweep that was cut short: %v", err)
		}
		cancel()
	}
	if expired != 1 {
		t.Errorf("%d leases were recorded as over, want 1; pages read: %q", expired, held.read)
	}
	held.perCall = 1000
	held.read = nil
	if _, err := s.ExpireAll(t.Context()); err != nil || !slices.Contains(held.read, "") || len(held.read) < held.pages {
		t.Errorf("a sweep that has time read pages %q, %v; want all", held.read, err)
	}
}

func TestAListThatBreaksOffIsAnErrorAndNotItsEnd(t *testing.T) {
	store, _, _ := slow(t)
	store.snap.Now = store.snap.Now.Add(2 * time.Second)
	s := service.New(torn{store})
	if n, err := s.ExpireAll(t.Context()); !errors.Is(err, leadership.StoreUnavailable) || n != 1 {
		t.Errorf("expire all: got %d, %v; want the one that was listed, and %s", n, err, leadership.StoreUnavailable)
	}
	if tree, err := s.Tree(t.Context(), "jobs"); !errors.Is(err, leadership.StoreUnavailable) || tree.Complete {
		t.Errorf("a tree: got %+v, %v; want what was listed, and %s", tree, err, leadership.StoreUnavailable)
	}
}

// past is a store with a history.
type past struct {
	service.Store
	snap   rule.Snapshot
	events []leadership.Event
	reads  int
}

func (s *past) Events(context.Context, leadership.Election, leadership.Revision, int) ([]leadership.Event, error) {
	s.reads++
	return s.events, nil
}

func (s *past) Get(context.Context, leadership.Election) (rule.Snapshot, error) {
	return s.snap, nil
}

func TestAHistoryIsReadOnceAndWhatIsNotThereIsSaid(t *testing.T) {
	at := func(r leadership.Revision) rule.Snapshot {
		return rule.Snapshot{Record: rule.Record{Election: "jobs", Revision: r}, Now: noon}
	}
	event := func(r leadership.Revision) []leadership.Event {
		return []leadership.Event{{Election: "jobs", Revision: r}}
	}
	for what, c := range map[string]struct {
		past past
		want error
	}{
		"the next event":                 {past{snap: at(3), events: event(3)}, nil},
		"nothing yet":                    {past{snap: at(2)}, nil},
		"no such election":               {past{snap: at(0)}, leadership.NotFound},
		"what was forgotten":             {past{snap: at(3)}, leadership.HistoryCompacted},
		"the event before was forgotten": {past{snap: at(4), events: event(4)}, leadership.HistoryCompacted},
	} {
		got, err := service.New(&c.past).Events(t.Context(), leadership.EventsRequest{Election: "jobs", After: 2})
		if !errors.Is(err, c.want) || err == nil && len(got) != len(c.past.events) || len(c.past.events) > 0 && c.past.reads != 1 {
			t.Errorf("%s: got %+v, %v, in %d reads; want %v", what, got, err, c.past.reads, c.want)
		}
	}
}

func TestALeaseHasTheNoteOfItsGrant(t *testing.T) {
	s := service.New(&slowStore{snap: rule.Snapshot{Now: noon, Guard: guard}})
	if g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Note: "by hand"}); err != nil || g.Note != "by hand" {
		t.Errorf("got %q, %v", g.Note, err)
	}
}

func TestAChangeIsRecordedWithItsActor(t *testing.T) {
	store, s, lease := slow(t)
	ctx := leadership.WithActor(leadership.WithRequestID(t.Context(), "request-1"), "ann@example.com")
	_, err := s.Do(ctx, leadership.Release{LeaseRequest: lease})
	require.NoError(t, err)
	if last := store.events[len(store.events)-1]; last.Actor != "ann@example.com" || last.RequestID != "request-1" || store.events[0].Actor != "" {
		t.Errorf("got %+v", store.events)
	}
}

// What may be refused, or may find nothing to do, must not: the store then takes no lock for it.
func TestOnlyCommandsThatNearlyAlwaysWriteExpectTo(t *testing.T) {
	t.Parallel()
	store := new(slowStore)
	service := service.New(store)
	key := leadership.NewKey()
	lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: key, Token: 1}
	for _, c := range []struct {
		what     string
		do       func() error
		expected bool
	}{
		{"acquire", func() error {
			_, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &key})
			return err
		}, false},
		{"expire", func() error { _, err := service.Expire(t.Context(), "jobs"); return err }, false},
		{"configure", func() error {
			_, err := service.Do(t.Context(), leadership.Configure{Election: "jobs"})
			return err
		}, true},
		{"release", func() error { _, err := service.Do(t.Context(), leadership.Release{LeaseRequest: lease}); return err }, true},
		{"delete", func() error {
			_, err := service.Do(t.Context(), leadership.Delete{Election: "jobs"})
			return err
		}, true},
	} {
		assert.NoError(t, c.do(), c.what)
		if store.expected != c.expected {
			t.Errorf("%s expects to write: %v, want %v", c.what, store.expected, c.expected)
		}
	}
}
