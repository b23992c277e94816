package spanner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
)

// looked are the queries of the outbox that a store sends, each by its index and its bound. With
// refuse it cannot read the index of what is to be announced. (The emulator has no query plans.)
type looked struct {
	mu      sync.Mutex // guards all below
	queries []string
	refuse  bool
}

func (l *looked) option() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		s, err := open(ctx, desc, cc, method, opts...)
		return &lookedInto{s, l}, err
	})
}

type lookedInto struct {
	grpc.ClientStream
	looked *looked
}

func (s *lookedInto) SendMsg(m any) error {
	if r, ok := m.(*spannerpb.ExecuteSqlRequest); ok {
		if err := s.looked.note(r); err != nil {
			return err
		}
	}
	return s.ClientStream.SendMsg(m)
}

func (l *looked) note(r *spannerpb.ExecuteSqlRequest) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	const byTime, bounds = "@{FORCE_INDEX=LeadershipEventsByTime}", "v.shard IN UNNEST(@shards) AND v.committed_at >= @since AND v.pending IS NOT NULL"
	params := r.GetParams().GetFields()
	switch {
	case strings.Contains(r.Sql, byTime) && strings.Contains(r.Sql, bounds) && len(params["shards"].GetListValue().GetValues()) == shards:
		l.queries = append(l.queries, params["since"].GetStringValue())
	case strings.Contains(r.Sql, "LeadershipEventsPending"):
		if l.queries = append(l.queries, "whole"); l.refuse {
			return status.Error(codes.FailedPrecondition, "planted: it passes over too much")
		}
	}
	return nil
}

func (l *looked) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.queries
	l.queries = nil
	return taken
}

// looking returns a store whose looks are seen, and another.
func looking(t *testing.T) (*looked, *Store, *Store) {
	cfg, l := migrated(t), new(looked)
	other := opened(t, cfg)
	cfg.DialOptions = []grpc.DialOption{l.option()}
	return l, opened(t, cfg), other
}

// expect expects a look to find these events with these queries.
func (l *looked) expect(t *testing.T, s *Store, want string, queries ...string) {
	t.Helper()
	got := strings.Join(unannounced(t, s, 10), ", ")
	if diff := cmp.Diff(queries, l.take()); diff != "" || got != want {
		t.Errorf("a look found %q, want %q; its queries (-want +got):\n%s", got, want, diff)
	}
}

func (l *looks) bound() string { return l.from().Format(time.RFC3339Nano) }

func TestALookPassesOverWhatWasAnnouncedLongAgo(t *testing.T) {
	t.Parallel()
	l, s, other := looking(t)
	marked := granted(t, other, 2)
	l.expect(t, s, "e000 1, e001 1", s.looks.bound(), "whole")
	first, err := other.Events(t.Context(), marked[0].Election, 0, 1)
	require.NoError(t, err)
	if got := s.looks.from(); !got.Equal(first[0].At) {
		t.Errorf("the next look is bounded by %v, want the oldest event that waits, of %v", got, first[0].At)
	}
	l.expect(t, s, "e000 1, e001 1", s.looks.bound())
	require.NoError(t, other.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "e000", Revision: 1}, {Election: "e001", Revision: 1}}))
	l.expect(t, s, "", s.looks.bound())
	if got := s.looks.from(); !got.After(first[0].At) {
		t.Errorf("the next look is bounded by %v, want the last look, after %v", got, first[0].At)
	}
	if _, err := other.Update(t.Context(), "e001", rule.Expect{}, lockDelay(time.Second, 0)); err != nil {
		t.Fatal(err)
	}
	l.expect(t, s, "e001 2", s.looks.bound())
}

func TestTheWholeOutboxIsLookedAtOnceAnHour(t *testing.T) {
	t.Parallel()
	l, s, other := looking(t)
	foreign := other.client
	granted(t, other, 3)
	drain(t, other, 3)
	l.expect(t, s, "", s.looks.bound(), "whole")
	execute(t, foreign, "UPDATE LeadershipEvents SET pending = TRUE WHERE cluster_id = 'e001'", nil) // as if a look had missed it
	l.expect(t, s, "", s.looks.bound())
	if in := s.looks.whole.Sub(s.looks.from()); in < time.Hour-time.Minute || in > time.Hour+time.Minute {
		t.Errorf("the next look at the whole is due after %v, want an hour", in)
	}
	s.looks.whole = s.looks.from()
	l.expect(t, s, "e001 1", s.looks.bound(), "whole")
	l.expect(t, s, "e001 1", s.looks.bound()) // so it is swept
}

func TestALookThatFailsIsAnErrorAndTheNextGoesByTime(t *testing.T) {
	t.Parallel()
	l, s, other := looking(t)
	l.refuse = true
	granted(t, other, 1)
	bound := s.looks.bound()
	if events, err := s.Unannounced(t.Context(), "", 10); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("got %v, %v; want %s", events, err, leadership.StoreUnavailable)
	}
	if diff := cmp.Diff([]string{bound, "whole"}, l.take()); diff != "" {
		t.Errorf("the first look (-want +got):\n%s", diff)
	}
	l.expect(t, s, "e000 1", bound)
	s.looks.whole = s.looks.from().Add(-time.Minute) // later
	l.refuse = false
	l.expect(t, s, "e000 1", s.looks.bound(), "whole")
}

func TestALookThatIsFullHidesNothing(t *testing.T) {
	t.Parallel()
	l, s, other := looking(t)
	granted(t, other, 4)
	for range 2 { // while more wait than were asked for, it looks at the whole
		bound := s.looks.bound()
		if got := fmt.Sprint(unannounced(t, s, 2)); got != "[e000 1 e001 1]" {
			t.Errorf("got %s", got)
		}
		if diff := cmp.Diff([]string{bound, "whole"}, l.take()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	l.expect(t, s, "e000 1, e001 1, e002 1, e003 1", s.looks.bound(), "whole")
	bound := s.looks.bound()
	if got := fmt.Sprint(unannounced(t, s, 2), s.looks.bound() == bound); got != "[e000 1 e001 1] true" {
		t.Errorf("got %s; want a bound that has not moved", got)
	}
}
