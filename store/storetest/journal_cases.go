package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// journalCase is one sentence of the Journal contract.
type journalCase struct {
	rule string
	run  func(*logs)
}

// logs is one case's journal, opened twice.
type logs struct {
	*handles
	a, b service.Journal
}

// RunJournal checks each sentence of the contract of a store's Journal, and the effects of a Ledger
// on it. The handles of the harness must be Journals, too.
func RunJournal(t *testing.T, h Harness) {
	for _, cases := range [][]journalCase{amendCases, segmentCases, logCases, effectCases} {
		for _, c := range cases {
			t.Run(c.rule, func(t *testing.T) {
				t.Parallel()
				backing := h(t)
				s := &handles{TB: t, backing: backing, a: backing.Open(t), b: backing.Open(t)}
				c.run(&logs{handles: s, a: journalOf(t, s.a), b: journalOf(t, s.b)})
				if t.Failed() {
					t.Logf("the rule: %s", c.rule)
				}
			})
		}
	}
}

func journalOf(t testing.TB, s service.Store) service.Journal {
	t.Helper()
	j, is := s.(service.Journal)
	if !is {
		t.Fatalf("%T is no service.Journal", s)
	}
	return j
}

// The logs of most cases.
var (
	journal    = rule.LogID{Election: jobs, Kind: rule.LogJournal}
	checkpoint = rule.LogID{Election: jobs, Kind: rule.LogCheckpoint}
)

// awkward is content that a store must not touch: no JSON, and every kind of quote.
const awkward = "a 'b' \"c\" `d` \\ \\u0041 % ; -- <&> \t\n\r ä 漢 🙂 \u2028 \ufeff \x7f"

// amend changes a log through the handle.
func (l *logs) amend(j service.Journal, id rule.LogID, ch rule.LogChange) rule.Log {
	l.Helper()
	log, err := j.Amend(l.Context(), id, func(rule.Log) (rule.LogChange, error) { return ch, nil })
	if err != nil {
		l.Fatalf("amend %v: %v", id, err)
	}
	return log
}

func (l *logs) look(j service.Journal, id rule.LogID) rule.Log {
	l.Helper()
	log, err := j.Look(l.Context(), id)
	if err != nil {
		l.Fatalf("look at %v: %v", id, err)
	}
	return log
}

func (l *logs) segments(j service.Journal, id rule.LogID, after leadership.Index, limit int) []rule.Segment {
	l.Helper()
	found, err := j.Segments(l.Context(), id, after, limit)
	if err != nil {
		l.Fatalf("segments of %v after %d: %v", id, after, err)
	}
	return found
}

func (l *logs) snapshot(j service.Journal, id rule.LogID) rule.Segment {
	l.Helper()
	s, err := j.Snapshot(l.Context(), id)
	if err != nil {
		l.Fatalf("snapshot of %v: %v", id, err)
	}
	return s
}

// names reads the names of all logs, so many at a time.
func (l *logs) names(limit int) (all []rule.LogID) {
	l.Helper()
	var after rule.LogID
	for range 100 {
		page, err := l.b.Logs(l.Context(), after, limit)
		switch {
		case err != nil:
			l.Fatalf("logs after %v: %v", after, err)
		case len(page) > limit:
			l.Fatalf("logs after %v: %d of them, and the limit is %d", after, len(page), limit)
		case len(page) == 0:
			return all
		}
		all, after = append(all, page...), page[len(page)-1]
	}
	l.Fatal("the list of logs does not end")
	return nil
}

