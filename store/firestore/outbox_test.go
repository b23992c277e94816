package firestore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/firestore"
)

// queries are the queries of the outbox that a handle sends. With refuse it has no index for those
// with a lower bound.
type queries struct {
	mu     sync.Mutex // guards all below
	since  []time.Time
	refuse bool
}

func (q *queries) option() grpc.DialOption {
	return grpc.WithStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		s, err := stream(ctx, desc, cc, method, opts...)
		return &queried{s, q}, err
	})
}

type queried struct {
	grpc.ClientStream
	queries *queries
}

func (s *queried) SendMsg(m any) error {
	if r, ok := m.(*firestorepb.RunQueryRequest); ok && !s.queries.note(r.GetStructuredQuery().GetWhere()) {
		return status.Error(codes.FailedPrecondition, "planted: the query requires an index")
	}
	return s.ClientStream.SendMsg(m)
}

// note keeps the lower bound of a query, zero if it has none, and reports whether it can be
// answered.
func (q *queries) note(where *firestorepb.StructuredQuery_Filter) bool {
	var since time.Time
	for _, f := range where.GetCompositeFilter().GetFilters() {
		if f.GetFieldFilter().GetField().GetFieldPath() == "requestedAt" {
			since = f.GetFieldFilter().GetValue().GetTimestampValue().AsTime()
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.since = append(q.since, since)
	return !q.refuse || since.IsZero()
}

func (q *queries) take() []time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.since
	q.since = nil
	return taken
}

func leftBehind(t *testing.T, s *firestore.Store, limit int) (ids []leadership.EventID) {
	t.Helper()
	left, err := s.Unannounced(t.Context(), "", limit)
	require.NoError(t, err)
	for _, e := range left {
		ids = append(ids, e.ID())
	}
	return ids
}

func TestALookIntoTheOutboxPassesOverWhatWasAnnouncedLongAgo(t *testing.T) {
	t.Parallel()
	p, sent := newProject(t), new(queries)
	s, other := p.open(t, sent.option()), p.open(t)
	acquired(t, other, "a")
	created := p.read(t, p.event("a", 1)).CreateTime.AsTime()
	first := leftBehind(t, s, 10)
	if got := sent.take(); len(got) != 1 || !got[0].IsZero() {
		t.Fatalf("the first look is bounded by %v, want no bound", got)
	}
	require.NoError(t, other.MarkAnnounced(t.Context(), first))
	acquired(t, other, "b")
	want := []leadership.EventID{{Election: "b", Revision: 1}}
	for range 3 {
		if diff := cmp.Diff(want, leftBehind(t, s, 10)); diff != "" {
			t.Errorf("a bounded look (-want +got):\n%s", diff)
		}
		got := sent.take()
		if len(got) != 1 || got[0].Before(created.Add(-6*time.Minute)) || got[0].After(created.Add(-4*time.Minute)) {
			t.Errorf("a look is bounded by %v, want one query of the last five minutes before %v", got, created)
		}
	}
}

func TestABoundedLookFindsTheSameAsAnother(t *testing.T) {
	t.Parallel()
	for _, refuse := range []bool{false, true} {
		p, sent := newProject(t), new(queries)
		s, other := p.open(t, sent.option()), p.open(t)
		leftBehind(t, s, 10)
		sent.refuse = refuse
		service, ann := service.New(other), newAgent("ann")
		for i := range 3 {
			for _, e := range []leadership.Election{"c", "a", "b"} {
				g, err := service.Acquire(t.Context(), ann.ask(e))
				require.NoError(t, err)
				if i < 2 {
					if _, err := service.Do(t.Context(), leadership.Release{LeaseRequest: ann.lease(e, g.Token)}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, limit := range []int{1, 4, 15, 100, 100} {
			want := leftBehind(t, p.open(t), limit)
			if diff := cmp.Diff(want, leftBehind(t, s, limit)); diff != "" {
				t.Errorf("without an index %v, at most %d (-want +got):\n%s", refuse, limit, diff)
			}
		}
		if got := sent.take(); !slices.ContainsFunc(got, func(at time.Time) bool { return !at.IsZero() }) {
			t.Error("no look was bounded")
		}
	}
}
