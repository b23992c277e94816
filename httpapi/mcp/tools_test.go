package mcp_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/service"
)

func TestAModelThatDoesNotLeadLearnsWhoDoes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m, other := connect(t, door, ann()), connect(t, door, bob())
		m.must("lead", args{"election": "reports", "candidateId": "ann", "leaseDuration": "30s", "metadata": args{"address": "10.0.0.7"}})
		_, refusal := other.call("lead", args{"election": "reports", "candidateId": "bob"})
		if !begins(refusal, leadership.LeaseHeld) || !strings.Contains(refusal, `"ann" leads`) || !strings.Contains(refusal, "Do not act as leader") {
			t.Errorf("lead: %s", refusal)
		}
		began := time.Now()
		_, refusal = other.call("lead", args{"election": "reports", "candidateId": "bob", "wait": "90s"})
		if !begins(refusal, leadership.LeaseHeld) || !strings.Contains(refusal, `"ann" leads`) || !strings.Contains(refusal, "fencing token 1") || time.Since(began) < 90*time.Second {
			t.Errorf("lead with a wait of 90s, after %v: %s", time.Since(began), refusal)
		}
		who := other.must("who_leads", args{"election": "reports"})
		if who["leaderId"] != "ann" || who["fencingToken"] != 1.0 || who["metadata"].(args)["address"] != "10.0.0.7" || who["expiresInMs"].(float64) > 30000 {
			t.Errorf("who_leads answers %v", who)
		}
		why := other.must("why_not", args{"election": "reports", "candidateId": "bob"})
		if reasons := why["reasons"].([]any); why["leads"] != false || len(reasons) == 0 || reasons[0].(args)["code"] != "HELD" {
			t.Errorf("why_not answers %v", why)
		}
		if out := other.must("check_token", args{"election": "reports", "fencingToken": 1, "write": true}); out["current"] != true {
			t.Errorf("check_token answers %v", out)
		}
	})
}

func TestALeadThatWaitsGetsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		held := connect(t, door, ann()).must("lead", args{"election": "reports"})
		won := make(chan args)
		go func() {
			won <- connect(t, door, bob()).must("lead", args{"election": "reports", "candidateId": "bob", "wait": "5m"})
		}()
		time.Sleep(100 * time.Second) // beyond the longest wait of one call of the API
		connect(t, door, ann()).must("stop_leading", args{"handle": held["handle"]})
		if led := <-won; led["fencingToken"] != 2.0 || led["candidateId"] != "bob" {
			t.Errorf("lead answers %v", led)
		}
	})
}

func TestWatchWaitsForTheNextChange(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		led := m.must("lead", args{"election": "reports"})
		time.Sleep(time.Second)
		next := make(chan args)
		go func() {
			next <- connect(t, door, bob()).must("watch", args{"election": "reports", "wait": "5m"})
		}()
		time.Sleep(2 * time.Minute)
		m.must("stop_leading", args{"handle": led["handle"], "reason": "lunch"})
		seen := <-next
		if event, _ := seen["event"].(args); seen["changed"] != true || seen["revision"] != 2.0 || event["type"] != "released" || event["reason"] != "lunch" || event["previousLeader"] == nil {
			t.Errorf("watch answers %v", seen)
		}
		first := m.must("watch", args{"election": "reports", "afterRevision": 0})
		if event, _ := first["event"].(args); event["type"] != "acquired" || first["revision"] != 1.0 {
			t.Errorf("watch after 0 answers %v", first)
		}
		began := time.Now()
		none := m.must("watch", args{"election": "reports", "afterRevision": 2})
		if none["changed"] != false || none["revision"] != 2.0 || none["event"] != nil || time.Since(began) != 30*time.Second {
			t.Errorf("watch without a change answers %v after %v", none, time.Since(began))
		}
		if now := m.must("watch", args{"election": "reports", "wait": "1s"}); now["changed"] != false || now["revision"] != 2.0 {
			t.Errorf("watch from now on answers %v", now)
		}
		if out := m.must("watch", args{"election": "nothing-yet", "wait": "1s"}); out["changed"] != false || out["revision"] != 0.0 {
			t.Errorf("watch of an election that is not there yet answers %v", out)
		}
		if _, refusal := m.call("watch", args{"election": "reports", "afterRevision": 99}); !begins(refusal, leadership.RevisionMismatch) {
			t.Errorf("watch after a revision that is not: %s", refusal)
		}
	})
}

func TestAnEffectIsHadOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		handle := m.must("lead", args{"election": "reports", "candidateId": "ann"})["handle"]
		effect := func(m *model, handle any, id, state string) args {
			t.Helper()
			out := m.must("effect_begin", args{"handle": handle, "effectId": id})
			if out["state"] != state || out["effectId"] != id {
				t.Errorf("effect_begin answers %v, want %s", out, state)
			}
			return out
		}
		effect(m, handle, "mail", "new")
		effect(m, handle, "bill", "new")
		m.must("effect_finish", args{"handle": handle, "effectId": "bill", "result": args{"number": 17}})
		if _, refusal := m.call("effect_finish", args{"handle": handle, "effectId": "call"}); !begins(refusal, leadership.NotFound) {
			t.Errorf("effect_finish of what was not begun: %s", refusal)
		}
		m.must("stop_leading", args{"handle": handle})
		second := connect(t, door, bob())
		next := second.must("lead", args{"election": "reports", "candidateId": "bob", "inherit": true})
		if left, _ := next["inDoubt"].([]any); len(left) != 1 || left[0].(args)["effectId"] != "mail" {
			t.Errorf("lead answers %v", next)
		}
		if out := effect(second, next["handle"], "bill", "done"); out["result"].(args)["number"] != 17.0 {
			t.Errorf("the result is %v", out)
		}
		effect(second, next["handle"], "mail", "inDoubt")
		if out := second.must("effect_finish", args{"handle": next["handle"], "effectId": "mail"}); out["done"] != true {
			t.Errorf("effect_finish answers %v", out)
		}
	})
}

func TestALeaderDecidesWhatItIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		handle := m.must("lead", args{"election": "reports", "candidateId": "ann"})["handle"]
		question := args{"election": "reports", "candidateId": "bob", "proposalId": "p", "kind": "scale", "data": args{"to": 3}, "wait": "2m"}
		answer := make(chan args)
		go func() { answer <- connect(t, door, bob()).must("propose", question) }()
		time.Sleep(90 * time.Second) // longer than one call of the API waits
		open, _ := m.must("proposals", args{"election": "reports"})["open"].([]any)
		if len(open) != 1 || open[0].(args)["kind"] != "scale" || open[0].(args)["data"].(args)["to"] != 3.0 || open[0].(args)["decision"] != nil {
			t.Errorf("proposals answers %v", open)
		}
		if _, refusal := m.call("decide", args{"handle": handle, "proposalId": "q", "verdict": "accepted"}); !begins(refusal, leadership.NotFound) {
			t.Errorf("decide of an unknown one: %s", refusal)
		}
		m.must("decide", args{"handle": handle, "proposalId": "p", "verdict": "rejected", "note": "too many"})
		if out := (<-answer)["decision"].(args); out["verdict"] != "rejected" || out["note"] != "too many" || out["leaderId"] != "ann" || out["fencingToken"] != 1.0 {
			t.Errorf("propose answers %v", out)
		}
		if _, refusal := m.call("decide", args{"handle": handle, "proposalId": "p", "verdict": "accepted"}); !begins(refusal, leadership.InvalidArgument) {
			t.Errorf("another verdict: %s", refusal)
		}
		question["proposalId"], question["wait"] = "q", "0s"
		connect(t, door, bob()).must("propose", question)
		m.must("stop_leading", args{"handle": handle})
		next := connect(t, door, bob()).must("lead", args{"election": "reports", "candidateId": "bob", "inherit": true})
		if open, _ := next["open"].([]any); len(open) != 1 || open[0].(args)["proposalId"] != "q" {
			t.Errorf("lead answers %v", next)
		}
	})
}

