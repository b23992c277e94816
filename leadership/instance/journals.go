package instance

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
	"regent/leadership/service"
)

const (
	// journalLook is how often the head of a journal with feeds is read, for entries of other
	// instances that were not told. While the other instances are heard, journalRest to twice as
	// many of these looks are skipped.
	journalLook = time.Second
	journalRest = 15
	// journalPause is the least time between two reads of new entries.
	journalPause = 50 * time.Millisecond
	// journalTimeout bounds one read.
	journalTimeout = 10 * time.Second
	// windowEntries and windowBytes limit one window, and windowsBytes all windows together. A feed
	// that is further behind reads the store by itself.
	windowEntries = 1024
	windowBytes   = 1 << 20
	windowsBytes  = 64 << 20
	// entryBytes is roughly the memory of an entry in addition to its data.
	entryBytes = 128
)

// journals lets the feeds of one journal share its reads: for each journal with feeds there is one
// follow.
type journals struct {
	ledger  *service.Ledger
	hub     *hub.Hub    // all feeds end with it; it is told the heads of journals
	hears   func() bool // whether other instances, which tell of their appends, are heard
	log     *slog.Logger
	running sync.WaitGroup // follows

	mu      sync.Mutex // guards all below, and the follows
	bytes   int        // of all windows
	follows map[leadership.Election]*follow
}

// follow is a window on the newest entries of one journal, shared by its feeds.
type follow struct {
	election leadership.Election
	view     *view.Election // knows the journal's index as told by appends
	wake     chan struct{}  // of one: that index has changed
	end      context.CancelFunc
	rest     int // looks to skip while the other instances are heard

	feeds  int
	known  bool                   // head and next are set
	head   leadership.JournalHead // as it was read last
	next   leadership.Index       // of the entry after the window
	window []leadership.Entry     // the entries before next, without a gap
	bytes  int                    // size of the window
	err    error                  // why there are no more entries
	more   chan struct{}          // closed when there are more entries, or err is set
}

func newJournals(l *service.Ledger, h *hub.Hub, hears func() bool, log *slog.Logger) *journals {
	return &journals{ledger: l, hub: h, hears: hears, log: log, follows: make(map[leadership.Election]*follow)}
}

// open opens a feed. It reads the store if the window does not reach back to the feed's start, or
// if the reader knows of later entries than the window has.
func (j *journals) open(ctx context.Context, r leadership.JournalRequest) (*JournalFeed, error) {
	if err := j.hub.Cause(); err != nil {
		return nil, err
	}
	f := &JournalFeed{journals: j, follow: j.join(r.Election), request: r, left: func() {}}
	j.mu.Lock()
	covered := f.follow.known && f.follow.covers(r) && r.After >= f.follow.first()-1 && max(r.After, r.Applied) < f.follow.next
	j.mu.Unlock()
	if covered {
		return f, nil
	}
	page, err := j.read(ctx, r)
	if err != nil {
		f.Close()
		return nil, err
	}
	f.page = page
	j.mu.Lock()
	f.follow.begin(page.JournalHead)
	j.mu.Unlock()
	return f, nil
}

// join adds a feed to the follow of a journal, and begins it if it is the first.
func (j *journals) join(e leadership.Election) *follow {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, ok := j.follows[e]
	if !ok {
		ctx, end := context.WithCancel(context.Background())
		f = &follow{election: e, wake: make(chan struct{}, 1), end: end, more: make(chan struct{})}
		j.follows[e] = f
		j.hub.View(func(v *view.View, _ time.Duration) {
			f.view = v.Hold(e)
			f.view.Appends = f.wake
		})
		j.running.Go(func() { j.run(ctx, f) })
	}
	f.feeds++
	return f
}

// leave removes a feed. The last one ends the follow.
func (j *journals) leave(f *follow) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f.feeds--; f.feeds > 0 {
		return
	}
	f.end()
	j.drop(f, len(f.window))
	if j.follows[f.election] == f {
		delete(j.follows, f.election)
	}
	j.hub.View(func(v *view.View, _ time.Duration) { v.Release(f.view) })
}

// told returns the index of the journal's last entry, as far as it is known.
func (j *journals) told(f *follow) (i leadership.Index) {
	j.hub.View(func(*view.View, time.Duration) { i = f.view.Head() })
	return i
}

// first returns the index of the first entry in the window.
func (f *follow) first() leadership.Index { return f.next - leadership.Index(len(f.window)) }

// covers reports whether the reader has read this generation of the journal, not one from before a
// restore.
func (f *follow) covers(r leadership.JournalRequest) bool {
	return r.After == 0 && r.Applied == 0 || r.Generation == f.head.Generation
}

// begin starts the window after the journal's last entry.
func (f *follow) begin(head leadership.JournalHead) {
	if !f.known {
		f.known, f.head, f.next = true, head, head.Index+1
	}
}

// page returns the entries after those that a feed has. If there are none, more is closed when
// there may be some; it is nil if the window does not reach back that far.
func (j *journals) page(f *follow, r leadership.JournalRequest) (page *leadership.JournalPage, more <-chan struct{}, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch from := r.After + 1; {
	case f.known && (from < f.first() || !f.covers(r)):
		return nil, nil, nil
	case f.known && from < f.next:
		limit := r.Limit
		if limit == 0 {
			limit = leadership.DefaultPageSize
		}
		rest := f.window[from-f.first():]
		return &leadership.JournalPage{JournalHead: f.head, Entries: rest[:min(len(rest), limit):min(len(rest), limit)]}, nil, nil
	case f.err != nil:
		return nil, nil, f.err
	}
	return nil, f.more, nil
}

