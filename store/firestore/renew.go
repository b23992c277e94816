package firestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"regent/leadership/rule"
)

// Renew sends a heartbeat for each lease that this handle remembers or gets from its ticket, and
// reads nothing: one Commit for one lease, one BatchWrite for more. Each is guarded by the
// update_time of that version. A lease that is not known, or has changed since, is answered with
// ErrNotRenewed.
func (s *Store) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	answers := make([]rule.Renewed, len(leases))
	if err := s.begin(ctx); err != nil {
		for i := range answers {
			answers[i].Err = unavailable(ctx, fmt.Sprintf("renew %q", leases[i].Election), err)
		}
		return answers
	}
	defer s.calls.Leave()
	var beats []heartbeat
	for i, c := range leases {
		answers[i].Err = rule.ErrNotRenewed
		if held, ch, ok := s.memory.heartbeat(c, s.open(ctx, c)); ok {
			beats = append(beats, heartbeat{place: i, held: held, due: ch.Before})
		}
	}
	send := s.sendBatch
	if len(leases) == 1 {
		send = s.sendOne
	}
	for i, sent := range send(ctx, beats) {
		answers[beats[i].place] = s.renewed(ctx, beats[i], sent)
	}
	return answers
}

// heartbeat is a heartbeat to be sent.
type heartbeat struct {
	place int       // index of its lease in the call
	held  document  // the known version of the lease
	due   time.Time // the end of the lease
}

// write makes the time of the commit the start of the lease. It increments a counter, because a
// write that changes nothing leaves update_time as it is.
func (b heartbeat) write(d database) *firestorepb.Write {
	return &firestorepb.Write{
		Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{
			Name:   d.lease(b.held.record.Election),
			Fields: values{dueField: instant(b.due), acquiredField: instant(b.held.record.AcquiredAt)},
		}},
		UpdateMask: &firestorepb.DocumentMask{FieldPaths: []string{dueField, acquiredField, renewedField}}, // removes renewedAt
		UpdateTransforms: []*firestorepb.DocumentTransform_FieldTransform{{
			FieldPath:     heartbeatsField,
			TransformType: &firestorepb.DocumentTransform_FieldTransform_Increment{Increment: integer(1)},
		}},
		CurrentDocument: b.held.asSeen(),
	}
}

// written is the outcome of one write of several.
type written struct {
	at  time.Time // when it was committed
	err error
}

// sendOne sends the heartbeat of a single lease, if there is one to send.
func (s *Store) sendOne(ctx context.Context, beats []heartbeat) []written {
	results := make([]written, len(beats))
	for i, b := range beats {
		done, err := s.commit(ctx, b.write(s.database))
		results[i] = written{at: done.updated, err: err}
	}
	return results
}

func (s *Store) sendBatch(ctx context.Context, beats []heartbeat) []written {
	writes := make([]*firestorepb.Write, len(beats))
	for i, b := range beats {
		writes[i] = b.write(s.database)
	}
	results, err := s.batchWrite(ctx, writes)
	if err != nil {
		return slices.Repeat([]written{{err: err}}, len(beats))
	}
	return results
}

// renewed turns the outcome of a heartbeat into an answer.
func (s *Store) renewed(ctx context.Context, b heartbeat, w written) rule.Renewed {
	doc := b.held
	if w.err == nil && w.at.IsZero() { // an OK without a time: the start of the lease is not known
		w.err = status.Error(codes.Unknown, errIncomplete.Error())
	}
	switch {
	case contended(w.err):
		s.memory.forget(doc)
		return rule.Renewed{Err: rule.ErrNotRenewed}
	case w.err != nil:
		return rule.Renewed{Err: unwritten(ctx, fmt.Sprintf("renew %q", doc.record.Election), w.err)}
	}
	doc.updated = w.at
	doc.heartbeats++
	doc.record.HeartbeatAt = rule.StartOf(w.at, b.due, doc.record.LeaseDuration)
	s.memory.remember(doc, w.at)
	return rule.Renewed{
		Record: &doc.record, HeartbeatAt: doc.record.HeartbeatAt,
		Now: w.at, Guard: guard, Ticket: s.ticket(ctx, doc, b.due), Before: b.due,
	}
}

// batchWrite sends writes to different documents, each of which is done or refused by itself. The
// error is for the whole batch.
func (s *Store) batchWrite(ctx context.Context, writes []*firestorepb.Write) ([]written, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	var to peer.Peer
	request := &firestorepb.BatchWriteRequest{Database: string(s.database), Writes: writes}
	reply, err := s.client.BatchWrite(ctx, request, gax.WithGRPCOptions(grpc.Peer(&to)))
	if err != nil {
		return nil, unlessSent(to, err)
	}
	if len(reply.Status) != len(writes) || len(reply.WriteResults) != len(writes) {
		return nil, errIncomplete
	}
	results := make([]written, len(writes))
	for i := range results {
		results[i] = written{at: timeOf(reply.WriteResults[i].GetUpdateTime()), err: status.ErrorProto(reply.Status[i])}
	}
	return results, nil
}
