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
