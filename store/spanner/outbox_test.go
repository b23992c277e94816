package spanner

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

func TestAnEventThatCannotBeReadHoldsUpItsOwnElectionOnly(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, foreign := opened(t, cfg), client(t, cfg)
	granted(t, s, 4)
	for i := range 4 {
		for d := range time.Duration(3) {
			e := leadership.Election(fmt.Sprintf("e%03d", i))
			if _, err := s.Update(t.Context(), e, rule.Expect{}, lockDelay((d+1)*time.Second, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	execute(t, foreign, "UPDATE LeadershipEvents SET type = '' WHERE cluster_id = 'e000' AND revision = 1 OR cluster_id = 'e002' AND revision = 3", nil)
	all := []string{"e001 1", "e001 2", "e001 3", "e001 4", "e002 1", "e002 2", "e003 1", "e003 2", "e003 3", "e003 4"}
	if diff := cmp.Diff(all, unannounced(t, s, 100)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A page that is full of what cannot be read does not hide what follows.
	drain(t, s, len(all))
	if events, err := s.Unannounced(t.Context(), "", 2); !errors.Is(err, leadership.RecordCorrupt) || len(events) != 0 {
		t.Errorf("with nothing else left: got %v, %v; want %s", events, err, leadership.RecordCorrupt)
	}
	execute(t, foreign, "UPDATE LeadershipEvents SET type = 'acquired' WHERE type = ''", nil)
	mended := []string{"e000 1", "e000 2", "e000 3", "e000 4", "e002 3", "e002 4"}
	if diff := cmp.Diff(mended, unannounced(t, s, 100)); diff != "" {
		t.Errorf("once it is mended (-want +got)\n%s", diff)
	}
}

func TestTheOutboxOfOneElectionEndsBeforeItsCorruptEvent(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	s, foreign := opened(t, cfg), client(t, cfg)
	granted(t, s, 3)
	for d := range time.Duration(2) {
		if _, err := s.Update(t.Context(), "e001", rule.Expect{}, lockDelay((d+1)*time.Second, 0)); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, foreign, "UPDATE LeadershipEvents SET fencing_token = -1 WHERE cluster_id = 'e001' AND revision = 2", nil)
	for _, limit := range []int{1, 2, 3, 9} {
		if events, err := s.Unannounced(t.Context(), "e001", limit); err != nil || len(events) != 1 || events[0].Revision != 1 {
			t.Errorf("at most %d: got %v, %v; want revision 1", limit, events, err)
		}
	}
	require.NoError(t, s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "e001", Revision: 1}}))
	for _, limit := range []int{1, 9} {
		if events, err := s.Unannounced(t.Context(), "e001", limit); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("with nothing else left, at most %d: got %v, %v; want %s", limit, events, err, leadership.RecordCorrupt)
		}
	}
}

func unannounced(t *testing.T, s *Store, limit int) []string {
	t.Helper()
	events, err := s.Unannounced(t.Context(), "", limit)
	require.NoError(t, err)
	var got []string
	for _, ev := range events {
		got = append(got, fmt.Sprint(ev.Election, " ", ev.Revision))
	}
	return got
}

// drain announces, two at a time, until n events are announced.
func drain(t *testing.T, s *Store, n int) {
	t.Helper()
	for announced := 0; announced < n; {
		events, err := s.Unannounced(t.Context(), "", 2)
		if err != nil || len(events) == 0 {
			t.Fatalf("%d of %d are announced: got %v, %v", announced, n, events, err)
		}
		require.NoError(t, s.MarkAnnounced(t.Context(), ids(events)))
		announced += len(events)
	}
}

func ids(events []leadership.Event) []leadership.EventID {
	all := make([]leadership.EventID, len(events))
	for i, e := range events {
		all[i] = e.ID()
	}
	return all
}
