package rule_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// as is a call of a verified principal.
func (tr *tree) as(names ...string) context.Context {
	return leadership.WithActor(tr.Context(), names[0], names[1:]...)
}

func TestABannedPrincipalIsGrantedUnderNoID(t *testing.T) {
	for _, banned := range []string{"eve@example.com", "https://issuer|7"} {
		tr := newTree(t)
		tr.configure("jobs", leadership.Config{})
		eve, ann, dan := tr.as("eve@example.com", "https://issuer|7"), tr.as("ann@example.com", "https://issuer|8"), tr.as("dan@example.com")
		acquire := func(ctx context.Context, id leadership.CandidateID) (leadership.Grant, error) {
			return tr.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: id})
		}
		g, err := acquire(eve, "eve:1")
		require.NoError(t, err)
		ban := leadership.Order{Election: "jobs", Kind: leadership.OrderBan, Principal: banned, For: time.Hour, Reason: "new ids"}
		l, err := tr.Do(dan, ban)
		require.NoError(t, err)
		id := l.Overrides.List()[0].ID
		if l, err = tr.Do(dan, ban); err != nil || len(l.Overrides.List()) != 1 || l.Overrides.List()[0].ID != id {
			t.Errorf("the same order again: %+v, %v", l.Overrides, err)
		}
		_, err = tr.Renew(eve, lease(g))
		assert.NoError(t, err, "its present lease goes on")
		_, err = tr.Do(eve, leadership.Release{LeaseRequest: lease(g)})
		require.NoError(t, err)
		for _, other := range []leadership.CandidateID{"eve:1", "eve:2"} {
			_, err := acquire(eve, other)
			e, ok := errors.AsType[*leadership.Error](err)
			if !ok || e.Code != leadership.LeaseHeld || e.Reason != leadership.ReasonBanned || e.Cause.Principal != banned || e.Cause.Override != id || !strings.Contains(e.Detail, `principal "`+banned) {
				t.Errorf("%s banned: %s got %v", banned, other, err)
			}
		}
		x, err := tr.Explain(dan, leadership.ExplainRequest{Election: "jobs", CandidateID: "eve:2"})
		if err != nil || len(x.Causes) != 1 || x.Causes[0].Code != leadership.ReasonBanned || x.Causes[0].Principal != banned {
			t.Errorf("explained as %+v, %v", x.Causes, err)
		}
		history, err := tr.Events(t.Context(), leadership.EventsRequest{Election: "jobs", After: 2})
		if err != nil || history[0].Type != leadership.EventBanned || !strings.Contains(history[0].Detail, `"principal":"`+banned) || history[0].Actor != "dan@example.com" {
			t.Errorf("the history: %+v, %v", history, err)
		}
		_, err = acquire(ann, "eve:1")
		assert.NoError(t, err, "another principal")
		tr.now = tr.now.Add(time.Hour)
		_, err = acquire(eve, "eve:2")
		assert.NoError(t, err, "the ban is over")
	}
}

func TestABannedPrincipalTakesNothingOver(t *testing.T) {
	tr := newTree(t)
	tr.configure("jobs", leadership.Config{})
	g := tr.grant("jobs", "ann", time.Minute, leadership.Via{})
	_, err := tr.Do(t.Context(), leadership.HandOver{LeaseRequest: lease(g), To: "bob"})
	require.NoError(t, err)
	_, err = tr.Do(t.Context(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "bob", Key: leadership.Key{'b'}, Token: g.Token}})
	require.NoError(t, err)
	_, err = tr.Do(t.Context(), leadership.Yield{LeaseRequest: lease(g)})
	require.NoError(t, err)
	_, err = tr.Do(tr.as("dan"), leadership.Order{Election: "jobs", Kind: leadership.OrderBan, Principal: "eve", For: time.Hour, Reason: "why"})
	require.NoError(t, err)
	key := leadership.Key{'b'}
	var e *leadership.Error
	if _, err := tr.Acquire(tr.as("eve"), leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", Key: &key}); !errors.As(err, &e) || e.Reason != leadership.ReasonBanned {
		t.Errorf("got %v", err)
	}
}

