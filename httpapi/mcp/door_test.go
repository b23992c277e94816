package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/service"
	"regent/leadership/wire"
)

// begins reports whether a refusal begins with a code, once, and says more.
func begins(refusal string, code leadership.Code) bool {
	rest, ok := strings.CutPrefix(refusal, string(code)+": ")
	return ok && len(rest) > 20 && !strings.Contains(rest, string(code)+":")
}

func TestAModelLeadsOverHTTP(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := connect(t, f.door(), ann())
		led := m.must("lead", args{"election": "reports", "candidateId": "ann", "leaseDuration": "30s"})
		if led["fencingToken"] != 1.0 || led["leading"] != true || led["leaseDuration"] != "30s" || led["keep"] != "120s" {
			t.Errorf("lead answers %v", led)
		}
		handle := led["handle"]
		for range 10 {
			time.Sleep(100 * time.Second)
			if out := m.must("leading", args{"handle": handle}); out["leading"] != true || out["fencingToken"] != 1.0 {
				t.Fatalf("leading answers %v", out)
			}
		}
		m.must("stop_leading", args{"handle": handle, "reason": "the work is done"})
		if l := f.election("reports"); l.LeaderID != "" {
			t.Errorf("%q leads after stop_leading", l.LeaderID)
		}
		if out := m.must("leading", args{"handle": handle}); out["leading"] != false || out["why"] == nil {
			t.Errorf("after stop_leading, leading answers %v", out)
		}
		if out := m.must("stop_leading", args{"handle": handle}); out["stopped"] != true {
			t.Errorf("the second stop_leading answers %v", out)
		}
		if f.revision("reports") != 2 {
			t.Errorf("revision %d; want that of the grant and of one release", f.revision("reports"))
		}
	})
}

func TestAModelNeverSeesAKey(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := connect(t, f.door(), ann())
		led := m.must("lead", args{"election": "reports", "inherit": true})
		for _, out := range []args{led, m.must("leading", args{"handle": led["handle"]}), m.must("who_leads", args{"election": "reports"})} {
			if _, there := out["key"]; there {
				t.Errorf("a key in %v", out)
			}
		}
		// the handle has the key, and what an instance needs; nothing of it can be read
		if text := led["handle"].(string); strings.Contains(text, "reports") || len(text) > 500 {
			t.Errorf("handle %s", text)
		}
	})
}

func TestTheServerLeadsOnForKeepAndNotLonger(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := connect(t, f.door(), ann())
		led := m.must("lead", args{"election": "reports", "leaseDuration": "10s", "keep": "60s"})
		time.Sleep(59 * time.Second)
		m.must("report", args{"handle": led["handle"], "progress": 1}) // each call with the handle counts
		time.Sleep(59 * time.Second)
		if l := f.election("reports"); l.State != leadership.Held {
			t.Fatalf("after 59 s without a call: %+v", l)
		}
		time.Sleep(12 * time.Second)
		if l := f.election("reports"); l.State != leadership.Vacant {
			t.Errorf("after keep and the lease: %+v", l)
		}
		out := m.must("leading", args{"handle": led["handle"]})
		if out["leading"] != false || out["fencingToken"] != 1.0 || out["election"] != "reports" {
			t.Errorf("leading answers %v", out)
		}
		if next := connect(t, f.door(), bob()).must("lead", args{"election": "reports"}); next["fencingToken"] != 2.0 {
			t.Errorf("the next leader gets %v", next)
		}
	})
}

