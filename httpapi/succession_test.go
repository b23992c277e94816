package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// leads is the body of a call of agent-7, which leads planner, with more fields.
func leads(more string) string {
	if more != "" {
		more = "," + more
	}
	return strings.TrimSuffix(asLeader, "}") + more + "}"
}

// onPlanner makes a call about planner. Its body is JSON; the method is PUT for a path.
func (w *fixture) onPlanner(suffix, body string) answer {
	w.t.Helper()
	method := http.MethodPost
	if strings.HasPrefix(suffix, "/") && !strings.Contains(suffix, ":") {
		method = http.MethodPut
	}
	return w.do(method, toPlanner+suffix, body)
}

// wantRefusal wants a problem with the code, and returns it.
func (a answer) wantRefusal(t *testing.T, code leadership.Code) wire.Problem {
	t.Helper()
	p := a.problem(t)
	if p.Code != code || a.status != wire.MeaningOf(code).Status {
		t.Errorf("answered %d %s, want %s", a.status, a.body, code)
	}
	return p
}

func TestLeaderHandsOverInTwoPhasesWithoutAVacancy(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	successor := func(verb string) answer {
		if verb == ":ready" {
			return w.onPlanner(verb, asOther+`,"fencingToken":1}`)
		}
		return w.onPlanner(verb, asOther+"}")
	}
	w.onPlanner(":handOver", leads(`"within":"1m"`)).wantRefusal(t, leadership.NotEligible) // no candidate waits
	for range 2 {
		a := w.onPlanner(":handOver", leads(`"to":"agent-8","within":"1m","reason":"a new version"`))
		l := a.lease(t)
		if s := l.Succession; s == nil || s.To != "agent-8" || s.Since.IsZero() || s.UntilMs != 60_000 || s.Ready || l.EndsBecause != leadership.EndsHandOver || a.header.Get("ETag") != `"2"` {
			t.Fatalf("named a successor: %s with %v", a.body, a.header)
		}
	}
	w.clock.Advance(20 * time.Second)
	if l := w.onPlanner(":renew", asLeader).lease(t); l.Succession == nil || l.Succession.UntilMs != 40_000 || *l.ExpiresInMs != 30_000 {
		t.Errorf("the leader goes on: %+v", l)
	}
	w.onPlanner(":yield", asLeader).wantRefusal(t, leadership.NotReady)
	w.onPlanner(":ready", `{"candidateId":"agent-9","key":"`+otherKey+`","fencingToken":1}`).wantRefusal(t, leadership.NotEligible)
	for range 2 {
		if l := successor(":ready").lease(t); !l.Succession.Ready || l.LeaderID != "agent-7" || l.Revision != 3 {
			t.Fatalf("the successor is ready: %+v", l)
		}
	}
	if p := w.onPlanner(":ready", `{"candidateId":"agent-8","key":"`+key+`","fencingToken":1}`).wantRefusal(t, leadership.LeaseHeld); p.Reason != leadership.ReasonIncarnation {
		t.Errorf("another incarnation of the successor: %+v", p)
	}
	if p := successor(":acquire").wantRefusal(t, leadership.LeaseHeld); p.Reason != leadership.ReasonHeld {
		t.Errorf("the successor before the yield: %+v", p)
	}
	for range 2 {
		if l := w.onPlanner(":yield", asLeader).lease(t); l.State != leadership.Held || !l.Succession.Yielded {
			t.Fatalf("yielded: %+v", l)
		}
	}
	w.onPlanner(":renew", asLeader).wantRefusal(t, leadership.LeaseLost)
	w.onPlanner(":checkToken", `{"fencingToken":1}`).wantRefusal(t, leadership.TokenStale)
	w.onPlanner(":acquire", `{"candidateId":"agent-9"}`).wantRefusal(t, leadership.LeaseHeld)
	w.onPlanner(":acquire", `{"candidateId":"agent-8","key":"`+key+`"}`).wantRefusal(t, leadership.LeaseHeld)
	if l := successor(":acquire").lease(t); l.LeaderID != "agent-8" || l.FencingToken != 2 || l.Succession != nil {
		t.Fatalf("the successor leads: %+v", l)
	}
	w.onPlanner(":yield", asLeader).lease(t) // it stopped before: nothing to do
	var history wire.History
	w.do("GET", toPlanner+"/events", "").into(t, &history)
	var got []string
	for _, e := range history.Events {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.LeaderID, e.Reason)))
	}
	want := []string{"acquired agent-7", "handingOver agent-7 a new version", "ready agent-7", "yielded agent-7", "released", "acquired agent-8"}
	if diff := cmp.Diff(want, got); diff != "" || history.Events[4].At != history.Events[5].At {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
}

func TestHandOverToACandidateThatDoesNotComeEndsWithTheTerm(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	w.onPlanner(":handOver", leads(`"to":"agent-8","within":"40s"`)).lease(t)
	w.clock.Advance(20 * time.Second)
	if l := w.onPlanner(":renew", asLeader).lease(t); *l.ExpiresInMs != 20_000 {
		t.Errorf("renewed beyond the end: %+v", l)
	}
	w.clock.Advance(20*time.Second + time.Millisecond)
	w.onPlanner(":renew", asLeader).wantRefusal(t, leadership.LeaseLost)
	w.onPlanner(":ready", asOther+`,"fencingToken":1}`).wantRefusal(t, leadership.NotEligible)
	if l := w.onPlanner(":acquire", `{"candidateId":"agent-9"}`).lease(t); l.LeaderID != "agent-9" || l.FencingToken != 2 {
		t.Errorf("the line goes on: %+v", l)
	}
}