// same expects two heads to be one.
func (l *logs) same(what string, got, want rule.Log) {
	l.Helper()
	if got.ID != want.ID || got.Text != want.Text || got.Body != want.Body || !got.WrittenAt.Equal(want.WrittenAt) {
		l.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// never expects that the log was never written.
func (l *logs) never(what string, id rule.LogID) {
	l.Helper()
	for _, j := range []service.Journal{l.a, l.b} {
		if got := l.look(j, id); got.ID != id || got.Text != "" || got.Body != "" || !got.WrittenAt.IsZero() {
			l.Errorf("%s: got head %+v, want an empty one", what, got)
		}
		if got := l.segments(j, id, 0, 10); len(got) > 0 {
			l.Errorf("%s: got segments %+v, want none", what, got)
		}
		if got := l.snapshot(j, id); got.Last != 0 || got.Data != "" {
			l.Errorf("%s: got snapshot %+v, want none", what, got)
		}
	}
	if got := l.names(10); slices.Contains(got, id) {
		l.Errorf("%s: it is among the logs: %v", what, got)
	}
}

// run is a segment with a text.
func run(first, last leadership.Index, data string) rule.Segment {
	return rule.Segment{First: first, Last: last, Data: data}
}

// spans are the places of segments, as "first-last".
func spans(all []rule.Segment) (spans []string) {
	for _, s := range all {
		spans = append(spans, fmt.Sprintf("%d-%d", s.First, s.Last))
	}
	return spans
}

var amendCases = []journalCase{
	{"a log never written has an empty head", func(l *logs) {
		l.never("at first", journal)
		log, err := l.a.Amend(l.Context(), journal, func(log rule.Log) (rule.LogChange, error) {
			if log.ID != journal || log.Text != "" || log.Body != "" || !log.WrittenAt.IsZero() {
				l.Errorf("decide got %+v, want an empty head", log)
			}
			return rule.LogChange{}, nil
		})
		require.NoError(l, err)
		l.same("a change without a text", log, rule.Log{ID: journal})
		l.never("after a change without a text", journal)
	}},
	{"what was reported as done is seen by every later call through every handle", func(l *logs) {
		for i := range 5 {
			here, there := l.a, l.b
			if i%2 == 1 {
				here, there = l.b, l.a
			}
			n := leadership.Index(i + 1)
			log := l.amend(here, journal, rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, i), Body: fmt.Sprint(i), Add: []rule.Segment{run(n, n, "x"), {Last: n, Data: fmt.Sprint(i)}}})
			if want := fmt.Sprintf(`{"n":%d}`, i); log.ID != journal || log.Text != want || log.Body != fmt.Sprint(i) {
				l.Fatalf("amend returned %+v, want text %s", log, want)
			}
			for _, j := range []service.Journal{here, there} {
				l.same("look", l.look(j, journal), log)
				if got := l.segments(j, journal, 0, 100); len(got) != i+1 || got[i].Last != n {
					l.Errorf("after change %d: got segments %v", i, spans(got))
				}
				if got := l.snapshot(j, journal); got.First != 0 || got.Last != n || got.Data != fmt.Sprint(i) {
					l.Errorf("after change %d: got snapshot %+v", i, got)
				}
			}
		}
	}},
	{"nothing is written if decide returns an error, which is returned as it is, or no change", func(l *logs) {
		before := l.amend(l.a, journal, rule.LogChange{Text: `{"n":1}`, Body: "b", Add: []rule.Segment{run(1, 1, "x")}})
		refused := errors.New("refused")
		change := rule.LogChange{Text: `{"n":2}`, Body: "c", Add: []rule.Segment{run(2, 2, "y"), {Last: 1, Data: "z"}}}
		for _, j := range []service.Journal{l.a, l.b} {
			if _, err := j.Amend(l.Context(), journal, func(rule.Log) (rule.LogChange, error) { return change, refused }); err != refused { //nolint:errorlint // as it is
				l.Errorf("got error %v, want that of decide itself", err)
			}
			none := change
			none.Text = ""
			l.same("a change without a text", l.amend(j, journal, none), before)
		}
		l.same("afterwards", l.look(l.b, journal), before)
		if got := spans(l.segments(l.b, journal, 0, 10)); !slices.Equal(got, []string{"1-1"}) {
			l.Errorf("got segments %v, want 1-1", got)
		}
		if got := l.snapshot(l.b, journal); got.Last != 0 {
			l.Errorf("got snapshot %+v, want none", got)
		}
	}},
	{"a handle that remembers a head which is out of date decides anew", func(l *logs) {
		outdated := errors.New("outdated")
		for i := range 4 {
			here, there := l.a, l.b
			if i%2 == 1 {
				here, there = l.b, l.a
			}
			l.amend(here, journal, rule.LogChange{Text: fmt.Sprintf(`{"from":"here %d"}`, i)}) // which it may remember
			want := fmt.Sprintf(`{"from":"there %d"}`, i)
			l.amend(there, journal, rule.LogChange{Text: want, Body: "b"})
			log, err := here.Amend(l.Context(), journal, func(log rule.Log) (ch rule.LogChange, err error) {
				switch {
				case log.Text == want:
					return rule.LogChange{Text: `{"from":"last"}`, Body: log.Body + "!"}, nil
				case i < 2:
					return ch, outdated
				}
				return ch, nil
			})
			if err != nil || log.Text != `{"from":"last"}` || log.Body != "b!" {
				l.Errorf("got %+v, %v; want a decision on the head of the other handle", log, err)
			}
			l.same("afterwards", l.look(there, journal), log)
		}
	}},
	{"no change of a log is lost, however many are made at once, and each is there as a whole", func(l *logs) {
		callers, each := 4, 50
		if testing.Short() {
			each = 10
		}
		var wg sync.WaitGroup
		for c := range callers {
			j := l.a
			if c%2 == 1 {
				j = l.b
			}
			wg.Go(func() {
				for i := range each {
					if err := eventually(func() error { return l.add(j, fmt.Sprintf("%d/%d", c, i)) }); err != nil {
						l.Errorf("caller %d, change %d: %v", c, i, err)
						return
					}
				}
			})
		}
		wg.Wait()
		var names []string
		require.NoError(l, json.Unmarshal([]byte(l.look(l.b, journal).Body), &names))
		if len(names) != callers*each {
			l.Errorf("the head has %d changes, want %d", len(names), callers*each)
		}
		all := l.segments(l.a, journal, 0, 1000)
		if len(all) != len(names) {
			l.Fatalf("there are %d segments for %d changes", len(all), len(names))
		}
		for i, s := range all {
			if s.First != leadership.Index(i+1) || s.Last != s.First || s.Data != names[i] {
				l.Fatalf("segment %d is %+v, and the head has %q there", i+1, s, names[i])
			}
			if i > 0 && s.At.Before(all[i-1].At) {
				l.Errorf("segment %d was written at %v, and the one before at %v", s.First, s.At, all[i-1].At)
			}
		}
	}},
	{"a log has the time of its commit by the store's clock, which never goes back", func(l *logs) {
		var last rule.Log
		for i := range 6 {
			here, there := l.a, l.b
			if i%2 == 1 {
				here, there = l.b, l.a
			}
			before := l.get(l.handles.a, jobs)
			n := leadership.Index(i + 1)
			log := l.amend(here, journal, rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, i), Add: []rule.Segment{run(n, n, "x"), {Last: n, Data: "s"}}})
			after := l.get(l.handles.b, jobs)
			if log.WrittenAt.Before(before.Now.Add(-before.Guard-time.Microsecond)) || log.WrittenAt.After(after.Now.Add(after.Guard+time.Microsecond)) {
				l.Errorf("written at %v, between %v and %v of the store's clock", log.WrittenAt, before.Now, after.Now)
			}
			if log.WrittenAt.Before(last.WrittenAt) {
				l.Errorf("written at %v, after a change at %v", log.WrittenAt, last.WrittenAt)
			}
			if last = log; i == 3 {
				l.backing.Advance(l, time.Minute)
				l.same("a look", l.look(there, journal), log)
			}
			if s := l.segments(there, journal, n-1, 1); len(s) != 1 || !s[0].At.Equal(log.WrittenAt) {
				l.Errorf("the head is of %v, its segment %+v", log.WrittenAt, s)
			}
			if s := l.snapshot(there, journal); !s.At.Equal(log.WrittenAt) {
				l.Errorf("the head is of %v, its snapshot of %v", log.WrittenAt, s.At)
			}
		}
	}},
	{"a segment keeps the time that a copy brings with it", func(l *logs) {
		at := time.Date(2024, 2, 29, 12, 0, 0, 123456000, time.UTC)
		log := l.amend(l.a, journal, rule.LogChange{Text: "{}", Add: []rule.Segment{
			{First: 1, Last: 1, Data: "x", At: at}, {First: 2, Last: 2, Data: "y"}, {Last: 1, Data: "s", At: at.Add(time.Second)},
		}})
		if got := l.segments(l.b, journal, 0, 10); len(got) != 2 || !got[0].At.Equal(at) || !got[1].At.Equal(log.WrittenAt) {
			l.Errorf("got %+v, want times %v and %v", got, at, log.WrittenAt)
		}
		if got := l.snapshot(l.b, journal); !got.At.Equal(at.Add(time.Second)) {
			l.Errorf("got snapshot %+v, want time %v", got, at.Add(time.Second))
		}
	}},
	{"what was done is there after all handles were closed", func(l *logs) {
		want := l.amend(l.a, journal, rule.LogChange{Text: `{"n":1}`, Body: awkward, Add: []rule.Segment{run(1, 3, awkward), {Last: 2, Data: awkward}}})
		kept := l.amend(l.a, checkpoint, rule.LogChange{Text: `{"n":2}`})
		segments, snapshot := l.segments(l.a, journal, 0, 10), l.snapshot(l.a, journal)
		l.handles.a.Close()
		l.handles.b.Close()
		l.b = journalOf(l, l.backing.Open(l))
		l.same("the journal", l.look(l.b, journal), want)
		l.same("the checkpoint", l.look(l.b, checkpoint), kept)
		if diff := cmp.Diff(l.segments(l.b, journal, 0, 10), segments); diff != "" {
			l.Error(diff)
		}
		if diff := cmp.Diff(l.snapshot(l.b, journal), snapshot); diff != "" {
			l.Error(diff)
		}
		if got := l.names(10); !slices.Equal(got, []rule.LogID{checkpoint, journal}) {
			l.Errorf("got logs %v", got)
		}
	}},
}

