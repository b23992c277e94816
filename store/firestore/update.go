package firestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/rule"
)

// The retry of an Update whose commit lost a race. No lock is held meanwhile, and in each round one
// writer wins. All attempts take about four seconds; after that the caller should ask again.
const (
	attempts   = 24
	firstPause = 10 * time.Millisecond // the mean of the first is half of it; each pause may be twice the one before
	lastPause  = 400 * time.Millisecond
)

// Update reads and commits: one BatchGetDocuments and, if there is something to write, one Commit.
// A renewal (rule.Expect) with a report, or with the lease of a parent, is one Commit
// without a read, as in Renew, if the lease is known as it is in the store.
func (s *Store) Update(
	ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error),
) (rule.Snapshot, error) {
	operation := fmt.Sprintf("update %q", e)
	if err := s.begin(ctx); err != nil {
		return rule.Snapshot{}, unavailable(ctx, operation, err)
	}
	defer s.calls.Leave()
	if c := x.Held; c != nil && (c.Report != "" || c.Parent.Token > 0) {
		if after, err := s.updateUnread(ctx, *c, decide); !errors.Is(err, rule.ErrNotRenewed) {
			return after, err
		}
	}
	var refused refusal
	for attempt := range attempts {
		if err := pause(ctx, attempt); err != nil {
			return rule.Snapshot{}, unavailable(ctx, operation, err)
		}
		seen, err := s.look(ctx, operation, e)
		if err != nil {
			return rule.Snapshot{}, err
		}
		if refused.believed(seen) {
			return rule.Snapshot{}, fmt.Errorf("firestore: %s: %w", operation, rule.Corrupt(e, refused.cause))
		}
		ch, carried, err := s.codec.Decide(seen.snapshot(), rule.Carried{}, decide)
		if err != nil {
			return rule.Snapshot{}, err
		}
		if ch.Empty() {
			return seen.snapshot(), nil
		}
		after, err := s.commitChange(ctx, seen, ch, carried)
		switch {
		case err == nil:
			return after, nil
		case !contended(err):
			return rule.Snapshot{}, unwritten(ctx, operation, err)
		}
		refused = refused.and(err, seen)
	}
	return rule.Snapshot{}, unavailable(ctx, operation, fmt.Errorf("%w: %w", errContention, refused.cause))
}

// early limits how much too early a leader may count as stuck: by one part in 20 of its StuckAfter.
// Without a read that time runs from the last reply, and the commit may come as late as the end of
// the lease.
const early = 20

// updateUnread runs the rule on the version of the lease in the renewal's ticket or in this
// handle's memory, and commits under the guard of that version. The error is ErrNotRenewed, and
// nothing was done, if no version is known, if it is no longer the store's, if the rule decides
// anything but a heartbeat without events, or if the time of progress would be too early: then the
// store must be read. A plain renewal does not come here, because Renew has tried that.
func (s *Store) updateUnread(
	ctx context.Context, c rule.Renewal, decide func(rule.Snapshot) (rule.Change, error),
) (rule.Snapshot, error) {
	known, ok := s.memory.sight(c.Election, s.open(ctx, c))
	if !ok {
		return rule.Snapshot{}, rule.ErrNotRenewed
	}
	ch, carried, err := s.codec.Decide(known.snapshot(), rule.Carried{}, decide)
	if err != nil || !ch.Heartbeat || len(ch.Events) > 0 {
		return rule.Snapshot{}, rule.ErrNotRenewed
	}
	moved := !ch.Record.Standing.Ends.Stuck.Equal(known.doc.record.Standing.Ends.Stuck)
	if moved && ch.Before.Sub(known.at) > ch.Record.Policy.Term.StuckAfter/early {
		return rule.Snapshot{}, rule.ErrNotRenewed
	}
	after, err := s.commitChange(ctx, known, ch, carried)
	switch {
	case contended(err):
		s.memory.forget(known.doc)
		return rule.Snapshot{}, rule.ErrNotRenewed
	case err != nil:
		return rule.Snapshot{}, unwritten(ctx, fmt.Sprintf("renew %q", c.Election), err)
	}
	return after, nil
}

// refusal is a series of commits that Firestore refused because a document had changed since it was
// read.
type refusal struct {
	cause error // of the last refusal
	seen  sight // the read before the last refusal
	row   int   // refusals in a row because a document exists, with the same read before each
}

