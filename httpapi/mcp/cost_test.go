package mcp_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	cmpdiff "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/storetest"
)

// counted is a store that counts its calls.
type counted struct {
	*storetest.Fake
	calls            storetest.Counter
	renewals, amends atomic.Int64 // leases, and changes of a log
}

func newCounted(s service.Store) *counted {
	c := new(counted)
	c.Fake = &storetest.Fake{Store: s, Around: func(ctx context.Context, call storetest.Call, next func(context.Context) error) error {
		c.renewals.Add(int64(len(call.Leases)))
		return c.calls.Count(ctx, call, next)
	}}
	return c
}

func (c *counted) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	writes := false
	log, err := c.Fake.Amend(ctx, id, func(l rule.Log) (rule.LogChange, error) {
		ch, err := decide(l)
		writes = err == nil && ch.Text != ""
		return ch, err
	})
	if writes {
		c.amends.Add(1)
	}
	return log, err
}

// take returns the counts since the last take, in words.
func (c *counted) take() string {
	var all []string
	n, amends := c.calls.Take(), int(c.amends.Swap(0))
	for _, one := range []struct {
		n    int
		what string
	}{
		{n["Get"], "strong read"},
		{n["List"], "page of the list"},
		{n["Events"], "read of events"},
		{n["Update"], "transaction"},
		{int(c.renewals.Swap(0)), "renewal"},
		{n["Look"] + n["Segments"] + n["Amend"] - amends, "read of a log"},
		{amends, "write of a log"},
	} {
		switch one.n {
		case 0:
		case 1:
			all = append(all, "1 "+one.what)
		default:
			all = append(all, fmt.Sprintf("%d × %s", one.n, one.what))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

// costs makes calls, and returns a row for each.
func (f *fleet) costs() (rows []string) {
	store := newCounted(f.store)
	f.store = store
	door, other := connect(f.t, f.door(), ann()), connect(f.t, f.door(), ann())
	own := f.open(f.begin(f.api()))
	for _, m := range []*model{door, other} { // the secret of the store is read once by each instance
		m.must("stop_leading", args{"handle": m.must("lead", args{"election": "before"})["handle"]})
	}
	f.configure("idle", leadership.Config{})
	handles := map[*model]any{}
	for _, one := range []struct {
		m                 *model
		tool, means, what string
		in                args
	}{
		{door, "lead", "HTTP", "`lead`", args{"election": "reports", "leaseDuration": "1h", "keep": "1h"}},
		{door, "leading", "HTTP", "`leading`", args{}},
		{door, "report", "HTTP", "`report`", args{"progress": 1}},
		{door, "request_approval", "HTTP", "`request_approval`", args{"note": "may I?"}},
		{door, "checkpoint_put", "HTTP", "`checkpoint_put`, the first of a leader", args{"sequence": 1, "data": 1}},
		{door, "checkpoint_put", "HTTP", "`checkpoint_put`", args{"sequence": 2, "data": 2}},
		{door, "journal_append", "HTTP", "`journal_append`, the first of a leader", args{"after": 0, "entries": []any{args{"data": 1}}}},
		{door, "journal_append", "HTTP", "`journal_append`", args{"after": 1, "entries": []any{args{"data": 2}}}},
		{door, "effect_begin", "HTTP", "`effect_begin`, the first of a leader", args{"effectId": "mail"}},
		{door, "effect_begin", "HTTP", "`effect_begin`", args{"effectId": "bill"}},
		{door, "effect_finish", "HTTP", "`effect_finish`", args{"effectId": "mail"}},
		{door, "propose", "HTTP", "`propose`", args{"election": "reports", "candidateId": "dora", "proposalId": "p", "kind": "scale"}},
		{door, "decide", "HTTP", "`decide`", args{"proposalId": "p", "verdict": "accepted"}},
		{other, "leading", "HTTP", "`leading`, the first time at another instance", args{}},
		{door, "stop_leading", "HTTP", "`stop_leading`", args{}},
		{own, "lead", "stdin", "`lead`", args{"election": "backups", "leaseDuration": "1h"}},
		{own, "leading", "stdin", "`leading`", args{}},
		{own, "report", "stdin", "`report`", args{"progress": 1}},
		{own, "request_approval", "stdin", "`request_approval`", args{"note": "may I?"}},
		{own, "checkpoint_put", "stdin", "`checkpoint_put`, the first of a leader", args{"sequence": 1, "data": 1}},
		{own, "checkpoint_put", "stdin", "`checkpoint_put`", args{"sequence": 2, "data": 2}},
		{own, "journal_append", "stdin", "`journal_append`, the first of a leader", args{"after": 0, "entries": []any{args{"data": 1}}}},
		{own, "journal_append", "stdin", "`journal_append`", args{"after": 1, "entries": []any{args{"data": 2}}}},
		{own, "effect_begin", "stdin", "`effect_begin`, the first of a leader", args{"effectId": "mail"}},
		{own, "effect_begin", "stdin", "`effect_begin`", args{"effectId": "bill"}},
		{own, "effect_finish", "stdin", "`effect_finish`", args{"effectId": "mail"}},
		{own, "propose", "stdin", "`propose`", args{"election": "backups", "candidateId": "dora", "proposalId": "p", "kind": "scale"}},
		{own, "decide", "stdin", "`decide`", args{"proposalId": "p", "verdict": "accepted"}},
		{own, "proposals", "either", "`proposals`", args{"election": "backups"}},
		{own, "who_leads", "either", "`who_leads`, of which the instance has heard nothing lately", args{"election": "idle"}},
		{own, "who_leads", "either", "`who_leads`, otherwise", args{"election": "idle"}},
		{own, "list", "either", "`list`", args{}},
		{own, "members", "either", "`members`", args{"election": "idle"}},
		{own, "why_not", "either", "`why_not`", args{"election": "idle", "candidateId": "ann"}},
		{own, "history", "either", "`history`", args{"election": "idle"}},
		{own, "check_token", "either", "`check_token`", args{"election": "backups", "fencingToken": 1}},
		{own, "watch", "either", "`watch` that waits for a minute", args{"election": "idle", "wait": "60s"}},
		{own, "checkpoint_get", "either", "`checkpoint_get`", args{"election": "backups"}},
		{own, "journal_read", "either", "`journal_read`", args{"election": "backups"}},
		{door, "pause", "either", "`pause`", args{"election": "idle", "revision": 1, "for": "1h", "reason": "a test"}},
		{own, "stop_leading", "stdin", "`stop_leading`", args{}},
	} {
		switch one.tool {
		case "leading", "report", "request_approval", "checkpoint_put", "journal_append", "effect_begin", "effect_finish", "decide", "stop_leading":
			one.in["handle"] = cmp.Or(handles[one.m], handles[door])
		}
		if one.tool == "request_approval" { // later than the grant, which creates the election
			for _, e := range []leadership.Election{"reports", "backups"} {
				f.configure(e, leadership.Config{Term: leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 30 * 24 * time.Hour}}})
			}
		}
		synctest.Wait()
		store.take()
		out := one.m.must(one.tool, one.in)
		synctest.Wait()
		rows = append(rows, fmt.Sprintf("| MCP, %s | %s | %s |\n", one.means, one.what, store.take()))
		if one.tool == "lead" {
			handles[one.m] = out["handle"]
		}
	}
	kind := func(row string) int {
		return slices.IndexFunc([]string{"| MCP, HTTP", "| MCP, stdin", "| MCP, either"}, func(p string) bool { return strings.HasPrefix(row, p) })
	}
	slices.SortStableFunc(rows, func(a, b string) int { return kind(a) - kind(b) })
	return rows
}

// A table of all doors: each has its own rows, and its own test of them.
func TestReadmeOfAllDoorsSaysWhatCallsCost(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		const page = "../README.md"
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		want := strings.Join(f.costs(), "")
		rows := regexp.MustCompile(`(?m)(^\| MCP, .*\n)+`)
		got := rows.Find(text)
		if *update {
			err = os.WriteFile(page, rows.ReplaceAllLiteral(text, []byte(want)), 0o600)
		}
		if diff := cmpdiff.Diff(want, string(got)); err != nil || diff != "" && !*update {
			t.Errorf("run go test ./httpapi/mcp -run Readme -update: %v (-counted +page)\n%s", err, diff)
		}
	})
}

// Between calls a leader costs only its renewals.
func TestALeaderOfEitherKindCostsItsRenewals(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		store := newCounted(f.store)
		f.store = store
		connect(t, f.door(), ann()).must("lead", args{"election": "reports", "leaseDuration": "30s", "keep": "1h"})
		f.open(f.begin(f.api())).must("lead", args{"election": "backups", "leaseDuration": "30s"})
		store.take()
		time.Sleep(10 * time.Minute)
		// each renewed after some 9 to 10 s
		n := store.renewals.Swap(0)
		if other := store.take(); n < 118 || n > 140 || !slices.Contains([]string{"nothing", "1 transaction", "2 × transaction"}, other) {
			t.Errorf("two leaders for ten minutes: %d renewals, %s", n, other)
		}
	})
}
