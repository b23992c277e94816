package firestore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/storetest"
)

func acquired(t *testing.T, s service.Store, elections ...leadership.Election) agent {
	t.Helper()
	ann := newAgent("ann")
	for _, e := range elections {
		if _, err := service.New(s).Acquire(t.Context(), ann.ask(e)); err != nil {
			t.Fatal(err)
		}
	}
	return ann
}

func TestHistoryBeyondTheNewestEventIsCorruptAndNotTriedForEver(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s := p.open(t, grpc.WithStatsHandler(rpcs))
	ann := acquired(t, s, "jobs")
	p.write(t, p.lease("jobs")+"/events/00000000000000000002", values{"type": text("acquired")})
	rpcs.Take()
	_, err := service.New(s).Do(t.Context(), leadership.Release{LeaseRequest: ann.lease("jobs", 1)})
	if !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("got %v, want RECORD_CORRUPT", err)
	}
	if got := rpcs.Take(); len(got) > 8 {
		t.Errorf("it took %d RPCs: %v", len(got), got)
	}
}

func TestEventsWithoutARecordAreCorruptAndStartNoTokensAnew(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	acquired(t, s, "jobs")
	p.remove(t, p.lease("jobs"))
	p.remove(t, p.lease("jobs")+"/history/newest")
	if _, err := service.New(s).Acquire(t.Context(), newAgent("bob").ask("jobs")); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("got %v, want RECORD_CORRUPT", err)
	}
}

func TestAnEventThatCannotBeReadHoldsUpItsOwnElectionOnly(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s := p.open(t, grpc.WithStatsHandler(rpcs))
	ann := acquired(t, s, "a", "b", "b-c", "c")
	if _, err := service.New(s).Do(t.Context(), leadership.Release{LeaseRequest: ann.lease("b", 1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.New(s).Acquire(t.Context(), ann.ask("b")); err != nil {
		t.Fatal(err)
	}
	p.write(t, p.lease("b")+"/events/00000000000000000002", values{"type": integer(1)}, "type")
	for _, c := range []struct {
		limit, queries int
		want           []string
	}{
		{100, 1, []string{"a 1", "b 1", "b-c 1", "c 1"}},
		{4, 2, []string{"a 1", "b 1", "b-c 1", "c 1"}},
		{3, 2, []string{"a 1", "b 1", "b-c 1"}}, // a held-up event is not read again and again
		{2, 1, []string{"a 1", "b 1"}},
		{0, 0, nil},
	} {
		rpcs.Take()
		if diff := cmp.Diff(c.want, unannounced(t, s, c.limit)); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", c.limit, diff)
		}
		if got := rpcs.Take(); len(got) != c.queries {
			t.Errorf("limit %d: %v, want %d queries", c.limit, got, c.queries)
		}
	}
	var rest []leadership.EventID
	for _, e := range []leadership.Election{"a", "b", "b-c", "c"} {
		rest = append(rest, leadership.EventID{Election: e, Revision: 1})
	}
	require.NoError(t, s.MarkAnnounced(t.Context(), rest))
	if _, err := s.Unannounced(t.Context(), "", 10); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("with nothing else left: got %v, want RECORD_CORRUPT", err)
	}
	if _, err := s.Events(t.Context(), "b", 0, 10); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("the history: got %v, want RECORD_CORRUPT", err)
	}
	if events, err := s.Events(t.Context(), "b", 2, 10); err != nil || len(events) != 1 {
		t.Errorf("what comes after: got %v, %v; want one event", events, err)
	}
}

func unannounced(t *testing.T, s service.Store, limit int) []string {
	t.Helper()
	events, err := s.Unannounced(t.Context(), "", limit)
	require.NoError(t, err)
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprint(e.Election, " ", e.Revision))
	}
	return got
}

func TestWhatOthersKeepInTheDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	acquired(t, s, "a", "b", "c")
	documents := p.database() + "/documents/"
	yes := &firestorepb.Value{ValueType: &firestorepb.Value_BooleanValue{BooleanValue: true}}
	for _, name := range []string{
		"events/1", "calendar/x/events/00000000000000000001", "zoo/x/events/00000000000000000001",
		"leadership/a/events/first", "leadership/b/history/newest/events/00000000000000000001", "leadership/b b/events/00000000000000000001",
	} {
		p.write(t, documents+name, values{"unannounced": yes})
	}
	for _, name := range []string{"A", "a!", "a!!", "b b", "~"} {
		p.write(t, documents+"leadership/"+name, values{"mine": yes})
	}
	if diff := cmp.Diff([]string{"a 1", "b 1", "c 1"}, unannounced(t, s, 3)); diff != "" {
		t.Errorf("unannounced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]leadership.Election{"a", "b", "c"}, pages(t, s, 1)); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}

// pages lists everything, so many at a time.
func pages(t *testing.T, s service.Store, limit int) []leadership.Election {
	t.Helper()
	var got []leadership.Election
	var after leadership.Election
	for range 100 {
		l, err := s.List(t.Context(), "", after, limit)
		require.NoError(t, err)
		for _, snap := range l.Snapshots {
			got = append(got, snap.Record.Election)
		}
		if after = l.Next; after == "" {
			return got
		}
	}
	t.Fatal("the list does not end")
	return nil
}

func TestReadsNeverSeeARecordApartFromItsNewestEvent(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	writer, reader := p.open(t), p.open(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		defer stop()
		done <- configureOften(ctx, writer, 200)
	}()
	for ctx.Err() == nil {
		if _, err := reader.Get(t.Context(), "jobs"); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func configureOften(ctx context.Context, s service.Store, times int) error {
	for i := range times {
		lock := time.Duration(i+1) * time.Millisecond
		_, err := service.New(s).Do(ctx, leadership.Configure{Election: "jobs", Config: leadership.Config{LockDelay: lock}})
		if err != nil {
			return err
		}
	}
	return nil
}