func TestAnyInstanceGoesOnWithAHandle(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		first, second := f.door(), f.door()
		led := connect(t, first, ann()).must("lead", args{"election": "reports", "candidateId": "ann", "leaseDuration": "10s"})
		handle := args{"handle": led["handle"]}
		other := connect(t, second, ann())
		other.must("report", args{"handle": led["handle"], "progress": 5, "tasks": 2})
		first.Close() // this instance is being replaced
		time.Sleep(time.Minute)
		if out := other.must("leading", handle); out["leading"] != true || out["fencingToken"] != 1.0 {
			t.Fatalf("the second instance answers %v", out)
		}
		time.Sleep(time.Minute)
		third := connect(t, f.door(), ann())
		third.must("report", args{"handle": led["handle"], "progress": 6})
		time.Sleep(time.Minute)
		if r := f.election("reports").Report.Report(); r.Progress != 6 || r.Tasks != 2 {
			t.Errorf("the report is %+v; want what both instances were told", r)
		}
		if n := f.revision("reports"); n != 1 {
			t.Errorf("%d changes; want only the grant", n)
		}
	})
}

// If the instance noticed only at its next renewal, the caller could lead for some seconds beside
// the next leader.
func TestAnInstanceNoticesAtOnceThatAnotherOneHasStoppedTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		one, two := connect(t, f.door(), ann()), connect(t, f.door(), ann())
		led := one.must("lead", args{"election": "reports", "leaseDuration": "1h"})
		handle := args{"handle": led["handle"]}
		if out := two.must("leading", handle); out["leading"] != true {
			t.Fatalf("the second instance answers %v", out)
		}
		one.must("stop_leading", handle)
		if out := two.must("leading", handle); out["leading"] != false {
			t.Errorf("after stop_leading at the other instance: %v", out)
		}
		if _, refusal := two.call("checkpoint_put", args{"handle": led["handle"], "sequence": 1, "data": args{"page": 7}}); !begins(refusal, leadership.LeaseLost) {
			t.Errorf("checkpoint_put: %s", refusal)
		}
	})
}

func TestAHandleIsOfItsPrincipalAlone(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		mine := connect(t, door, ann())
		handle := mine.must("lead", args{"election": "reports"})["handle"].(string)
		anns := connect(t, door, authn.Principal{Issuer: "https://issuer.test", Subject: "ann", Email: "new@example.com"})
		if out := anns.must("leading", args{"handle": handle}); out["leading"] != true {
			t.Errorf("the same principal, with another e-mail: %v", out)
		}
		for _, p := range []authn.Principal{bob(), {}, {Issuer: "https://other.test", Subject: "ann"}, {Issuer: "https://other.test", Subject: "x", Email: "ann@test"}} {
			other := connect(t, door, p)
			for _, tool := range []string{"leading", "stop_leading", "report"} {
				if _, refusal := other.call(tool, args{"handle": handle}); !begins(refusal, leadership.InvalidArgument) {
					t.Errorf("%s by %v: %s", tool, p, refusal)
				}
			}
			if _, refusal := other.call("journal_append", args{"handle": handle, "after": 0, "entries": []any{args{"data": 1}}}); !begins(refusal, leadership.InvalidArgument) {
				t.Errorf("journal_append by %v: %s", p, refusal)
			}
		}
		if out := mine.must("leading", args{"handle": handle}); out["leading"] != true {
			t.Errorf("afterwards: %v", out)
		}
	})
}

func TestAHandleThatWasChangedIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := connect(t, f.door(), ann())
		handle := m.must("lead", args{"election": "reports"})["handle"].(string)
		bad := []string{"", "reports", "regent-lead-", handle + "A", handle[:len(handle)-1], strings.ToUpper(handle), strings.TrimPrefix(handle, "regent-lead-"), strings.Repeat("a", 1<<16)}
		for i := len("regent-lead-"); i < len(handle); i += 7 {
			other := byte('A')
			if handle[i] == other {
				other = 'B'
			}
			bad = append(bad, handle[:i]+string(other)+handle[i+1:])
		}
		for _, text := range bad {
			if out, refusal := m.call("leading", args{"handle": text}); !begins(refusal, leadership.InvalidArgument) {
				t.Errorf("handle %.80q: %v %s", text, out, refusal)
			}
		}
	})
}

func TestAHandleOfAnotherStoreIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		handle := connect(t, f.door(), ann()).must("lead", args{"election": "reports"})["handle"]
		other := &fleet{t: t, store: newStore(), start: f.start}
		if _, refusal := connect(t, other.door(), ann()).call("leading", args{"handle": handle}); !begins(refusal, leadership.InvalidArgument) {
			t.Errorf("%s", refusal)
		}
	})
}

func TestWithoutTheSecretOfTheStoreNoLeaseIsGranted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		down := true
		door, err := mcp.NewDoor(mcp.DoorConfig{API: f.api(), Clock: f.clock, Secret: func(ctx context.Context) ([]byte, error) {
			if down {
				return nil, leadership.StoreUnavailable
			}
			return service.SharedSecret(ctx, f.store)
		}})
		require.NoError(t, err)
		defer door.Close()
		m := connect(t, door, ann())
		if _, refusal := m.call("lead", args{"election": "reports"}); !begins(refusal, leadership.StoreUnavailable) || f.token("reports") != 0 {
			t.Errorf("lead: %s; token %d", refusal, f.token("reports"))
		}
		down = false
		m.must("lead", args{"election": "reports"})
	})
}

func TestOneCallerKeepsOnlySoManyLeases(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		var handles []any
		for i := range 100 {
			handles = append(handles, m.must("lead", args{"election": "e" + string(rune('a'+i%26)) + string(rune('a'+i/26))})["handle"])
		}
		if _, refusal := m.call("lead", args{"election": "one-more"}); !begins(refusal, leadership.LimitExceeded) {
			t.Errorf("lease 101: %s", refusal)
		}
		connect(t, door, bob()).must("lead", args{"election": "bobs"})
		m.must("stop_leading", args{"handle": handles[0]})
		m.must("lead", args{"election": "one-more"})
		if _, refusal := m.call("lead", args{"election": "bobs"}); refusal == "" {
			t.Error("lease 102 was granted")
		}
	})
}

func TestANewEpochGoesOnUnderItsHandle(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		f.configure("reports", leadership.Config{Term: leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour}}})
		m := connect(t, f.door(), ann())
		led := m.must("lead", args{"election": "reports"})
		if led["endsBecause"] != "approval" || led["endsInMs"].(float64) < 3.5e6 {
			t.Errorf("lead answers %v", led)
		}
		f.ordered(m, "approve", args{"election": "reports", "fencingToken": 1, "for": "2h", "newEpoch": true, "reason": "the draft is good"})
		for range 2 { // the instance that renews, and one that does not know of it
			out := m.must("leading", args{"handle": led["handle"]})
			if out["leading"] != true || out["fencingToken"] != 2.0 {
				t.Errorf("leading answers %v", out)
			}
			m = connect(t, f.door(), ann())
		}
	})
}

func TestALeaderHearsOfTheEndOfItsTerm(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		led := m.must("lead", args{"election": "reports", "leaseDuration": "30s"})
		f.ordered(connect(t, door, bob()), "evict", args{"election": "reports", "fencingToken": 1, "ban": "1h", "reason": "it writes nonsense"})
		time.Sleep(11 * time.Second)
		synctest.Wait()
		out := m.must("leading", args{"handle": led["handle"]})
		notices := out["notices"].([]any)
		if out["leading"] != true || out["endsBecause"] != "evicted" || len(notices) != 1 || notices[0].(args)["kind"] != "evicted" {
			t.Errorf("leading answers %v", out)
		}
		if out := m.must("leading", args{"handle": led["handle"]}); len(out["notices"].([]any)) != 0 {
			t.Errorf("the notice comes twice: %v", out)
		}
		time.Sleep(30 * time.Second)
		out = m.must("leading", args{"handle": led["handle"]})
		if out["leading"] != false || !strings.Contains(out["why"].(string), "Stop acting as leader") {
			t.Errorf("after the term: %v", out)
		}
		if _, refusal := m.call("lead", args{"election": "reports", "candidateId": led["candidateId"]}); !begins(refusal, leadership.LeaseHeld) || !strings.Contains(refusal, "nonsense") {
			t.Errorf("lead: %s", refusal)
		}
	})
}

