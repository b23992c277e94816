package firestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/firestore"
	"regent/store/storetest"
)

// ledgerCalls are those of a leader.
type ledgerCalls struct {
	*service.Ledger
	ctx   context.Context
	lease leadership.LeaseRequest
	puts  *int64
}

// ledger is a leader's on a handle, which need not be that of its grant.
func ledger(t *testing.T, s *firestore.Store, lease leadership.LeaseRequest) ledgerCalls {
	return ledgerCalls{service.NewLedger(service.New(s), s), t.Context(), lease, new(int64)}
}

func (l ledgerCalls) put(data string) error {
	p, err := l.PutCheckpoint(l.ctx, leadership.CheckpointRequest{LeaseRequest: l.lease, Sequence: *l.puts + 1, Data: json.RawMessage(data)})
	if err == nil {
		*l.puts = p.Sequence
	}
	return err
}

func (l ledgerCalls) append(after leadership.Index, data string) error {
	_, err := l.AppendJournal(l.ctx, leadership.AppendRequest{
		LeaseRequest: l.lease, After: after, Entries: []leadership.Entry{{Data: json.RawMessage(data)}},
	})
	return err
}

func TestACheckpointThatIsPutAgainHasTheTimeOfTheLastPut(t *testing.T) {
	t.Parallel()
	s := newProject(t).open(t)
	l := ledger(t, s, acquired(t, s, "jobs").lease("jobs", 1))
	var last leadership.Checkpoint
	for range 3 {
		require.NoError(t, l.put("1"))
		p, err := l.Ledger.Checkpoint(t.Context(), "jobs")
		if err != nil || !p.At.After(last.At) {
			t.Errorf("put at %v, %v; want a time after %v", p.At, err, last.At)
		}
		last = p
	}
}

func TestAnAppendWhoseReplyIsLostIsUnknownAndTheSameAgainFindsOut(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		f, p := new(faults), newProject(t)
		s := p.open(t, f.option())
		ann := acquired(t, s, "jobs")
		l := ledger(t, s, ann.lease("jobs", 1))
		require.NoError(t, l.append(0, "1"))
		if !known {
			l = ledger(t, p.open(t, f.option()), ann.lease("jobs", 1))
		}
		f.plant("Commit", replyLost(codes.Unavailable))
		if err := l.append(1, "2"); !errors.Is(err, leadership.OutcomeUnknown) {
			t.Fatalf("head known %v: got %v, want OUTCOME_UNKNOWN", known, err)
		}
		if err := l.append(1, "2"); err != nil {
			t.Fatalf("head known %v, the same again: %v", known, err)
		}
		if h, err := l.Head(t.Context(), "jobs"); err != nil || h.Index != 2 {
			t.Errorf("head known %v: got %+v, %v; want index 2", known, h, err)
		}
	}
}

func TestAnAppendThatFirestoreRefusesForNowWasNotDone(t *testing.T) {
	t.Parallel()
	f := new(faults)
	s := newProject(t).open(t, f.option())
	l := ledger(t, s, acquired(t, s, "jobs").lease("jobs", 1))
	require.NoError(t, l.append(0, "1"))
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.PermissionDenied, codes.InvalidArgument} {
		f.plant("Commit", refusedFirst(code))
		if err := l.append(1, "2"); !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown) {
			t.Errorf("%v: got %v, want STORE_UNAVAILABLE", code, err)
		}
	}
	for i, code := range []codes.Code{codes.Aborted, codes.FailedPrecondition} { // contention is tried again
		f.plant("Commit", refusedFirst(code))
		if err := l.append(leadership.Index(i+1), "2"); err != nil {
			t.Errorf("%v: %v", code, err)
		}
	}
	f.plant("BatchGetDocuments", refusedFirst(codes.Unavailable))
	if h, err := l.Head(t.Context(), "jobs"); err != nil || h.Index != 3 {
		t.Errorf("got %+v, %v; want index 3", h, err)
	}
}

