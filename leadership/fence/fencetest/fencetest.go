// Package fencetest is the test suite for every fence that can be run here. Each keeps marks in
// another place, and all obey fence.Mark.Admit. The gap between a fence's check and its write
// depends on the place, and is tested with each fence.
package fencetest

import (
	"context"
	"errors"
	"testing"

	"regent/leadership"
	"regent/leadership/fence"
)

// Place is a fresh place where a fence keeps marks, with values that leaders write beside them.
type Place struct {
	// Write writes the value to the resource for the leader named by w, through the fence, and
	// returns the fence's error.
	Write func(ctx context.Context, resource string, w fence.Mark, value int64) error
	// Read returns the resource's mark and value, zero if no leader has written to it.
	Read func(t testing.TB, resource string) (fence.Mark, int64)
	// Abandon is a Write whose transaction is rolled back with that error after the fence has
	// admitted it. nil if the fence has no transactions.
	Abandon func(ctx context.Context, resource string, w fence.Mark, why error) error
}

// Run runs the suite. open makes a fresh place.
func Run(t *testing.T, open func(t testing.TB) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"a mark only rises":                             onlyRises,
		"each resource has a mark of its own":           apart,
		"no mark is left by a transaction that is lost": abandoned,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func jobs(token leadership.Token) fence.Mark { return fence.Mark{Election: "jobs", Token: token} }

// A refused write changes neither the mark nor the value; its error names the field or the newest
// token.
func onlyRises(t *testing.T, p Place) {
	for i, c := range []struct {
		w       fence.Mark
		code    leadership.Code // "" for a write that is admitted
		field   string
		current leadership.Token
	}{
		{w: jobs(0), code: leadership.InvalidArgument, field: "fencingToken"},
		{w: fence.Mark{Token: 34}, code: leadership.InvalidArgument, field: "election"},
		{w: jobs(33)},
		{w: jobs(33)}, // a leader makes many writes
		{w: jobs(34)},
		{w: jobs(33), code: leadership.TokenStale, current: 34},
		{w: fence.Mark{Election: "other", Token: 99}, code: leadership.InvalidArgument, field: "election"},
		{w: fence.Mark{Election: "other", Token: 1}, code: leadership.InvalidArgument, field: "election"},
		{w: fence.Mark{Election: "Jobs!", Token: 99}, code: leadership.InvalidArgument, field: "election"},
		{w: jobs(-1), code: leadership.InvalidArgument, field: "fencingToken"},
		{w: jobs(leadership.MaxToken + 1), code: leadership.InvalidArgument, field: "fencingToken"},
		{w: jobs(34)}, // refused writes have left no trace
		{w: jobs(leadership.MaxToken)},
		{w: jobs(leadership.MaxToken - 1), code: leadership.TokenStale, current: leadership.MaxToken},
	} {
		wantMark, wantValue := p.Read(t, "accounts")
		err := p.Write(t.Context(), "accounts", c.w, int64(i+1))
		refused, _ := errors.AsType[*leadership.Error](err)
		switch {
		case c.code == "" && err == nil:
			wantMark, wantValue = c.w, int64(i+1)
		case refused == nil || refused.Code != c.code || refused.Field != c.field:
			t.Errorf("a write by %v: %v, want %q of field %q", c.w, err, c.code, c.field)
		case c.current != 0 && (refused.Lease == nil || refused.Lease.Token != c.current):
			t.Errorf("a write by %v: %v, which does not have the newest token %d", c.w, err, c.current)
		}
		if m, value := p.Read(t, "accounts"); m != wantMark || value != wantValue {
			t.Errorf("after a write by %v: the mark is %v and the value %d, want %v and %d", c.w, m, value, wantMark, wantValue)
		}
	}
}

func apart(t *testing.T, p Place) {
	want := map[string]fence.Mark{
		"accounts": jobs(34), "Accounts": jobs(33), "account": jobs(1), "ledger": {Election: "books", Token: 7}, "it's; another \"one\" / 2": jobs(2),
	}
	for resource, w := range want {
		if err := p.Write(t.Context(), resource, w, int64(w.Token)); err != nil {
			t.Errorf("%s by %v: %v", resource, w, err)
		}
	}
	for resource, w := range want {
		if m, value := p.Read(t, resource); m != w || value != int64(w.Token) {
			t.Errorf("the mark of %s is %v and its value %d, want %v", resource, m, value, w)
		}
	}
}

func abandoned(t *testing.T, p Place) {
	if p.Abandon == nil {
		return
	}
	why := errors.New("the caller's own reason")
	for _, before := range []fence.Mark{{}, jobs(33)} {
		if err := p.Abandon(t.Context(), "accounts", jobs(34), why); !errors.Is(err, why) {
			t.Errorf("got %v, want the caller's error", err)
		}
		if m, _ := p.Read(t, "accounts"); m != before {
			t.Errorf("the mark is %v, want %v", m, before)
		}
		if err := p.Write(t.Context(), "accounts", jobs(33), 1); err != nil {
			t.Error(err)
		}
	}
}
