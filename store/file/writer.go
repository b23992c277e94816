package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"regent/leadership"
	"regent/store/internal/history"
	"regent/store/internal/retirement"
)

// Limits of the writer.
const (
	maxJobs   = 1024    // in one commit
	maxCached = 100_000 // records kept decoded
)

var errClosed = unavailable(errors.New("the store is closed"))

// unavailable is the error of a call that did nothing.
func unavailable(why error) error {
	return fmt.Errorf("file: %w: %w", leadership.StoreUnavailable, why)
}

// job is one call that writes.
type job struct {
	run func(*transaction) error // decides and puts; if it returns an error it has put nothing

	taken    atomic.Bool // set by the writer, or by a caller that gives up first
	decided  error       // what run returned; it becomes err once what was put is durable
	err      error
	panicked any
	done     chan struct{} // closed once err and panicked are set
}

// writer is the one goroutine that writes.
type writer struct {
	db      *bbolt.DB
	file    os.FileInfo // of db, as it was opened
	moments moments
	history history.Span
	codec   leadership.Codec
	digest  digest                                    // of the committed contents; the goroutine's own
	cache   map[leadership.Election]leadership.Record // the goroutine's own
	retire  retirement.Plan                           // of the committed contents; the goroutine's own
	durable horizon

	jobs    chan *job
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once
	failed  atomic.Pointer[error] // why nothing can be read or written any more
	broken  chan struct{}         // closed once failed is set
}

func startWriter(db *bbolt.DB, file os.FileInfo, found beginning, span history.Span, codec leadership.Codec) *writer {
	w := &writer{
		db:      db,
		file:    file,
		moments: moments{clock: found.clock},
		history: span,
		codec:   codec,
		digest:  found.digest,
		cache:   make(map[leadership.Election]leadership.Record),
		retire:  found.retire,
		durable: horizon{last: found.durable, moved: make(chan struct{})},
		jobs:    make(chan *job, maxJobs),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		broken:  make(chan struct{}),
	}
	go w.loop()
	return w
}

// stop lets the calls that wait finish, ends the goroutine and waits for it. It reports whether it
// was the first to do so.
func (w *writer) stop() (first bool) {
	w.once.Do(func() {
		first = true
		close(w.closing)
	})
	<-w.ended
	return first
}

// usable returns an error if no call may begin.
func (w *writer) usable(ctx context.Context) error {
	if failed := w.failed.Load(); failed != nil {
		return *failed
	}
	select {
	case <-w.closing:
		return errClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// do has run carried out by the writer and made durable.
func (w *writer) do(ctx context.Context, run func(*transaction) error) error {
	if err := w.usable(ctx); err != nil {
		return err
	}
	j := &job{run: run, done: make(chan struct{})}
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return unavailable(ctx.Err())
	case <-w.closing:
		return errClosed
	}
	return w.wait(ctx, j)
}

// wait waits for the writer's answer. If the caller gives up first, nothing was done unless the
// writer had begun.
func (w *writer) wait(ctx context.Context, j *job) error {
	select {
	case <-j.done:
	case <-w.ended: // the job may have come too late to be seen
		if !j.taken.Swap(true) {
			return errClosed
		}
		<-j.done
	case <-ctx.Done():
		if !j.taken.Swap(true) {
			return unavailable(ctx.Err())
		}
		select {
		case <-j.done:
		default:
			return fmt.Errorf("file: %w: %w", leadership.OutcomeUnknown, ctx.Err())
		}
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

func (w *writer) loop() {
	defer close(w.ended)
	for {
		batch := w.next()
		if batch == nil {
			return
		}
		w.commit(batch)
	}
}

// next waits for a job and takes whatever else is waiting. It returns nil once the store is closing
// and nothing waits.
func (w *writer) next() []*job {
	var batch []*job
	select {
	case j := <-w.jobs:
		batch = append(batch, j)
	default:
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
		case <-w.closing:
		}
	}
	for len(batch) < maxJobs {
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the jobs in one transaction, makes it durable, and then answers all.
func (w *writer) commit(batch []*job) {
	var taken []*job
	defer func() {
		for _, j := range taken {
			close(j.done)
		}
	}()
	for _, j := range batch {
		if !j.taken.Swap(true) {
			taken = append(taken, j)
		}
	}
	if failed := w.failed.Load(); failed != nil {
		fail(taken, *failed)
		return
	}
	id, err := w.write(taken)
	if err != nil {
		dead := fmt.Errorf("file: %w: a commit has failed (%w), so what the disk holds is not known; start again", leadership.StoreUnavailable, err)
		w.failed.Store(&dead)
		close(w.broken)
		w.durable.move(0)
		fail(taken, fmt.Errorf("file: commit: %w: %w", leadership.OutcomeUnknown, err))
		return
	}
	w.durable.move(id)
	for _, j := range taken {
		j.err = j.decided
	}
}

func fail(jobs []*job, err error) {
	for _, j := range jobs {
		j.err = err
	}
}

// write decides the jobs in one transaction and makes it durable. It returns the transaction's
// number, 0 if there was nothing to write. An error means that the file cannot be relied on any
// more.
func (w *writer) write(jobs []*job) (id int, err error) {
	err = undamaged(func() error {
		tx, err := w.db.Begin(true)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after a commit
		if len(w.cache) > maxCached {
			clear(w.cache)
		}
		now := w.moments.begin()
		defer w.moments.end()
		t := &transaction{tx: tx, now: now, history: w.history, codec: w.codec, cache: w.cache, retire: w.retire, digest: w.digest}
		for _, j := range jobs {
			j.decide(t)
		}
		if !t.dirty {
			return t.err
		}
		t.put(metaBucket, nowKey, encodeInstant(t.now))
		if t.sign(); t.err != nil {
			return t.err
		}
		if err := w.inPlace(); err != nil {
			return err
		}
		id, w.digest = tx.ID(), t.digest
		return tx.Commit()
	})
	return id, err
}

// inPlace returns an error unless the file is still at its path. If it was removed or replaced,
// another process may have opened another file at that path, and would elect a second leader.
func (w *writer) inPlace() error {
	now, err := os.Lstat(w.db.Path())
	if err == nil && !os.SameFile(now, w.file) {
		err = fmt.Errorf("%s is another file now", w.db.Path())
	}
	return err
}

// decide runs the job. A panic of the caller's function is the caller's, and stops no other.
func (j *job) decide(t *transaction) {
	j.decided = j.run(t)
	j.panicked, t.panicked = t.panicked, nil
}

// undamaged turns a panic of bbolt, which is how it reports a page that makes no sense, into an
// error.
func undamaged(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the file is damaged: %v", v)
		}
	}()
	return f()
}