// add adds a name to the journal's head, unless it is there, and a segment with it.
func (l *logs) add(j service.Journal, name string) error {
	_, err := j.Amend(l.Context(), journal, func(log rule.Log) (rule.LogChange, error) {
		var names []string
		if log.Body != "" {
			if err := json.Unmarshal([]byte(log.Body), &names); err != nil {
				return rule.LogChange{}, err
			}
		}
		if slices.Contains(names, name) {
			return rule.LogChange{}, nil
		}
		names = append(names, name)
		body, err := json.Marshal(names)
		at := leadership.Index(len(names))
		return rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, at), Body: string(body), Add: []rule.Segment{run(at, at, name)}}, err
	})
	return err
}

var segmentCases = []journalCase{
	{"segments are read in order, from the one with the next entry, up to a limit", func(l *logs) {
		all := []rule.Segment{run(1, 3, "a"), run(4, 4, "b"), run(5, 9, "c"), run(10, 10, "d"), run(11, 510, "e"), run(511, 512, "f")}
		for i, s := range all {
			l.amend(l.a, journal, rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, i), Add: []rule.Segment{s}})
			l.amend(l.a, rule.LogID{Election: jobs + "-2", Kind: rule.LogJournal}, rule.LogChange{Text: "{}", Add: []rule.Segment{run(s.First, s.Last, "other")}})
		}
		for _, c := range []struct {
			after leadership.Index
			limit int
			want  []rule.Segment
		}{
			{0, 100, all},
			{0, 1, all[:1]},
			{0, 3, all[:3]},
			{1, 100, all},
			{2, 2, all[:2]},
			{3, 100, all[1:]},
			{4, 2, all[2:4]},
			{7, 1, all[2:3]},
			{9, 100, all[3:]},
			{10, 1, all[4:5]},
			{400, 5, all[4:]},
			{510, 5, all[5:]},
			{511, 5, all[5:]},
			{512, 5, nil},
			{1 << 40, 5, nil},
			{0, 6, all},
			{0, 5, all[:5]},
		} {
			got := l.segments(l.b, journal, c.after, c.limit)
			if !slices.Equal(spans(got), spans(c.want)) {
				l.Errorf("after %d, limit %d: got %v, want %v", c.after, c.limit, spans(got), spans(c.want))
				continue
			}
			for i := range got {
				if got[i].Data != c.want[i].Data {
					l.Errorf("after %d: segment %d-%d has %q, want %q", c.after, got[i].First, got[i].Last, got[i].Data, c.want[i].Data)
				}
			}
		}
	}},
	{"a change may add as much as one read returns, and more; a read is bounded in bytes, and goes on where it ended", func(l *logs) {
		large := strings.Repeat("0123456789abcdef", rule.MaxLogBytes/16)
		change := rule.LogChange{Text: "{}", Add: []rule.Segment{{Last: 3, Data: "s"}}}
		last := leadership.Index(0)
		add := func(data string) {
			last++
			change.Add = append(change.Add, run(last, last, data))
		}
		for size := 0; size < leadership.MaxReadBytes; size += len(large) {
			add(large)
		}
		for len(change.Add) < leadership.MaxBatch/2 {
			add(fmt.Sprint(last))
		}
		l.amend(l.a, journal, change)
		for range 3 {
			change = rule.LogChange{Text: "{}"}
			add(large)
			l.amend(l.a, journal, change)
		}
		var after leadership.Index
		reads := 0
		for ; after < last; reads++ {
			page, bytes := l.segments(l.b, journal, after, 1000), 0
			if len(page) == 0 || page[0].First != after+1 {
				l.Fatalf("after %d: %v", after, spans(page))
			}
			for _, s := range page[:len(page)-1] {
				bytes += len(s.Data)
			}
			if bytes > leadership.MaxReadBytes {
				l.Errorf("%d bytes and one segment more in one read, and %d bytes is about how much it may have", bytes, leadership.MaxReadBytes)
			}
			after = page[len(page)-1].Last
		}
		if reads < 2 {
			l.Errorf("all was read at once")
		}
		if got := l.snapshot(l.b, journal); got.Last != 3 || got.Data != "s" {
			l.Errorf("got snapshot %+v", got)
		}
	}},
	{"a head and a segment may have as much as a log may", func(l *logs) {
		large := strings.Repeat("0123456789abcdef", rule.MaxLogBytes/16)
		text := `{"x":"` + strings.Repeat("x", rule.MaxLogBytes-8) + `"}`
		for _, ch := range []rule.LogChange{
			{Text: text},
			{Text: "{}", Body: large[2:]},
			{Text: "{}", Add: []rule.Segment{run(1, 500, large)}},
			{Text: "{}", Add: []rule.Segment{{Last: 500, Data: large}}},
		} {
			log := l.amend(l.a, journal, ch)
			if log.Text != ch.Text || log.Body != ch.Body {
				l.Errorf("amend returned a text of %d bytes and a body of %d, want %d and %d", len(log.Text), len(log.Body), len(ch.Text), len(ch.Body))
			}
			if got := l.look(l.b, journal); got.Text != ch.Text || got.Body != ch.Body {
				l.Errorf("look returned a text of %d bytes and a body of %d, want %d and %d", len(got.Text), len(got.Body), len(ch.Text), len(ch.Body))
			}
		}
		if got := l.segments(l.b, journal, 0, 1); len(got) != 1 || got[0].Data != large {
			l.Errorf("the segment is not as it was written")
		}
		if got := l.snapshot(l.b, journal); got.Data != large {
			l.Errorf("the snapshot is not as it was written")
		}
	}},
	{"a store keeps what it is given as it is", func(l *logs) {
		for _, data := range []string{awkward, "", "null", "[1,2]", `{"a":"b"}`, "\"", "0", " ", strings.Repeat("'", 3000)} {
			quoted, _ := json.Marshal(map[string]string{"x": data}) // which can be written
			text := string(quoted)
			log := l.amend(l.a, journal, rule.LogChange{Text: text, Body: data, Add: []rule.Segment{run(1, 1, data), {Last: 1, Data: data}}})
			if log.Text != text || log.Body != data {
				l.Errorf("amend returned text %q, body %q; want %q and %q", log.Text, log.Body, text, data)
			}
			l.same("look", l.look(l.b, journal), log)
			if got := l.segments(l.b, journal, 0, 1); len(got) != 1 || got[0].Data != data {
				l.Errorf("got segments %+v, want data %q", got, data)
			}
			if got := l.snapshot(l.b, journal); got.Last != 1 || got.Data != data {
				l.Errorf("got snapshot %+v, want data %q", got, data)
			}
		}
	}},
	{"trim deletes whole segments up to the index, never one with a later entry, and never the snapshot", func(l *logs) {
		ch := rule.LogChange{Text: `{"n":1}`, Body: "b", Add: []rule.Segment{run(1, 3, "a"), run(4, 6, "b"), run(7, 9, "c"), run(10, 10, "d"), {Last: 9, Data: "s"}}}
		log := l.amend(l.a, journal, ch)
		other := rule.LogID{Election: jobs + "-2", Kind: rule.LogJournal}
		l.amend(l.a, other, ch)
		for _, c := range []struct {
			upTo leadership.Index
			want []string
		}{
			{0, []string{"1-3", "4-6", "7-9", "10-10"}},
			{2, []string{"1-3", "4-6", "7-9", "10-10"}},
			{3, []string{"4-6", "7-9", "10-10"}},
			{8, []string{"7-9", "10-10"}},
			{8, []string{"7-9", "10-10"}},
			{9, []string{"10-10"}},
			{10, nil},
			{10, nil},
		} {
			l.trim(journal, c.upTo, len(c.want))
			if got := spans(l.segments(l.b, journal, 0, 10)); !slices.Equal(got, c.want) {
				l.Errorf("trimmed up to %d: got %v, want %v", c.upTo, got, c.want)
			}
		}
		l.same("the head", l.look(l.b, journal), log)
		if got := l.snapshot(l.b, journal); got.Last != 9 || got.Data != "s" {
			l.Errorf("got snapshot %+v", got)
		}
		if got := l.segments(l.b, other, 0, 10); len(got) != 4 {
			l.Errorf("of another log: got %v", spans(got))
		}
		l.amend(l.b, journal, rule.LogChange{Text: `{"n":2}`, Add: []rule.Segment{run(11, 12, "e")}})
		if got := spans(l.segments(l.a, journal, 10, 10)); !slices.Equal(got, []string{"11-12"}) {
			l.Errorf("after the trim: got %v, want 11-12", got)
		}
		never := rule.LogID{Election: "never", Kind: rule.LogJournal}
		if err := l.a.Trim(l.Context(), never, 5); err != nil {
			l.Errorf("of a log never written: %v", err)
		}
		l.never("of a log never written", never)
	}},
}

