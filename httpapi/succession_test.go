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
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/leadership/wire"
	"regent/store/memory"
)

// leads returns the body of a call of agent-7, which leads planner, with more fields.
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
	w.onPlanner(":handOver", leads(`"within":"1m"`)).wantRefusal(t, leadership.NotEligible) // no candidate waits
	for range 2 {
		a := w.onPlanner(":handOver", leads(`"to":"agent-8","within":"1m","reason":"a new version"`))
		l := a.lease(t)
		if s := l.Succession; s == nil || s.To != "agent-8" || s.Since.IsZero() || s.UntilMs != 60_000 || s.Ready || l.EndsBecause != leadership.EndsHandOver || a.header.Get("ETag") != `"2"` {
			t.Fatalf("named a successor: %s with %v", a.body, a.header)
		}
	}
	for range 2 {
		if l := w.onPlanner(":ready", asOther+`,"fencingToken":1}`).lease(t); !l.Succession.Ready || l.LeaderID != "agent-7" || l.Revision != 3 {
			t.Fatalf("the successor is ready: %+v", l)
		}
	}
	for range 2 {
		if l := w.onPlanner(":yield", asLeader).lease(t); l.State != leadership.Held || !l.Succession.Yielded {
			t.Fatalf("yielded: %+v", l)
		}
	}
	w.onPlanner(":renew", asLeader).wantRefusal(t, leadership.LeaseLost)
	w.onPlanner(":checkToken", `{"fencingToken":1}`).wantRefusal(t, leadership.TokenStale)
	w.onPlanner(":acquire", `{"candidateId":"agent-9"}`).wantRefusal(t, leadership.LeaseHeld)
	if l := w.onPlanner(":acquire", asOther+"}").lease(t); l.LeaderID != "agent-8" || l.FencingToken != 2 || l.Succession != nil {
		t.Fatalf("the successor leads: %+v", l)
	}
	w.onPlanner(":yield", asLeader).lease(t) // it stopped before: nothing to do
}

func TestSuccessorInheritsTheCheckpointAndNoLatePutChangesIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	var put leadership.Checkpoint
	w.onPlanner("/checkpoint", leads(`"sequence":1,"data":{ "done" : [1] }`)).into(t, &put)
	for range 2 {
		w.onPlanner("/checkpoint", leads(`"sequence":2,"task":"page 3","data":{ "done" : [1,3], "a": null }`)).into(t, &put)
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
	var g wire.Grant
	w.onPlanner(":acquire", asOther+`,"inherit":true}`).into(t, &g)
	if i := g.Inherited; g.FencingToken != 2 || i == nil || i.Token != 1 || i.LeaderID != "agent-7" || i.Task != "page 3" || i.EndedBecause != leadership.EndsExpired || string(i.Data) != `{"done":[1,3],"a":null}` {
		t.Fatalf("granted: %+v", g)
	}
	if p := w.onPlanner("/checkpoint", leads(`"sequence":3,"data":"late"`)).wantRefusal(t, leadership.TokenStale); !strings.Contains(p.Detail, "stop acting with fencing token 1") {
		t.Errorf("a late put: %+v", p)
	}
	put = leadership.Checkpoint{}
	w.onPlanner("/checkpoint", asOther+`,"fencingToken":2,"sequence":1,"uri":"gs://bucket/object#1","sha256":"`+strings.Repeat("0A", 32)+`"}`).into(t, &put)
	if put.URI != "gs://bucket/object#1" || put.SHA256 != strings.Repeat("0a", 32) || put.Data != nil || put.Token != 2 {
		t.Errorf("elsewhere: %+v", put)
	}
}

