package firestore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/storetest"
)

// agent is a candidate with a key.
type agent struct {
	id  leadership.CandidateID
	key leadership.Key
}

func newAgent(id leadership.CandidateID) agent { return agent{id, leadership.NewKey()} }

func (a agent) ask(e leadership.Election) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &a.key}
}

func (a agent) lease(e leadership.Election, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: a.key, Token: token}
}

func (a agent) renewal(e leadership.Election, token leadership.Token) rule.Renewal {
	return rule.Renewal{Election: e, CandidateID: a.id, KeyHash: a.key.Hash(), Token: token}
}

func TestEachOperationCostsTheRPCsThatAreDocumented(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s := p.open(t, grpc.WithStatsHandler(rpcs))
	service := service.New(s)
	ann, bob := newAgent("ann"), newAgent("bob")
	ctx := t.Context()
	do := func(what string, call func() error, want ...string) {
		t.Helper()
		rpcs.Take()
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, rpcs.Take()); diff != "" {
			t.Errorf("%s: RPCs (-want +got):\n%s", what, diff)
		}
	}
	read, commit := "BatchGetDocuments", "Commit"
	do("the first grant of a database, with the secret of tickets", func() error { _, err := service.Acquire(ctx, ann.ask("first")); return err },
		read, commit, read, commit)
	do("a grant", func() error { _, err := service.Acquire(ctx, ann.ask("jobs")); return err }, read, commit)
	for range 3 {
		do("a renewal", func() error { _, err := service.Renew(ctx, ann.lease("jobs", 1)); return err }, commit)
	}
	do("an acquire by the leader", func() error { _, err := service.Acquire(ctx, ann.ask("jobs")); return err }, read, commit)
	do("a renewal after it", func() error { _, err := service.Renew(ctx, ann.lease("jobs", 1)); return err }, commit)
	do("a refusal", func() error {
		if _, err := service.Acquire(ctx, bob.ask("jobs")); !errors.Is(err, leadership.LeaseHeld) {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	}, read)
	p.advance(t, time.Hour)
	do("a takeover of an expired lease", func() error { _, err := service.Acquire(ctx, bob.ask("jobs")); return err }, read, commit)
	do("a release", func() error {
		_, err := service.Do(ctx, leadership.Release{LeaseRequest: bob.lease("jobs", 2)})
		return err
	}, read, commit)
	do("a configure", func() error {
		cmd := leadership.Configure{Config: leadership.Config{LockDelay: time.Second}}
		_, err := service.Do(ctx, cmd.In("jobs"))
		return err
	}, read, commit)
	do("a strong read", func() error { _, err := service.Get(ctx, "jobs"); return err }, read)
	do("a list", func() error { _, err := s.List(ctx, "", "", 10); return err }, "RunQuery")
	do("a history", func() error { _, err := s.Events(ctx, "jobs", 0, 10); return err }, "RunQuery")
	do("the outbox", func() error { _, err := s.Unannounced(ctx, "", 10); return err }, "RunQuery")
	do("the outbox of one election", func() error { _, err := s.Unannounced(ctx, "jobs", 10); return err }, "RunQuery")
	do("what happened lately", func() error { _, err := s.Since(ctx, time.Now().Add(-time.Minute), 10); return err }, "RunQuery")
	do("a mark", func() error { return s.MarkAnnounced(ctx, []leadership.EventID{{Election: "jobs", Revision: 1}}) }, "BatchWrite")
}

func TestAHundredRenewalsAreOneBatchWrite(t *testing.T) {
	t.Parallel()
	rpcs := new(storetest.RPCs)
	service := service.New(newProject(t).open(t, grpc.WithStatsHandler(rpcs)))
	ann := newAgent("ann")
	var batch []leadership.LeaseRequest
	for i := range 100 {
		e := leadership.Election(fmt.Sprintf("e%03d", i))
		g, err := service.Acquire(t.Context(), ann.ask(e))
		require.NoError(t, err)
		batch = append(batch, ann.lease(e, g.Token))
	}
	for range 3 {
		rpcs.Take()
		results, err := service.BatchRenew(t.Context(), batch)
		require.NoError(t, err)
		for i, r := range results {
			if r.Err != nil {
				t.Errorf("%s: %v", batch[i].Election, r.Err)
			}
		}
		if diff := cmp.Diff([]string{"BatchWrite"}, rpcs.Take()); diff != "" {
			t.Errorf("RPCs (-want +got):\n%s", diff)
		}
	}
}

func TestAGuardThatFailedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s, other := p.open(t, grpc.WithStatsHandler(rpcs)), p.open(t)
	ann := acquired(t, s, "jobs")
	if _, err := service.New(other).Renew(t.Context(), ann.lease("jobs", 1)); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"Commit"}, nil} {
		rpcs.Take()
		if got := s.Renew(t.Context(), []rule.Renewal{ann.renewal("jobs", 1)})[0].Err; !errors.Is(got, rule.ErrNotRenewed) {
			t.Errorf("got %v, want ErrNotRenewed", got)
		}
		if diff := cmp.Diff(want, rpcs.Take()); diff != "" {
			t.Errorf("RPCs (-want +got):\n%s", diff)
		}
	}
}