// read reads the store for one feed.
func (j *journals) read(ctx context.Context, r leadership.JournalRequest) (*leadership.JournalPage, error) {
	page, err := j.ledger.ReadJournal(ctx, r)
	if err != nil {
		return nil, err
	}
	j.hub.Appended(r.Election, page.Index)
	return &page, nil
}

// run reads new entries until ctx ends, or the instance drains.
func (j *journals) run(ctx context.Context, f *follow) {
	defer f.end()
	look := time.NewTimer(journalLook)
	defer look.Stop()
	for {
		select {
		case <-f.wake:
			if !j.further(f) {
				continue
			}
		case <-look.C:
			if f.rest > 0 && j.hears() && !j.further(f) {
				f.rest--
				look.Reset(journalLook)
				continue
			}
		case <-ctx.Done():
			return
		case <-j.hub.Done():
			return
		}
		if err := j.look(ctx, f); err != nil {
			j.fail(f, err)
			return
		}
		look.Reset(journalLook)
		if backoff.Sleep(ctx, journalPause) != nil {
			return
		}
	}
}

// further reports whether the journal was told to have later entries than the window.
func (j *journals) further(f *follow) bool {
	told := j.told(f)
	j.mu.Lock()
	defer j.mu.Unlock()
	return !f.known || told >= f.next
}

// look reads new entries into the window. It returns only permanent errors.
func (j *journals) look(ctx context.Context, f *follow) error {
	f.rest = 0
	for {
		told := j.told(f)
		page, err := j.newer(ctx, f, told)
		refusal, _ := errors.AsType[*leadership.Error](err)
		switch {
		case err == nil:
			j.hub.View(func(*view.View, time.Duration) { f.view.HeadRead(page.Index, told) })
			if j.enter(f, page) {
				f.rest = journalRest + rand.N(journalRest+1)
				return nil
			}
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, leadership.HistoryCompacted) && refusal != nil: // feeds that are behind get this error when they read
			j.mu.Lock()
			f.head.Generation = refusal.Generation
			j.restart(f, refusal.Index+1)
			j.mu.Unlock()
		case errors.Is(err, leadership.RecordCorrupt), errors.Is(err, leadership.RecordTooNew):
			return err
		default:
			j.log.LogAttrs(ctx, slog.LevelDebug, "a journal cannot be read; its followers wait", slog.String("election", string(f.election)), slog.Any("cause", err))
			return nil
		}
	}
}

// newer reads the entries that follow the window. Unless the journal was told to have some, it
// reads only the head first.
func (j *journals) newer(ctx context.Context, f *follow, told leadership.Index) (page leadership.JournalPage, err error) {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	j.mu.Lock()
	known, next, generation := f.known, f.next, f.head.Generation
	j.mu.Unlock()
	if !known || told < next {
		page.JournalHead, err = j.ledger.Head(ctx, f.election)
	}
	if err == nil && known && max(told, page.Index) >= next {
		page, err = j.ledger.ReadJournal(ctx, leadership.JournalRequest{Election: f.election, After: next - 1, Generation: generation, Limit: leadership.MaxPageSize})
	}
	return page, err
}

// enter adds the page to the window, and reports whether the journal has no further entries.
func (j *journals) enter(f *follow, page leadership.JournalPage) (all bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f.feeds == 0 {
		return true
	}
	f.begin(page.JournalHead)
	restored := page.Generation != f.head.Generation
	f.head = page.JournalHead
	if restored || page.Index < f.next-1 {
		j.restart(f, page.Index+1)
	}
	for _, e := range page.Entries {
		if e.Index == f.next {
			f.window, f.next = append(f.window, e), e.Index+1
			j.count(f, size(e))
		}
	}
	for len(f.window) > windowEntries || f.bytes > windowBytes {
		j.drop(f, 1)
	}
	j.makeRoom()
	if len(page.Entries) > 0 {
		f.broadcast()
	}
	return len(page.Entries) == 0 || f.next > page.Index
}

// size returns roughly how many bytes of memory an entry takes.
func size(e leadership.Entry) int { return len(e.Data) + len(e.Type) + entryBytes }

// count adds to the bytes of a window. Call this and the following methods with mu held.
func (j *journals) count(f *follow, bytes int) {
	f.bytes += bytes
	j.bytes += bytes
}

// drop drops the first n entries of a window.
func (j *journals) drop(f *follow, n int) {
	for _, e := range f.window[:n] {
		j.count(f, -size(e))
	}
	f.window = f.window[n:]
}

// makeRoom halves the largest windows until all together have at most windowsBytes.
func (j *journals) makeRoom() {
	for j.bytes > windowsBytes {
		var largest *follow
		for _, f := range j.follows {
			if largest == nil || f.bytes > largest.bytes {
				largest = f
			}
		}
		if largest == nil || len(largest.window) == 0 {
			return // the rest is of follows that have failed, and whose feeds are about to end
		}
		j.drop(largest, (len(largest.window)+1)/2)
		largest.window = slices.Clone(largest.window) // so that the memory of the dropped entries is freed
	}
}

// restart empties the window, which continues with the entry next.
func (j *journals) restart(f *follow, next leadership.Index) {
	j.drop(f, len(f.window))
	f.window, f.next = nil, next
	f.broadcast()
}

// broadcast wakes all feeds that wait.
func (f *follow) broadcast() {
	close(f.more)
	f.more = make(chan struct{})
}

// fail ends a follow with an error, which a feed gets once it has returned all entries.
func (j *journals) fail(f *follow, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f.err = err
	f.broadcast()
	if j.follows[f.election] == f {
		delete(j.follows, f.election) // the next feed begins another
	}
}

// stats returns how many feeds there are.
func (j *journals) stats() (feeds int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.follows {
		feeds += int64(f.feeds)
	}
	return feeds
}
