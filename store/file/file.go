package file

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"regent/leadership"
	"regent/store/internal/retirement"
)

var (
	metaBucket       = []byte("meta")
	recordsBucket    = []byte("leadership")
	heartbeatsBucket = []byte("heartbeats")
	eventsBucket     = []byte("events")
	outboxBucket     = []byte("outbox")
	timesBucket      = []byte("times")

	schemaKey = []byte("schema")
	bootKey   = []byte("boot")
	anchorKey = []byte("anchor")
	nowKey    = []byte("now")
	prunedKey = []byte("pruned")
	digestKey = []byte("digest")
)

// The versions of the file's layout: everything around records and events.
const (
	layout       = "3"
	layoutBefore = "2" // its records and events may all be of the schema before
)

// buckets returns the names of all buckets of a file.
func buckets() [][]byte {
	return [][]byte{metaBucket, recordsBucket, heartbeatsBucket, eventsBucket, outboxBucket, timesBucket}
}

// lockWait is how long Open waits for another process to close the file, such as one that is just
// shutting down.
const lockWait = time.Second

// openFile opens or creates the file, for this process alone, and returns which file that is.
func openFile(path string) (db *bbolt.DB, file os.FileInfo, err error) {
	if err := inspect(path); err != nil {
		return nil, nil, fmt.Errorf("file: %w", err)
	}
	options := &bbolt.Options{
		Timeout:         lockWait,
		NoFreelistSync:  true, // it is rebuilt at open; a commit then writes less
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: 64 << 20, // growing the map waits for readers
		OpenFile: func(path string, flag int, mode fs.FileMode) (*os.File, error) {
			f, err := openPrivate(path, flag, mode)
			if err == nil {
				file, err = f.Stat()
			}
			return f, err
		},
	}
	if err := undamaged(func() error { db, err = bbolt.Open(path, 0o600, options); return err }); err != nil {
		return nil, nil, fmt.Errorf("file: %w", openError(path, err))
	}
	// At every open: the process that created the file may have died before its name was durable.
	if err := syncDir(filepath.Dir(path)); err != nil {
		db.Close()
		return nil, nil, fmt.Errorf("file: %w", openError(path, err))
	}
	return db, file, nil
}

func openError(path string, err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s is in use by another process; only one may serve a file, so stop that one or name another file", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be created: its folder does not exist; create it, or name another file", path)
	case errors.As(err, &at):
		return fmt.Errorf("%s cannot be opened: %w", path, at.Err) // which would name it again
	}
	return fmt.Errorf("%s cannot be opened: %w", path, err)
}

// openPrivate opens the file if it is this user's and no other user can read or write it. It does
// not follow a link at the end of the path.
func openPrivate(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noFollow, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("others may read or write it (mode %04o); run: chmod 600 %s", info.Mode().Perm(), path)
	default:
		err = checkOwner(info, path, os.Geteuid())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkOwner refuses a file of another user, who could change it at any time, even if this process
// may open it because it is root's.
func checkOwner(info fs.FileInfo, path string, user int) error {
	if owner, known := ownerOf(info); known && owner != user {
		return fmt.Errorf("it belongs to another user (%d, and this is %d), who may change it; run as that user, or: chown %d %s", owner, user, user, path)
	}
	return nil
}

// syncDir makes the file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// beginning is the state of a file as it was opened.
type beginning struct {
	clock   storeClock
	durable int // the newest transaction; it and all before it are durable
	digest  digest
	retire  retirement.Plan
}

// prepare creates the buckets of a new file, refuses a file that is not ours or not whole, and
// starts the store's clock.
func prepare(db *bbolt.DB, machine Clock, codec leadership.Codec) (found beginning, err error) {
	err = undamaged(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			t := &transaction{tx: tx, codec: codec}
			if err := t.initialize(); err != nil {
				return err
			}
			if found.clock, err = t.start(machine); err != nil {
				return err
			}
			t.sign()
			t.now = found.clock.now()
			found.retire = t.retirements()
			found.durable, found.digest = tx.ID(), t.digest
			return t.err
		})
	})
	return found, err
}

// retirements returns which elections are to be retired. It decodes only records whose text has the
// policy for it.
func (t *transaction) retirements() retirement.Plan {
	plan := make(retirement.Plan)
	c := t.tx.Bucket(recordsBucket).Cursor()
	for name, sealed := c.First(); name != nil; name, sealed = c.Next() {
		if !bytes.Contains(sealed, []byte(retireMember)) {
			continue
		}
		if snap, err := t.load(leadership.Election(name)); err == nil {
			plan.Set(snap.Record)
		}
	}
	return plan
}

// retireMember is the name of the member of a policy, as leadership.Codec writes it.
const retireMember = "retireAfterMs"

// start dates the machine's clock, and begins a new boot if the machine has.
func (t *transaction) start(machine Clock) (storeClock, error) {
	clock := storeClock{sinceBoot: machine.SinceBoot}
	same, err := t.sameBoot(&clock, machine)
	if same || err != nil {
		return clock, err
	}
	if err := t.newBoot(wall()); err != nil {
		return clock, err
	}
	clock.anchor = t.now.Add(-machine.SinceBoot())
	t.put(metaBucket, bootKey, []byte(machine.BootID))
	t.put(metaBucket, anchorKey, encodeInstant(clock.anchor))
	t.put(metaBucket, nowKey, encodeInstant(t.now))
	return clock, nil
}