// trim trims a log until it has no more than so many segments: a store may leave some at first.
func (l *logs) trim(id rule.LogID, upTo leadership.Index, left int) {
	l.Helper()
	for range 20 {
		if err := l.a.Trim(l.Context(), id, upTo); err != nil {
			l.Fatalf("trim up to %d: %v", upTo, err)
		}
		if len(l.segments(l.b, id, 0, 100)) <= left {
			return
		}
	}
}

var logCases = []journalCase{
	{"logs are listed in the order of elections and then kinds, after a name, up to a limit", func(l *logs) {
		var want []rule.LogID
		for _, e := range []leadership.Election{"a", "a-b", "a.b", "a.b.c", "a0", "ab", "b"} {
			for _, kind := range []rule.LogKind{rule.LogCheckpoint, rule.LogJournal} {
				if e == "a0" && kind == rule.LogCheckpoint || e == "ab" && kind == rule.LogJournal {
					continue
				}
				id := rule.LogID{Election: e, Kind: kind}
				l.amend(l.a, id, rule.LogChange{Text: fmt.Sprintf(`{"of":%q}`, e), Add: []rule.Segment{run(1, 1, "x"), run(2, 2, "y"), {Last: 1, Data: "s"}}})
				want = append(want, id)
			}
		}
		l.update(l.handles.a, "c", put(time.Second)) // which has no log
		for _, limit := range []int{1, 2, 5, 100} {
			if got := l.names(limit); !slices.Equal(got, want) {
				l.Errorf("%d at a time: got %v, want %v", limit, got, want)
			}
		}
		for _, c := range []struct {
			after rule.LogID
			want  rule.LogID
		}{
			{rule.LogID{Election: "a.b", Kind: rule.LogCheckpoint}, rule.LogID{Election: "a.b", Kind: rule.LogJournal}},
			{rule.LogID{Election: "a.a", Kind: rule.LogJournal}, rule.LogID{Election: "a.b", Kind: rule.LogCheckpoint}},
			{rule.LogID{Election: "a.b.c", Kind: rule.LogJournal}, rule.LogID{Election: "a0", Kind: rule.LogJournal}},
		} {
			if got, err := l.b.Logs(l.Context(), c.after, 1); err != nil || len(got) != 1 || got[0] != c.want {
				l.Errorf("after %v: got %v, %v; want %v", c.after, got, err, c.want)
			}
		}
		for _, id := range want {
			if got := l.look(l.b, id); got.Text != fmt.Sprintf(`{"of":%q}`, id.Election) {
				l.Errorf("%v has the head %+v", id, got)
			}
		}
	}},
	{"a log never touches its election, and an election never its logs", func(l *logs) {
		l.amend(l.a, journal, rule.LogChange{Text: `{"n":1}`, Add: []rule.Segment{run(1, 1, "j")}})
		if got := l.get(l.handles.b, jobs).Record; got.Revision != 0 {
			l.Errorf("an election never seen: got %+v", got)
		}
		if got := l.list("", "", 10); len(got) > 0 {
			l.Errorf("elections are listed: %v", got)
		}
		want := l.update(l.handles.a, jobs, acquire("ann", time.Hour)).Record
		log := l.look(l.b, journal)
		for i := range leadership.Index(3) {
			log = l.amend(l.b, journal, rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, i), Body: "b", Add: []rule.Segment{run(i+2, i+2, "k")}})
		}
		l.update(l.handles.b, jobs, func(s rule.Snapshot) (rule.Change, error) { return rule.Change{}, nil })
		if got := l.get(l.handles.a, jobs).Record; !sameRecord(got, want) {
			l.Errorf("got %+v\nwant %+v", got, want)
		}
		if got := l.events(l.handles.a, jobs); len(got) != 1 {
			l.Errorf("got events %v", got)
		}
		l.same("the journal", l.look(l.a, journal), log)
	}},
	{"the shared secret is made once, and every handle returns the same", func(l *logs) {
		secrets := make([]string, 8)
		var asking sync.WaitGroup
		for i := range secrets {
			asking.Go(func() {
				j := []service.Journal{l.a, l.b}[i%2]
				secret, err := service.SharedSecret(l.Context(), j)
				if err != nil || len(secret) != 32 {
					l.Errorf("got %d bytes, %v; want 32", len(secret), err)
				}
				secrets[i] = string(secret)
			})
		}
		asking.Wait()
		if one := slices.Compact(secrets); len(one) != 1 || one[0] == string(make([]byte, 32)) {
			l.Errorf("got %d secrets, want one, of random bytes", len(one))
		}
		if got := l.names(10); len(got) != 1 || got[0].Kind != rule.LogSecret {
			l.Fatalf("it is kept in %v", got)
		}
		l.amend(l.a, l.names(1)[0], rule.LogChange{Text: `{}`, Body: "YWJj"})
		if _, err := service.SharedSecret(l.Context(), l.b); !errors.Is(err, leadership.RecordCorrupt) {
			l.Errorf("of three bytes: got %v, want %v", err, leadership.RecordCorrupt)
		}
	}},
	{"a log is kept over the release, the end and the deletion of its election, and over its history", func(l *logs) {
		change := rule.LogChange{Text: `{"n":1}`, Body: awkward, Add: []rule.Segment{run(1, 2, "x"), {Last: 1, Data: "s"}}}
		journalHead, checkpointHead := l.amend(l.a, journal, change), l.amend(l.a, checkpoint, rule.LogChange{Text: `{"n":2}`, Body: "c"})
		kept := func(what string) {
			l.Helper()
			l.same(what+": the journal", l.look(l.b, journal), journalHead)
			l.same(what+": the checkpoint", l.look(l.b, checkpoint), checkpointHead)
			if s, all := l.snapshot(l.b, journal), l.segments(l.b, journal, 0, 10); s.Data != "s" || len(all) != 1 || all[0].Data != "x" {
				l.Errorf("%s: got snapshot %+v, segments %+v", what, s, all)
			}
		}
		l.update(l.handles.a, jobs, acquire("ann", time.Hour))
		kept("acquired")
		l.update(l.handles.a, jobs, apply(leadership.Release{LeaseRequest: renewalOf(jobs, "ann", 1).Request()}))
		kept("released")
		l.update(l.handles.a, jobs, acquire("bob", time.Minute))
		l.backing.Advance(l, time.Hour)
		l.update(l.handles.a, jobs, acquire("cid", time.Minute))
		kept("expired")
		l.update(l.handles.a, jobs, apply(leadership.Delete{Force: true}))
		kept("deleted")
		l.backing.Advance(l, 3*History)
		if l.backing.Compact != nil {
			l.backing.Compact(l)
		}
		l.update(l.handles.a, jobs, put(2*time.Second))
		kept("its history has gone")
	}},
}