func TestPromotedLeaderMayNotWriteBeforeItIsReady(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", toPlanner, `{"policy":{"promotion":true}}`).lease(t)
	if l := w.acquire(); l.Ready == nil || *l.Ready {
		t.Fatalf("granted: %+v", l)
	}
	w.onPlanner(":checkToken", `{"fencingToken":1,"use":"write"}`).wantRefusal(t, leadership.NotReady)
	w.onPlanner(":checkToken", `{"fencingToken":1}`).lease(t)
	w.onPlanner(":ready", `{"candidateId":"agent-7","key":"`+otherKey+`","fencingToken":1}`).wantRefusal(t, leadership.NotEligible)
	for range 2 {
		if l := w.onPlanner(":ready", asLeader).lease(t); l.Ready != nil {
			t.Errorf("ready: %+v", l)
		}
	}
	w.onPlanner(":checkToken", `{"fencingToken":1,"use":"write"}`).lease(t)
}

func TestSuccessorInheritsTheCheckpointAndNoLatePutChangesIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	w.do("GET", toPlanner+"/checkpoint", "").wantRefusal(t, leadership.NotFound)
	var put wire.Checkpoint
	for _, page := range []string{"2", "3", "3"} {
		w.onPlanner("/checkpoint", leads(`"sequence":`+map[string]string{"2": "1", "3": "2"}[page]+`,"task":"page `+page+`","data":{ "done" : [1,`+page+`], "a": null }`)).into(t, &put)
	}
	got := w.do("GET", toPlanner+"/checkpoint", "")
	const want = `{"election":"planner","fencingToken":1,"leaderId":"agent-7","sequence":2,"task":"page 3","at":"2027-03-01T12:00:00Z","data":{"done":[1,3],"a":null}}` + "\n"
	if diff := cmp.Diff(want, string(got.body)); diff != "" || put.Task != "page 3" {
		t.Errorf("the checkpoint (-want +got):\n%s", diff)
	}
	if p := w.onPlanner("/checkpoint", leads(`"sequence":1,"data":2`)).wantRefusal(t, leadership.IndexMismatch); p.Index != 2 || !strings.Contains(p.Detail, "its next has sequence 3") {
		t.Errorf("a late copy of the first: %+v", p)
	}
	w.clock.Advance(31 * time.Second)
	acquire := asOther + `,"inherit":true}`
	for range 2 {
		var g wire.Grant
		w.onPlanner(":acquire", acquire).into(t, &g)
		if i := g.Inherited; g.FencingToken != 2 || i == nil || i.FencingToken != 1 || i.LeaderID != "agent-7" || i.Task != "page 3" || i.EndedBecause != leadership.EndsExpired || string(i.Data) != `{"done":[1,3],"a":null}` {
			t.Fatalf("granted: %+v", g)
		}
	}
	p := w.onPlanner("/checkpoint", leads(`"sequence":3,"data":"late"`)).wantRefusal(t, leadership.TokenStale)
	if stands := strings.Replace(want, `"sequence":2`, `"sequence":0`, 1); !strings.Contains(p.Detail, "stop acting with fencing token 1") || string(w.do("GET", toPlanner+"/checkpoint", "").body) != stands {
		t.Errorf("a late put: %+v", p)
	}
	put = wire.Checkpoint{}
	w.onPlanner("/checkpoint", asOther+`,"fencingToken":2,"sequence":1,"uri":"gs://bucket/object#1","sha256":"`+strings.Repeat("0A", 32)+`"}`).into(t, &put)
	if put.URI != "gs://bucket/object#1" || put.SHA256 != strings.Repeat("0a", 32) || put.Data != nil || put.FencingToken != 2 {
		t.Errorf("elsewhere: %+v", put)
	}
	w.do("DELETE", toPlanner+"?force=true", "").lease(t)
	w.do("GET", toPlanner+"/checkpoint", "").into(t, &put)
	if put.URI == "" {
		t.Error("the checkpoint went with its election")
	}
}

// An acquire that waits inherits, too.
func TestWaitingCandidateInherits(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	w.onPlanner("/checkpoint", leads(`"sequence":1,"data":7`))
	w.onPlanner(":release", asLeader).lease(t)
	var g wire.Grant
	w.onPlanner(":acquire", asOther+`,"inherit":true,"wait":"10s"}`).into(t, &g)
	if g.Inherited == nil || string(g.Inherited.Data) != "7" || g.Inherited.EndedBecause != leadership.EndsReleased {
		t.Errorf("granted: %+v", g)
	}
}

