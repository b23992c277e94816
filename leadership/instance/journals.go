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
	// journalLook is how often the head of a journal is looked at that has feeds, for entries that
	// another instance has appended and not told of. While the other instances are heard,
	// journalRest of these looks or up to twice as many are left out.
	journalLook = time.Second
	journalRest = 15
	// journalPause is how long after another read the entries that were told of are read.
	journalPause = 50 * time.Millisecond
	// journalTimeout bounds one read.
	journalTimeout = 10 * time.Second
	// A window has so many entries, and about so many bytes of them, at most, and all windows so
	// many bytes together. A feed that is further behind reads the store by itself.
	windowEntries = 1024
	windowBytes   = 1 << 20
	windowsBytes  = 64 << 20
	// entryBytes is about what an entry takes beside its data.
	entryBytes = 128
)

// journals lets the feeds of one journal share what is read of it: for each journal with feeds
// there is one follow.
type journals struct {
	ledger  *service.Ledger
	hub     *hub.Hub    // whose end is that of all feeds, and which is told where journals stand
	hears   func() bool // whether other instances are heard, which tell of their appends
	log     *slog.Logger
	running sync.WaitGroup // follows

	mu      sync.Mutex // guards all below, and the follows
	bytes   int        // of all windows
	follows map[leadership.Election]*follow
}

// follow is what the feeds of one journal share: a window on its newest entries.
type follow struct {
	election leadership.Election
	view     *view.Election // knows how far the journal was told to be
	wake     chan struct{}  // of one: that has changed
	end      context.CancelFunc
	rest     int // looks to leave out while the other instances are heard

	feeds  int
	known  bool                   // head and next are
	head   leadership.JournalHead // as it was read last
	next   leadership.Index       // of the entry after the window
	window []leadership.Entry     // the entries before next, without a gap
	bytes  int                    // of them
	err    error                  // why there are no more entries
	more   chan struct{}          // closed when there are, or err is set
}

func newJournals(l *service.Ledger, h *hub.Hub, hears func() bool, log *slog.Logger) *journals {
	return &journals{ledger: l, hub: h, hears: hears, log: log, follows: make(map[leadership.Election]*follow)}
}

// open opens a feed. If the window does not reach back to where it begins, or the reader knows of
// more entries than the window, it reads the store.
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

// told is how far the journal is, as far as is known.
func (j *journals) told(f *follow) (i leadership.Index) {
	j.hub.View(func(*view.View, time.Duration) { i = f.view.Head() })
	return i
}

// first is the index of the first entry in the window.
func (f *follow) first() leadership.Index { return f.next - leadership.Index(len(f.window)) }

// covers reports whether the reader has read the journal as it is, and not before a restore.
func (f *follow) covers(r leadership.JournalRequest) bool {
	return r.After == 0 && r.Applied == 0 || r.Generation == f.head.Generation
}

// begin lets the window begin after the last entry.
func (f *follow) begin(head leadership.JournalHead) {
	if !f.known {
		f.known, f.head, f.next = true, head, head.Index+1
	}
}

// page returns the entries after those that a feed has. Without any, more is closed when there may
// be some; it is nil if the window does not reach back so far.
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

// run reads what is new until ctx ends, or the instance drains.
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

// further reports whether the journal was told to be further than the window.
func (j *journals) further(f *follow) bool {
	told := j.told(f)
	j.mu.Lock()
	defer j.mu.Unlock()
	return !f.known || told >= f.next
}

// look enters the new entries into the window. The error is one that asking again would not mend.
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
		case errors.Is(err, leadership.HistoryCompacted) && refusal != nil: // feeds that are behind are told so when they read
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

// newer reads what follows on the window. Unless the journal was told to be further, it looks at
// the head first.
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

// enter takes what was read, and reports whether that was all.
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

// size is about how many bytes an entry takes.
func size(e leadership.Entry) int { return len(e.Data) + len(e.Type) + entryBytes }

// count counts bytes of a window. Call with mu held, as the methods that follow.
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

// makeRoom halves the largest windows, until all have no more than windowsBytes together.
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
		largest.window = slices.Clone(largest.window) // so that the dropped ones leave the memory
	}
}

// restart empties the window, which goes on with that entry.
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

// fail ends a follow with an error, for the feeds that have all of its entries.
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
