package checker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/store/memory"
	"regent/test/checker"
)

// losing loses some answers of a journal, and does some changes late.
type losing struct {
	leadership.Journal
	mu   sync.Mutex
	rng  *rand.Rand
	late sync.WaitGroup
}

// yield lets the other goroutines run so many times.
func yield(turns int) {
	for range turns {
		runtime.Gosched()
	}
}

func (l *losing) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n)
}

func (l *losing) Amend(ctx context.Context, id leadership.LogID, decide func(leadership.Log) (leadership.LogChange, error)) (leadership.Log, error) {
	lost := fmt.Errorf("the answer was lost: %w", leadership.OutcomeUnknown)
	switch l.draw(20) {
	case 0:
		return leadership.Log{}, lost
	case 1:
		turns := l.draw(100)
		l.late.Go(func() {
			yield(turns)
			l.Journal.Amend(context.WithoutCancel(ctx), id, decide) //nolint:errcheck // no one waits for it
		})
		return leadership.Log{}, lost
	}
	log, err := l.Journal.Amend(ctx, id, decide)
	if err == nil && l.draw(10) == 0 {
		return leadership.Log{}, lost
	}
	return log, err
}

// logs is leaders and readers that call a real ledger at the same time, and what they saw.
type logs struct {
	tb      testing.TB
	service *leadership.Service
	ledger  *leadership.Ledger
	clock   atomic.Int64 // each use is a moment of its own

	mu    sync.Mutex
	calls []checker.LogCall
}

