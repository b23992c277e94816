package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

// journalOf is the journal of a caller, which no other caller changes.
func journalOf(caller string) rule.LogID {
	return rule.LogID{Election: leadership.Election("journal-" + caller), Kind: rule.LogJournal}
}

// everyFifth change of a journal puts a snapshot, and the entries before are then deleted.
const everyFifth = 5

// journalChange is the n-th change of any journal: always the same.
func journalChange(n int) rule.LogChange {
	at := leadership.Index(n)
	data := fmt.Sprintf("change %d %s", n, strings.Repeat("x", n%3*1500)) // some have several sectors
	ch := rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, n), Body: data, Add: []rule.Segment{{First: at, Last: at, Data: data}}}
	if n%everyFifth == 0 {
		ch.Add = append(ch.Add, rule.Segment{Last: at - 1, Data: "snapshot of " + data})
	}
	return ch
}

// trimmedBy is up to which entry the journal is trimmed after its n-th change.
func trimmedBy(n int) leadership.Index { return max(leadership.Index(n/everyFifth*everyFifth-1), 0) }

// journal makes the next change of the caller's journal.
func (c *caller) journal() error {
	id := journalOf(string(c.id))
	n, err := changesOf(c.store, id)
	if err != nil {
		return nil // the next call reports a broken store
	}
	n++
	_, err = c.ask(line{ID: c.callID(), Journal: string(c.id), Change: n}, func(ctx context.Context) ([]leadership.Lease, error) {
		_, err := c.store.Amend(ctx, id, func(rule.Log) (rule.LogChange, error) { return journalChange(n), nil })
		if err == nil && n%everyFifth == 0 {
			err = c.store.Trim(ctx, id, trimmedBy(n))
		}
		return nil, err
	})
	return err
}

// changesOf is how many changes a journal has.
func changesOf(store *file.Store, id rule.LogID) (n int, err error) {
	head, err := store.Look(context.Background(), id)
	if err == nil && head.Text != "" {
		_, err = fmt.Sscanf(head.Text, `{"n":%d}`, &n)
	}
	return n, err
}

// journals compares each journal of an image with what its caller was told and has asked for: no
// acknowledged change is missing, none is there that was not asked for, and none in part.
func (t *truth) journals(store *file.Store, p plan) error {
	least, most := make(map[string]int), make(map[string]int)
	for _, call := range t.calls {
		if call.Journal == "" || call.at >= p.At {
			continue
		}
		most[call.Journal] = max(most[call.Journal], call.Change)
		if call.told < p.Seen && call.answer.Code == "" {
			least[call.Journal] = max(least[call.Journal], call.Change)
		}
	}
	ids, err := store.Logs(context.Background(), rule.LogID{}, everything)
	if err != nil {
		return err
	}
	for caller, asked := range most {
		id := journalOf(caller)
		ids = slices.DeleteFunc(ids, func(other rule.LogID) bool { return other == id })
		n, err := changesOf(store, id)
		switch {
		case err != nil:
			return err
		case n < least[caller] || n > asked:
			return fmt.Errorf("the journal of %s has %d changes, and its caller was told of %d and has asked for %d", caller, n, least[caller], asked)
		}
		if err := wholeJournal(store, id, n, trimmedBy(least[caller])); err != nil {
			return fmt.Errorf("the journal of %s after %d changes: %w", caller, n, err)
		}
	}
	if len(ids) > 0 {
		return fmt.Errorf("there are logs that no caller has written: %v", ids)
	}
	return nil
}

// wholeJournal expects a journal to be as it was after n changes, trimmed at least up to the given
// entry.
func wholeJournal(store *file.Store, id rule.LogID, n int, trimmed leadership.Index) error {
	head, err := store.Look(context.Background(), id)
	segments, err2 := store.Segments(context.Background(), id, 0, everything)
	snapshot, err3 := store.Snapshot(context.Background(), id)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if n == 0 {
		if len(segments) > 0 || snapshot.Last > 0 {
			return fmt.Errorf("it has %d segments and a snapshot up to %d", len(segments), snapshot.Last)
		}
		return nil
	}
	if want := journalChange(n); head.Text != want.Text || head.Body != want.Body {
		return errors.New("its head is not that of its last change")
	}
	if fifth := n / everyFifth * everyFifth; fifth > 0 {
		if want := journalChange(fifth).Add[1]; snapshot.Last != want.Last || snapshot.Data != want.Data {
			return fmt.Errorf("its snapshot goes up to %d, want %d", snapshot.Last, want.Last)
		}
	} else if snapshot.Last > 0 {
		return fmt.Errorf("it has a snapshot up to %d", snapshot.Last)
	}
	if len(segments) == 0 || segments[0].First <= trimmed || segments[0].First > trimmedBy(n)+1 {
		return fmt.Errorf("it was trimmed up to %d at least, and to %d at most, and has the segments %v", trimmed, trimmedBy(n), segments)
	}
	for i, s := range segments {
		want := journalChange(int(segments[0].First) + i).Add[0]
		if s.First != want.First || s.Last != want.Last || s.Data != want.Data {
			return fmt.Errorf("segment %d is not as it was appended", want.First)
		}
	}
	if last := segments[len(segments)-1].Last; last != leadership.Index(n) {
		return fmt.Errorf("its last segment is %d", last)
	}
	return nil
}
