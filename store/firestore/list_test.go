package firestore_test

import (
	"slices"
	"testing"

	"regent/leadership"
)

func TestALeaseDocumentThatWasDeletedIsFound(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	if got, err := s.Orphans(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("nothing is there: got %v, %v", got, err)
	}
	acquired(t, s, "a", "b", "b.c", "d")
	p.write(t, p.database()+"/documents/other/b/history/newest", values{"mine": integer(1)}) // of another application
	p.write(t, p.lease("d")+"/history/older", values{"mine": integer(1)})
	for _, e := range []leadership.Election{"b", "d"} {
		p.remove(t, p.lease(e))
	}
	if got, err := s.Orphans(t.Context()); err != nil || !slices.Equal(got, []leadership.Election{"b", "d"}) {
		t.Errorf("got %v, %v; want b and d", got, err)
	}
}