func TestJournalIsAppendedOnceAndReadInOrder(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	var head wire.JournalHead
	page := func(query string) (p wire.JournalPage) {
		t.Helper()
		w.do("GET", toPlanner+"/journal"+query, "").into(t, &p)
		return p
	}
	if p := page(""); p.Index != 0 || p.Entries == nil || p.FencingToken != 0 {
		t.Errorf("never opened: %+v", p)
	}
	for range 2 {
		w.onPlanner("/journal:open", asLeader).into(t, &head)
		if head.FencingToken != 1 || head.Index != 0 || head.SnapshotIndex != 0 {
			t.Errorf("opened: %+v", head)
		}
	}
	if p := w.onPlanner("/journal:append", leads(`"after":7,"entries":[{"data":1}]`)).wantRefusal(t, leadership.IndexMismatch); p.Index != 0 || !strings.Contains(p.Detail, "is at index 0, not 7") {
		t.Errorf("after an entry that does not exist: %+v", p)
	}
	for range 2 { // the first reply was lost
		w.onPlanner("/journal:append", leads(`"after":0,"entries":[{"type":"put","data":{ "n" : 1 }},{"data":[2]},{"data":3}]`)).into(t, &head)
		if head.Index != 3 {
			t.Fatalf("appended: %+v", head)
		}
	}
	if p := w.onPlanner("/journal:append", leads(`"after":2,"entries":[{"data":9}]`)).wantRefusal(t, leadership.IndexMismatch); p.Index != 3 {
		t.Errorf("after another index: %+v", p)
	}
	p := page("?after=1&limit=1")
	if len(p.Entries) != 1 || p.Entries[0].Index != 2 || string(p.Entries[0].Data) != "[2]" || p.Index != 3 || p.Entries[0].FencingToken != 1 || p.Entries[0].At.IsZero() {
		t.Errorf("a page of one: %+v", p)
	}
	if p := page(""); len(p.Entries) != 3 || p.Entries[0].Type != "put" || string(p.Entries[0].Data) != `{"n":1}` {
		t.Errorf("all: %+v", p)
	}
	if p := page("?after=3"); len(p.Entries) != 0 || p.Index != 3 {
		t.Errorf("nothing new: %+v", p)
	}
	if a := w.do("HEAD", toPlanner+"/journal?limit=2", ""); a.status != http.StatusOK {
		t.Errorf("HEAD: %d", a.status)
	}
	w.do("GET", toPlanner+"/journal/snapshot", "").wantRefusal(t, leadership.NotFound)
	w.onPlanner("/journal/snapshot", leads(`"upTo":4,"data":{}`)).wantRefusal(t, leadership.IndexMismatch)
	for range 2 {
		w.onPlanner("/journal/snapshot", leads(`"upTo":2,"data":{"sum": 3}`)).into(t, &head)
		if head.SnapshotIndex != 2 || head.Index != 3 {
			t.Errorf("compacted: %+v", head)
		}
	}
	var snapshot wire.JournalSnapshot
	w.do("GET", toPlanner+"/journal/snapshot", "").into(t, &snapshot)
	if snapshot.UpTo != 2 || string(snapshot.Data) != `{"sum":3}` || snapshot.FencingToken != 1 {
		t.Errorf("the snapshot: %+v", snapshot)
	}
	w.onPlanner("/journal:append", leads(`"after":3,"entries":[{"data":4}]`)).into(t, &head)
	another := w.onPlanner("/journal/snapshot", leads(`"upTo":2,"data":{"sum":4}`))
	if p := another.wantRefusal(t, leadership.InvalidArgument); !strings.Contains(p.Detail, "has another snapshot up to index 2 already") {
		t.Errorf("another snapshot up to the same index: %+v", p)
	}
	w.onPlanner("/journal/snapshot", leads(`"upTo":3,"uri":"gs://bucket/3"`)).into(t, &head)
	a := w.do("GET", toPlanner+"/journal?after=1", "")
	if p := a.wantRefusal(t, leadership.HistoryCompacted); p.Index != 3 || p.OldestRevision != 0 {
		t.Errorf("what is not kept: %+v", p)
	}
	if p := w.do("GET", toPlanner+"/journal?after=1", "", "Accept", wire.StreamType).wantRefusal(t, leadership.HistoryCompacted); p.Index != 3 {
		t.Errorf("a stream of what is not kept: %+v", p)
	}
	if p := page("?after=3"); len(p.Entries) != 1 || p.Entries[0].Index != 4 || p.SnapshotIndex != 3 {
		t.Errorf("after the snapshot: %+v", p)
	}
	w.clock.Advance(31 * time.Second)
	w.onPlanner(":acquire", asOther+"}").lease(t)
	w.onPlanner("/journal:append", leads(`"after":4,"entries":[{"data":5}]`)).into(t, &head)
	if head.Index != 5 { // nothing has closed the journal to it yet
		t.Errorf("appended: %+v", head)
	}
	w.onPlanner("/journal:open", asOther+`,"fencingToken":2}`).into(t, &head)
	if head.Index != 5 || head.FencingToken != 2 {
		t.Errorf("opened by the next leader: %+v", head)
	}
	for suffix, more := range map[string]string{":open": "", ":append": `"after":5,"entries":[{"data":6}]`, "/snapshot": `"upTo":5,"data":1`} {
		w.onPlanner("/journal"+suffix, leads(more)).wantRefusal(t, map[string]leadership.Code{":open": leadership.LeaseLost}[suffix]+map[bool]leadership.Code{true: leadership.TokenStale}[suffix != ":open"])
	}
}

func TestLargeDataIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	entries := func(n, of int) string {
		return `"after":0,"entries":[` + strings.TrimSuffix(strings.Repeat(`{"data":`+text(of)+`},`, n), ",") + `]`
	}
	for _, c := range []struct{ suffix, more, where, detail string }{
		{"/checkpoint", `"sequence":1,"data":` + text(leadership.MaxCheckpointBytes+1), "/data", "data has at most 65536 bytes of JSON, and this one has 65537; put it elsewhere, and send its uri"},
		{"/checkpoint", `"sequence":1,"data":` + text(wire.MaxCheckpointBody), "", "the body of this call must not exceed 81920 bytes; put larger data elsewhere, and send its uri"},
		{"/journal:append", entries(8, leadership.MaxAppendBytes/8+1), "/entries", "at most 524288 bytes of JSON together, and this one has 524296; append it in parts"},
		{"/journal:append", entries(1, leadership.MaxAppendBytes+1), "/entries/0/data", "this one has 524289; put it elsewhere, and append where it is"},
		{"/journal:append", entries(1, wire.MaxAppendBody), "", "the body of this call must not exceed 588672 bytes; append the entries in parts"},
		{"/journal/snapshot", `"upTo":1,"data":` + text(leadership.MaxSnapshotBytes+1), "/data", "data has at most 524288 bytes of JSON"},
		{"/journal/snapshot", `"upTo":1,"data":` + text(wire.MaxSnapshotBody), "", "the body of this call must not exceed 540672 bytes; put larger data elsewhere"},
		{"/journal:open", `"x":` + text(wire.MaxBody), "", "the body of this call must not exceed 16384 bytes; send the lease alone"},
	} {
		before := w.state()
		p := w.onPlanner(c.suffix, leads(c.more)).wantRefusal(t, leadership.PayloadTooLarge)
		if !strings.Contains(p.Detail, c.detail) || where(p) != c.where || w.state() != before {
			t.Errorf("%s: %q at %q, want %q at %q", c.suffix, p.Detail, where(p), c.detail, c.where)
		}
	}
	var head wire.JournalHead
	w.onPlanner("/journal:append", leads(entries(leadership.MaxEntries, leadership.MaxAppendBytes/leadership.MaxEntries))).into(t, &head)
	if head.Index != leadership.MaxEntries {
		t.Errorf("as much as may be appended: %+v", head)
	}
	w.onPlanner("/checkpoint", leads(`"sequence":1,"data":`+text(leadership.MaxCheckpointBytes))).into(t, &wire.Checkpoint{})
	w.onPlanner("/journal/snapshot", leads(`"upTo":500,"data":`+text(leadership.MaxSnapshotBytes))).into(t, &head)
	if head.SnapshotIndex != leadership.MaxEntries {
		t.Errorf("as large a snapshot as may be: %+v", head)
	}
}

// streamFixture is a fixture whose streams last for a short time.
func streamFixture(t *testing.T, journal func(*memory.Store) leadership.Journal) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	store := memory.New(memory.Config{Now: c.Now})
	start := c.Now()
	inst, err := instance.New(instance.Config{Store: store, Journal: journal(store), Alone: true, Now: func() time.Duration { return c.Now().Sub(start) }})
	if err != nil {
		t.Fatal(err)
	}
	w := newFixtureOn(t, httpapi.Config{Service: inst, StreamLimit: 200 * time.Millisecond})
	w.service, w.clock = leadership.New(store), c
	w.ledger = leadership.NewLedger(w.service, store)
	w.acquire()
	var head wire.JournalHead
	w.onPlanner("/journal:append", leads(`"after":0,"entries":[{"type":"put","data":1},{"data":2},{"data":3}]`)).into(t, &head)
	return w
}

func TestStreamOfAJournalResumesAfterTheEntryThatWasReadLast(t *testing.T) {
	t.Parallel()
	w := streamFixture(t, func(s *memory.Store) leadership.Journal { return s })
	entry := func(n int) string {
		extra := map[bool]string{true: `"type":"put",`}[n == 1]
		return fmt.Sprintf("event: entry\nid: %d\ndata: {\"index\":%d,\"fencingToken\":1,\"at\":\"2027-03-01T12:00:00Z\",%s\"data\":%d}\n\n", n, n, extra, n)
	}
	const start, end = "retry: 1000\n\n", "event: end\nid: 3\ndata: {\"reason\":\"limit\"}\n\n"
	for _, c := range []struct {
		query, lastEventID, want string
	}{
		{"", "", start + entry(1) + entry(2) + entry(3) + end},
		{"?after=2", "", start + entry(3) + end},
		{"?after=0", "1", start + entry(2) + entry(3) + end}, // EventSource resumes so
		{"", "3", start + end},
	} {
		var headers []string
		if c.lastEventID != "" {
			headers = []string{wire.LastEventIDHeader, c.lastEventID}
		}
		a := w.do("GET", toPlanner+"/journal"+c.query, "", append(headers, "Accept", wire.StreamType)...)
		if diff := cmp.Diff(c.want, strings.ReplaceAll(string(a.body), ": ping\n\n", "")); diff != "" || a.header.Get("Content-Type") != wire.StreamType {
			t.Errorf("%q after %q (-want +got):\n%s", c.query, c.lastEventID, diff)
		}
	}
	if a := w.do("HEAD", toPlanner+"/journal", "", "Accept", wire.StreamType); a.status != http.StatusOK || a.header.Get("Content-Type") != wire.StreamType {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
}

// compacting is a Journal that another instance compacts while a follower waits.
type compacting struct {
	leadership.Journal
	looks   atomic.Int32
	compact func()
}

func (c *compacting) Look(ctx context.Context, id leadership.LogID) (leadership.Log, error) {
	if c.looks.Add(1) == 2 { // the first was that of the stream's beginning
		c.compact()
	}
	return c.Journal.Look(ctx, id)
}

func TestStreamOfAJournalEndsWhereOnlyASnapshotIsKept(t *testing.T) {
	t.Parallel()
	journal := &compacting{}
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	store := memory.New(memory.Config{Now: c.Now})
	journal.Journal = store
	start := c.Now()
	inst, err := instance.New(instance.Config{Store: store, Journal: journal, Alone: true, Now: func() time.Duration { return c.Now().Sub(start) }})
	if err != nil {
		t.Fatal(err)
	}
	w := newFixtureOn(t, httpapi.Config{Service: inst, StreamLimit: time.Minute})
	w.service, w.clock = leadership.New(store), c
	w.ledger = leadership.NewLedger(w.service, store)
	w.acquire()
	leader := leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Token: 1}
	if leader.Key, err = leadership.ParseKey(key); err != nil {
		t.Fatal(err)
	}
	journal.compact = func() {
		three := slices.Repeat([]leadership.Entry{{Data: json.RawMessage("1")}}, 3)
		if _, err := w.ledger.AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: leader, Entries: three}); err != nil {
			t.Error(err)
		}
		if _, err := w.ledger.SnapshotJournal(t.Context(), leadership.SnapshotRequest{LeaseRequest: leader, UpTo: 3, Data: json.RawMessage("{}")}); err != nil {
			t.Error(err)
		}
	}
	a := w.do("GET", toPlanner+"/journal", "", "Accept", wire.StreamType)
	if want := "event: end\nid: 0\ndata: {\"reason\":\"compacted\"}\n\n"; !strings.HasSuffix(string(a.body), want) {
		t.Errorf("the stream is %s", a.body)
	}
}

