package spanner

import (
	"encoding/json"
	"errors"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

var journalID = rule.LogID{Election: "e000", Kind: rule.LogJournal}

// writing changes a log to the text.
func writing(text string, add ...rule.Segment) func(rule.Log) (rule.LogChange, error) {
	return func(rule.Log) (rule.LogChange, error) {
		return rule.LogChange{Text: text, Add: add}, nil
	}
}

func TestAChangeOfALogIsDoneOrRefusedOrUnknownAsAChangeOfAnElection(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		replies []reply
		want    leadership.Code // "" for done
		done    bool
	}{
		"refused for good":              {[]reply{{answer: codes.PermissionDenied}}, leadership.StoreUnavailable, false},
		"done, and the reply is lost":   {[]reply{{lose: true, answer: codes.DeadlineExceeded}}, leadership.OutcomeUnknown, true},
		"reply lost, and decided again": {lostThenAborted(), "", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n := new(network)
			s, whole := unreliable(t, n)
			key := leadership.NewKey()
			g, err := service.New(whole).Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: &key})
			require.NoError(t, err)
			add := func(s *Store, after leadership.Index) (leadership.JournalHead, error) {
				return service.NewLedger(service.New(s), s).AppendJournal(t.Context(), leadership.AppendRequest{
					LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: key, Token: g.Token},
					After:        after, Entries: []leadership.Entry{{Data: json.RawMessage("1")}},
				})
			}
			if _, err := add(whole, 0); err != nil {
				t.Fatal(err)
			}
			n.plan(c.replies...)
			if _, err := add(s, 1); c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			want := leadership.Index(1)
			if c.done {
				want = 2
			}
			head, err := service.NewLedger(service.New(whole), whole).Head(t.Context(), "jobs")
			if err != nil || head.Index != want {
				t.Errorf("the journal is at %d, %v; want %d", head.Index, err, want)
			}
			n.plan()
			if head, err := add(s, 1); err != nil || head.Index != 2 {
				t.Errorf("the same again: got %+v, %v; want index 2", head, err)
			}
		})
	}
}

func TestALogThatCannotBeReadIsCorruptAndNotOverwritten(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, hand := opened(t, cfg), client(t, cfg)
	if _, err := s.Amend(t.Context(), journalID, writing("1", rule.Segment{First: 1, Last: 2, Data: "x"})); err != nil {
		t.Fatal(err)
	}
	execute(t, hand, "UPDATE LeadershipLogSegments SET last_index = 3 WHERE TRUE", nil)
	if got, err := s.Segments(t.Context(), journalID, 0, 10); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("segments: got %v, %v; want RECORD_CORRUPT", got, err)
	}
	execute(t, hand, "UPDATE LeadershipLogs SET schema_version = 99 WHERE TRUE", nil)
	if _, err := s.Look(t.Context(), journalID); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("look: got %v, want RECORD_CORRUPT", err)
	}
	if _, err := s.Amend(t.Context(), journalID, writing("2")); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("amend: got %v, want RECORD_CORRUPT", err)
	}
	rows, text := 0, ""
	err := hand.Single().Read(t.Context(), "LeadershipLogs", spanner.AllKeys(), []string{"text"}).Do(func(r *spanner.Row) error {
		rows++
		return r.Columns(&text)
	})
	if err != nil || rows != 1 || text != "1" {
		t.Errorf("%d rows, the last with %q, %v; want one with its text", rows, text, err)
	}
}

// The store does not check what Spanner itself prevents; this checks that Spanner does.
func TestSpannerItselfKeepsALogFromBeingLostOrDatedAhead(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, hand := opened(t, cfg), client(t, cfg)
	if _, err := s.Amend(t.Context(), journalID, writing("1", rule.Segment{First: 1, Last: 2, Data: "x"})); err != nil {
		t.Fatal(err)
	}
	for what, sql := range map[string]string{
		"a head with segments is not deleted":  "DELETE FROM LeadershipLogs WHERE TRUE",
		"a head does not lie in the future":    "UPDATE LeadershipLogs SET written_at = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR) WHERE TRUE",
		"a segment does not lie in the future": "UPDATE LeadershipLogSegments SET committed_at = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR) WHERE TRUE",
		"a text is not missing":                "UPDATE LeadershipLogs SET text = NULL WHERE TRUE",
		"no segment has no head":               "INSERT INTO LeadershipLogSegments (cluster_id, kind, place, first_index, last_index, data, committed_at) VALUES ('x', 'journal', 1, 1, 1, 'x', PENDING_COMMIT_TIMESTAMP())",
	} {
		if n, err := try(t.Context(), hand, sql, nil); err == nil {
			t.Errorf("%s: %d rows changed, want an error", what, n)
		} else if code := spanner.ErrCode(err); code == codes.Unavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}
