package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

var journal = rule.LogID{Election: "jobs", Kind: rule.LogJournal}

// appendTo adds a segment to the journal.
func (u *used) appendTo(n leadership.Index, data string) error {
	return u.put(run(n, n, data))
}

// put changes segments of the journal.
func (u *used) put(s ...rule.Segment) error {
	_, err := u.Amend(u.t.Context(), journal, func(rule.Log) (rule.LogChange, error) {
		return rule.LogChange{Text: "{}", Add: s}, nil
	})
	return err
}

// run is a segment.
func run(first, last leadership.Index, data string) rule.Segment {
	return rule.Segment{First: first, Last: last, Data: data}
}

func TestAFolderKeepsLogsOverACheckpoint(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 3000)
	require.NoError(t, u.appendTo(1, strings.Repeat("x", 5000)))
	require.NoError(t, u.Checkpointed())
	if _, err := os.Stat(filepath.Join(u.path, "log-0000000001")); err == nil {
		t.Error("the log before the checkpoint is still there")
	}
	want := dump(t, u.Store)
	if got := u.reopened(copied(t, u.path)); got != want || !strings.Contains(got, strings.Repeat("x", 5000)) {
		t.Errorf("opened again: got\n%s\nwant\n%s", got, want)
	}
}

// A commit is bounded, so that many large appends at once do not have to be in memory together.
func TestLargeAppendsThatWaitTogetherTakeSeveralCommits(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	require.NoError(t, u.appendTo(1, "x"))
	const many = 20
	data := strings.Repeat("x", rule.MaxLogBytes)
	before := u.Sequence()
	release := u.Hold()
	answers := make(chan error, many)
	for i := range many {
		id := rule.LogID{Election: leadership.Election(fmt.Sprint("e", i)), Kind: rule.LogJournal}
		go func() {
			_, err := u.Amend(t.Context(), id, func(rule.Log) (rule.LogChange, error) {
				return rule.LogChange{Text: "{}", Add: []rule.Segment{{First: 1, Last: 1, Data: data}}}, nil
			})
			answers <- err
		}()
	}
	queued(t, u.Store, many)
	release()
	for range many {
		require.NoError(t, <-answers)
	}
	if got := u.Sequence() - before; got != 3 { // 7 of them exceed 4 MiB
		t.Errorf("%d appends of %d bytes took %d commits, want 3", many, len(data), got)
	}
	want := dump(t, u.Store)
	if got := u.reopened(copied(t, u.path)); got != want {
		t.Error("opened again: it is not as it was")
	}
}

// To decide on a large body takes long: other calls do not wait for it.
func TestALogIsDecidedOnOutsideTheWriter(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	var mu sync.Mutex
	var seen []string
	amend := func(next string) {
		after, err := u.Amend(t.Context(), journal, func(l rule.Log) (rule.LogChange, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, l.Text)
			return rule.LogChange{Text: next}, nil
		})
		if err != nil || after.Text != next && next != "" {
			t.Errorf("amend to %q: %+v, %v", next, after, err)
		}
	}
	release := sync.OnceFunc(u.Hold())
	defer release()
	var calls sync.WaitGroup
	for i, next := range []string{"{1}", "{2}"} {
		calls.Go(func() { amend(next) })
		queued(t, u.Store, i+1)
	}
	mu.Lock()
	decided := len(seen)
	mu.Unlock()
	if decided != 2 {
		t.Fatalf("while the writer is busy, %d of two calls are decided on", decided)
	}
	amend("") // needs no writer
	release()
	calls.Wait()
	if want := []string{"", "", "", "{1}"}; !slices.Equal(seen, want) {
		t.Errorf("the heads that were decided on are %q, want %q: one anew, because it had changed", seen, want)
	}
}

func TestALogWithAZeroByteIsRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	before := u.LogEnd()
	for i, ch := range []rule.LogChange{
		{Text: "{\x00}"},
		{Text: "{}", Body: strings.Repeat("\x00", 600)},
		{Text: "{}", Add: []rule.Segment{{First: 1, Last: 1, Data: "\x00"}}},
		{Text: "{}", Add: []rule.Segment{{First: 2, Last: 1, Data: "x"}}},
		{Text: "{}", Add: []rule.Segment{{First: 0, Last: 0, Data: "x"}}},
	} {
		if _, err := u.Amend(t.Context(), journal, func(rule.Log) (rule.LogChange, error) { return ch, nil }); err == nil {
			t.Errorf("change %d was written", i)
		}
	}
	if u.LogEnd() != before {
		t.Error("something was written")
	}
}

// What is deleted leaves the memory and the folder.
func TestWhatIsTrimmedIsGoneFromTheNextSnapshot(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	data := strings.Repeat("x", 100_000)
	for n := range leadership.Index(20) {
		require.NoError(t, u.appendTo(n+1, data))
	}
	require.NoError(t, u.Trim(t.Context(), journal, 19))
	u.Close()
	u.config.Checkpoint = 3000
	u.open(u.path)
	require.NoError(t, u.appendTo(21, "x"))
	require.NoError(t, u.Checkpointed())
	if n := len(read(t, u.path, "snapshot-0000000002")); n > 2*len(data) {
		t.Errorf("the snapshot has %d bytes, and the segments left have %d", n, len(data))
	}
	if got, err := u.Segments(t.Context(), journal, 0, 100); err != nil || len(got) != 2 || got[0].First != 20 {
		t.Errorf("got %d segments, %v", len(got), err)
	}
}

func TestASegmentTakesItsPlaceAmongTheOthers(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	large := strings.Repeat("x", leadership.MaxReadBytes+1)
	require.NoError(t, errors.Join(u.put(run(4, 5, "b"), run(7, 7, "c"), run(1, 2, "a")), u.put(run(4, 5, large))))
	end := u.LogEnd()
	require.NoError(t, errors.Join(u.Trim(t.Context(), journal, 1), u.Trim(t.Context(), rule.LogID{Election: "never"}, 1)))
	if u.LogEnd() != end {
		t.Error("a trim that deletes nothing was written")
	}
	for after, want := range map[leadership.Index]string{0: "a", 2: large, 5: "c"} {
		got, err := u.Segments(t.Context(), journal, after, 9)
		if err != nil || len(got) != 1 || got[0].Data != want {
			t.Errorf("after %d: got %d segments, %v", after, len(got), err)
		}
	}
	want := dump(t, u.Store)
	if got := u.reopened(copied(t, u.path)); got != want {
		t.Error("opened again: it is not as it was")
	}
}
