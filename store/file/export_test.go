package file

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/internal/history"
)

// Spoil changes a record behind the store's back; nil removes it.
func (s *Store) Spoil(e leadership.Election, change func(*rule.Record)) {
	w := s.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	n := *w.table.entries[e]
	r, carried := n.current(), n.carried
	if change != nil {
		change(&r)
	} else {
		r, carried = rule.Record{Election: e}, rule.Carried{}
	}
	n.set(r, carried)
	n.verify(w.table.last)
	w.table.put(&n)
}

// SpoilCarried replaces what is kept of an election's policy and standing.
func (s *Store) SpoilCarried(e leadership.Election, carried rule.Carried) {
	w := s.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	n := *w.table.entries[e]
	n.set(n.current(), carried)
	n.decode(w.batch.codec, w.table.last)
	w.table.put(&n)
}

// Hold keeps the writer busy until the returned function is called.
func (s *Store) Hold() (release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	go s.writer.do(context.Background(), func(*batch) error {
		close(held)
		<-released
		return nil
	})
	<-held
	return func() { close(released) }
}

// Between reads what was committed after the instant and not after the other.
func (s *Store) Between(after, last time.Time) ([]leadership.Event, error) {
	return s.between(context.Background(), after, last, 100)
}

// Queued is how many calls wait for the writer.
func (s *Store) Queued() int { return len(s.writer.jobs) }

// Kept counts the events in the elections, those that wait, and those in the pages that are not
// forgotten.
func (s *Store) Kept() (events, waiting, alive int) {
	_ = s.view(context.Background(), func(t *table) {
		_, events = t.count()
		for e := range t.waiting {
			waiting += len(t.entries[e].waiting)
		}
		for _, p := range t.events.list {
			alive += p.alive
		}
	})
	return events, waiting, alive
}

// PageBytes is how many bytes the events take in memory, once what follows the last commit is done.
func (s *Store) PageBytes() (n int) {
	_ = s.writer.do(context.Background(), func(*batch) error { return nil })
	_ = s.view(context.Background(), func(t *table) {
		for _, p := range t.events.list {
			n += len(p.raw) + len(p.packed)
		}
	})
	return n
}

// CheckpointNow begins a checkpoint, whatever the length of the log.
func (s *Store) CheckpointNow() {
	s.writer.do(context.Background(), func(*batch) error {
		s.writer.checkpoints.due = 0
		return nil
	})
}

// Late is a call that the writer of a closed store does not see any more.
func (s *Store) Late() error {
	return s.writer.wait(context.Background(), &job{done: make(chan struct{})})
}

// MaxPruned is how many events go with one change.
const MaxPruned = maxPruned

// Fail makes every later commit fail.
func (s *Store) Fail() error { return s.writer.log.disk.Close() }

// LogEnd is the place in the log at which the next commit begins, after all calls that wait.
func (s *Store) LogEnd() (at int64) {
	s.writer.do(context.Background(), func(*batch) error {
		at = s.writer.log.at
		return nil
	})
	return at
}

// Sequence is that of the last commit, after all calls that wait.
func (s *Store) Sequence() (sequence uint64) {
	s.writer.do(context.Background(), func(*batch) error {
		sequence = s.writer.log.sequence
		return nil
	})
	return sequence
}

// Log is the number of the present log, after all calls that wait.
func (s *Store) Log() (number uint64) {
	for range 2 { // the second begins when the first has ended
		s.writer.do(context.Background(), func(*batch) error {
			number = s.writer.log.head.number
			return nil
		})
	}
	return number
}

// watched calls a function before each call of a disk.
type watched struct {
	disk
	before func(call string) error
}

func (d watched) WriteAt(b []byte, at int64) (int, error) {
	if err := d.before("write"); err != nil {
		return 0, err
	}
	return d.disk.WriteAt(b, at)
}

func (d watched) SyncData() error { return errors.Join(d.before("sync"), d.disk.SyncData()) }
func (d watched) Sync() error     { return errors.Join(d.before("sync"), d.disk.Sync()) }

// Watch has the function called before each write and sync of the present log, in place of which
// its error is returned.
func (s *Store) Watch(before func(call string) error) {
	s.writer.do(context.Background(), func(*batch) error {
		s.writer.log.disk = watched{s.writer.log.disk, before}
		return nil
	})
}