func TestLeaderDelegatesPartsOfItsTaskWithinItsLimits(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", toPlanner, `{"policy":{"delegation":{"depth":2,"children":2,"budget":100}}}`).lease(t)
	w.acquire()
	for range 2 {
		l := w.onPlanner(":delegate", leads(`"child":"a","limits":{"budget":60}`)).lease(t)
		if d := l.Configuration.Policy.Delegation; l.Election != "planner.a" || l.State != leadership.Vacant || *d.Parent != "planner" || *d.Depth != 1 || *d.Children != 2 || *d.Budget != 60 {
			t.Fatalf("delegated: %+v", l)
		}
	}
	w.onPlanner(":delegate", leads(`"child":"b","limits":{"budget":41}`)).wantRefusal(t, leadership.LimitExceeded)
	w.onPlanner(":delegate", leads(`"child":"b","limits":{"depth":2}`)).wantRefusal(t, leadership.DepthExceeded)
	w.onPlanner(":delegate", leads(`"child":"b","limits":{"depth":0}`)).lease(t)
	w.onPlanner(":delegate", leads(`"child":"c"`)).wantRefusal(t, leadership.LimitExceeded)
	worker := `{"candidateId":"worker-1","key":"` + otherKey + `"`
	l := w.do("POST", toPlanner+".a:acquire", worker+"}").lease(t)
	if l.Via == nil || l.Via.Election != "planner" || l.Via.FencingToken != 1 || l.EndsBecause != leadership.EndsParent || *l.ExpiresInMs > 30_000 {
		t.Errorf("the part is led: %+v", l)
	}
	w.do("POST", toPlanner+".a:delegate", worker+`,"fencingToken":1,"child":"x"}`).lease(t)
	w.do("POST", toPlanner+".b:acquire", worker+"}").lease(t)
	w.do("POST", toPlanner+".b:delegate", worker+`,"fencingToken":1,"child":"x"}`).wantRefusal(t, leadership.DepthExceeded)
	var tree wire.Tree
	w.do("GET", toPlanner+"/tree", "").into(t, &tree)
	if !tree.Complete || len(tree.Children) != 2 || len(tree.Children[0].Children) != 1 || tree.Children[0].Children[0].Election != "planner.a.x" || tree.Children[1].LeaderID != "worker-1" {
		t.Errorf("the tree: %+v", tree)
	}
	w.onPlanner(":release", asLeader).lease(t)
	w.clock.Advance(31 * time.Second)
	p := w.do("POST", toPlanner+".a:acquire", worker+"}").wantRefusal(t, leadership.LeaseHeld)
	if p.Reason != leadership.ReasonParent || p.RetryAfterMs != 1000 {
		t.Errorf("without a leader above: %+v", p)
	}
}

