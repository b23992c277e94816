package spanner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/rule"
)

// The emulator runs one read-write transaction at a time in a database, so one that is under way
// shows what needs no lock.
func TestARefusalDoesNotWaitForATransactionThatIsUnderWay(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	cfg.CallTimeout = 10 * time.Second // for one that does wait
	s, foreign := opened(t, cfg), client(t, cfg)
	granted(t, s, 1)
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := foreign.ReadWriteTransaction(patience, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, spanner.NewStatement("UPDATE Leadership SET needs = needs WHERE cluster_id = 'e000'")); err != nil {
			return err
		}
		for what, decide := range map[string]func(rule.Snapshot) (rule.Change, error){"bob": acquire("bob"), "nothing": rule.Expire} {
			if _, err := s.Update(t.Context(), "e000", rule.Expect{}, decide); err != nil && !errors.Is(err, leadership.LeaseHeld) {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