// Checkpointed waits for a checkpoint under way, after all calls that wait.
func (s *Store) Checkpointed() (err error) {
	s.LogEnd()
	s.writer.do(context.Background(), func(*batch) error { // when what follows the one before has ended
		err = s.writer.checkpoints.wait()
		return nil
	})
	return err
}

// RoundTrip decodes a payload's entries, and encodes what they say of records and events again.
func RoundTrip(payload []byte) (again []byte, err error) {
	d := &decoder{rest: payload}
	for len(d.rest) > 0 && d.err == nil {
		switch kind := d.byte(); kind {
		case tagRecord:
			r, carried := d.record(leadership.Election(d.text()))
			again = appendRecord(again, &r, carried)
		case tagHeartbeat:
			again = appendHeartbeat(again, leadership.Election(d.text()), d.instant())
		case tagEvent:
			from := d.rest
			d.eventHead()
			d.skipEvent()
			if d.err != nil {
				break
			}
			e, err := decodeEvent(from[:len(from)-len(d.rest)])
			d.check(err)
			again = appendEvent(append(again, kind), &e)
		case tagLog:
			l := d.log()
			again = appendLog(again, &l)
		case tagSegment:
			id, s := d.segment()
			again = appendSegment(again, id, &s)
		case tagTrimmed:
			id := d.logID()
			again = appendTrim(again, id, leadership.Index(d.varint()))
		default:
			d.fail("another entry")
		}
	}
	return again, d.err
}

// Entries encodes a record and an event.
func Entries(r rule.Record, c rule.Carried, e leadership.Event) []byte {
	b := appendHeartbeat(appendRecord(nil, &r, c), r.Election, r.HeartbeatAt)
	return appendEvent(append(b, tagEvent), &e)
}

// LogEntries encodes a log, a segment of it, and that it was trimmed.
func LogEntries(l rule.Log, s rule.Segment, upTo leadership.Index) []byte {
	b := appendSegment(appendLog(nil, &l), l.ID, &s)
	return appendTrim(b, l.ID, upTo)
}

// Replay repeats what a payload says in an empty table.
func Replay(payload []byte) error {
	t := newTable()
	if _, err := t.replay(payload); err != nil {
		return err
	}
	t.ready(rule.Codec{})
	return nil
}

// Frame makes a frame of a payload, and ReadFrame reads the first frame of a file.
func Frame(payload []byte) []byte {
	return endFrame(append(beginFrame(nil), payload...), identity{1}.seed(), 1)
}

func ReadFrame(content []byte) ([]byte, error) {
	f := frames{seed: identity{1}.seed(), content: content}
	return f.next()
}

var CheckOwner = checkOwner

// Fill makes a folder with the history of so many elections: grants and releases, each with a
// request's id and an actor, none of them announced. It needs few syncs.
func Fill(path string, elections, events int, random func() uint64) error {
	const inOneCommit = 1000
	folder, err := openFolder(path, true)
	if err != nil {
		return err
	}
	defer folder.Close()
	w, err := openWriter(path, history.Span(rule.DefaultHistory), Config{})
	if err != nil {
		return err
	}
	for n := 0; n < events; {
		w.batch.begin(w.moments.clock.now())
		for end := min(events, n+inOneCommit); n < end; n++ {
			e := leadership.Election(fmt.Sprintf("reports.daily-%05d", n%elections))
			_, _, err := w.batch.update(e, func(s rule.Snapshot) (rule.Change, error) {
				hash := leadership.KeyHash{1, byte(n)}
				candidate := leadership.CandidateID(fmt.Sprintf("agent-%d", n%elections%7))
				ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: candidate, KeyHash: hash, LeaseDuration: time.Minute})
				if s.Live() {
					ch, err = rule.Apply(s, leadership.Release{LeaseRequest: rule.Renewal{Election: e, CandidateID: s.Record.LeaderID, KeyHash: s.Record.KeyHash, Token: s.Record.Token}.Request()})
				}
				for i := range ch.Events {
					ch.Events[i].RequestID, ch.Events[i].Actor = fmt.Sprintf("%016x%016x", random(), random()), "agents@example.com"
				}
				return ch, err
			})
			if err != nil {
				return err
			}
		}
		if err := w.log.append(w.batch.frame); err != nil {
			return err
		}
		w.batch.apply()
		w.table.tidy()
		if err := w.checkpoints.rotate(w.log, w.table); err != nil {
			return err
		}
	}
	return w.close()
}
