package file_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/file"
)

func TestAHistoryWithoutARecordIsListedAsUntrusted(t *testing.T) {
	t.Parallel()
	s, err := file.Open(filepath.Join(t.TempDir(), "leases"), file.Config{})
	require.NoError(t, err)
	defer s.Close()
	for _, e := range []leadership.Election{"a", "a.b", "b", "c"} {
		if _, err := service.New(s).Do(t.Context(), leadership.Configure{Election: e}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []leadership.Election{"a", "a.b", "c"} {
		s.Spoil(e, nil)
	}
	if l, err := s.List(t.Context(), "", "", 0); err != nil || len(l.Snapshots)+len(l.Untrusted) > 0 {
		t.Errorf("none a page: got %+v, %v", l, err)
	}
	for limit := 1; limit <= 5; limit++ {
		var whole, untrusted []leadership.Election
		pages := 0
		for after, more := leadership.Election(""), true; more; more = after != "" {
			pages++
			l, err := s.List(t.Context(), "", after, limit)
			require.NoError(t, err)
			for _, snap := range l.Snapshots {
				whole = append(whole, snap.Record.Election)
			}
			untrusted, after = append(untrusted, l.Untrusted...), l.Next
		}
		if want := (4 + limit - 1) / limit; pages != want {
			t.Errorf("%d a page: got %d pages, want %d", limit, pages, want)
		}
		if !slices.Equal(whole, []leadership.Election{"b"}) || !slices.Equal(untrusted, []leadership.Election{"a", "a.b", "c"}) {
			t.Errorf("%d a page: got %v, and untrusted %v", limit, whole, untrusted)
		}
	}
}
