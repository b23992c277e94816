package backoff_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership/instance/internal/backoff"
)

func TestWaitsDoubleUpToTheMaximumAndStartAgainAfterReset(t *testing.T) {
	t.Parallel()
	b := backoff.Backoff{Min: time.Second, Max: 15 * time.Second}
	for round := range 100 {
		for k, want := range []time.Duration{1, 2, 4, 8, 15, 15} {
			want *= time.Second
			if got := b.Next(); got < want*3/4 || got > want*5/4 {
				t.Fatalf("round %d, wait %d: got %v, want %v, a quarter more or less", round, k, got, want)
			}
		}
		b.Reset()
	}
}

func TestAWaitDoublesWithEachTryAndNeverOverflows(t *testing.T) {
	t.Parallel()
	for try, want := range []time.Duration{20, 40, 80, 100, 100} {
		if got := backoff.After(try, 20*time.Millisecond, 100*time.Millisecond); got != want*time.Millisecond {
			t.Errorf("after try %d: %v, want %v", try, got, want*time.Millisecond)
		}
	}
	for _, try := range []int{16, 63, 64, 1 << 30} {
		assert.Equal(t, time.Hour, backoff.After(try, time.Minute, time.Hour), "after try %d", try)
	}
}

func TestSleepEndsWithItsTimeOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		started := time.Now()
		if err := backoff.Sleep(ctx, 20*time.Second); err != nil || time.Since(started) != 20*time.Second {
			t.Errorf("got %v after %v", err, time.Since(started))
		}
		err := backoff.Sleep(ctx, time.Hour)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Minute {
			t.Errorf("got %v after %v, want the context's end", err, time.Since(started))
		}
	})
}
