package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
)

// leader is a granted lease, with the ledger on the handle through which it was granted.
type leader struct {
	*logs
	*service.Ledger
	leadership.LeaseRequest
}

// leads makes the candidate lead through a handle, for an hour.
func (l *logs) leads(s service.Store, candidate leadership.CandidateID) (leader, leadership.Grant) {
	l.Helper()
	on := service.New(s)
	g, err := on.Acquire(l.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: candidate, LeaseDuration: long})
	if err != nil {
		l.Fatalf("acquire by %s: %v", candidate, err)
	}
	return leader{l, service.NewLedger(on, journalOf(l, s)), leadership.LeaseRequest{Election: jobs, CandidateID: candidate, Key: g.Key, Token: g.Token}}, g
}

// begins expects the code or, if that is "", the effect in the state, begun by the leader with that
// token.
func (l leader) begins(id leadership.EffectID, code leadership.Code, state leadership.EffectState, by leadership.Token) {
	l.Helper()
	l.tries(id, "", code, state, by)
}

// tries is begins with an attempt id.
func (l leader) tries(id leadership.EffectID, attempt string, code leadership.Code, state leadership.EffectState, by leadership.Token) {
	l.Helper()
	e, err := l.BeginEffect(l.Context(), leadership.EffectRequest{LeaseRequest: l.LeaseRequest, ID: id, Attempt: attempt})
	if code != "" {
		l.refused("begin", err, code)
	} else if err != nil || e.ID != id || e.State != state || e.Token != by || e.At.IsZero() {
		l.Fatalf("begin %s with token %d: got %+v, %v; want %s by token %d", id, l.Token, e, err, state, by)
	}
}

// finishes expects the code or, if that is "", that the effect is done with that result.
func (l leader) finishes(id leadership.EffectID, result string, code leadership.Code) {
	l.Helper()
	e, err := l.FinishEffect(l.Context(), leadership.FinishRequest{EffectRequest: leadership.EffectRequest{LeaseRequest: l.LeaseRequest, ID: id}, Result: json.RawMessage(result)})
	if code != "" {
		l.refused("finish", err, code)
	} else if err != nil || e.State != leadership.EffectDone || string(e.Result) != result || e.Token != l.Token {
		l.Fatalf("finish %s with token %d: got %+v, %v", id, l.Token, e, err)
	}
}

func (l leader) refused(what string, err error, code leadership.Code) {
	l.Helper()
	if !errors.Is(err, code) {
		l.Fatalf("%s with token %d: got %v, want %s", what, l.Token, err, code)
	}
}

var effectCases = []journalCase{
	{"an effect is begun by one leader at a time, and is done for all that follow once it is finished", func(l *logs) {
		const (
			begun, done, inDoubt = leadership.EffectNew, leadership.EffectDone, leadership.EffectInDoubt
			stale                = leadership.TokenStale
		)
		ann, _ := l.leads(l.handles.a, "ann")
		ann.begins("mail", "", begun, 1)
		ann.begins("mail", "", begun, 1) // the reply was lost
		ann.tries("pay", "1", "", begun, 1)
		ann.tries("pay", "1", "", begun, 1) // the reply was lost
		ann.tries("pay", "2", "", inDoubt, 1)
		ann.begins("pay", "", inDoubt, 1)
		ann.tries("pay", "not one", leadership.InvalidArgument, "", 0)
		ann.finishes("pay", "", "")
		ann.tries("pay", "1", "", done, 1)
		ann.begins("bill", "", begun, 1)
		ann.finishes("bill", `{"n":1}`, "")
		ann.finishes("bill", `{"n":1}`, "")
		ann.finishes("bill", `{"n":2}`, leadership.InvalidArgument)
		ann.finishes("call", `1`, leadership.NotFound)
		l.backing.Advance(l, long+time.Hour)
		bob, grant := l.leads(l.handles.b, "bob")
		ann.begins("call", "", begun, 1) // late, and before the successor has looked
		require.NoError(l, bob.Inherit(l.Context(), &grant))
		var ids []leadership.EffectID
		for _, e := range grant.InDoubt {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, []leadership.EffectID{"mail", "call"}) {
			l.Errorf("in doubt are %v, want mail and call", ids)
		}
		ann.begins("late", stale, "", 0)
		ann.finishes("mail", "", stale)
		bob.begins("bill", "", done, 1)
		bob.begins("call", "", inDoubt, 1)
		bob.finishes("call", "", "")
		bob.begins("call", "", done, 2)
	}},
}
