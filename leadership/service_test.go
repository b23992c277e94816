package leadership_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"regent/leadership"
)

// slowStore is one election whose commits take a while, as those of a cloud store may: the decision is made at one instant and
// committed at a later one.
type slowStore struct {
	leadership.Store // the calls that these tests do not make
	snap             leadership.Snapshot
	commit           time.Duration // how long the next commit takes
	events           []leadership.Event
	interfere        func() // runs between a commit and its reply
}

func (s *slowStore) Update(_ context.Context, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) (leadership.Snapshot, error) {
	s.snap.Record.Election = e
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
	return done, nil
}

func (s *slowStore) Renew(ctx context.Context, leases []leadership.Renewal) []leadership.Renewed {
	end := s.snap.Record.LeaseEnd()
	snap, err := s.Update(ctx, leases[0].Election, func(s leadership.Snapshot) (leadership.Change, error) { return leadership.Renew(s, leases[0]) })
	return []leadership.Renewed{{Snapshot: snap, Before: end, Err: err}}
}

func slow(t *testing.T) (*slowStore, *leadership.Service, leadership.LeaseRequest) {
	t.Helper()
	store := &slowStore{snap: leadership.Snapshot{Now: noon, Guard: guard}}
	s := leadership.New(store)
	g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	store.snap.Now = store.snap.Now.Add(29 * time.Second)
	return store, s, leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}
}

func TestARenewalThatIsCommittedAfterTheEndIsTakenBackAndLost(t *testing.T) {
	for name, renew := range map[string]func(*leadership.Service, leadership.LeaseRequest) error{
		"renew": func(s *leadership.Service, r leadership.LeaseRequest) error {
			_, err := s.Renew(t.Context(), r)
			return err
		},
		"acquire again": func(s *leadership.Service, r leadership.LeaseRequest) error {
			_, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: r.Election, CandidateID: r.CandidateID, Key: &r.Key})
			return err
		},
		"batch": func(s *leadership.Service, r leadership.LeaseRequest) error {
			results, err := s.BatchRenew(t.Context(), []leadership.LeaseRequest{r})
			return errors.Join(err, results[0].Err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, s, lease := slow(t)
			store.commit = 2 * time.Second
			if err := renew(s, lease); !errors.Is(err, leadership.LeaseLost) {
				t.Errorf("got %v, want %s", err, leadership.LeaseLost)
			}
			r := store.snap.Record
			if last := store.events[len(store.events)-1]; r.LeaderID != "" || last.Type != leadership.EventExpired || !r.EndedAt.Equal(noon.Add(30*time.Second)) {
				t.Errorf("got %+v with %+v, want it expired at its old end", r, last)
			}
		})
	}
}

func TestARenewalThatIsCommittedJustInTimeStands(t *testing.T) {
	store, s, lease := slow(t)
	store.commit = time.Second - time.Nanosecond
	if l, err := s.Renew(t.Context(), lease); err != nil || l.ExpiresIn != 30*time.Second {
		t.Errorf("got %v, %v; want a full lease", l.ExpiresIn, err)
	}
}

func TestALateRenewalThatWasFollowedByAnotherIsNotTakenBack(t *testing.T) {
	store, s, lease := slow(t)
	store.commit = 2 * time.Second
	store.interfere = func() {
		store.interfere = nil
		store.snap.Now = store.snap.Now.Add(time.Second)
		if _, err := s.Renew(t.Context(), lease); err != nil {
			t.Errorf("the other renewal: %v", err)
		}
	}
	if _, err := s.Renew(t.Context(), lease); !errors.Is(err, leadership.LeaseLost) {
		t.Errorf("got %v, want %s", err, leadership.LeaseLost)
	}
	if !store.snap.Live() {
		t.Error("a lease whose leader was told that it stands has been taken away")
	}
}

func TestBadRequestsNameTheirField(t *testing.T) {
	s := leadership.New(&slowStore{})
	key := leadership.NewKey()
	call := func(r leadership.AcquireRequest) error { _, err := s.Acquire(t.Context(), r); return err }
	lease := func(r leadership.LeaseRequest) error { _, err := s.Renew(t.Context(), r); return err }
	for _, c := range []struct {
		field string
		err   error
	}{
		{"election", call(leadership.AcquireRequest{CandidateID: "ann"})},
		{"candidateId", call(leadership.AcquireRequest{Election: "jobs"})},
		{"leaseDuration", call(leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: time.Second - 1})},
		{"leaseDuration", call(leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: -time.Second})},
		{"leaseDuration", call(leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: 24*time.Hour + 1})},
		{"leaseDuration", call(leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: time.Second + time.Microsecond})},
		{"metadata", call(leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Metadata: []byte("[]")})},
		{"fencingToken", lease(leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: key})},
		{"fencingToken", lease(leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: key, Token: 1 << 53})},
	} {
		var e *leadership.Error
		if !errors.As(c.err, &e) || e.Code != leadership.InvalidArgument || e.Field != c.field {
			t.Errorf("%s: got %v", c.field, c.err)
		}
	}
}
