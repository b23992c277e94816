package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/fence/sqlfence"
)

// update is the recipe for a row that keeps its own token: the token is the value, too.
func (d *database) update(ctx context.Context, id int, token leadership.Token) error {
	result, err := d.ExecContext(ctx,
		"UPDATE "+d.name+"_row SET value = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2", int64(token), int64(token), id)
	if err != nil {
		return err
	}
	return sqlfence.Landed(ctx, d, result, planner(token), "SELECT fencing_token FROM "+d.name+"_row WHERE id = $1", id)
}

// row returns the row's value and its token.
func (d *database) row(t *testing.T) (value, token leadership.Token) {
	t.Helper()
	require.NoError(t, d.QueryRow("SELECT value, fencing_token FROM "+d.name+"_row WHERE id = 1").Scan(&value, &token))
	return value, token
}

func TestRowRefusesLowerTokens(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		for _, token := range []leadership.Token{33, 33, 34} {
			if err := d.update(t.Context(), 1, token); err != nil {
				t.Fatalf("token %d: %v", token, err)
			}
		}
		var refusal *leadership.Error
		if err := d.update(t.Context(), 1, 33); !errors.As(err, &refusal) || refusal.Code != leadership.TokenStale || refusal.Lease.Token != 34 {
			t.Errorf("%v, want TOKEN_STALE with token 34", err)
		}
		if value, token := d.row(t); value != 34 || token != 34 {
			t.Errorf("the row has %d by %d, want 34 by 34", value, token)
		}
		if err := d.update(t.Context(), 2, 33); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("another row: %v, want sql.ErrNoRows", err)
		}
	})
}

func TestRowKeepsTheHighestTokensWrite(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var highest leadership.Token // that was admitted; guarded by mu
		for range 8 {
			wg.Go(func() {
				for range 25 {
					token := leadership.Token(1 + rand.Int64N(1000))
					switch err := d.update(t.Context(), 1, token); {
					case err == nil:
						mu.Lock()
						highest = max(highest, token)
						mu.Unlock()
					case !errors.Is(err, leadership.TokenStale):
						t.Errorf("token %d: %v", token, err)
					}
				}
			})
		}
		wg.Wait()
		if value, token := d.row(t); value != highest || token != highest {
			t.Errorf("the row has %d by %d, and the highest that was admitted is %d", value, token, highest)
		}
	})
}