func (r refusal) and(cause error, seen sight) refusal {
	next := refusal{cause: cause, seen: seen}
	if status.Code(cause) == codes.AlreadyExists {
		next.row = 1
		if seen.same(r.seen) {
			next.row += r.row
		}
	}
	return next
}

// believed reports whether the refusals prove that the history goes beyond its newest event: the
// record has not changed, so the event to create exists, and every further attempt would be
// refused. One refusal does not prove that on the emulator; see settled.
func (r refusal) believed(now sight) bool { return r.row >= 3 && now.same(r.seen) }

// pause waits before each attempt except the first: a random part of a time that doubles, so that
// writers that collided do not collide again.
func pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	doublings := min(attempt-1, 10) // more would overflow one day, and change nothing
	select {
	case <-time.After(rand.N(min(firstPause<<doublings, lastPause))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commitChange writes the change that a rule decided on seen, if the record is still that one.
func (s *Store) commitChange(
	ctx context.Context, seen sight, ch rule.Change, carried rule.Carried,
) (rule.Snapshot, error) {
	e := ch.Record.Election
	heartbeats := seen.doc.heartbeats
	if ch.Heartbeat {
		heartbeats++
	}
	lease := encodeRecord(ch.Record, carried, heartbeats, writeOf{heartbeat: ch.Heartbeat, due: ch.Before})
	writes := []*firestorepb.Write{put(s.database.lease(e), lease, seen.doc.asSeen())}
	for _, ev := range ch.Events {
		writes = append(writes, s.database.creation(ev, s.history.Due(seen.at)))
	}
	if len(ch.Events) > 0 {
		writes = append(writes, put(s.database.newest(e), encodeNewest(ch.Record), nil))
	}
	done, err := s.commit(ctx, writes...)
	if err != nil {
		return rule.Snapshot{}, err
	}
	doc, err := decodeRecord(string(e), lease, done.updated, s.codec) // as the next read will find it
	if err != nil {
		return rule.Snapshot{}, err
	}
	s.memory.remember(doc, done.at)
	after := rule.Snapshot{Record: doc.record, Now: done.at, Guard: guard}
	if ch.Heartbeat {
		after.Ticket = s.ticket(ctx, doc, ch.Before)
	}
	return after, nil
}

// committed has the times of a commit.
type committed struct {
	at            time.Time // the commit
	updated, last time.Time // update_time of the first and of the last document written
}

// commit sends writes that are done together or not at all.
func (s *Store) commit(ctx context.Context, writes ...*firestorepb.Write) (committed, error) {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	var to peer.Peer
	request := &firestorepb.CommitRequest{Database: string(s.database), Writes: writes}
	reply, err := s.client.Commit(ctx, request, gax.WithGRPCOptions(grpc.Peer(&to)))
	if err != nil {
		return committed{}, unlessSent(to, err)
	}
	if len(reply.WriteResults) != len(writes) {
		return committed{}, errIncomplete
	}
	first, last := reply.WriteResults[0], reply.WriteResults[len(writes)-1]
	return committed{at: timeOf(reply.CommitTime), updated: timeOf(first.UpdateTime), last: timeOf(last.UpdateTime)}, nil
}

func put(name string, v values, condition *firestorepb.Precondition) *firestorepb.Write {
	return &firestorepb.Write{
		Operation:       &firestorepb.Write_Update{Update: &firestorepb.Document{Name: name, Fields: v}},
		CurrentDocument: condition,
	}
}

// asSeen is the condition that the document has not been written since it was read.
func (d document) asSeen() *firestorepb.Precondition { return unchangedSince(d.updated) }

// unchangedSince is the condition that a document still has that update_time; zero: that there is
// no such document.
func unchangedSince(updated time.Time) *firestorepb.Precondition {
	if updated.IsZero() {
		return exists(false)
	}
	return &firestorepb.Precondition{ConditionType: &firestorepb.Precondition_UpdateTime{UpdateTime: stamp(updated)}}
}

// exists returns the condition that the document exists, or that it does not.
func exists(there bool) *firestorepb.Precondition {
	return &firestorepb.Precondition{ConditionType: &firestorepb.Precondition_Exists{Exists: there}}
}