// do makes a call and records it.
func (l *logs) do(c checker.LogCall, do func(*checker.LogCall) error) checker.LogCall {
	c.Asked = time.Duration(l.clock.Add(1))
	err := do(&c)
	c.Answered = time.Duration(l.clock.Add(1))
	var refusal *leadership.Error
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		c.Code, c.Index = refusal.Code, refusal.Index
	case !errors.As(err, &c.Code):
		l.tb.Error(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
	return c
}

const logged = leadership.Election("planner")

func quoted(s string) json.RawMessage { text, _ := json.Marshal(s); return text }

func unquoted(d json.RawMessage) (s string) {
	_ = json.Unmarshal(d, &s) // "" differs from all that is put
	return s
}

func (l *logs) open(ctx context.Context, r leadership.LeaseRequest) checker.LogCall {
	return l.do(checker.LogCall{Verb: checker.OpenJournal, Election: logged, Token: r.Token}, func(c *checker.LogCall) error {
		h, err := l.ledger.OpenJournal(ctx, r)
		c.Index, c.Snapshot = h.Index, h.Snapshot
		return err
	})
}

func (l *logs) append(ctx context.Context, r leadership.LeaseRequest, after leadership.Index, entries ...string) checker.LogCall {
	var all []leadership.Entry
	for _, e := range entries {
		all = append(all, leadership.Entry{Data: quoted(e)})
	}
	return l.do(checker.LogCall{Verb: checker.Append, Election: logged, Token: r.Token, After: after, Put: entries}, func(c *checker.LogCall) error {
		h, err := l.ledger.AppendJournal(ctx, leadership.AppendRequest{LeaseRequest: r, After: after, Entries: all})
		c.Index = h.Index
		return err
	})
}

func (l *logs) snap(ctx context.Context, r leadership.LeaseRequest, upTo leadership.Index, data string) checker.LogCall {
	return l.do(checker.LogCall{Verb: checker.PutSnapshot, Election: logged, Token: r.Token, After: upTo, Put: []string{data}}, func(c *checker.LogCall) error {
		h, err := l.ledger.SnapshotJournal(ctx, leadership.SnapshotRequest{LeaseRequest: r, UpTo: upTo, Data: quoted(data)})
		c.Snapshot = h.Snapshot
		return err
	})
}

func (l *logs) put(ctx context.Context, r leadership.LeaseRequest, after leadership.Index, data string) checker.LogCall {
	return l.do(checker.LogCall{Verb: checker.PutCheckpoint, Election: logged, Token: r.Token, After: after, Put: []string{data}}, func(*checker.LogCall) error {
		_, err := l.ledger.PutCheckpoint(ctx, leadership.CheckpointRequest{LeaseRequest: r, Sequence: int64(after) + 1, Data: quoted(data)})
		return err
	})
}

func (l *logs) inherit(ctx context.Context, g leadership.Grant) checker.LogCall {
	return l.do(checker.LogCall{Verb: checker.Inherit, Election: logged, Token: g.Token}, func(c *checker.LogCall) error {
		left, err := l.ledger.Inherit(ctx, g)
		if left != nil {
			c.Got = []string{unquoted(left.Data)}
		}
		return err
	})
}

// read reads a page, as two calls: the entries, and the head that was read after them.
func (l *logs) read(ctx context.Context, after leadership.Index) checker.LogCall {
	var page leadership.JournalPage
	c := l.do(checker.LogCall{Verb: checker.ReadEntries, Election: logged, After: after}, func(c *checker.LogCall) (err error) {
		page, err = l.ledger.ReadJournal(ctx, leadership.JournalRequest{Election: logged, After: after, Limit: 7})
		for _, e := range page.Entries {
			c.Got = append(c.Got, unquoted(e.Data))
			after++
			if e.Index != after {
				l.tb.Errorf("entry %d stands where %d should", e.Index, after)
			}
		}
		return err
	})
	if c.Code == "" {
		head := checker.LogCall{Verb: checker.ReadHead, Election: logged, Asked: c.Asked, Answered: c.Answered, Index: page.Index, Snapshot: page.Snapshot}
		l.mu.Lock()
		l.calls = append(l.calls, head)
		l.mu.Unlock()
	}
	return c
}

func (l *logs) readSnapshot(ctx context.Context) {
	l.do(checker.LogCall{Verb: checker.ReadSnapshot, Election: logged}, func(c *checker.LogCall) error {
		s, err := l.ledger.ReadSnapshot(ctx, logged)
		c.Index, c.Got = s.UpTo, []string{unquoted(s.Data)}
		return err
	})
}

// lead acquires, whoever leads: the leader before is gone by force, and goes on writing.
func (l *logs) lead(ctx context.Context, name string) (leadership.Grant, leadership.LeaseRequest) {
	g, err := l.service.Acquire(ctx, leadership.AcquireRequest{Election: logged, CandidateID: leadership.CandidateID(name)})
	if err != nil {
		l.tb.Fatal(err)
	}
	return g, leadership.LeaseRequest{Election: logged, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}
}

// leader writes until its writes are refused as stale, or it has had enough.
func (l *logs) leader(ctx context.Context, g leadership.Grant, r leadership.LeaseRequest, draw func(int) int) {
	if draw(2) == 0 {
		l.inherit(ctx, g)
	}
	var at, puts leadership.Index
	if c := l.open(ctx, r); c.Code == "" {
		at = c.Index
	}
	for n := range 12 {
		var c checker.LogCall
		switch draw(6) {
		case 0:
			if c = l.put(ctx, r, puts, fmt.Sprint("task ", r.Token, " ", n)); c.Code == "" {
				puts++
			} else if c.Code == leadership.IndexMismatch { // one whose outcome was unknown
				puts = c.Index
			}
		case 1:
			c = l.snap(ctx, r, max(at, 1)+leadership.Index(draw(2)), fmt.Sprint("all ", r.Token, " ", n))
		default:
			entries := []string{fmt.Sprint(r.Token, ".", n), fmt.Sprint(r.Token, ".", n, "b")}[:1+draw(2)]
			for c = l.append(ctx, r, at, entries...); c.Code == leadership.OutcomeUnknown && draw(4) > 0; {
				c = l.append(ctx, r, at, entries...) // the same again
			}
			if c.Code == "" || c.Code == leadership.IndexMismatch {
				at = c.Index
			}
		}
		if c.Code == leadership.TokenStale || c.Code == leadership.LeaseLost {
			return
		}
	}
}

// run lets leaders follow each other, each beside the one before, and readers beside all.
func runLogs(t *testing.T, seed uint64, terms int) []checker.LogCall {
	t.Helper()
	ctx := t.Context()
	store := memory.New(memory.Config{})
	journal := &losing{Journal: store, rng: rand.New(rand.NewPCG(seed, 17))}
	l := &logs{tb: t, service: leadership.New(store)}
	l.ledger = leadership.NewLedger(l.service, journal)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for range 40 {
				select {
				case <-done:
					return
				default:
				}
				l.read(ctx, leadership.Index(journal.draw(6*terms)))
				if journal.draw(3) == 0 {
					l.readSnapshot(ctx)
				}
			}
		})
	}
	for n := range terms {
		g, r := l.lead(ctx, fmt.Sprint("agent-", n))
		writers.Go(func() { l.leader(ctx, g, r, journal.draw) })
		yield(journal.draw(100))
		if _, err := l.service.Release(ctx, r); err != nil { // and it goes on writing, as one does that was paused
			t.Fatal(err)
		}
	}
	writers.Wait()
	close(done)
	readers.Wait()
	journal.late.Wait()
	for after := leadership.Index(0); ; {
		c := l.read(ctx, after)
		if c.Code == leadership.HistoryCompacted {
			after = c.Index
			continue
		}
		if c.Code != "" || len(c.Got) == 0 {
			break
		}
		after += leadership.Index(len(c.Got))
	}
	return l.calls
}

