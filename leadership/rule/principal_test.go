package rule_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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
		if err != nil {
			t.Fatal(err)
		}
		ban := leadership.Order{Election: "jobs", Kind: leadership.OrderBan, Principal: banned, For: time.Hour, Reason: "new ids"}
		l, err := tr.Do(dan, ban)
		if err != nil {
			t.Fatal(err)
		}
		id := l.Overrides.List()[0].ID
		if l, err = tr.Do(dan, ban); err != nil || len(l.Overrides.List()) != 1 || l.Overrides.List()[0].ID != id {
			t.Errorf("the same order again: %+v, %v", l.Overrides, err)
		}
		if _, err := tr.Renew(eve, lease(g)); err != nil {
			t.Errorf("its present lease goes on: %v", err)
		}
		if _, err := tr.Do(eve, leadership.Release{LeaseRequest: lease(g)}); err != nil {
			t.Fatal(err)
		}
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
		if _, err := acquire(ann, "eve:1"); err != nil {
			t.Errorf("another principal: %v", err)
		}
		tr.now = tr.now.Add(time.Hour)
		if _, err := acquire(eve, "eve:2"); err != nil {
			t.Errorf("the ban is over: %v", err)
		}
	}
}

func TestABannedPrincipalTakesNothingOver(t *testing.T) {
	tr := newTree(t)
	tr.configure("jobs", leadership.Config{})
	g := tr.grant("jobs", "ann", time.Minute, leadership.Via{})
	if _, err := tr.Do(t.Context(), leadership.HandOver{LeaseRequest: lease(g), To: "bob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Do(t.Context(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "bob", Key: leadership.Key{'b'}, Token: g.Token}}); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Do(t.Context(), leadership.Yield{LeaseRequest: lease(g)}); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Do(tr.as("dan"), leadership.Order{Election: "jobs", Kind: leadership.OrderBan, Principal: "eve", For: time.Hour, Reason: "why"}); err != nil {
		t.Fatal(err)
	}
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
