package memory_test

import (
	"slices"
	"testing"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/memory"
)

func TestAHistoryWithoutARecordIsListedAsUntrusted(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Config{})
	for _, e := range []leadership.Election{"a", "a.b", "b"} {
		if _, err := service.New(s).Do(t.Context(), leadership.Configure{Election: e}); err != nil {
			t.Fatal(err)
		}
	}
	s.Spoil("a.b", nil)
	l, err := s.List(t.Context(), "a", "", 10)
	if err != nil || !slices.Equal(l.Untrusted, []leadership.Election{"a.b"}) || len(l.Snapshots) != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
}