func TestOnlyAVerifiedPrincipalIsBanned(t *testing.T) {
	tr := newTree(t)
	tr.configure("jobs", leadership.Config{})
	for field, c := range map[string]leadership.Order{
		"principal":   {Kind: leadership.OrderBan, Principal: "eve", For: time.Hour, Reason: "why", Actor: "dan"},
		"candidateId": {Kind: leadership.OrderBan, For: time.Hour, Reason: "why", Actor: "dan"},
	} {
		_, err := tr.Do(t.Context(), c.In("jobs"))
		if e, ok := errors.AsType[*leadership.Error](err); !ok || e.Code != leadership.InvalidArgument || e.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	for _, c := range []leadership.Order{
		{Kind: leadership.OrderBan, Principal: "eve", CandidateID: "eve", For: time.Hour, Reason: "why"},
		{Kind: leadership.OrderBan, Principal: "e\nve", For: time.Hour, Reason: "why"},
		{Kind: leadership.OrderAssign, Principal: "eve", CandidateID: "eve", For: time.Hour, Reason: "why"},
	} {
		_, err := tr.Do(tr.as("dan"), c.In("jobs"))
		if e, ok := errors.AsType[*leadership.Error](err); !ok || e.Code != leadership.InvalidArgument || e.Field != "principal" {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func TestAPatternBarsACandidateThatComesAnHourLater(t *testing.T) {
	tr := newTree(t)
	tr.configure("jobs", leadership.Config{})
	ban := leadership.Order{Election: "jobs", Kind: leadership.OrderBan, CandidateID: "bad-*", For: 2 * time.Hour, Reason: "each pod has another id", Actor: "dan"}
	l, err := tr.Do(t.Context(), ban)
	require.NoError(t, err)
	id := l.Overrides.List()[0].ID
	if l, err = tr.Do(t.Context(), ban); err != nil || len(l.Overrides.List()) != 1 || l.Overrides.List()[0].ID != id {
		t.Errorf("the same order again: %+v, %v", l.Overrides, err)
	}
	tr.now = tr.now.Add(time.Hour)
	for _, barred := range []leadership.CandidateID{"bad-", "bad-7"} {
		_, err = tr.ask("jobs", barred, 0, leadership.Via{})
		e, ok := errors.AsType[*leadership.Error](err)
		if !ok || e.Reason != leadership.ReasonBanned || e.Cause.Pattern != "bad-*" || e.Cause.Override != id || e.RetryAfter != time.Hour || !strings.Contains(e.Detail, `as each candidate of "bad-*"`) {
			t.Errorf("%s got %v", barred, err)
		}
	}
	x, err := tr.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: "bad-7"})
	if err != nil || len(x.Causes) != 1 || x.Causes[0].Pattern != "bad-*" {
		t.Errorf("explained as %+v, %v", x.Causes, err)
	}
	history, err := tr.Events(t.Context(), leadership.EventsRequest{Election: "jobs", After: 1})
	if err != nil || !strings.Contains(history[0].Detail, `"candidateId":"bad-*"`) {
		t.Errorf("the history: %+v, %v", history, err)
	}
	g := tr.grant("jobs", "ba", time.Minute, leadership.Via{})
	handOver := leadership.HandOver{LeaseRequest: lease(g), To: "bad-7"}
	_, err = tr.Do(t.Context(), handOver)
	assert.ErrorIs(t, err, leadership.LeaseHeld, "handed over to one of the pattern")
	_, err = tr.Do(t.Context(), leadership.Order{Election: "jobs", Kind: leadership.OrderLift, Override: id, Reason: "mended", Actor: "dan"})
	require.NoError(t, err)
	_, err = tr.Do(t.Context(), handOver)
	assert.NoError(t, err, "once it is lifted")
	if l, err := tr.Do(t.Context(), ban); err != nil || l.Succession.To != "" {
		t.Errorf("a ban of the pattern leaves the hand-over to %q, %v", l.Succession.To, err)
	}
}

func TestAnEvictionBansWhatItNames(t *testing.T) {
	for name, c := range map[string]struct {
		order  leadership.Order
		barred []leadership.CandidateID
		free   leadership.CandidateID
	}{
		"the leader":   {leadership.Order{}, []leadership.CandidateID{"web-1"}, "web-2"},
		"a pattern":    {leadership.Order{CandidateID: "web-*"}, []leadership.CandidateID{"web-1", "web-2"}, "ann"},
		"a principal":  {leadership.Order{Principal: "eve@example.com"}, []leadership.CandidateID{"web-1", "web-2", "ann"}, ""},
		"its own name": {leadership.Order{CandidateID: "web-1"}, []leadership.CandidateID{"web-1"}, "web-2"},
	} {
		tr := newTree(t)
		eve := tr.as("eve@example.com", "https://issuer|7")
		_, err := tr.Acquire(eve, leadership.AcquireRequest{Election: "jobs", CandidateID: "web-1"})
		require.NoError(t, err)
		c.order.Election, c.order.Kind, c.order.Ban, c.order.Token, c.order.Reason = "jobs", leadership.OrderEvict, time.Hour, 1, "nonsense"
		for range 2 {
			if l, err := tr.Do(tr.as("dan"), c.order); err != nil || len(l.Overrides.List()) != 1 || l.EndsBecause != leadership.EndsEvicted {
				t.Errorf("%s: %+v, %v", name, l, err)
			}
		}
		tr.now = tr.now.Add(time.Minute)
		for _, id := range append(c.barred, c.free) {
			if id == "" {
				continue
			}
			_, err := tr.Acquire(eve, leadership.AcquireRequest{Election: "jobs", CandidateID: id})
			if e, _ := errors.AsType[*leadership.Error](err); (e != nil && e.Reason == leadership.ReasonBanned) == (id == c.free) {
				t.Errorf("%s: %s got %v", name, id, err)
			}
		}
	}
	tr := newTree(t)
	tr.grant("jobs", "web-1", time.Minute, leadership.Via{})
	for _, c := range []struct {
		order leadership.Order
		field string
		says  string
	}{
		{leadership.Order{Kind: leadership.OrderEvict, CandidateID: "db-*", Ban: time.Hour}, "candidateId", "does not cover it"},
		{leadership.Order{Kind: leadership.OrderEvict, CandidateID: "web-*"}, "ban", "say for how long"},
		{leadership.Order{Kind: leadership.OrderEvict, CandidateID: "web-1", Principal: "eve", Ban: time.Hour}, "principal", "evict takes a candidateId or a principal"},
		{leadership.Order{Kind: leadership.OrderEvict, Principal: "eve", Ban: time.Hour}, "principal", "does not verify its callers"},
		{leadership.Order{Kind: leadership.OrderBan, CandidateID: "we*", For: time.Hour}, "candidateId", "at least 3 characters"},
		{leadership.Order{Kind: leadership.OrderBan, CandidateID: "*", For: time.Hour}, "candidateId", "pause the election"},
		{leadership.Order{Kind: leadership.OrderBan, CandidateID: "web-*-1", For: time.Hour}, "candidateId", "stands at the end"},
		{leadership.Order{Kind: leadership.OrderBan, CandidateID: "web/*", For: time.Hour}, "candidateId", "is made of"},
		{leadership.Order{Kind: leadership.OrderAssign, CandidateID: "web-*", For: time.Hour}, "candidateId", "is made of"},
	} {
		c.order.Reason, c.order.Actor = "why", "dan"
		_, err := tr.Do(t.Context(), c.order.In("jobs"))
		if e, ok := errors.AsType[*leadership.Error](err); !ok || e.Code != leadership.InvalidArgument || e.Field != c.field || !strings.Contains(e.Detail, c.says) {
			t.Errorf("%+v: got %v", c.order, err)
		}
	}
	_, err := tr.ask("jobs", "web-*", 0, leadership.Via{})
	assert.ErrorIs(t, err, leadership.InvalidArgument, "a candidate that is a pattern")
}

func TestAGrantNotesTheVerifiedPrincipal(t *testing.T) {
	tr := newTree(t)
	noted := func() string {
		s, err := tr.store.Get(t.Context(), "jobs")
		require.NoError(t, err)
		return s.Record.Standing.Principal
	}
	long := "https://issuer|" + strings.Repeat("7", 300)
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"eve@example.com", "https://issuer|7"}, "https://issuer|7"}, // an e-mail may be left out of a token
		{[]string{"https://issuer|8", "https://issuer|8"}, "https://issuer|8"},
		{nil, ""},
	} {
		ctx := tr.Context()
		if c.names != nil {
			ctx = tr.as(c.names...)
		}
		request := leadership.AcquireRequest{
			Election: "jobs", CandidateID: "https:issuer:9", Key: &leadership.Key{1}, Note: "https://issuer|9", Metadata: []byte(`{"principal":"https://issuer|9"}`),
		}
		g, err := tr.Acquire(ctx, request)
		if err != nil || noted() != c.want {
			t.Errorf("%q: %q is noted, not %q: %v", c.names, noted(), c.want, err)
		}
		request.Note = "again"
		if _, err := tr.Acquire(tr.as("other"), request); err != nil || noted() != c.want {
			t.Errorf("%q: %q is noted after the leader has asked again, not %q: %v", c.names, noted(), c.want, err)
		}
		if _, err := tr.Do(ctx, leadership.Release{LeaseRequest: lease(g)}); err != nil || noted() != "" {
			t.Errorf("%q is noted of a term that is over: %v", noted(), err)
		}
	}
	if _, err := tr.Acquire(tr.as("x", long), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"}); err != nil || len(noted()) > leadership.MaxActorBytes || !strings.HasPrefix(noted(), "https://issuer|777") {
		t.Errorf("a principal of %d bytes is noted as %q: %v", len(long), noted(), err)
	}
}

