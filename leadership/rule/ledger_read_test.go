package rule_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/memory"
)

func TestASnapshotIsNotReplacedByAnotherUpToTheSameIndex(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Config{})
	svc := service.New(s)
	ledger := service.NewLedger(svc, s)
	lead := func(c leadership.CandidateID) leadership.LeaseRequest {
		key := leadership.NewKey()
		g, err := svc.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: c, Key: &key})
		require.NoError(t, err)
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
		require.NoError(t, put(ann, 2, data, ""))
	}
	if _, err := svc.Do(t.Context(), leadership.Release{LeaseRequest: ann}); err != nil {
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
