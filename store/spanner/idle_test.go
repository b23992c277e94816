package spanner

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"regent/leadership"
	"regent/leadership/rule"
)

// idle makes reads without a transaction answer as of an earlier time, as an idle Spanner may.
type idle struct {
	grpc.ClientStream
	by time.Duration
}

func (s idle) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if r, ok := m.(*spannerpb.PartialResultSet); ok {
		if at := r.GetMetadata().GetTransaction().GetReadTimestamp(); at != nil {
			r.Metadata.Transaction.ReadTimestamp = timestamppb.New(at.AsTime().Add(-s.by))
		}
	}
	return err
}

// idling is a store whose reads answer as of half an hour ago. In it, ann was granted a lease of an
// hour so long ago.
func idling(t *testing.T, granted time.Duration) *Store {
	cfg := migrated(t)
	if _, err := opened(t, cfg).Update(t.Context(), "jobs", rule.Expect{}, acquire("ann")); err != nil {
		t.Fatal(err)
	}
	foreign := client(t, cfg)
	us := map[string]any{"us": granted.Microseconds()}
	execute(t, foreign, advanceSQL, us)
	execute(t, foreign, advanceEventsSQL, us)
	cfg.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		s, err := open(ctx, desc, cc, method, opts...)
		return idle{s, 30 * time.Minute}, err
	})}
	return opened(t, cfg)
}

func TestALeaseThatIsOverCanBeTakenOverFromAnIdleSpanner(t *testing.T) {
	t.Parallel()
	for leader, decide := range map[leadership.CandidateID]func(rule.Snapshot) (rule.Change, error){"bob": acquire("bob"), "": rule.Expire} {
		snap, err := idling(t, 75*time.Minute).Update(t.Context(), "jobs", rule.Expect{}, decide)
		if err != nil || snap.Record.LeaderID != leader {
			t.Errorf("%q leads, %v; want %q", snap.Record.LeaderID, err, leader)
		}
	}
}

func TestALeaseThatLastsIsNotTakenOverFromAnIdleSpanner(t *testing.T) {
	t.Parallel()
	if _, err := idling(t, 45*time.Minute).Update(t.Context(), "jobs", rule.Expect{}, acquire("bob")); !errors.Is(err, leadership.LeaseHeld) {
		t.Errorf("%v, want %s", err, leadership.LeaseHeld)
	}
}

func TestAReadOfAnIdleSpannerIsNoOlderThanItsCall(t *testing.T) {
	t.Parallel()
	const granted = 45 * time.Minute
	s := idling(t, granted)
	snap, err := s.Get(t.Context(), "jobs")
	if age := snap.Now.Sub(snap.Record.HeartbeatAt); err != nil || age < granted-s.timeout || age > granted+time.Minute {
		t.Errorf("%v, %v after the grant; want the state %v after it, or at most %v earlier", err, age, granted, s.timeout)
	}
}