// With a lease of 24 hours the next renewal is hours away.
func TestLeadingTellsOfTheEndOfTheTermBeforeTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m, olga := connect(t, door, ann()), connect(t, door, bob())
		handle := args{"handle": m.must("lead", args{"election": "reports", "leaseDuration": "24h", "keep": "1h"})["handle"]}
		tells := func(when, because string, kinds ...string) {
			t.Helper()
			synctest.Wait()
			out := m.must("leading", handle)
			var got []string
			for _, n := range out["notices"].([]any) {
				got = append(got, n.(args)["kind"].(string))
			}
			if now, _ := out["endsBecause"].(string); now != because || (out["endsInMs"] != nil) != (because != "") || !slices.Equal(got, kinds) {
				t.Errorf("%s, leading answers %v", when, out)
			}
		}
		tells("at first", "")
		f.ordered(olga, "pause", args{"election": "reports", "for": "12h", "mode": "drain", "reason": "the sale"})
		tells("after pause", "drained", "drained")
		tells("asked again", "drained")
		f.ordered(olga, "resume", args{"election": "reports", "reason": "the sale is over"})
		tells("after resume", "", "goesOn")
		f.ordered(olga, "evict", args{"election": "reports", "fencingToken": 1, "reason": "it writes nonsense"})
		tells("after evict", "evicted", "evicted")
		time.Sleep(59 * time.Minute)
		tells("later", "evicted")
		out := args{"leading": true}
		for out["leading"] == true {
			time.Sleep(59 * time.Minute)
			out = m.must("leading", handle)
		}
		if out["endsInMs"] != nil || time.Since(f.start) > 26*time.Hour {
			t.Errorf("after the term, leading answers %v", out)
		}
	})
}

// A call whose caller has gone must not be granted the lease when its turn comes.
func TestACampaignEndsWithItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		held := m.must("lead", args{"election": "reports"})
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			abandon(t, door, time.Second, "lead", args{"election": "reports", "candidateId": "bob", "wait": "5m"})
		}()
		<-gone
		synctest.Wait()
		m.must("stop_leading", args{"handle": held["handle"]})
		time.Sleep(time.Minute)
		if l := f.election("reports"); l.Token != 1 {
			t.Errorf("a caller that had gone was granted the lease: %+v", l)
		}
	})
}

func TestACallThatWaitsIsAnsweredWhenTheServerStops(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		connect(t, door, ann()).must("lead", args{"election": "reports"})
		for tool, in := range map[string]args{"watch": {"election": "reports", "wait": "5m"}, "lead": {"election": "reports", "wait": "5m"}} {
			ctx, stop := context.WithCancelCause(t.Context())
			go func() {
				time.Sleep(time.Second)
				stop(wire.Draining)
			}()
			body, _ := json.Marshal(args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": args{"name": tool, "arguments": in}})
			if status, answer := post(ctx, door, "POST", string(body), nil); status != 200 || !strings.Contains(answer, `"text":"DRAINING: `) {
				t.Errorf("%s: %d %s", tool, status, answer)
			}
		}
	})
}

func TestNoRequestLastsForEver(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		began := time.Now()
		meta := args{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": args{"name": "x", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": args{}}
		body, _ := json.Marshal(args{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": args{"_meta": meta, "notifications": args{"toolsListChanged": true}}})
		status, answer := post(t.Context(), f.door(), "POST", string(body), http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}})
		if took := time.Since(began); status != 200 || took > 6*time.Minute {
			t.Errorf("%d after %v: %s", status, took, answer)
		}
	})
}