func TestOnlyLeadersOfTheElectionsThatAPolicyNamesAreGranted(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.do("PUT", toPlanner, `{"policy":{"leadersOf":"orders."}}`).lease(t)
	acquire := func(election, more string) answer {
		return w.do("POST", "/v1/elections/"+election+":acquire", `{"candidateId":"eu-1","key":"`+key+`"`+more+`}`)
	}
	via := func(election string, token int) string {
		return fmt.Sprintf(`,"via":{"election":%q,"fencingToken":%d}`, election, token)
	}
	if p := acquire("planner", "").wantRefusal(t, leadership.NotEligible); !strings.Contains(p.Detail, `send via with that election and its fencing token`) {
		t.Errorf("without via: %+v", p)
	}
	acquire("orders.eu", "").lease(t)
	check := func() wire.Lease {
		return w.do("POST", "/v1/elections/orders.eu:checkToken", `{"fencingToken":1}`).lease(t)
	}
	if p := acquire("planner", via("orders.eu", 1)).wantRefusal(t, leadership.NotEligible); check().Configured || !strings.Contains(p.Detail, "once an operator has configured it") {
		t.Errorf("one of a candidate's making: %+v", p)
	}
	if w.do("PUT", "/v1/elections/orders.eu", `{}`).lease(t); !check().Configured {
		t.Error("it is configured, and not said to be")
	}
	acquire("other", "").lease(t)
	acquire("planner", via("other", 1)).wantRefusal(t, leadership.NotEligible)
	acquire("planner", via("orders.eu", 2)).wantRefusal(t, leadership.NotEligible)
	acquire("planner", via("orders.us", 1)).wantRefusal(t, leadership.NotEligible)
	if p := acquire("planner", `,"via":{"election":"orders.eu","fencingToken":1,"peer":"europe"}`).wantRefusal(t, leadership.InvalidArgument); where(p) != "/via/peer" {
		t.Errorf("a peer that no operator has named: %+v", p)
	}
	w.clock.Advance(10 * time.Second)
	if l := acquire("planner", via("orders.eu", 1)).lease(t); l.Via == nil || l.Via.Election != "orders.eu" || l.EndsInMs != 20_000 || *l.ExpiresInMs != 20_000 {
		t.Errorf("granted: %+v", l)
	}
}

func TestFollowersSayHowFarTheyAre(t *testing.T) {
	t.Parallel()
	m, w := newMembered(t)
	w.do("GET", toPlanner+"/journal?after=3&limit=10&member=node-2&applied=3", "")
	m.want(t, leadership.JournalRequest{Election: "planner", After: 3, Limit: 10, Member: "node-2", Applied: 3})
	w.do("GET", toPlanner+"/journal?after=3&member=node-2&applied=2", "", "Accept", wire.StreamType, wire.LastEventIDHeader, "7")
	m.want(t, leadership.JournalRequest{Election: "planner", After: 7, Member: "node-2", Applied: 2})
	w.do("POST", toPlanner+":awaitAcknowledgement", `{"journalIndex":40,"need":2,"wait":"1s"}`)
	m.want(t, leadership.AcknowledgementRequest{Election: "planner", JournalIndex: 40, Need: 2, Wait: time.Second})
	m.members = leadership.Members{Election: "planner", Status: leadership.MembersNoLeader, Participation: 1, Journal: 41, Members: []leadership.Member{
		{ID: "node-2", Role: leadership.RoleFollower, Applied: 39, Lag: 2}, {ID: "node-3", Role: leadership.RoleFollower},
	}}
	a := w.do("GET", toPlanner+"/members", "")
	const want = `"journalIndex":41,"nodes":[{"id":"node-2","role":"follower","lastHeartbeatAgoMs":0,"position":null,"applied":39,"lag":2},{"id":"node-3","role":"follower","lastHeartbeatAgoMs":0,"position":null}]}`
	if !strings.Contains(string(a.body), want) {
		t.Errorf("members: %s", a.body)
	}
}

func (m *membered) ReadJournal(ctx context.Context, r leadership.JournalRequest) (leadership.JournalPage, error) {
	m.note(ctx, r)
	return leadership.JournalPage{JournalHead: leadership.JournalHead{Election: r.Election}}, m.err
}

func (m *membered) FollowJournal(ctx context.Context, r leadership.JournalRequest) (*instance.JournalFeed, error) {
	m.note(ctx, r)
	return nil, leadership.StoreUnavailable
}

