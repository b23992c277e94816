package firestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"regent/leadership"
)

func TestAnErrorOfAWriteSaysWhetherItMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	unknown := map[codes.Code]bool{
		codes.Canceled: true, codes.Unknown: true, codes.DeadlineExceeded: true, codes.Internal: true, codes.Unavailable: true, codes.DataLoss: true,
	}
	sentTo := peer.Peer{Addr: &net.TCPAddr{}}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		cause := fmt.Errorf("wrapped: %w", status.Error(c, "x"))
		want := leadership.StoreUnavailable
		if unknown[c] {
			want = leadership.OutcomeUnknown
		}
		if err := unwritten(t.Context(), "update", unlessSent(sentTo, cause)); !errors.Is(err, want) {
			t.Errorf("%v: got %v, want %v", c, err, want)
		}
		if err := unwritten(t.Context(), "update", unlessSent(peer.Peer{}, cause)); !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("%v, not sent: got %v, want STORE_UNAVAILABLE", c, err)
		}
	}
	if err := unwritten(t.Context(), "update", errIncomplete); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("an incomplete reply: got %v, want OUTCOME_UNKNOWN", err)
	}
}

func TestAContextThatEndedIsFoundInTheError(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := unavailable(ended, `get "jobs"`, status.Error(codes.Canceled, "context canceled"))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("got %v", err)
	}
	// The server's timer for the call's deadline may run out before our own.
	err = unwritten(t.Context(), `update "jobs"`, status.Error(codes.DeadlineExceeded, "too slow"))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestAProjectOrDatabaseThatIsNoIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {Project: "a/b"}, {Project: "p", Database: "a/b"}} {
		if s, err := Open(t.Context(), cfg); err == nil {
			s.Close()
			t.Errorf("%+v is opened", cfg)
		}
	}
	for want, cfg := range map[database]Config{
		"projects/p/databases/(default)": {Project: "p"},
		"projects/p/databases/leases":    {Project: "p", Database: "leases"},
	} {
		if got, err := cfg.database(); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}
