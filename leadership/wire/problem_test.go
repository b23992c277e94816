package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// held and vacant are leases with every field that such a lease has.
func held() leadership.Lease {
	at := time.Date(2027, 3, 1, 12, 0, 0, 123456789, time.UTC)
	return leadership.Lease{
		Election: "planner", State: leadership.Held, LeaderID: "agent-7", Token: 4, Revision: 9, LeaseDuration: 1500 * time.Millisecond,
		Metadata: `{"a":"<&>"}`, ExpiresIn: 1250 * time.Millisecond, RenewIn: 250 * time.Millisecond,
		AcquiredAt: at.Add(-time.Hour), LastHeartbeat: at.Add(-time.Second), LeaseExpiration: at.Add(time.Second), ReadAt: at,
		Config: leadership.Config{LeaseDuration: 90 * time.Second, LockDelay: 15 * time.Second},
	}
}

func vacant() leadership.Lease {
	return leadership.Lease{
		Election: "planner", State: leadership.Vacant, Token: 4, Revision: 10, LeaseDuration: 90 * time.Second, LockedFor: 3 * time.Second,
		ReadAt: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC), Config: leadership.Config{LeaseDuration: 90 * time.Second}, Deleted: true,
	}
}

// limited is a lease with every limit, report and order that one can have.
func limited() leadership.Lease {
	l := held()
	l.EndsBy, l.EndsBecause, l.EndsIn = l.LeaseExpiration, leadership.EndsApproval, 1250*time.Millisecond
	l.Report, l.ReportedAt, l.ReportAge = `{"progress":412,"errors":4,"eta":"20m","custom":{"a":[1,{"b":null}]}}`, l.LastHeartbeat, time.Second
	l.Config.Term = leadership.TermPolicy{
		MaxTerm: 8 * time.Hour, Approval: leadership.ApprovalPolicy{Every: time.Hour, Need: 2}, StuckAfter: 5 * time.Minute,
		Budget: leadership.Counters{Progress: 1, Tasks: 2, TokensUsed: 1<<53 - 1, Calls: 4, Errors: 5}, ErrorRate: leadership.ErrorRate{Max: 0.1, Min: 20},
		OnTrip: leadership.TripNotify, Cooldown: 10 * time.Minute, CooldownOf: leadership.CooldownPrincipal, Verdicts: 3,
	}
	l.Config.Ballot = leadership.BallotPolicy{
		Strategy: leadership.StrategyCapability, Require: leadership.NewNames("gpu"), Prefer: leadership.NewNames("eu", "ssd"), Window: 1500 * time.Millisecond,
		Preempt: true, MinTerm: 5 * time.Minute,
		Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("a", "b", "c"), Need: 2, Grace: leadership.DefaultGrace},
	}
	l.Config.Promotion, l.Config.Delegation = true, leadership.Delegation{Parent: "plan", Depth: 0, Children: 3, Budget: 1 << 52}
	l.Succession = leadership.Succession{To: "agent-9", Since: l.LastHeartbeat, Left: l.EndsIn, Ready: true, Yielded: true}
	l.NotServing, l.Parent = true, leadership.Parent{Peer: "eu", Election: "plan", Token: 12}
	l.Overrides = leadership.NewOverrides([]leadership.Override{
		{ID: "pause-3", Kind: leadership.OverridePause, Mode: leadership.PauseDrain, Actor: "ann@example.com", Reason: "<the> \"sale\"", Since: l.AcquiredAt, Until: l.ReadAt.Add(time.Hour)},
		{ID: "cooldown-3-agent-8", Kind: leadership.OverrideCooldown, CandidateID: "agent-8", Actor: "policy", Reason: "calls", Since: l.AcquiredAt, Until: l.ReadAt.Add(time.Minute)},
	})
	return l
}

func TestEveryErrorIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, m := range Meanings() {
		for _, lease := range []leadership.Lease{held(), vacant(), limited()} {
			sent := &leadership.Error{
				Code: m.Code, Detail: "because", Field: "leaseDuration", Reason: leadership.ReasonLockDelay,
				RetryAfter: 1234 * time.Millisecond, Lease: &lease, Index: 41, Oldest: 3,
				Cause: &leadership.Cause{
					Code: leadership.ReasonBanned, Until: lease.ReadAt.Add(time.Second), Left: time.Second, LeaderID: "agent-7",
					Override: "ban-3", Actor: "ann@example.com", Because: "it hangs", Position: 3, Of: 12, Have: 1, Need: 2,
				},
			}
			got := writtenAndRead(t, fmt.Errorf("somewhere: %w", sent))
			if !errors.Is(got, m.Code) {
				t.Errorf("%s: errors.Is does not hold for %v", m.Code, got)
			}
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Errorf("%s: sent (-) and received (+) differ:\n%s", m.Code, diff)
			}
		}
	}
}

func writtenAndRead(t *testing.T, err error) *leadership.Error {
	t.Helper()
	text, err := Marshal(NewProblem(err))
	require.NoError(t, err)
	p, err := DecodeProblem(text)
	require.NoError(t, err)
	return p.Leadership()
}

func TestCauseOfAnErrorStaysInTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code leadership.Code
	}{
		{errors.New("secret"), Internal},
		{fmt.Errorf("file: secret: %w", leadership.StoreUnavailable), leadership.StoreUnavailable},
		{fmt.Errorf("%w: secret", leadership.OutcomeUnknown), leadership.OutcomeUnknown},
		{fmt.Errorf("secret: %w", &leadership.Error{Code: leadership.RecordCorrupt, Detail: "told"}), leadership.RecordCorrupt},
		{&leadership.Error{Code: "SECRET", Detail: "secret"}, Internal},
	} {
		text, err := Marshal(NewProblem(c.err))
		require.NoError(t, err)
		if strings.Contains(strings.ToLower(string(text)), "secret") {
			t.Errorf("%v becomes %s", c.err, text)
		}
		if got := writtenAndRead(t, c.err); got.Code != c.code || got.Detail == "" {
			t.Errorf("%v becomes %v, want code %s and a detail", c.err, got, c.code)
		}
	}
}

func TestUnavailableServerSaysWhenToRetry(t *testing.T) {
	t.Parallel()
	for _, code := range []leadership.Code{leadership.StoreUnavailable, leadership.OutcomeUnknown, Draining} {
		assert.EqualValues(t, 500, NewProblem(code).RetryAfterMs, "%s has retryAfterMs", code)
	}
}

func TestFieldOfAnErrorIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"candidateId", "election", "pageSize", "If-Match", "metadata", "policy.approval.every"} {
		err := &leadership.Error{Code: leadership.InvalidArgument, Detail: "because", Field: field}
		if got := writtenAndRead(t, err).Field; got != field {
			t.Errorf("field %q comes back as %q", field, got)
		}
		at := At("renewals", 3)
		in := NewProblem(err).In(at)
		if want := at + "/" + strings.ReplaceAll(field, ".", "/"); in.Errors[0].Pointer != want || in.Errors[0].Parameter != "" {
			t.Errorf("in a batch field %q is at %+v, want %q", field, in.Errors[0], want)
		}
		if got := in.Out(at).Leadership().Field; got != field {
			t.Errorf("from a batch field %q comes back as %q", field, got)
		}
	}
}

func TestExplanationsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	at := limited().ReadAt
	sent := leadership.Explanation{Election: "planner", CandidateID: "agent-8", ReadAt: at, Causes: []leadership.Cause{
		{Code: leadership.ReasonRights},
		{Code: leadership.ReasonBanned, Until: at.Add(time.Second), Left: time.Second, Override: "ban-3", Actor: "ann", Because: "it hangs"},
		{Code: leadership.ReasonHeld, LeaderID: "agent-7", Until: at.Add(time.Minute), Left: time.Minute},
		{Code: leadership.ReasonInLine, Position: 3, Of: 12},
		{Code: leadership.ReasonOutranked, Position: 2, Of: 3, Left: time.Second, Until: at.Add(time.Second)},
		{Code: leadership.ReasonQuorum, Have: 0, Need: 2, Position: 1, Of: 1},
	}}
	text, err := Marshal(NewExplanation(sent))
	require.NoError(t, err)
	var w Explanation
	require.NoError(t, Unmarshal(text, &w))
	assert.Empty(t, cmp.Diff(sent, w.Leadership()), "sent (-) and received (+) differ")
	if w.Leads = true; strings.Contains(string(text), `"until":"0001`) || !w.Leadership().Leads {
		t.Errorf("the explanation is %s", text)
	}
}

func TestReplyOfANewerServerIsRead(t *testing.T) {
	t.Parallel()
	text, err := Marshal(NewLease(limited()))
	require.NoError(t, err)
	for _, added := range []string{`"future":7,`, `"future":{"election":[{"a":null}]},`, `"Election":"other",`} {
		var w Lease
		if err := Unmarshal([]byte("{"+added+string(text[1:])), &w); err != nil {
			t.Errorf("with %s: %v", added, err)
		} else if got, err := w.Leadership(); err != nil || !cmp.Equal(got, limited()) {
			t.Errorf("with %s: read as %+v, %v", added, got, err)
		}
	}
	for known, newer := range map[string]string{
		`"overrides":[{`: `"overrides":[{"future":[],`, `"policy":{`: `"policy":{"future":{},`, `"succession":{`: `"succession":{"phase":"loading",`, `"budget":{`: `"budget":{"gpuHours":7,`, `"endsBecause":"approval"`: `"endsBecause":"approval","until":7`,
	} {
		text := strings.Replace(string(text), known, newer, 1)
		var w Lease
		if err := Unmarshal([]byte(text), &w); err != nil || !strings.Contains(text, newer) {
			t.Errorf("%s: %v", text, err)
		} else if got, err := w.Leadership(); err != nil || !cmp.Equal(got, limited()) {
			t.Errorf("with %s: read as %+v, %v", newer, got, err)
		}
	}
	var w Lease
	unknown := strings.NewReplacer(`"report":{`, `"report":{"future":{},`, `"kind":"pause"`, `"kind":"future"`, `"endsBecause":"approval"`, `"endsBecause":"future"`,
		`"strategy":"capability"`, `"strategy":"future"`, `"need":2,"grace"`, `"need":{"of":"each region"},"grace"`).Replace(string(text))
	require.NoError(t, Unmarshal([]byte(unknown), &w))
	if got, err := w.Leadership(); err != nil || got.Token != 4 || got.Report != "" || got.EndsBecause != "future" || got.Overrides.List()[0].Kind != "future" {
		t.Errorf("with values that this version does not know: read as %+v, %v", got, err)
	}
	if err := Unmarshal([]byte(`{"election":"other",`+string(text[1:])), new(Lease)); err == nil {
		t.Error("a reply with a field twice is read")
	}
}