func TestJournalsAreWhatTheModelSays(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int)
	for seed := range uint64(30) {
		calls := runLogs(t, seed, 6)
		if err := checker.Journals(calls).Err(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, c := range calls {
			seen[fmt.Sprint(c.Verb, " ", c.Code)]++
		}
	}
	for _, want := range []string{"append ", "append TOKEN_STALE", "append OUTCOME_UNKNOWN", "read ", "inherit ", "put ", "put INDEX_MISMATCH", "snapshot "} {
		if seen[want] == 0 {
			t.Errorf("there was no %q: %v", want, seen)
		}
	}
}

// journaled is two leaders, one after the other, without anything at the same time.
func journaled(tb testing.TB) []checker.LogCall {
	ctx := tb.Context()
	store := memory.New(memory.Config{})
	l := &logs{tb: tb, service: leadership.New(store)}
	l.ledger = leadership.NewLedger(l.service, store)
	_, ann := l.lead(ctx, "ann")
	l.open(ctx, ann)                // 0
	l.append(ctx, ann, 0, "a", "b") // 1
	l.append(ctx, ann, 0, "a", "b") // 2: the same again
	l.append(ctx, ann, 1, "x")      // 3: INDEX_MISMATCH
	l.put(ctx, ann, 0, "half done") // 4
	l.read(ctx, 0)                  // 5 and 6
	if _, err := l.service.Release(ctx, ann); err != nil {
		tb.Fatal(err)
	}
	g, bob := l.lead(ctx, "bob")
	l.inherit(ctx, g)               // 7
	l.append(ctx, ann, 2, "late")   // 8: it is as if ann were paused
	l.open(ctx, bob)                // 9
	l.append(ctx, ann, 3, "later")  // 10: TOKEN_STALE
	l.put(ctx, ann, 1, "late")      // 11: TOKEN_STALE
	l.append(ctx, bob, 3, "c", "d") // 12
	l.snap(ctx, bob, 9, "too much") // 13: INDEX_MISMATCH
	l.snap(ctx, bob, 4, "abc")      // 14
	l.read(ctx, 0)                  // 15: HISTORY_COMPACTED
	l.read(ctx, 4)                  // 16 and 17
	l.readSnapshot(ctx)             // 18
	l.put(ctx, bob, 0, "bob's")     // 19
	l.put(ctx, bob, 1, "newer")     // 20
	l.put(ctx, bob, 0, "bob's")     // 21: INDEX_MISMATCH
	return l.calls
}

func TestHistoriesOfJournalsAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	calls := journaled(t)
	var got []string
	for _, c := range calls {
		got = append(got, strings.TrimSpace(fmt.Sprint(c.Verb, " ", c.Index, " ", strings.Join(c.Got, ""), " ", c.Code)))
	}
	want := []string{
		"open 0", "append 2", "append 2", "append 2  INDEX_MISMATCH", "put 0", "read 0 ab", "head 2",
		"inherit 0 half done", "append 3", "open 3", "append 0  TOKEN_STALE", "put 0  TOKEN_STALE", "append 5",
		"snapshot 5  INDEX_MISMATCH", "snapshot 0", "read 4  HISTORY_COMPACTED", "read 0 d", "head 5", "read snapshot 4 abc",
		"put 0", "put 0", "put 2  INDEX_MISMATCH",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if err := checker.Journals(calls).Err(); err != nil {
		t.Error(err)
	}
}

func TestBrokenJournalsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		breakIt func([]checker.LogCall)
		found   bool
	}{
		{"an acknowledged entry that is gone", func(c []checker.LogCall) { c[5].Got = []string{"a"}; c[6].Index = 1 }, true},
		{"entries in another order", func(c []checker.LogCall) { c[5].Got = []string{"b", "a"} }, true},
		{"an append that was repeated, and is there twice", func(c []checker.LogCall) { c[5].Got = []string{"a", "b", "a", "b"}; c[6].Index = 4 }, true},
		{"a repeated append with another answer", func(c []checker.LogCall) { c[2].Code = leadership.IndexMismatch }, true},
		{"an append after another index than the present one", func(c []checker.LogCall) { c[3].Code = "" }, true},
		{"a paused leader that appends after the next has opened", func(c []checker.LogCall) { c[10].Code, c[10].Index = "", 4 }, true},
		{"an append that was lost, and came after the next has opened", func(c []checker.LogCall) {
			c[10].Code = leadership.OutcomeUnknown
			c[12].Code, c[12].Index = leadership.IndexMismatch, 4
		}, true},
		{"an append that was lost, and came before that", func(c []checker.LogCall) {
			c[8].Code, c[8].Index = leadership.OutcomeUnknown, 0
		}, false},
		{"a paused leader whose checkpoint lands after the next has inherited", func(c []checker.LogCall) { c[11].Code = "" }, true},
		{"a late copy of a checkpoint that replaces a newer one", func(c []checker.LogCall) { c[21].Code = "" }, true},
		{"a leader that inherits nothing", func(c []checker.LogCall) { c[7].Got = nil }, true},
		{"a leader that opens an incomplete journal", func(c []checker.LogCall) { c[9].Index = 2 }, true},
		{"a snapshot beyond the index", func(c []checker.LogCall) { c[13].Code, c[13].Snapshot = "", 9 }, true},
		{"a snapshot that is forgotten", func(c []checker.LogCall) { c[18].Code = leadership.NotFound }, true},
		{"a reader that skips an entry", func(c []checker.LogCall) { c[5].Got = []string{"b"} }, true},
		{"a reader that is told there is none", func(c []checker.LogCall) { c[16].Got = nil }, true},
	} {
		calls := journaled(t)
		c.breakIt(calls)
		if err := checker.Journals(calls).Err(); (err != nil) != c.found {
			t.Errorf("%s: found is %v, want %v: %v", c.name, err != nil, c.found, err)
		}
	}
}

// between calls do before and after each call of a journal.
type between struct {
	leadership.Journal
	do func()
}

func (b *between) Amend(ctx context.Context, id leadership.LogID, decide func(leadership.Log) (leadership.LogChange, error)) (leadership.Log, error) {
	b.do()
	defer b.do()
	return b.Journal.Amend(ctx, id, decide)
}

func (b *between) Look(ctx context.Context, id leadership.LogID) (leadership.Log, error) {
	b.do()
	defer b.do()
	return b.Journal.Look(ctx, id)
}

// Whatever comes between the calls of the store that a leader needs to inherit, it inherits the
// last checkpoint that was put.
func TestNoCheckpointIsPutAfterItWasInherited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := memory.New(memory.Config{})
	l := &logs{tb: t, service: leadership.New(store)}
	l.ledger = leadership.NewLedger(l.service, store)
	_, ann := l.lead(ctx, "ann")
	l.put(ctx, ann, 0, "first")
	if _, err := l.service.Release(ctx, ann); err != nil {
		t.Fatal(err)
	}
	bob, _ := l.lead(ctx, "bob")
	last, n, puts := "first", 0, 1
	disturbed := &logs{tb: t, service: l.service, ledger: leadership.NewLedger(l.service, &between{store, func() {
		n++
		if c := l.put(ctx, ann, leadership.Index(puts), fmt.Sprint("late ", n)); c.Code == "" {
			puts++
			last = c.Put[0]
		}
	}})}
	if got := disturbed.inherit(ctx, bob); cmp.Diff([]string{last}, got.Got) != "" || n < 2 {
		t.Errorf("inherited %q, and the last that was put is %q, after %d tries", got.Got, last, n)
	}
}