// sameBoot sets the clock's anchor, if the file was last used in the boot that it is opened in. A
// clock that has gone back within one boot counts as another boot: that happens to a machine that
// is restored from a snapshot while its disk is not.
func (t *transaction) sameBoot(clock *storeClock, machine Clock) (bool, error) {
	boot, err := t.get(metaBucket, bootKey)
	if err != nil {
		return false, fmt.Errorf("the boot it was last used in: %w", err)
	}
	if machine.BootID == "" || string(boot) != machine.BootID {
		return false, nil
	}
	last, err := t.instant(metaBucket, nowKey)
	if err != nil {
		return false, fmt.Errorf("the time of its last commit: %w", err)
	}
	if clock.anchor, err = t.instant(metaBucket, anchorKey); err != nil {
		return false, fmt.Errorf("the instant of its boot: %w", err)
	}
	return !clock.now().Before(last), nil
}

// wall is today's date, for people.
func wall() time.Time { return time.Now().Round(0).UTC() }

// initialize creates the parts of a new file, or checks those of an existing one. A file of the
// layout before gets this one, so that earlier programs refuse it; its records change when they are
// next written.
func (t *transaction) initialize() error {
	if t.tx.Bucket(metaBucket) == nil {
		return t.create()
	}
	v, err := t.get(metaBucket, schemaKey)
	if err != nil || string(v) != layout && string(v) != layoutBefore {
		return fmt.Errorf("its schema is %q, and this program reads %s and %s: use the version of regent that wrote it, or a newer one",
			v, layoutBefore, layout)
	}
	if err := t.complete(); err != nil {
		return err
	}
	if err := t.whole(); err != nil || string(v) == layout {
		return err
	}
	t.put(metaBucket, schemaKey, []byte(layout))
	return nil
}

func (t *transaction) create() error {
	if name, _ := t.tx.Cursor().First(); name != nil {
		return errors.New("it is a bolt file of another program")
	}
	for _, name := range buckets() {
		if _, err := t.tx.CreateBucket(name); err != nil {
			return err
		}
	}
	t.put(metaBucket, schemaKey, []byte(layout))
	return nil
}

// complete returns an error unless all buckets are there.
func (t *transaction) complete() error {
	for _, name := range buckets() {
		if t.tx.Bucket(name) == nil {
			return fmt.Errorf("it has no bucket %q: a version of regent wrote it that was never released", name)
		}
	}
	return nil
}

// newBoot sets t.now to the instant at which the new boot begins, not before the last commit, and
// lets every lease and every lock start anew then: how long the machine was off is not known. A
// lease or lock that had ended by the last commit stays ended. A record that cannot be trusted also
// stays as it is, and is refused when it is read.
func (t *transaction) newBoot(today time.Time) error {
	last, err := t.instant(metaBucket, nowKey)
	if err != nil {
		return fmt.Errorf("the time of its last commit: %w", err)
	}
	t.now = today
	if last.After(today) {
		t.now = last
	}
	for _, k := range t.running(last) {
		if err := t.putChange(k.record, k.carried, nil); err != nil {
			return err
		}
	}
	return nil
}

// running returns the records in which a lease or a lock ran at the given instant, changed so that
// it begins at t.now. Records that need a newer program are among them, because that program is not
// there to do it; their lock delay is not known, so it begins anew.
func (t *transaction) running(at time.Time) []kept {
	var found []kept
	c := t.tx.Bucket(recordsBucket).Cursor()
	for name, _ := c.First(); name != nil; name, _ = c.Next() {
		k, err := t.read(leadership.Election(name))
		if err != nil || leadership.Verify(leadership.Snapshot{Record: k.record, Now: t.now}, k.newest) != nil {
			continue
		}
		decoded := k.record
		switch err := t.codec.Decode(&decoded, k.carried); {
		case errors.Is(err, leadership.RecordTooNew):
			decoded.Policy.LockDelay = leadership.MaxLockDelay
		case err != nil:
			continue
		}
		if r, runs := begun(decoded, at, t.now); runs {
			k.record = r
			found = append(found, k)
		}
	}
	return found
}

// begun returns r with whatever ran in it at the given instant beginning now: its lease, the lock
// after a lease whose end is not recorded, or a recorded lock. A latest end of the lease stays as
// far away as it was.
func begun(r leadership.Record, at, now time.Time) (_ leadership.Record, runs bool) {
	held := r.LeaderID != ""
	switch {
	case held && r.LeaseEnd().After(at):
		r.HeartbeatAt = now
		if !r.EndsBy.IsZero() {
			r.EndsBy = now.Add(r.EndsBy.Sub(at))
		}
	case held && r.LeaseEnd().Add(r.Policy.LockDelay).After(at):
		r.HeartbeatAt = now.Add(-r.LeaseDuration)
		if !r.EndsBy.IsZero() {
			r.EndsBy = now
		}
	case !held && r.LockFor > 0 && r.EndedAt.Add(r.LockFor).After(at):
		r.EndedAt = now
	default:
		return r, false
	}
	return r, true
}