func TestALeaderLeavesACheckpointAndAJournalBehind(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m := connect(t, door, ann())
		if _, refusal := m.call("checkpoint_get", args{"election": "reports"}); !begins(refusal, leadership.NotFound) {
			t.Errorf("checkpoint_get: %s", refusal)
		}
		led := m.must("lead", args{"election": "reports", "candidateId": "ann"})
		handle := led["handle"]
		m.must("checkpoint_put", args{"handle": handle, "sequence": 1, "task": "the yearly report", "data": args{"page": 7, "open": []any{"graph", nil}}})
		if at := m.must("journal_append", args{"handle": handle, "after": 0, "entries": []any{args{"type": "page", "data": 1}, args{"data": "two"}}}); at["index"] != 2.0 {
			t.Errorf("journal_append answers %v", at)
		}
		if at := connect(t, f.door(), ann()).must("journal_append", args{"handle": handle, "after": 2, "entries": []any{args{"data": args{"n": 3}}}}); at["index"] != 3.0 {
			t.Errorf("journal_append at another instance answers %v", at)
		}
		_, refusal := m.call("journal_append", args{"handle": handle, "after": 2, "entries": []any{args{"data": 4}}})
		if !begins(refusal, leadership.IndexMismatch) || !strings.Contains(refusal, "Read the journal") {
			t.Errorf("journal_append without the entry of the other instance: %s", refusal)
		}
		if at := m.must("journal_append", args{"handle": handle, "after": 3, "entries": []any{args{"data": 4}}}); at["index"] != 4.0 {
			t.Errorf("journal_append, decided again, answers %v", at)
		}
		page := m.must("journal_read", args{"election": "reports", "afterIndex": 1, "limit": 2})
		entries := page["entries"].([]any)
		if page["index"] != 4.0 || page["more"] != true || len(entries) != 2 || entries[0].(args)["data"] != "two" || entries[1].(args)["fencingToken"] != 1.0 {
			t.Errorf("journal_read answers %v", page)
		}
		m.must("stop_leading", args{"handle": handle})
		next := connect(t, door, bob()).must("lead", args{"election": "reports", "candidateId": "bob", "inherit": true})
		left, _ := next["inherited"].(args)
		if left["task"] != "the yearly report" || left["leaderId"] != "ann" || left["data"].(args)["page"] != 7.0 {
			t.Errorf("lead answers %v", next)
		}
		if p := m.must("checkpoint_get", args{"election": "reports"}); p["fencingToken"] != 1.0 {
			t.Errorf("checkpoint_get answers %v", p)
		}
		if _, refusal := m.call("checkpoint_put", args{"handle": handle, "sequence": 2, "data": 8}); !begins(refusal, leadership.LeaseLost) {
			t.Errorf("a late checkpoint: %s", refusal)
		}
		at := args{"handle": next["handle"], "sequence": 1, "uri": "gs://bucket/state", "sha256": strings.Repeat("ab", 32)}
		connect(t, door, bob()).must("checkpoint_put", at)
		if p := m.must("checkpoint_get", args{"election": "reports"}); p["uri"] != at["uri"] || p["sha256"] != at["sha256"] {
			t.Errorf("checkpoint_get answers %v", p)
		}
	})
}

// asked returns the notes of the requests for an approval, those with a new epoch in capitals.
func asked(m *model, election string) (notes []string) {
	for _, e := range m.must("history", args{"election": election})["events"].([]any) {
		if e := e.(args); e["type"] == "approvalRequested" {
			note := e["reason"].(string)
			if detail := e["detail"].(args); detail["newEpoch"] == true {
				note = strings.ToUpper(note)
			}
			notes = append(notes, note)
		}
	}
	return notes
}

