package rule_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
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
	_, err := ledger.AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: ann, Entries: entries})
	require.NoError(t, err)
	const data = `{"sum": 3, "text": "<&>"}`
	for range 2 {
		require.NoError(t, put(ann, 2, data, ""))
	}
	_, err = svc.Do(t.Context(), leadership.Release{LeaseRequest: ann})
	require.NoError(t, err)
	bob := lead("bob")
	assert.NoError(t, put(bob, 2, data, ""), "the same, of the next leader")
	for what, err := range map[string]error{"other data": put(bob, 2, `{"sum": 4}`, ""), "a uri": put(bob, 2, "", "gs://bucket/2")} {
		assert.ErrorIs(t, err, leadership.InvalidArgument, what)
	}
	assert.NoError(t, put(bob, 1, `0`, ""), "an older one")
	if is, err := ledger.ReadSnapshot(t.Context(), "jobs"); err != nil || is.UpTo != 2 || string(is.Data) == `{"sum":4}` || is.Token != 1 {
		t.Errorf("there is %+v, %v", is, err)
	}
}
