package limit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// Beginning or finishing an effect, proposing and deciding rewrite all effects, or all proposals,
// of the election, up to 512 KiB.
func TestWhatIsWrittenAnewCountsAgainstTheRateOfBytes(t *testing.T) {
	store := memory.New(memory.Config{})
	i, err := instance.New(instance.Config{Store: store, Journal: store, Name: "test", Alone: true})
	require.NoError(t, err)
	g, err := i.Acquire(t.Context(), leadership.AcquireRequest{Election: "reports", CandidateID: "ann"})
	require.NoError(t, err)
	effect := func(n int) leadership.EffectRequest {
		return leadership.EffectRequest{
			LeaseRequest: leadership.LeaseRequest{Election: "reports", CandidateID: "ann", Key: g.Key, Token: g.Token}, ID: leadership.EffectID(fmt.Sprint("e", n)),
		}
	}
	result := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	for n := range 100 {
		if _, err := i.BeginEffect(t.Context(), effect(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := i.FinishEffect(t.Context(), leadership.FinishRequest{EffectRequest: effect(n), Result: result}); err != nil {
			t.Fatal(err)
		}
	}
	large := json.RawMessage(`"` + strings.Repeat("x", leadership.MaxProposalBytes-2) + `"`)
	propose := func(n int) leadership.ProposeRequest {
		return leadership.ProposeRequest{Election: "reports", CandidateID: leadership.CandidateID(fmt.Sprint("c", n)), ID: leadership.ProposalID(fmt.Sprint("p", n)), Kind: "k", Data: large}
	}
	for n := range leadership.MaxOpenProposals - 1 {
		if _, err := i.Propose(t.Context(), propose(n)); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]func(s *instance.Guarded, ctx context.Context, n int) error{
		"begin": func(s *instance.Guarded, ctx context.Context, n int) error {
			_, err := s.BeginEffect(ctx, effect(100+n))
			return err
		},
		"begin again": func(s *instance.Guarded, ctx context.Context, n int) error {
			_, err := s.BeginEffect(ctx, effect(1))
			return err
		},
		"finish what was not begun": func(s *instance.Guarded, ctx context.Context, n int) error {
			if _, err := s.FinishEffect(ctx, leadership.FinishRequest{EffectRequest: effect(1000), Result: result}); !errors.Is(err, leadership.NotFound) {
				return err
			}
			return nil
		},
		"propose again": func(s *instance.Guarded, ctx context.Context, n int) error {
			_, err := s.Propose(ctx, propose(1))
			return err
		},
		"decide": func(s *instance.Guarded, ctx context.Context, n int) error {
			_, err := s.Decide(ctx, leadership.DecideRequest{LeaseRequest: effect(0).LeaseRequest, ID: propose(n).ID, Verdict: leadership.ProposalAccepted})
			return err
		},
	} {
		s := instance.Guard(i, limit.New(limit.Config{Limits: always(limit.Limits{Bytes: 64_000})}))
		var err error
		for n := 0; n < 50 && err == nil; n++ {
			err = call(s, by(t.Context(), "ann"), n)
		}
		if !errors.Is(err, wire.RateLimited) {
			t.Errorf("%s: 50 calls have read or written more than 5,000,000 bytes at once, with a limit of 64,000 per second, and then: %v", name, err)
		}
	}
}