func TestALogThatCannotBeReadIsCorruptAndNotOverwritten(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	ann := acquired(t, s, "jobs")
	journal := p.database() + "/documents/leadershipLogs/jobs!journal"
	require.NoError(t, errors.Join(ledger(t, s, ann.lease("jobs", 1)).append(0, "1"), ledger(t, s, ann.lease("jobs", 1)).append(1, "2")))
	id := rule.LogID{Election: "jobs", Kind: rule.LogJournal}
	head, first := p.read(t, journal), p.read(t, journal+"/segments/00000000000000000001")
	for what, v := range map[string]values{
		"another schema":   {"schema": integer(99)},
		"an unknown field": {"colour": text("red")},
		"another type":     {"text": integer(1)},
		"a missing field":  {"writes": nil},
	} {
		for name := range v {
			if v[name] == nil {
				delete(v, name)
			}
			p.write(t, journal, v, name)
		}
		wrote := p.read(t, journal).UpdateTime.AsTime()
		if _, err := s.Look(t.Context(), id); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%s: look: got %v, want RECORD_CORRUPT", what, err)
		}
		if err := ledger(t, s, ann.lease("jobs", 1)).append(2, "3"); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%s: append: got %v, want RECORD_CORRUPT", what, err)
		}
		if !p.read(t, journal).UpdateTime.AsTime().Equal(wrote) {
			t.Errorf("%s: it was overwritten", what)
		}
		p.write(t, journal, head.Fields)
	}
	p.write(t, journal+"/segments/00000000000000000001", first.Fields)
	p.write(t, journal+"/segments/00000000000000000002", values{"firstIndex": integer(1)}, "lastIndex")
	if _, err := s.Segments(t.Context(), id, 0, 10); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("a segment without an index: got %v, want RECORD_CORRUPT", err)
	}
	p.write(t, journal+"/segments/00000000000000000002", first.Fields)
	if _, err := s.Segments(t.Context(), id, 0, 10); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("a segment of another name: got %v, want RECORD_CORRUPT", err)
	}
}