func TestALeaderAsksForAnApprovalAndNoFormerOneDoes(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		f.configure("reports", leadership.Config{Term: leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour}}})
		door := f.door()
		m, other := connect(t, door, ann()), connect(t, door, bob())
		handle := m.must("lead", args{"election": "reports", "candidateId": "ann", "leaseDuration": "30s", "keep": "1h"})["handle"]
		for what, in := range map[string]args{
			"handle is missing":      {"note": "x"},
			"note is missing":        {"handle": handle, "note": ""},
			"256 bytes":              {"handle": handle, "note": strings.Repeat("x", 257)},
			"newEpoch":               {"handle": handle, "note": "x", "newEpoch": "yes"},
			"no handle of yours":     {"handle": "reports", "note": "x"},
			"unknown member \"why\"": {"handle": handle, "note": "x", "why": "x"},
		} {
			if _, refusal := m.call("request_approval", in); !begins(refusal, leadership.InvalidArgument) {
				t.Errorf("%s: %s", what, refusal)
			}
		}
		if _, refusal := other.call("request_approval", args{"handle": handle, "note": "x"}); !begins(refusal, leadership.InvalidArgument) {
			t.Errorf("with the handle of another: %s", refusal)
		}
		m.must("request_approval", args{"handle": handle, "note": "page 1"})
		m.must("request_approval", args{"handle": handle, "note": "page 1"}) // it is asked already
		f.ordered(other, "approve", args{"election": "reports", "fencingToken": 1, "reason": "fine"})
		connect(t, f.door(), ann()).must("request_approval", args{"handle": handle, "note": "page 2", "newEpoch": true})
		f.ordered(other, "approve", args{"election": "reports", "fencingToken": 1, "newEpoch": true, "reason": "fine"})
		f.ordered(other, "evict", args{"election": "reports", "fencingToken": 2, "ban": "1h", "reason": "enough"})
		time.Sleep(time.Minute)
		led := other.must("lead", args{"election": "reports", "candidateId": "bob"})
		for _, late := range []*model{m, connect(t, f.door(), ann())} {
			if out, refusal := late.call("request_approval", args{"handle": handle, "note": "page 3"}); !begins(refusal, leadership.LeaseLost) {
				t.Errorf("under the handle of a former leader: %v, %s", out, refusal)
			}
		}
		if got := asked(other, "reports"); !slices.Equal(got, []string{"page 1", "PAGE 2"}) {
			t.Errorf("asked: %q", got)
		}
		other.must("stop_leading", args{"handle": led["handle"]})
		led = other.must("lead", args{"election": "backups", "candidateId": "bob"})
		if _, refusal := other.call("request_approval", args{"handle": led["handle"], "note": "x"}); !begins(refusal, leadership.InvalidArgument) || !strings.Contains(refusal, "needs no approval") {
			t.Errorf("where none is needed: %s", refusal)
		}
	})
}

func TestListAndMembersShowAPageOfWhatThereIs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := connect(t, f.door(), ann())
		for _, e := range []string{"a.1", "a.2", "a.3", "b"} {
			m.must("lead", args{"election": e, "candidateId": "ann", "metadata": args{"address": "10.0.0.7"}})
		}
		names := func(out args) (all []any) {
			for _, e := range out["elections"].([]any) {
				all = append(all, e.(args)["election"], e.(args)["leaderId"], e.(args)["fencingToken"])
			}
			return all
		}
		first := m.must("list", args{"prefix": "a.", "limit": 2})
		if !slices.Equal(names(first), []any{"a.1", "ann", 1.0, "a.2", "ann", 1.0}) || first["nextPageToken"] != "a.2" {
			t.Errorf("list answers %v", first)
		}
		last := m.must("list", args{"prefix": "a.", "limit": 2, "pageToken": first["nextPageToken"]})
		if !slices.Equal(names(last), []any{"a.3", "ann", 1.0}) || last["nextPageToken"] != nil {
			t.Errorf("list answers %v", last)
		}
		go func() { m.call("lead", args{"election": "b", "candidateId": "bob", "wait": "5s"}) }()
		time.Sleep(time.Second)
		for _, n := range []int{2, 1} {
			cluster := m.must("members", args{"election": "b", "limit": n})
			nodes := cluster["nodes"].([]any)
			one := nodes[0].(args)
			if cluster["status"] != "healthy" || cluster["leader"] != "ann" || cluster["term"] != 1.0 || cluster["clusterSize"] != 2.0 || cluster["more"] != (n == 1) ||
				len(nodes) != n || one["id"] != "ann" || one["role"] != "leader" || one["position"] != nil || n == 2 && nodes[1].(args)["position"] != 1.0 {
				t.Errorf("members answers %v", cluster)
			}
		}
		time.Sleep(10 * time.Second)
		for tool, in := range map[string]args{
			"list": {"limit": 0}, "members": {"election": "b", "limit": 1001},
		} {
			if _, refusal := m.call(tool, in); !begins(refusal, leadership.InvalidArgument) || !strings.Contains(refusal, "limit is from 1 to 1000") {
				t.Errorf("%s %v: %s", tool, in, refusal)
			}
		}
		if _, refusal := m.call("list", args{"prefix": "A"}); !begins(refusal, leadership.InvalidArgument) {
			t.Errorf("list: %s", refusal)
		}
		if _, refusal := m.call("members", args{"election": "never-seen"}); !begins(refusal, leadership.NotFound) {
			t.Errorf("members: %s", refusal)
		}
	})
}

func TestAJournalBeginsWithItsSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		api := f.api()
		m := f.open(f.begin(api))
		l, j := f.journal(api, "reports", 5, 3)
		defer l.Resign(t.Context())
		page := m.must("journal_read", args{"election": "reports"})
		snapshot, _ := page["snapshot"].(args)
		entries := page["entries"].([]any)
		if snapshot["upTo"] != 3.0 || snapshot["data"].(args)["sum"] != 6.0 || len(entries) != 2 || entries[0].(args)["index"] != 4.0 || page["more"] != false || page["index"] != float64(j.Index()) {
			t.Errorf("journal_read answers %v", page)
		}
	})
}

func TestAModelLearnsThatElectionsAreHalted(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		f.configure("reports", leadership.Config{})
		halt := leadership.Order{Election: "rep*", Kind: leadership.OrderHalt, For: time.Hour, Reason: "the queue is poisoned"}
		if _, err := service.New(f.store).Do(leadership.WithActor(t.Context(), bob().String()), halt); err != nil {
			t.Fatal(err)
		}
		m := connect(t, f.door(), ann())
		if _, refusal := m.call("lead", args{"election": "reports", "candidateId": "ann"}); !begins(refusal, leadership.LeaseHeld) || !strings.Contains(refusal, `halted, as all of "rep*", for another 1h0m0s: the queue is poisoned`) {
			t.Errorf("lead: %s", refusal)
		}
		why := m.must("why_not", args{"election": "reports", "candidateId": "ann"})
		if r := why["reasons"].([]any)[0].(args); r["code"] != "HALTED" || r["elections"] != "rep*" || r["reason"] != "the queue is poisoned" || r["by"] != bob().String() {
			t.Errorf("why_not answers %v", why)
		}
	})
}

// Each call is repeated at once, and again late, at another instance: after it was undone, or
// another one followed.
func TestALateCopyOfACallChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m, other := connect(t, f.door(), ann()), connect(t, f.door(), ann())
		do := func(o leadership.Order) {
			t.Helper()
			if _, err := service.New(f.store).Do(leadership.WithActor(t.Context(), bob().String()), o); err != nil {
				t.Fatal(err)
			}
		}
		for tool, in := range map[string]args{
			"assign": {"candidateId": "bob", "for": "1h"}, "evict": {"fencingToken": 1, "ban": "1h"}, "pause": {"for": "1h"}, "resume": {}, "approve": {"fencingToken": 1},
		} {
			e := leadership.Election("to-" + tool)
			f.configure(e, leadership.Config{Term: leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Hour}}})
			m.must("lead", args{"election": e, "candidateId": "ann"})
			pause := leadership.Order{Election: e, Kind: leadership.OrderPause, For: time.Hour, Reason: "a test"}
			if tool == "resume" {
				do(pause)
			}
			in["election"], in["reason"], in["revision"] = e, "a test", m.must("who_leads", args{"election": e})["revision"]
			m.must(tool, in)
			was := f.revision(e)
			other.must(tool, in)
			if now := f.revision(e); now != was {
				t.Errorf("%s, made again, is revision %d after %d", tool, now, was)
			}
			switch kind := map[string]string{"assign": "assign", "evict": "ban", "pause": "pause"}[tool]; {
			case tool == "resume":
				do(pause)
			case kind != "":
				do(leadership.Order{Election: e, Kind: leadership.OrderLift, Override: leadership.OverrideID(fmt.Sprint(kind, "-", was)), Reason: "a test"})
			}
			undone := f.revision(e)
			_, refusal := other.call(tool, in)
			if now := f.revision(e); now != undone || (refusal == "") != (tool == "approve") || refusal != "" && (!begins(refusal, leadership.RevisionMismatch) || !strings.Contains(refusal, "who_leads")) {
				t.Errorf("a late copy of %s is revision %d after %d: %s", tool, now, undone, refusal)
			}
		}
		handle := m.must("lead", args{"election": "reports", "candidateId": "ann"})["handle"]
		for tool, calls := range map[string][2]args{
			"checkpoint_put": {{"sequence": 1, "data": "a"}, {"sequence": 2, "data": "b"}},
			"journal_append": {{"after": 0, "entries": []any{args{"data": "a"}}}, {"after": 1, "entries": []any{args{"data": "b"}}}},
		} {
			for _, in := range calls {
				in["handle"] = handle
				if first, again := m.must(tool, in), other.must(tool, in); !reflect.DeepEqual(first, again) {
					t.Errorf("%s answers %v and, made again, %v", tool, first, again)
				}
			}
			if out, refusal := other.call(tool, calls[0]); !begins(refusal, leadership.IndexMismatch) {
				t.Errorf("a late copy of %s: %v, %s", tool, out, refusal)
			}
		}
		if p, j := m.must("checkpoint_get", args{"election": "reports"}), m.must("journal_read", args{"election": "reports"}); p["data"] != "b" || j["index"] != 2.0 {
			t.Errorf("checkpoint_get answers %v, journal_read %v", p, j)
		}
	})
}

