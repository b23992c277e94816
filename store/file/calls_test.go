package file_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

// behind reads jobs behind all that the writer has taken or has waiting.
func behind(t *testing.T, s *file.Store) rule.Record {
	t.Helper()
	snap, err := s.Update(t.Context(), "jobs", rule.Expect{}, func(rule.Snapshot) (rule.Change, error) { return rule.Change{}, nil })
	require.NoError(t, err)
	return snap.Record
}

// queued waits until so many calls wait for the writer.
func queued(t *testing.T, s *file.Store, calls int) {
	for s.Queued() < calls && t.Context().Err() == nil {
		runtime.Gosched()
	}
}

func TestAChangeThatWasBegunWhenItsCallerGaveUpIsUnknownAndIsDone(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	ctx, giveUp := context.WithCancel(t.Context())
	returned := make(chan struct{})
	_, err := s.Update(ctx, "jobs", rule.Expect{}, func(snap rule.Snapshot) (rule.Change, error) {
		giveUp()
		<-returned
		return rule.Acquire(snap, rule.AcquireCommand{CandidateID: "ann", KeyHash: leadership.Key{1}.Hash()})
	})
	close(returned)
	if !errors.Is(err, leadership.OutcomeUnknown) || errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.OutcomeUnknown, context.Canceled)
	}
	if r := behind(t, s); r.Token != 1 {
		t.Errorf("token %d; want that of the change, 1", r.Token)
	}
}

func TestCancelledRenewalIsUnknownAndStaysSo(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	g, err := service.Acquire(t.Context(), ask("ann"))
	require.NoError(t, err)
	lease := []rule.Renewal{{Election: "jobs", CandidateID: "ann", KeyHash: g.Key.Hash(), Token: g.Token}}
	first := s.Hold()
	second := make(chan func(), 1)
	go func() { second <- s.Hold() }()
	queued(t, s, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	answers := make(chan []rule.Renewed, 1)
	go func() { answers <- s.Renew(ctx, lease) }()
	ids := []leadership.EventID{{Election: "jobs", Revision: 1}}
	marked := make(chan error, 1)
	go func() { marked <- s.MarkAnnounced(ctx, ids) }()
	queued(t, s, 3)
	first()
	release := <-second // both are taken now, and the renewal comes behind
	giveUp()
	got := <-answers
	if err := <-marked; !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("the announcement: got %v, want %s", err, leadership.OutcomeUnknown)
	}
	lease[0].Token, ids[0].Revision = 99, 99 // the caller's again
	release()
	if r := behind(t, s); !r.HeartbeatAt.After(g.LastHeartbeat) {
		t.Errorf("the last heartbeat is of %v, that of the grant was of %v: the renewal that had begun was not done", r.HeartbeatAt, g.LastHeartbeat)
	}
	if waiting, err := s.Unannounced(t.Context(), "", 9); err != nil || len(waiting) > 0 {
		t.Errorf("the announcement that had begun was not done: %v, %v", waiting, err)
	}
	if err := got[0].Err; !errors.Is(err, leadership.OutcomeUnknown) || errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.OutcomeUnknown, context.Canceled)
	}
}

func TestRenewalCancelledBeforeItBeginsIsNotDone(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	g, err := service.Acquire(t.Context(), ask("ann"))
	require.NoError(t, err)
	release := s.Hold()
	ctx, giveUp := context.WithCancel(t.Context())
	answers := make(chan []rule.Renewed, 1)
	go func() {
		answers <- s.Renew(ctx, []rule.Renewal{{Election: "jobs", CandidateID: "ann", KeyHash: g.Key.Hash(), Token: g.Token}})
	}()
	queued(t, s, 1)
	giveUp()
	got := <-answers
	release()
	if r := behind(t, s); !r.HeartbeatAt.Equal(g.LastHeartbeat) {
		t.Errorf("the last heartbeat is of %v, that of the grant was of %v", r.HeartbeatAt, g.LastHeartbeat)
	}
	if err := got[0].Err; !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.StoreUnavailable, context.Canceled)
	}
}
