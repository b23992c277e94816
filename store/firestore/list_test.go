package firestore_test

import (
	"slices"
	"testing"

	"regent/leadership"
)

func TestWhatCannotBeTrustedIsNamedOnceHoweverLongAPageIs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	acquired(t, s, "a", "b", "c", "d")
	p.write(t, p.lease("b"), values{"schema": integer(99)}, "schema")
	for _, name := range []string{"A", "a!", "a!!", "b b"} { // of foreign documents
		p.write(t, p.lease(leadership.Election(name)), values{"mine": integer(1)})
	}
	for limit := 1; limit <= 8; limit++ {
		var untrusted []leadership.Election
		for after := leadership.Election(""); ; {
			l, err := s.List(t.Context(), "", after, limit)
			if err != nil {
				t.Fatal(err)
			}
			untrusted = append(untrusted, l.Untrusted...)
			if after = l.Next; after == "" {
				break
			}
		}
		if want := []leadership.Election{"A", "a!", "a!!", "b", "b b"}; !slices.Equal(untrusted, want) {
			t.Errorf("%d a page: %q are untrusted, want %q", limit, untrusted, want)
		}
	}
}

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