func TestOperatorsOverrule(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		door := f.door()
		m, olga := connect(t, door, ann()), connect(t, door, bob())
		m.must("lead", args{"election": "reports", "candidateId": "ann", "leaseDuration": "30s"})
		f.ordered(olga, "pause", args{"election": "reports", "for": "1h", "mode": "drain", "reason": "the sale"})
		why := m.must("why_not", args{"election": "reports", "candidateId": "cy"})
		if r := why["reasons"].([]any)[0].(args); r["code"] != "PAUSED" || r["reason"] != "the sale" || r["by"] != bob().String() {
			t.Errorf("why_not answers %v", why)
		}
		f.ordered(olga, "resume", args{"election": "reports", "reason": "the sale is over"})
		for _, ban := range []leadership.Order{{CandidateID: "web-*"}, {Principal: "eve@example.com"}} {
			ban.Election, ban.Kind, ban.For, ban.Reason = "reports", leadership.OrderBan, time.Hour, "nonsense"
			if _, err := service.New(f.store).Do(leadership.WithActor(t.Context(), bob().String()), ban); err != nil {
				t.Fatal(err)
			}
		}
		reasons := m.must("why_not", args{"election": "reports", "candidateId": "web-1"})["reasons"].([]any)
		if r, p := reasons[0].(args), reasons[2].(args); r["code"] != "BANNED" || r["pattern"] != "web-*" || p["code"] != "BANNED" || p["principal"] != "eve@example.com" {
			t.Errorf("why_not answers %v", reasons)
		}
		out := f.ordered(olga, "assign", args{"election": "reports", "candidateId": "cy", "for": "1h", "reason": "cy has the cache"})
		if out["endsBecause"] != "handOver" {
			t.Errorf("assign answers %v", out)
		}
		h := m.must("history", args{"election": "reports", "limit": 2})
		if events := h["events"].([]any); len(events) != 2 || events[1].(args)["type"] != "paused" || events[1].(args)["actor"] != bob().String() || h["revision"] != 2.0 {
			t.Errorf("history answers %v", h)
		}
		if _, refusal := f.order(olga, "evict", args{"election": "reports", "fencingToken": 7, "reason": "x"}); !begins(refusal, leadership.TokenStale) {
			t.Errorf("evict of another term: %s", refusal)
		}
	})
}

func TestWithoutAuthenticationAnOrderNamesItsDoor(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := f.open(f.begin(f.plain()))
		m.must("lead", args{"election": "reports"})
		f.ordered(m, "pause", args{"election": "reports", "for": "1h", "reason": "lunch"})
		if events := m.must("history", args{"election": "reports"})["events"].([]any); events[1].(args)["actor"] != "olga" {
			t.Errorf("history answers %v", events)
		}
	})
}
