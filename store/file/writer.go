package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/store/internal/history"
)

// Limits of one commit.
const (
	maxJobs   = 1024    // calls
	maxCommit = 4 << 20 // bytes, after which no other call joins it
)

// longBetweenBoots is the least time between the last commit and the next boot for which Open logs
// a warning.
const longBetweenBoots = 30 * 24 * time.Hour

var errClosed = unavailable(errors.New("the store is closed"))

// unavailable is the error of a call that did nothing.
func unavailable(why error) error {
	return fmt.Errorf("file: %w: %w", leadership.StoreUnavailable, why)
}

// job is one call that writes.
type job struct {
	run func(*batch) error // decides and adds the change; if it returns an error it has added nothing

	taken    atomic.Bool // set by the writer, or by a caller that gives up first
	decided  error       // of run; it becomes err once the changes are durable
	err      error
	panicked any
	done     chan struct{} // closed once err and panicked are set
}

// writer is the one goroutine that writes.
type writer struct {
	log         *log         // the goroutine's own
	batchOf     []*job       // for next
	batch       *batch       // the goroutine's own
	checkpoints *checkpoints // the goroutine's own
	moments     moments

	mu    sync.RWMutex // held to change table, and to read it outside the goroutine
	table *table

	jobs    chan *job
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once
	failed  atomic.Pointer[error] // set once nothing can be read or written any more
	broken  chan struct{}         // closed once failed is set
}

// openWriter reads and repairs a folder, and starts the store's clock. The caller must run loop.
func openWriter(path string, span history.Span, c Config) (*writer, error) {
	found, err := load(path, c.Codec)
	if err != nil {
		return nil, err
	}
	log, err := found.mend()
	if err != nil {
		return nil, err
	}
	told := cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if found.log == 0 {
		told.Warn("this is a new, empty store, in which fencing tokens begin at 1; if there was one here before, stop, and bring it back", "folder", path)
	}
	least := cmp.Or(c.Checkpoint, minCheckpoint)
	w := &writer{
		log:         log,
		table:       found.table,
		batch:       newBatch(found.table, span, c.Codec),
		checkpoints: &checkpoints{log: told, least: least, due: max(least, found.snapshot), snapshot: found.snapshot},
		batchOf:     make([]*job, 0, maxJobs),
		jobs:        make(chan *job, maxJobs),
		closing:     make(chan struct{}),
		ended:       make(chan struct{}),
		broken:      make(chan struct{}),
	}
	machine := c.Clock
	if machine.SinceBoot == nil {
		machine = machineClock()
	}
	last := w.table.last
	if w.moments.clock, err = w.table.start(machine, log, w.batch); err != nil {
		log.disk.Close()
		return nil, err
	}
	if now := w.table.last; !last.IsZero() && now.Sub(last) > longBetweenBoots {
		told.Warn("by this machine's clock much time has passed since the store was last written, so halts, pauses, bans and all else with a date may have ended; "+
			"if the clock is wrong, stop, set it, bring back a copy of the folder from before this start and raise its tokens; without a copy, set the clock and order all that anew",
			"folder", path, "last", last, "now", now)
	}
	return w, nil
}

// close ends a checkpoint, and durably records that the store is closed. Call it after stop.
func (w *writer) close() error {
	err := w.checkpoints.wait()
	if w.failed.Load() == nil {
		if gone := w.log.inPlace(); gone != nil { // this folder was removed or replaced
			err = errors.Join(err, fmt.Errorf("file: %w", gone))
		} else {
			err = errors.Join(err, w.log.writeState(true))
		}
	}
	return errors.Join(err, w.log.disk.Close())
}

// stop lets the waiting calls finish, ends the goroutine and waits for it. It reports whether this
// was the first call of stop.
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

// do has the writer run run and make its changes durable.
func (w *writer) do(ctx context.Context, run func(*batch) error) error {
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
	case <-w.ended: // the job may have come too late for the writer
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
		if len(batch) == 0 {
			return
		}
		for jobs := slices.DeleteFunc(batch, func(j *job) bool { return j.taken.Swap(true) }); len(jobs) > 0; {
			jobs = w.commit(jobs)
			w.tend()
		}
		clear(batch)
	}
}

// next waits for a job, and takes all others that wait, up to maxJobs. It returns none once the
// store is closing and no job waits.
func (w *writer) next() []*job {
	batch := w.batchOf[:0]
	select {
	case j := <-w.jobs:
		batch = append(batch, j)
	case <-w.closing:
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

// commit runs the first jobs, makes their changes durable, and then answers them. It returns the
// jobs that would make the commit too large.
func (w *writer) commit(jobs []*job) (rest []*job) {
	n, err := len(jobs), error(nil)
	if failed := w.failed.Load(); failed != nil {
		err = *failed
	} else {
		w.batch.begin(w.moments.begin())
		if n, err = w.write(jobs); err != nil {
			w.fail(err)
			err = fmt.Errorf("file: commit: %w: %w", leadership.OutcomeUnknown, err)
		}
		w.moments.end() // the change that reads wait for is committed or has failed
	}
	for _, j := range jobs[:n] {
		j.err = cmp.Or(err, j.decided)
		close(j.done)
	}
	return jobs[n:]
}

// fail ends the use of the folder.
func (w *writer) fail(err error) {
	dead := fmt.Errorf("file: %w: a commit has failed (%w), so what the disk holds is not known; start again", leadership.StoreUnavailable, err)
	w.failed.Store(&dead)
	close(w.broken)
}

// write decides the first jobs and makes their changes durable. It returns how many it decided.
// After an error the folder cannot be relied on.
func (w *writer) write(jobs []*job) (decided int, err error) {
	b := w.batch
	for decided < len(jobs) && len(b.frame) < maxCommit {
		jobs[decided].decide(b)
		decided++
	}
	if !b.changes() {
		return decided, nil
	}
	if err := w.log.inPlace(); err != nil {
		return decided, fmt.Errorf("the folder was moved, removed or replaced: bring it back first, because a new one would grant tokens again: %w", err)
	}
	if err := w.log.append(b.frame); err != nil {
		return decided, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b.apply()
	return decided, nil
}

// tend does the work that a commit has put off, while no caller waits for it.
func (w *writer) tend() {
	if w.failed.Load() != nil {
		return
	}
	w.mu.Lock()
	w.table.tidy()
	w.mu.Unlock()
	if err := w.checkpoints.rotate(w.log, w.table); err != nil {
		w.fail(err)
	}
}

// decide runs the job. A panic of the caller's function goes to that caller, and stops no other.
func (j *job) decide(b *batch) {
	j.decided = j.run(b)
	j.panicked, b.panicked = b.panicked, nil
}
