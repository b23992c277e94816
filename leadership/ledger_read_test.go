package leadership_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"regent/leadership"
	"regent/store/memory"
)

// between calls a function after each read of segments.
type between struct {
	leadership.Journal
	then func()
}

func (b between) Segments(ctx context.Context, id leadership.LogID, after leadership.Index, limit int) ([]leadership.Segment, error) {
	found, err := b.Journal.Segments(ctx, id, after, limit)
	b.then()
	return found, err
}

// journalOf returns a ledger of an election, and an append to it.
func journalOf(t *testing.T) (*leadership.Service, *memory.Store, func(after leadership.Index, data string) error) {
	t.Helper()
	s := memory.New(memory.Config{})
	service := leadership.New(s)
	key := leadership.NewKey()
	g, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	ledger := leadership.NewLedger(service, s)
	return service, s, func(after leadership.Index, data string) error {
		lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: key, Token: g.Token}
		_, err := ledger.AppendJournal(t.Context(), leadership.AppendRequest{
			LeaseRequest: lease, After: after, Entries: []leadership.Entry{{Data: json.RawMessage(data)}},
		})
		return err
	}
}

func TestAReaderAtTheEndOfAJournalIsNotDisturbedByAnAppend(t *testing.T) {
	t.Parallel()
	service, s, add := journalOf(t)
	var at leadership.Index
	then := func() {
		if err := add(at, "1"); err != nil {
			t.Error(err)
		}
		at++
	}
	reader := leadership.NewLedger(service, between{s, then})
	page, err := reader.ReadJournal(t.Context(), leadership.JournalRequest{Election: "jobs"})
	if err != nil || len(page.Entries) != 1 || page.Index != 2 {
		t.Errorf("got %+v, %v; want the entry that was appended while it read", page, err)
	}
}

func TestEntriesAreUTF8(t *testing.T) {
	t.Parallel()
	_, _, add := journalOf(t)
	if err := add(0, "\"\xff\""); !errors.Is(err, leadership.InvalidArgument) {
		t.Errorf("got %v, want INVALID_ARGUMENT", err)
	}
}

func TestASnapshotIsNotReplacedByAnotherUpToTheSameIndex(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Config{})
	service := leadership.New(s)
	ledger := leadership.NewLedger(service, s)
	lead := func(c leadership.CandidateID) leadership.LeaseRequest {
		key := leadership.NewKey()
		g, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: c, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		return leadership.LeaseRequest{Election: "jobs", CandidateID: c, Key: key, Token: g.Token}
	}
	put := func(r leadership.LeaseRequest, upTo leadership.Index, data, uri string) error {
		_, err := ledger.SnapshotJournal(t.Context(), leadership.SnapshotRequest{LeaseRequest: r, UpTo: upTo, Data: json.RawMessage(data), URI: uri})
		return err
	}
	ann := lead("ann")
	entries := []leadership.Entry{{Data: json.RawMessage("1")}, {Data: json.RawMessage("2")}}
	if _, err := ledger.AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: ann, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	const data = `{"sum": 3, "text": "<&>"}`
	for range 2 {
		if err := put(ann, 2, data, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := service.Release(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	bob := lead("bob")
	if err := put(bob, 2, data, ""); err != nil {
		t.Errorf("the same, of the next leader: %v", err)
	}
	for what, err := range map[string]error{"other data": put(bob, 2, `{"sum": 4}`, ""), "a uri": put(bob, 2, "", "gs://bucket/2")} {
		if !errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("%s: %v, want INVALID_ARGUMENT", what, err)
		}
	}
	if err := put(bob, 1, `0`, ""); err != nil {
		t.Errorf("an older one: %v", err)
	}
	if is, err := ledger.ReadSnapshot(t.Context(), "jobs"); err != nil || is.UpTo != 2 || string(is.Data) == `{"sum":4}` || is.Token != 1 {
		t.Errorf("there is %+v, %v", is, err)
	}
}