func TestWrongSuccessionsAreRefused(t *testing.T) {
	t.Parallel()
	const wrong = leadership.InvalidArgument
	to := func(suffix string) string { return "POST " + toPlanner + suffix }
	put := func(suffix string) string { return "PUT " + toPlanner + suffix }
	get := func(suffix string) string { return "GET " + toPlanner + suffix }
	stream := []string{"Accept", wire.StreamType}
	condition := []string{"If-Match", `"1"`}
	asStranger := strings.Replace(asLeader, key, otherKey, 1)
	refuse(t, []bad{
		{name: "a hand-over to the leader", request: to(":handOver"), body: leads(`"to":"agent-7"`), status: 400, code: wrong, detail: "to is another candidate than the leader", where: "/to"},
		{name: "a hand-over to a bad name", request: to(":handOver"), body: leads(`"to":"agent 8"`), status: 400, code: wrong, detail: `has " " at position 6`, where: "/to"},
		{name: "a hand-over within a day", request: to(":handOver"), body: leads(`"to":"agent-8","within":"24h"`), status: 400, code: wrong, detail: "within is from 1s to 10m", where: "/within"},
		{name: "a hand-over of two lines", request: to(":handOver"), body: leads(`"to":"agent-8","reason":"a\nb"`), status: 400, code: wrong, detail: "reason is one line of text", where: "/reason"},
		{name: "a hand-over by another key", request: to(":handOver"), body: strings.TrimSuffix(asStranger, "}") + `,"to":"agent-8"}`, status: 409, code: leadership.LeaseLost, detail: "with another key"},
		{name: "a hand-over under an old token", request: to(":handOver"), body: strings.Replace(leads(`"to":"agent-8"`), `"fencingToken":1`, `"fencingToken":2`, 1), status: 409, code: leadership.LeaseLost},
		{name: "a hand-over with a condition", request: to(":handOver"), body: leads(`"to":"agent-8"`), headers: condition, status: 400, code: wrong, detail: "a leader's calls are guarded by its fencing token", where: "If-Match"},
		{name: "a hand-over of an election of Regent's own", request: "POST /v1/elections/regent.relay:handOver", body: leads(`"to":"agent-8"`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a hand-over with GET", request: get(":handOver"), status: 405, code: wire.MethodNotAllowed, detail: "this path allows POST"},
		{name: "ready without a hand-over", request: to(":ready"), body: asOther + `,"fencingToken":1}`, status: 409, code: leadership.NotEligible, detail: "is not the successor"},
		{name: "ready in an election that does not exist", request: "POST /v1/elections/other:ready", body: asOther + `,"fencingToken":1}`, status: 404, code: leadership.NotFound},
		{name: "a yield without a successor", request: to(":yield"), body: asLeader, status: 409, code: leadership.NotReady, detail: "yield again once it is, or release the lease"},
		{name: "a yield by another key", request: to(":yield"), body: asStranger, status: 409, code: leadership.LeaseLost},
		{name: "a yield of a ticket", request: to(":yield"), body: leads(`"ticket":"t"`), status: 400, code: wrong, detail: "unknown field", where: "/ticket"},

		{name: "a child with a dot", request: to(":delegate"), body: leads(`"child":"a.b"`), status: 400, code: wrong, detail: "child is one more part of a name", where: "/child"},
		{name: "a child without a name", request: to(":delegate"), body: leads(`"child":""`), status: 400, code: wrong, detail: "child is one more part of a name", where: "/child"},
		{name: "a child in capitals", request: to(":delegate"), body: leads(`"child":"A"`), status: 400, code: wrong, detail: "child is", where: "/child"},
		{name: "a child that is too deep", request: to(":delegate"), body: leads(`"child":"a","limits":{"depth":33}`), status: 400, code: wrong, detail: "limits.depth is from 0 to 32, not 33", where: "/limits/depth"},
		{name: "a child by another key", request: to(":delegate"), body: strings.TrimSuffix(asStranger, "}") + `,"child":"a"}`, status: 409, code: leadership.LeaseLost},
		{name: "a child of Regent's own", request: "POST /v1/elections/regent:delegate", body: leads(`"child":"relay"`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "/child"},
		{name: "a tree that does not exist", request: "GET /v1/elections/other/tree", status: 404, code: leadership.NotFound},
		{name: "a tree with a query", request: get("/tree?depth=1"), status: 400, code: wrong, detail: `"depth" is unknown`},
		{name: "leaders of a bad prefix", request: put(""), body: `{"policy":{"leadersOf":"Orders."}}`, status: 400, code: wrong, detail: "policy.leadersOf", where: "/policy/leadersOf"},
		{name: "leaders of others in a part", request: put(""), body: `{"policy":{"leadersOf":"orders.","delegation":{"parent":"plan"}}}`, status: 400, code: wrong, detail: "a lease stands on one other lease", where: "/policy/leadersOf"},
		{name: "too many children", request: put(""), body: `{"policy":{"delegation":{"children":10001}}}`, status: 400, code: wrong, detail: "policy.delegation.children is from 0 to 10000, not 10001", where: "/policy/delegation"},

		{name: "a checkpoint by another key", request: put("/checkpoint"), body: strings.TrimSuffix(asStranger, "}") + `,"sequence":1,"data":1}`, status: 409, code: leadership.LeaseLost},
		{name: "a checkpoint with a condition", request: put("/checkpoint"), body: leads(`"sequence":1,"data":1`), headers: condition, status: 400, code: wrong, detail: "leave it out", where: "If-Match"},
		{name: "a checkpoint if there is none", request: put("/checkpoint"), body: leads(`"sequence":1,"data":1`), headers: []string{"If-None-Match", "*"}, status: 400, code: wrong, detail: "If-None-Match is for reads", where: "If-None-Match"},
		{name: "a checkpoint of a task of two lines", request: put("/checkpoint"), body: leads(`"sequence":1,"task":"a\nb","data":1`), status: 400, code: wrong, detail: "task is one line of text", where: "/task"},
		{name: "a checkpoint nowhere", request: put("/checkpoint"), body: leads(`"sequence":1,"uri":"no scheme"`), status: 400, code: wrong, detail: "uri is a URI of at most 2048 bytes", where: "/uri"},
		{name: "a checkpoint with a short sum", request: put("/checkpoint"), body: leads(`"sequence":1,"uri":"gs://b/o","sha256":"00"`), status: 400, code: wrong, detail: "sha256 is 64 hexadecimal digits", where: "/sha256"},
		{name: "a checkpoint with POST", request: to("/checkpoint"), body: leads(`"sequence":1,"data":1`), status: 405, code: wire.MethodNotAllowed, detail: "this path allows GET, PUT"},
		{name: "a checkpoint of Regent's own", request: "PUT /v1/elections/regent.relay/checkpoint", body: leads(`"data":1`), status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "no checkpoint", request: get("/checkpoint"), status: 404, code: leadership.NotFound, detail: "has no checkpoint; its leader puts one"},
		{name: "a checkpoint as a form", request: put("/checkpoint"), body: leads(`"sequence":1,"data":1`), headers: []string{"Content-Type", "text/plain"}, status: 415, code: wire.UnsupportedMediaType},

		{name: "a journal of another key", request: to("/journal:open"), body: asStranger, status: 409, code: leadership.LeaseLost},
		{name: "an append of nothing", request: to("/journal:append"), body: leads(`"after":0,"entries":[]`), status: 400, code: wrong, detail: "an append has from 1 to 500 entries, not 0", where: "/entries"},
		{name: "an append of too many", request: to("/journal:append"), body: leads(`"after":0,"entries":[{"data":1}` + strings.Repeat(`,{"data":1}`, 500) + `]`), status: 400, code: wrong, detail: "from 1 to 500 entries, not 501", where: "/entries"},
		{name: "an append of a long type", request: to("/journal:append"), body: leads(`"after":0,"entries":[{"data":1},{"type":"` + strings.Repeat("x", 65) + `","data":1}]`), status: 400, code: wrong, detail: "type is one line of at most 64 bytes", where: "/entries/1/type"},
		{name: "an append with a condition", request: to("/journal:append"), body: leads(`"after":0,"entries":[{"data":1}]`), headers: condition, status: 400, code: wrong, where: "If-Match", detail: "fencing token"},
		{name: "an append with a query", request: to("/journal:append?after=0"), body: leads(`"after":0,"entries":[{"data":1}]`), status: 400, code: wrong, detail: `"after" is unknown`},
		{name: "a snapshot of nothing", request: put("/journal/snapshot"), body: leads(`"upTo":0,"data":1`), status: 400, code: wrong, detail: "upTo is an index, 1 or more, not 0", where: "/upTo"},
		{name: "a snapshot with a condition", request: put("/journal/snapshot"), body: leads(`"upTo":1,"data":1`), headers: condition, status: 400, code: wrong, where: "If-Match", detail: "fencing token"},
		{name: "no snapshot", request: get("/journal/snapshot"), status: 404, code: leadership.NotFound, detail: "read it from index 0"},
		{name: "a journal after less than nothing", request: get("/journal?after=-1"), status: 400, code: wrong, detail: "after is the index of an entry, or 0, and not -1", where: "after"},
		{name: "a journal after a text", request: get("/journal?after=last"), status: 400, code: wrong, detail: "after must be an integer in decimal digits", where: "after"},
		{name: "a journal of too many", request: get("/journal?limit=1001"), status: 400, code: wrong, detail: "limit is from 1 to 1000, not 1001", where: "limit"},
		{name: "a journal of none", request: get("/journal?limit=0"), status: 400, code: wrong, detail: "limit is from 1 to 1000, not 0", where: "limit"},
		{name: "a journal that no member has applied", request: get("/journal?applied=3"), status: 400, code: wrong, detail: "name the member, too", where: "applied"},
		{name: "a journal that was applied in part", request: get("/journal?member=node-2&applied=1.5"), status: 400, code: wrong, detail: "applied must be an integer", where: "applied"},
		{name: "a journal of a bad member", request: get("/journal?member=a%20b"), status: 400, code: wrong, detail: "member is the candidate id", where: "member"},
		{name: "a member of Regent's own", request: "GET /v1/elections/regent.relay/journal?member=node-2", status: 400, code: wrong, detail: "reserved for Regent itself", where: "election"},
		{name: "a journal with an unknown parameter", request: get("/journal?from=1"), status: 400, code: wrong, detail: `"from" is unknown; the known ones are: after, generation, limit, member, applied`},
		{name: "a stream with a limit", request: get("/journal?limit=1"), headers: stream, status: 400, code: wrong, detail: `"limit" is unknown; the known ones are: after, generation, member, applied`},
		{name: "a stream after a bad id", request: get("/journal"), headers: append([]string{wire.LastEventIDHeader, "7.0"}, stream...), status: 400, code: wrong, detail: "must be the id of the last entry that was read", where: wire.LastEventIDHeader},
		{name: "a journal with a condition", request: get("/journal"), headers: condition, status: 400, code: wrong, where: "If-Match", detail: "reads take If-None-Match"},
		{name: "a journal with POST", request: to("/journal"), body: `{}`, status: 405, code: wire.MethodNotAllowed, detail: "this path allows GET"},
		{name: "a journal in another format", request: get("/journal"), headers: []string{"Accept", "text/csv"}, status: 406, code: wire.NotAcceptable, detail: "application/json or text/event-stream"},
	})
}

// slow is a body that arrives after a while.
type slow struct {
	io.Reader
	after time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(s.after)
	s.after = 0
	return s.Reader.Read(p)
}

func (m *membered) PutCheckpoint(ctx context.Context, r leadership.CheckpointRequest) (leadership.Checkpoint, error) {
	m.note(ctx, r.Election)
	return leadership.Checkpoint{Election: r.Election, Token: r.Token, LeaderID: r.CandidateID, Data: r.Data, At: time.Unix(1, 0)}, m.err
}

// A large body may take as long as the service: that has all of its time when the body has arrived.
func TestTimeForACallWithALargeBodyBeginsWhenItHasArrived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, w := newMembered(t)
		body := leads(`"sequence":1,"data":1`)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, toPlanner+"/checkpoint", &slow{strings.NewReader(body), 3 * time.Minute})
		r.Header.Set("Content-Type", wire.ContentType)
		if a := w.send(r, body); a.status != http.StatusOK || m.left != time.Minute { // the request timeout of the fixture
			t.Errorf("answered %d %s, with %v left for the service", a.status, a.body, m.left)
		}
	})
}