func TestJournalIsAppendedOnceAndReadInOrder(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	var head leadership.JournalHead
	page := func(query string) (p leadership.JournalPage) {
		t.Helper()
		w.do("GET", toPlanner+"/journal"+query, "").into(t, &p)
		return p
	}
	if p := page(""); p.Index != 0 || p.Entries == nil || p.Token != 0 {
		t.Errorf("never opened: %+v", p)
	}
	w.onPlanner("/journal:open", asLeader).into(t, &head)
	if head.Token != 1 || head.Index != 0 || head.Snapshot != 0 {
		t.Errorf("opened: %+v", head)
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
	p := page("?after=1&limit=1")
	if len(p.Entries) != 1 || p.Entries[0].Index != 2 || string(p.Entries[0].Data) != "[2]" || p.Index != 3 || p.Entries[0].Token != 1 || p.Entries[0].At.IsZero() {
		t.Errorf("a page of one: %+v", p)
	}
	if p := page(""); len(p.Entries) != 3 || p.Entries[0].Type != "put" || string(p.Entries[0].Data) != `{"n":1}` {
		t.Errorf("all: %+v", p)
	}
	w.onPlanner("/journal/snapshot", leads(`"upTo":2,"data":{"sum": 3}`)).into(t, &head)
	var snapshot leadership.JournalSnapshot
	w.do("GET", toPlanner+"/journal/snapshot", "").into(t, &snapshot)
	if head.Snapshot != 2 || head.Index != 3 || snapshot.UpTo != 2 || string(snapshot.Data) != `{"sum":3}` || snapshot.Token != 1 {
		t.Errorf("compacted: %+v, with the snapshot %+v", head, snapshot)
	}
	w.onPlanner("/journal/snapshot", leads(`"upTo":3,"uri":"gs://bucket/3"`)).into(t, &head)
	for _, accept := range []string{wire.ContentType, wire.StreamType} {
		if p := w.do("GET", toPlanner+"/journal?after=1", "", "Accept", accept).wantRefusal(t, leadership.HistoryCompacted); p.Index != 3 || p.OldestRevision != 0 {
			t.Errorf("entries that are gone, accepting %s: %+v", accept, p)
		}
	}
	w.clock.Advance(31 * time.Second)
	w.onPlanner(":acquire", asOther+"}").lease(t)
	w.onPlanner("/journal:open", asOther+`,"fencingToken":2}`).into(t, &head)
	if head.Index != 3 || head.Token != 2 {
		t.Errorf("opened by the next leader: %+v", head)
	}
	w.onPlanner("/journal:open", asLeader).wantRefusal(t, leadership.LeaseLost)
	w.onPlanner("/journal:append", leads(`"after":5,"entries":[{"data":6}]`)).wantRefusal(t, leadership.TokenStale)
	w.onPlanner("/journal/snapshot", leads(`"upTo":5,"data":1`)).wantRefusal(t, leadership.TokenStale)
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
	var head leadership.JournalHead
	w.onPlanner("/journal:append", leads(entries(leadership.MaxEntries, leadership.MaxAppendBytes/leadership.MaxEntries))).into(t, &head)
	if head.Index != leadership.MaxEntries {
		t.Errorf("as much as may be appended: %+v", head)
	}
	w.onPlanner("/checkpoint", leads(`"sequence":1,"data":`+text(leadership.MaxCheckpointBytes))).into(t, &leadership.Checkpoint{})
	w.onPlanner("/journal/snapshot", leads(`"upTo":500,"data":`+text(leadership.MaxSnapshotBytes))).into(t, &head)
	if head.Snapshot != leadership.MaxEntries {
		t.Errorf("as large a snapshot as may be: %+v", head)
	}
}

// newJournal returns a fixture in which agent-7 leads. Its streams last for limit, and read the
// journal that over returns.
func newJournal(t *testing.T, limit time.Duration, over func(*memory.Store) service.Journal) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	store := memory.New(memory.Config{Now: c.Now})
	start := c.Now()
	inst, err := instance.New(instance.Config{Store: store, Journal: over(store), Alone: true, Now: func() time.Duration { return c.Now().Sub(start) }})
	require.NoError(t, err)
	w := newFixtureOn(t, httpapi.Config{Service: inst, StreamLimit: limit})
	w.service, w.clock = service.New(store), c
	w.ledger = service.NewLedger(w.service, store)
	w.acquire()
	return w
}

func TestStreamOfAJournalResumesAfterTheEntryThatWasReadLast(t *testing.T) {
	t.Parallel()
	w := newJournal(t, 200*time.Millisecond, func(s *memory.Store) service.Journal { return s })
	w.onPlanner("/journal:append", leads(`"after":0,"entries":[{"type":"put","data":1},{"data":2},{"data":3}]`)).into(t, &leadership.JournalHead{})
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
	service.Journal
	looks   atomic.Int32
	compact func()
}

func (c *compacting) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	if c.looks.Add(1) == 2 { // the first was that of the stream's beginning
		c.compact()
	}
	return c.Journal.Look(ctx, id)
}

func TestStreamOfAJournalEndsWhereOnlyASnapshotIsKept(t *testing.T) {
	t.Parallel()
	journal := &compacting{}
	w := newJournal(t, time.Minute, func(s *memory.Store) service.Journal {
		journal.Journal = s
		return journal
	})
	parsed, err := leadership.ParseKey(key)
	require.NoError(t, err)
	leader := leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Key: parsed, Token: 1}
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
	w.onPlanner(":delegate", leads(`"child":"b","limits":{"depth":0}`)).lease(t)
	worker := `{"candidateId":"worker-1","key":"` + otherKey + `"`
	l := w.do("POST", toPlanner+".a:acquire", worker+"}").lease(t)
	if l.Via == nil || l.Via.Election != "planner" || l.Via.FencingToken != 1 || l.EndsBecause != leadership.EndsParent || *l.ExpiresInMs > 30_000 {
		t.Errorf("the part is led: %+v", l)
	}
	w.do("POST", toPlanner+".a:delegate", worker+`,"fencingToken":1,"child":"x"}`).lease(t)
	var tree wire.Tree
	w.do("GET", toPlanner+"/tree", "").into(t, &tree)
	if !tree.Complete || len(tree.Children) != 2 || len(tree.Children[0].Children) != 1 || tree.Children[0].Children[0].Election != "planner.a.x" {
		t.Errorf("the tree: %+v", tree)
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

// A large body may take as long as a call of the service, whose own time begins when the body has
// arrived.
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