// Three replicas of one service, which share an account. One trips.
func TestWhatACooldownBars(t *testing.T) {
	const account = "https://issuer|7"
	for _, c := range []struct {
		of       leadership.CooldownOf
		verified bool
		others   bool // may lead during the cooldown
	}{
		{"", true, true},
		{leadership.CooldownCandidate, true, true},
		{leadership.CooldownPrincipal, true, false},
		{leadership.CooldownPrincipal, false, true},
	} {
		tr := newTree(t)
		ctx, stranger := tr.Context(), tr.as("ann@example.com", "https://issuer|8")
		if c.verified {
			ctx = tr.as("web@example.com", account)
		}
		tr.configure("jobs", leadership.Config{Term: leadership.TermPolicy{Budget: leadership.Counters{Tasks: 1}, Cooldown: time.Hour, CooldownOf: c.of}})
		acquire := func(ctx context.Context, id leadership.CandidateID) (leadership.Grant, error) {
			return tr.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: id})
		}
		trips := func(id leadership.CandidateID) leadership.Grant {
			t.Helper()
			g, err := acquire(ctx, id)
			require.NoError(t, err)
			r := lease(g)
			r.Report = []byte(`{"tasks":2}`)
			_, err = tr.Renew(ctx, r)
			require.ErrorIs(t, err, leadership.LeaseLost, "a leader over its budget")
			tr.now = tr.now.Add(time.Minute) // its lease is over
			return g
		}
		trips("web-1")
		barred := func(id leadership.CandidateID, principal string) {
			t.Helper()
			_, err := acquire(ctx, id)
			e, ok := errors.AsType[*leadership.Error](err)
			if !ok || e.Reason != leadership.ReasonBanned || e.Cause.Override != "cooldown-1-web-1" || e.Cause.Principal != principal || e.RetryAfter != time.Hour-time.Minute {
				t.Errorf("%+v: %s got %v", c, id, err)
			}
		}
		barred("web-1", "")
		history, err := tr.Events(t.Context(), leadership.EventsRequest{Election: "jobs", After: 2})
		if err != nil || history[0].Type != leadership.EventDeposed || strings.Contains(history[0].Detail, account) == c.others {
			t.Errorf("%+v: the history says %+v, %v", c, history, err)
		}
		l, err := tr.Overrides(t.Context(), "jobs")
		if err != nil || len(l) != 1 || l[0].CandidateID != "web-1" || (l[0].Principal == account) == c.others {
			t.Errorf("%+v: the orders are %+v, %v", c, l, err)
		}
		if !c.others {
			barred("web-2", account)
			barred("web-3", account)
			x, err := tr.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: "web-2"})
			if err != nil || len(x.Causes) != 1 || x.Causes[0].Principal != account {
				t.Errorf("web-2 is explained as %+v, %v", x.Causes, err)
			}
			if x, err = tr.Explain(t.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: "web-1"}); err != nil || len(x.Causes) != 1 || x.Causes[0].Principal != "" {
				t.Errorf("web-1 is explained as %+v, %v", x.Causes, err)
			}
			g, err := acquire(stranger, "db-1")
			require.NoError(t, err, "another account")
			_, err = tr.Do(stranger, leadership.Release{LeaseRequest: lease(g)})
			require.NoError(t, err)
			tr.now = tr.now.Add(time.Hour - time.Minute)
		}
		g := trips("web-2")
		if probation := g.LeaseDuration == leadership.ProbationLease; probation == c.others {
			t.Errorf("%+v: the lease of web-2 is of %v", c, g.LeaseDuration)
		}
		if l, err = tr.Overrides(t.Context(), "jobs"); err != nil || l[len(l)-1].CandidateID != "web-2" || (l[len(l)-1].Until.Sub(l[len(l)-1].Since) == 2*time.Hour) == c.others {
			t.Errorf("%+v: after the second trip the orders are %+v, %v", c, l, err)
		}
		last := l[len(l)-1]
		_, err = tr.Do(tr.as("dan"), leadership.Order{Election: "jobs", Kind: leadership.OrderLift, Override: last.ID, Reason: "mended"})
		require.NoError(t, err)
		if g, err := acquire(ctx, "web-3"); err != nil || g.LeaseDuration == leadership.ProbationLease {
			t.Errorf("%+v: once it is lifted: a lease of %v, %v", c, g.LeaseDuration, err)
		}
	}
}