func TestLogsLeavesOutDocumentsThatAreNoLogs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	for _, name := range []string{"a", "A!journal", "jobs", "zz", "zzz!", "jobs!!"} {
		p.write(t, p.database()+"/documents/leadershipLogs/"+name, values{"x": integer(1)})
	}
	want := []rule.LogID{{Election: "b", Kind: rule.LogJournal}, {Election: "jobs", Kind: rule.LogCheckpoint}}
	for _, id := range want {
		if _, err := s.Amend(t.Context(), id, func(rule.Log) (rule.LogChange, error) {
			return rule.LogChange{Text: "{}"}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{2, 3, 10} {
		got, err := s.Logs(t.Context(), rule.LogID{}, limit)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("limit %d: %v (-want +got):\n%s", limit, err, diff)
		}
	}
}

// noDeletion refuses what the role that terraform gives the service has no right to.
func noDeletion() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		writes, is := req.(interface{ GetWrites() []*firestorepb.Write })
		if is && slices.ContainsFunc(writes.GetWrites(), func(w *firestorepb.Write) bool { return w.GetDelete() != "" }) {
			return status.Error(codes.PermissionDenied, "datastore.entities.delete is missing")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
}

// trimmable writes a journal of so many segments of one entry, and a snapshot.
func trimmable(t *testing.T, s *firestore.Store, n int, snapshot leadership.Index) rule.LogID {
	t.Helper()
	id := rule.LogID{Election: "jobs", Kind: rule.LogJournal}
	for at := 1; at <= n; {
		ch := rule.LogChange{Text: "{}", Add: []rule.Segment{{Last: snapshot, Data: "s"}}}
		for ; at <= n && len(ch.Add) <= 200; at++ {
			ch.Add = append(ch.Add, rule.Segment{First: leadership.Index(at), Last: leadership.Index(at), Data: "x"})
		}
		if _, err := s.Amend(t.Context(), id, func(rule.Log) (rule.LogChange, error) { return ch, nil }); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

func TestTrimNeedsNoRightToDeleteAndLeavesADocumentThatIsDue(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s := p.open(t, grpc.WithStatsHandler(rpcs), noDeletion())
	const each, changes = 200, 3
	id := trimmable(t, s, each*changes, 1)
	segment := func(i int) string {
		return fmt.Sprintf("%s/documents/leadershipLogs/jobs!journal/segments/%020d", p.database(), i)
	}
	head := p.read(t, p.database()+"/documents/leadershipLogs/jobs!journal").UpdateTime.AsTime()
	trim := func(s *firestore.Store, upTo leadership.Index, want ...string) {
		t.Helper()
		rpcs.Take()
		require.NoError(t, s.Trim(t.Context(), id, upTo))
		if diff := cmp.Diff(want, rpcs.Take(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("RPCs (-want +got):\n%s", diff)
		}
	}
	trim(s, each*changes-2, "RunQuery", "BatchWrite", "RunQuery", "BatchWrite")
	wrote := map[int]time.Time{}
	for _, i := range []int{1, 500, 501, each*changes - 2} {
		left := p.read(t, segment(i))
		wrote[i] = left.UpdateTime.AsTime()
		if due := dueOf(t, left); len(left.Fields) != 2 || due.After(wrote[i]) || due.Before(head.Add(-time.Minute)) {
			t.Errorf("segment %d became %v at %v; want a schema and a time to be deleted at once", i, left.Fields, wrote[i])
		}
	}
	trim(s, each*changes-2) // it remembers
	other := p.open(t, grpc.WithStatsHandler(rpcs), noDeletion())
	trim(other, each*changes-2, "RunQuery", "RunQuery")
	trim(other, each*changes-1, "RunQuery", "BatchWrite")
	trim(s, each*changes-1, "RunQuery")
	for i, at := range wrote {
		if again := p.read(t, segment(i)).UpdateTime.AsTime(); !again.Equal(at) {
			t.Errorf("segment %d was written at %v, and again at %v", i, at, again)
		}
	}
	left, err := s.Segments(t.Context(), id, 0, 1000)
	if err != nil || len(left) != 1 || left[0].Last != each*changes {
		t.Errorf("%d segments are left, %v; want the last", len(left), err)
	}
	if snapshot, err := s.Snapshot(t.Context(), id); err != nil || snapshot.Data != "s" {
		t.Errorf("got snapshot %+v, %v", snapshot, err)
	}
}

func TestSegmentsPassesOverTrimmedOnesWhateverTheLimit(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s := p.open(t, grpc.WithStatsHandler(rpcs))
	id := trimmable(t, s, 30, 20)
	require.NoError(t, s.Trim(t.Context(), id, 20))
	for _, c := range []struct {
		after       leadership.Index
		limit       int
		first, last leadership.Index
		rpcs        int
	}{
		{0, 1, 21, 21, 3},
		{0, 5, 21, 25, 3},
		{0, 20, 21, 30, 3},
		{0, 21, 21, 21, 1}, // with one that is there, it does not go on
		{0, 100, 21, 30, 1},
		{18, 5, 21, 23, 1},
		{20, 5, 21, 25, 1},
		{29, 5, 30, 30, 1},
	} {
		rpcs.Take()
		found, err := s.Segments(t.Context(), id, c.after, c.limit)
		if err != nil || len(found) != int(c.last-c.first+1) || found[0].First != c.first || found[len(found)-1].Last != c.last {
			t.Errorf("%d after %d: got %v, %v; want %d to %d", c.limit, c.after, found, err, c.first, c.last)
		}
		if got := rpcs.Take(); len(got) != c.rpcs {
			t.Errorf("%d after %d: %v; want %d RPCs", c.limit, c.after, got, c.rpcs)
		}
	}
	if err := s.Trim(t.Context(), id, 30); err != nil { // past the snapshot
		t.Fatal(err)
	}
	for _, limit := range []int{1, 4, 10, 30, 31} {
		if found, err := s.Segments(t.Context(), id, 0, limit); err != nil || len(found) != 0 {
			t.Errorf("all are trimmed, limit %d: got %v, %v", limit, found, err)
		}
	}
}

func TestTheDocumentsOfLogsAreThoseThatTheDocumentationNames(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	if _, err := s.Amend(t.Context(), rule.LogID{Election: "jobs", Kind: rule.LogJournal}, func(rule.Log) (rule.LogChange, error) {
		return rule.LogChange{Text: "{}", Body: "b", Add: []rule.Segment{{First: 1, Last: 3, Data: "[]"}, {Last: 2, Data: "s"}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	journal := p.database() + "/documents/leadershipLogs/jobs!journal"
	for name, want := range map[string]values{
		journal: {"schema": integer(1), "text": text("{}"), "body": text("b"), "writes": integer(1)},
		journal + "/segments/00000000000000000003": {"schema": integer(1), "firstIndex": integer(1), "lastIndex": integer(3), "data": text("[]")},
		journal + "/segments/00000000000000000000": {"schema": integer(1), "firstIndex": integer(0), "lastIndex": integer(2), "data": text("s")},
	} {
		got := p.read(t, name).Fields
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", path.Base(name), got, want)
		}
	}
}
