package rule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

// around calls do before and after each call of a journal.
type around struct {
	service.Journal
	do func()
}

func (a around) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	a.do()
	defer a.do()
	return a.Journal.Amend(ctx, id, decide)
}

func (a around) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	a.do()
	defer a.do()
	return a.Journal.Look(ctx, id)
}

// Whatever comes between the calls of the store that a leader needs to inherit, it inherits the
// last checkpoint that was put.
func TestNoCheckpointIsPutAfterItWasInherited(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Config{})
	svc := service.New(store)
	lead := func(who leadership.CandidateID) leadership.Grant {
		g, err := svc.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: who})
		require.NoError(t, err)
		return g
	}
	g := lead("ann")
	ann := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}
	ledger, last, puts := service.NewLedger(svc, store), "", int64(0)
	put := func(data string) {
		if _, err := ledger.PutCheckpoint(t.Context(), leadership.CheckpointRequest{LeaseRequest: ann, Sequence: puts + 1, Data: json.RawMessage(data)}); err == nil {
			puts, last = puts+1, data
		}
	}
	put(`"first"`)
	_, err := svc.Do(t.Context(), leadership.Release{LeaseRequest: ann})
	require.NoError(t, err)
	bob, late := lead("bob"), 0
	disturbed := service.NewLedger(svc, around{store, func() {
		late++
		put(fmt.Sprintf(`"late %d"`, late))
	}})
	err = disturbed.Inherit(t.Context(), &bob)
	if left := bob.Inherited; err != nil || left == nil || string(left.Data) != last || puts == 0 || late < 2 {
		t.Errorf("inherited %+v, %v; the last that was put is %s, after %d tries", left, err, last, late)
	}
}
