package instance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"regent/leadership"
)

func TestTheWindowsOfAllJournalsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	j := newJournals(nil, nil, nil, nil)
	total := func() (bytes int) {
		for _, f := range j.follows {
			for _, e := range f.window {
				bytes += len(e.Data)
			}
		}
		return bytes
	}
	data := json.RawMessage(`"` + strings.Repeat("x", 64<<10-2) + `"`)
	var last *follow
	for n := range 100 {
		last = &follow{feeds: 1, more: make(chan struct{})}
		j.follows[leadership.Election(fmt.Sprint("e", n))] = last
		page := leadership.JournalPage{JournalHead: leadership.JournalHead{Index: 20}}
		j.enter(last, page) // the window begins after it
		for range 20 {
			page.Index++
			page.Entries = append(page.Entries, leadership.Entry{Index: page.Index, Data: data})
		}
		j.enter(last, page)
		if total() > windowsBytes || last.bytes > windowBytes {
			t.Fatalf("with %d journals the windows have %d bytes, the last one %d; want %d and %d at most", n+1, total(), last.bytes, windowsBytes, windowBytes)
		}
	}
	if total() < windowsBytes*9/10 || last.next != 41 || last.window[len(last.window)-1].Index != 40 {
		t.Errorf("the windows have %d bytes of %d, and the last one ends before %d, with %d entries", total(), windowsBytes, last.next, len(last.window))
	}
	for _, f := range j.follows {
		j.restart(f, 1)
	}
	if j.bytes != 0 {
		t.Errorf("without an entry the windows have %d bytes", j.bytes)
	}
}
