package bolt

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"regent/leadership"
)

// Limits of the writer.
const (
	maxJobs   = 1024    // in one commit
	maxCached = 100_000 // records kept decoded
)

var errClosed = fmt.Errorf("bolt: %w: the store is closed", leadership.StoreUnavailable)

// job is one call that writes.
type job struct {
	run func(*transaction) error // decides and puts; if it returns an error it has put nothing

	taken    atomic.Bool // by the writer, or by a caller who gives up before the writer came
	err      error
	panicked any
	done     chan struct{} // closed once err and panicked are set
}

// writer is the one goroutine that writes.
type writer struct {
	db    *bbolt.DB
	clock storeClock
	cache map[leadership.Election]leadership.Record // the goroutine's own

	jobs    chan *job
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once
	failed  atomic.Pointer[error] // why nothing can be read or written any more
}

func startWriter(db *bbolt.DB, clock storeClock) *writer {
	w := &writer{
		db:      db,
		clock:   clock,
		cache:   make(map[leadership.Election]leadership.Record),
		jobs:    make(chan *job, maxJobs),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	go w.loop()
	return w
}

// stop lets the calls that wait finish, ends the goroutine and waits for it. It says whether it was the first to do so.
func (w *writer) stop() (first bool) {
	w.once.Do(func() {
		first = true
		close(w.closing)
	})
	<-w.ended
	return first
}

// usable says whether a call may begin.
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
		return fmt.Errorf("bolt: %w: %w", leadership.StoreUnavailable, err)
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
		return fmt.Errorf("bolt: %w: %w", leadership.StoreUnavailable, ctx.Err())
	case <-w.closing:
		return errClosed
	}
	return w.wait(ctx, j)
}

// wait waits for the writer's answer. If the caller gives up first, nothing was done unless the writer had begun.
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
			return fmt.Errorf("bolt: %w: %w", leadership.StoreUnavailable, ctx.Err())
		}
		select {
		case <-j.done:
		default:
			return fmt.Errorf("bolt: %w: %w", leadership.OutcomeUnknown, ctx.Err())
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

// next waits for a job and takes whatever else is waiting. It returns nil once the store is closing and nothing waits.
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
	if err := w.write(taken); err != nil {
		dead := fmt.Errorf("bolt: %w: a commit has failed (%w), so what the disk holds is not known; start again", leadership.StoreUnavailable, err)
		w.failed.Store(&dead)
		fail(taken, fmt.Errorf("bolt: commit: %w: %w", leadership.OutcomeUnknown, err))
	}
}

func fail(jobs []*job, err error) {
	for _, j := range jobs {
		j.err = err
	}
}

// write returns an error only if the file cannot be relied on any more.
func (w *writer) write(jobs []*job) error {
	tx, err := w.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if len(w.cache) > maxCached {
		clear(w.cache)
	}
	t := &transaction{tx: tx, now: w.clock.now(), cache: w.cache}
	for _, j := range jobs {
		if err := undamaged(func() error { j.decide(t); return t.err }); err != nil {
			return err
		}
	}
	if !t.dirty {
		return nil
	}
	if t.put(metaBucket, nowKey, encodeInstant(t.now)); t.err != nil {
		return t.err
	}
	return tx.Commit()
}

// decide runs the job. A panic of the caller's function is the caller's, and no reason to stop everybody.
func (j *job) decide(t *transaction) {
	j.err = j.run(t)
	j.panicked, t.panicked = t.panicked, nil
}

// undamaged turns a panic of bbolt, which is how it reports a page that makes no sense, into an error.
func undamaged(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("bolt: %w: the file is damaged: %v", leadership.StoreUnavailable, v)
		}
	}()
	return f()
}