func TestRoundingNeverGivesMoreTime(t *testing.T) {
	t.Parallel()
	l := held()
	l.ExpiresIn, l.RenewIn = 1999*time.Microsecond, 999*time.Microsecond
	w := NewLease(l)
	if *w.ExpiresInMs != 1 || *w.RenewInMs != 0 {
		t.Errorf("1.999 ms and 0.999 ms are written as %d ms and %d ms, want 1 and 0", *w.ExpiresInMs, *w.RenewInMs)
	}
	v := vacant()
	v.LockedFor = time.Nanosecond
	if got := NewLease(v).LockedForMs; got != 1 {
		t.Errorf("a lock of 1 ns is written as %d ms, want 1", got)
	}
	if got := NewProblem(&leadership.Error{Code: leadership.LeaseHeld, RetryAfter: 1000001}).RetryAfterMs; got != 2 {
		t.Errorf("a wait of 1.000001 ms is written as %d ms, want 2", got)
	}
}

func TestImpossibleLeaseIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Lease){
		"no election":         func(l *Lease) { l.Election = "" },
		"an unknown state":    func(l *Lease) { l.State = "perhaps" },
		"no leader":           func(l *Lease) { l.LeaderID = "" },
		"no token":            func(l *Lease) { l.FencingToken = 0 },
		"no remaining time":   func(l *Lease) { l.ExpiresInMs = nil },
		"metadata of no kind": func(l *Lease) { l.Metadata = jsontext.Value(`[]`) },
	} {
		l := NewLease(held())
		spoil(&l)
		if got, err := l.Leadership(); err == nil {
			t.Errorf("a lease with %s is read as %+v", name, got)
		}
	}
}

func TestDurationsAreWrittenInSeconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 90 * time.Second: "90s", 1500 * time.Millisecond: "1.5s", time.Millisecond: "0.001s", 24 * time.Hour: "86400s",
		24*time.Hour - time.Millisecond: "86399.999s", -1500 * time.Millisecond: "-1.5s",
	} {
		assert.Equal(t, want, Duration(d).String(), "%v is written", d)
		var back Duration
		if err := Unmarshal([]byte(`"`+want+`"`), &back); err != nil || time.Duration(back) != d {
			t.Errorf("%q is read as %v (%v), want %v", want, time.Duration(back), err, d)
		}
	}
}

func TestConditionalHeaders(t *testing.T) {
	t.Parallel()
	for _, r := range []leadership.Revision{leadership.NeverSeen, 1, 7, 1 << 60} {
		h := http.Header{}
		for name, value := range Condition(r) {
			h.Set(name, value)
		}
		if got, err := ParseCondition(h); err != nil || got != r {
			t.Errorf("the condition %v is read as %d (%v), want %d", h, got, err, r)
		}
	}
	for _, values := range [][]string{nil, {"*"}, {""}, {"7"}, {`W/"7"`}, {`"7", "8"`}, {`"7"`, `"7"`}, {"*", "*"}, {`"0"`}, {`"-1"`}, {`"07"`}, {`"+7"`}, {`"a"`}, {`"7`}, {`"9223372036854775808"`}} {
		if got, err := ParseIfMatch(values); !errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("If-Match: %q is read as %d, %v, want INVALID_ARGUMENT", values, got, err)
		}
	}
	for header, want := range map[string]bool{`"7"`: false, `W/"7"`: false, `"6", "7"`: false, "*": false, `"6"`: true, "": true, "7": true} {
		if got := NoneMatch([]string{header}, 7); got != want {
			t.Errorf("If-None-Match: %s lets revision 7 through: %t, want %t", header, got, want)
		}
	}
	assert.True(t, NoneMatch(nil, 7), "without If-None-Match nothing is let through")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"a": true, "A-Z_0.9:x": true, strings.Repeat("a", 128): true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "a\n": false, "a\x1b[31m": false, "ä": false, `"`: false, "{}": false,
	} {
		if got := ValidRequestID(id); got != want {
			t.Errorf("ValidRequestID(%q) = %t, want %t", id, got, want)
		}
	}
}
