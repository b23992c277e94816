package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/internal/history"
)

// Config says how to open a folder; its zero value works.
type Config struct {
	// Clock is the store's clock. The zero Clock stands for the machine's own.
	Clock Clock
	// History is how long events are kept: rule.MinHistory or more, 0 for
	// rule.DefaultHistory. Older ones are deleted as their election changes; its newest event
	// always stays.
	History time.Duration
	// Codec reads and writes policy and standing; the zero Codec is this program's.
	Codec rule.Codec
	// Log gets a warning for a new store, for a boot long after the last commit and for each
	// checkpoint that fails; nil for none.
	Log *slog.Logger

	// Checkpoint is how many bytes a log has before a snapshot replaces it; 0 for 16 MiB.
	Checkpoint int64
}

// Store is an open folder.
type Store struct {
	folder  *os.File // locked
	history history.Span
	writer  *writer
	cache   pageCache
}

var _ service.Store = (*Store)(nil)

// Open opens the folder at path, or creates it with mode 0700; its parent must exist. It waits a
// second for another process to close it, and then returns an error that says that it is in use.
func Open(path string, c Config) (*Store, error) {
	path = filepath.Clean(path)
	span, err := history.Of(c.History)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	folder, err := openFolder(path, true)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	w, err := openWriter(path, span, c)
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("file: %w", unusable(path, err))
	}
	go w.loop()
	return &Store{folder: folder, history: span, writer: w}, nil
}

// Report is the result of Check.
type Report struct {
	Elections  int
	Events     int
	Bytes      int64     // of all files
	Commits    uint64    // since the store was created
	LastCommit time.Time // by the store's clock; zero if there was none
	Closed     bool      // the store was closed, so no commit can be missing at the end
	// Torn is how many bytes Open would overwrite with zeros: those of a last commit that a power
	// cut left in part, and that was never acknowledged.
	Torn int
}

// Check reads and verifies the folder at path and changes nothing. The error is that of Open; it is
// fs.ErrNotExist, by errors.Is, if there is no such folder, or no store in it.
func Check(path string) (Report, error) {
	path = filepath.Clean(path)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("file: there is no folder %s: %w", path, fs.ErrNotExist)
	}
	folder, err := openFolder(path, false)
	if err != nil {
		return Report{}, fmt.Errorf("file: %w", err)
	}
	defer folder.Close()
	found, err := load(path, rule.Codec{})
	if err != nil {
		return Report{}, fmt.Errorf("file: %w", unusable(path, err))
	}
	if found.log == 0 {
		return Report{}, fmt.Errorf("file: there is no store in %s, which is empty: %w", path, fs.ErrNotExist)
	}
	r := Report{Bytes: found.bytes, Commits: found.sequence, LastCommit: found.table.last, Closed: found.closed}
	r.Elections, r.Events = found.table.count()
	if found.torn != nil {
		r.Torn = found.torn.to - found.torn.from
	}
	return r, nil
}

// Broken returns a channel that is closed once the store can no longer be used, because a commit
// has failed: the content of the disk is not known until the folder is opened again.
func (s *Store) Broken() <-chan struct{} { return s.writer.broken }

// Close finishes the calls in progress and a checkpoint, and closes the folder. Acknowledged
// commits are durable even if it returns an error.
func (s *Store) Close() error {
	if !s.writer.stop() {
		return nil // closed before
	}
	return errors.Join(s.writer.close(), s.folder.Close())
}

func (s *Store) Update(ctx context.Context, e leadership.Election, _ rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	var after entry
	var at time.Time
	err := s.writer.do(ctx, func(b *batch) (err error) {
		after, at, err = b.update(e, decide)
		return err
	})
	if err != nil {
		return rule.Snapshot{}, err
	}
	return after.snapshot(e, at)
}

func (s *Store) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	// The writer may still be working after the caller has given up, so it works on a copy, and its
	// answers are used only if it has finished.
	leases = slices.Clone(leases)
	renewed := make([]rule.Renewed, len(leases))
	err := s.writer.do(ctx, func(b *batch) error {
		for i := range leases {
			b.renew(&leases[i], &renewed[i])
		}
		return nil
	})
	if err != nil {
		return slices.Repeat([]rule.Renewed{{Err: err}}, len(leases))
	}
	return renewed
}

func (s *Store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	ids = slices.Clone(ids) // for the same reason
	return s.writer.do(ctx, func(b *batch) error {
		for _, id := range ids {
			b.announce(id)
		}
		return nil
	})
}

// view runs a read. It sees everything that was committed before it, and nothing that is not
// durable.
func (s *Store) view(ctx context.Context, read func(*table)) error {
	w := s.writer
	if err := w.usable(ctx); err != nil {
		return err
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	read(w.table)
	return nil
}

// viewAt is view with the instant of the read, which is no earlier than the call. A decision must
// not call it, for it would wait for itself.
func (s *Store) viewAt(ctx context.Context, read func(t *table, now time.Time)) error {
	now, err := s.writer.moments.reading(ctx)
	if err != nil {
		return unavailable(err)
	}
	return s.view(ctx, func(t *table) {
		if t.last.After(now) {
			now = t.last
		}
		read(t, now)
	})
}

func (s *Store) Get(ctx context.Context, e leadership.Election) (snap rule.Snapshot, err error) {
	failed := s.viewAt(ctx, func(t *table, now time.Time) { snap, err = t.entries[e].snapshot(e, now) })
	return snap, cmp.Or(failed, err)
}

func (s *Store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (listing rule.Listing, err error) {
	err = s.viewAt(ctx, func(t *table, now time.Time) {
		from, found := slices.BinarySearch(t.names, max(after, leadership.Election(prefix)))
		if found && t.names[from] == after {
			from++
		}
		names := t.names[from:]
		end := sort.Search(len(names), func(i int) bool { return !strings.HasPrefix(string(names[i]), prefix) })
		listing = t.listing(names[:end], limit, now)
	})
	return listing, err
}

// Held implements service.Store, in the order of names.
func (s *Store) Held(ctx context.Context, after leadership.Election, limit int) (listing rule.Listing, err error) {
	err = s.viewAt(ctx, func(t *table, now time.Time) {
		from, found := slices.BinarySearch(t.names, after)
		if found {
			from++
		}
		var names []leadership.Election
		for _, e := range t.names[from:] {
			if t.held[e] {
				names = append(names, e)
			}
			if len(names) > limit {
				break
			}
		}
		listing = t.listing(names, limit, now)
	})
	return listing, err
}

// listing reads the first limit of the named elections.
func (t *table) listing(names []leadership.Election, limit int, now time.Time) (listing rule.Listing) {
	if limit = max(limit, 0); len(names) > limit {
		names = names[:limit]
		if limit > 0 {
			listing.Next = names[limit-1]
		}
	}
	listing.Snapshots = make([]rule.Snapshot, 0, len(names)) // a page has up to 1,000
	for _, e := range names {
		snap, err := t.entries[e].snapshot(e, now)
		listing.Add(e, snap, err)
	}
	return listing
}

func (s *Store) Retirable(ctx context.Context, at time.Time, limit int) (due []leadership.Election, err error) {
	err = s.view(ctx, func(t *table) { due = t.retire.By(at, limit) })
	return due, err
}
