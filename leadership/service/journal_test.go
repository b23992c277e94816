package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

var theJournal = rule.LogID{Election: "jobs", Kind: rule.LogJournal}

// read is a journal of which the head is read after something has happened.
type read struct {
	service.Journal
	between func()           // runs once, between a read of segments and one of the head
	from    leadership.Index // segments that begin before it are gone
}

func (r *read) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error) {
	all, err := r.Journal.Segments(ctx, id, after, limit)
	return slices.DeleteFunc(all, func(s rule.Segment) bool { return s.First < r.from }), err
}

func (r *read) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	if between := r.between; between != nil {
		r.between = nil
		between()
	}
	return r.Journal.Look(ctx, id)
}

func (r *read) amend(t *testing.T, change func(rule.Log) (rule.LogChange, error)) {
	t.Helper()
	_, err := r.Amend(t.Context(), theJournal, change)
	require.NoError(t, err)
}

func (r *read) page(t *testing.T, q leadership.JournalRequest) (leadership.JournalPage, error) {
	q.Election = "jobs"
	return service.NewLedger(nil, r).ReadJournal(t.Context(), q)
}

func opens(token leadership.Token) func(rule.Log) (rule.LogChange, error) {
	return func(l rule.Log) (rule.LogChange, error) { return rule.OpenJournal(l, leaderOf(token)) }
}

func appends(token leadership.Token, after leadership.Index, data ...string) func(rule.Log) (rule.LogChange, error) {
	var all []leadership.Entry
	for _, d := range data {
		all = append(all, leadership.Entry{Token: token, Type: "put", Data: json.RawMessage(d)})
	}
	return func(l rule.Log) (rule.LogChange, error) {
		return rule.AppendEntries(l, leaderOf(token), after, all)
	}
}

func snaps(token leadership.Token, upTo leadership.Index) func(rule.Log) (rule.LogChange, error) {
	return func(l rule.Log) (rule.LogChange, error) {
		return rule.SnapJournal(l, leaderOf(token), upTo, `0`)
	}
}

func leaderOf(token leadership.Token) rule.Renewal {
	return rule.Renewal{Election: "jobs", CandidateID: leadership.CandidateID(fmt.Sprintf("leader-%d", token)), KeyHash: leadership.Key{byte(token)}.Hash(), Token: token}
}

// newJournal has three entries of the leader with token 5, in two segments.
func newJournal(t *testing.T) *read {
	r := &read{Journal: memory.New(memory.Config{})}
	r.amend(t, opens(5))
	r.amend(t, appends(5, 0, `1`, `2`))
	r.amend(t, appends(5, 2, `3`))
	return r
}

func TestAReaderFromBeforeARestoreBeginsAnew(t *testing.T) {
	_, err := newJournal(t).page(t, leadership.JournalRequest{After: 3})
	require.NoError(t, err)
	for _, restored := range []leadership.Token{1000, 2000} { // the backup has entry 1 alone
		r := &read{Journal: memory.New(memory.Config{})}
		r.amend(t, opens(5))
		r.amend(t, appends(5, 0, `1`))
		r.amend(t, func(l rule.Log) (rule.LogChange, error) { return rule.RaisedLog(l, restored, true) })
		r.amend(t, opens(restored+1))
		r.amend(t, appends(restored+1, 1, `"other"`, `"others"`))
		for _, before := range []leadership.Token{0, restored - 1000} {
			_, err := r.page(t, leadership.JournalRequest{After: 3, Generation: before})
			if e := new(leadership.Error); !errors.As(err, &e) || e.Code != leadership.HistoryCompacted || e.Generation != restored || e.Index != 0 {
				t.Errorf("a reader of generation %d after the restore at %d: %v", before, restored, err)
			}
		}
		page, err := r.page(t, leadership.JournalRequest{})
		if err != nil || page.Generation != restored || len(page.Entries) != 3 {
			t.Errorf("from the start: %+v, %v", page, err)
		}
		if page, err := r.page(t, leadership.JournalRequest{After: 1, Generation: restored}); err != nil || len(page.Entries) != 2 {
			t.Errorf("a reader that began anew: %+v, %v", page, err)
		}
		r.amend(t, func(l rule.Log) (rule.LogChange, error) { return rule.RaisedLog(l, 3000, false) })
		if page, err := r.page(t, leadership.JournalRequest{After: 3, Generation: restored}); err != nil || page.Generation != restored {
			t.Errorf("after a move: %+v, %v", page, err)
		}
	}
}

func TestAReaderOfAJournalSeesEachEntryOrIsToldWhereToStart(t *testing.T) {
	for name, c := range map[string]struct {
		after   leadership.Index
		limit   int
		between func(rule.Log) (rule.LogChange, error)
		want    int // entries
		err     error
		at      leadership.Index // that the error names
	}{
		"all":                          {0, 10, nil, 3, nil, 0},
		"some":                         {0, 2, nil, 2, nil, 0},
		"from the middle of a segment": {1, 10, nil, 2, nil, 0},
		"after the end":                {3, 10, nil, 0, nil, 0},
		"beyond the end":               {4, 10, nil, 0, leadership.IndexMismatch, 3},
		"one is appended meanwhile":    {3, 10, appends(5, 3, `4`), 1, nil, 0},
		"trimmed meanwhile":            {0, 10, snaps(5, 2), 3, nil, 0},
	} {
		r := newJournal(t)
		if c.between != nil {
			r.between = func() { r.amend(t, c.between) }
		}
		page, err := r.page(t, leadership.JournalRequest{After: c.after, Limit: c.limit})
		var e *leadership.Error
		if !errors.Is(err, c.err) || len(page.Entries) != c.want || c.err != nil && (!errors.As(err, &e) || e.Index != c.at) {
			t.Errorf("%s: got %+v, %v", name, page, err)
		}
		for i, one := range page.Entries {
			if one.Index != c.after+1+leadership.Index(i) {
				t.Errorf("%s: entry %d stands at place %d", name, one.Index, i)
			}
		}
	}
	r := newJournal(t)
	r.amend(t, snaps(5, 2))
	r.from = 3
	_, err := r.page(t, leadership.JournalRequest{})
	if e := new(leadership.Error); !errors.As(err, &e) || e.Code != leadership.HistoryCompacted || e.Index != 2 {
		t.Errorf("trimmed: %v", err)
	}
	r.from = 4
	_, err = r.page(t, leadership.JournalRequest{After: 2})
	assert.ErrorIs(t, err, leadership.RecordCorrupt, "an entry is lost")
}
