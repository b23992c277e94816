package firestore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/storetest"
)

func since(t *testing.T, s service.Store, after time.Time) []string {
	t.Helper()
	recent, err := s.Since(t.Context(), after, 100)
	require.NoError(t, err)
	var got []string
	for _, e := range recent.Events {
		got = append(got, fmt.Sprint(e.Election, " ", e.Revision))
	}
	return got
}

func (p project) event(e leadership.Election, revision int) string {
	return fmt.Sprintf("%s/events/%020d", p.lease(e), revision)
}

func TestAnEventSaysWhenItWasRequestedAndWhenItMayBeDeleted(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	acquired(t, p.open(t), "jobs")
	doc := p.read(t, p.event("jobs", 1))
	created := doc.CreateTime.AsTime()
	requested := doc.Fields["requestedAt"].GetTimestampValue()
	if at := requested.AsTime(); requested == nil || at.After(created) || at.Before(created.Add(-10*time.Second)) {
		t.Errorf("requestedAt is %v, created at %v; want a timestamp before that, and not by much", doc.Fields["requestedAt"], created)
	}
	if due := dueOf(t, doc); due.Before(created.Add(storetest.History)) || due.After(created.Add(storetest.History+10*time.Minute)) {
		t.Errorf("deleteAfter is %v, created at %v; want %v later, and not much more", due, created, storetest.History)
	}
	for name := range p.read(t, p.lease("jobs")+"/history/newest").Fields {
		if name == "deleteAfter" {
			t.Error("what the record stands on may be deleted")
		}
	}
}

func TestAnEventWhoseCommitTookLongIsNotMissed(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	acquired(t, s, "jobs")
	doc := p.read(t, p.event("jobs", 1))
	created := doc.CreateTime.AsTime()
	for _, took := range []time.Duration{time.Second, time.Minute, 4 * time.Minute} {
		p.write(t, doc.Name, values{"requestedAt": timestamp(created.Add(-took))}, "requestedAt")
		if diff := cmp.Diff([]string{"jobs 1"}, since(t, s, created.Add(-1))); diff != "" {
			t.Errorf("requested %v before (-want +got):\n%s", took, diff)
		}
		if got := since(t, s, created); len(got) > 0 {
			t.Errorf("requested %v before: got %v, want nothing of the instant itself", took, got)
		}
	}
}

func TestAnEventThatCannotBeReadIsNotPassedOver(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	s := p.open(t)
	acquired(t, s, "a", "b", "c")
	p.write(t, p.event("b", 1), values{"type": integer(1)}, "type")
	bad := p.read(t, p.event("b", 1)).CreateTime.AsTime()
	if recent, err := s.Since(t.Context(), bad.Add(-1), 100); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("got %v, %v; want %s", recent.Events, err, leadership.RecordCorrupt)
	}
	if diff := cmp.Diff([]string{"c 1"}, since(t, s, bad)); diff != "" {
		t.Errorf("what came after it (-want +got):\n%s", diff)
	}
}

// many writes documents of others that were requested so long before the instant.
func (p project) many(t *testing.T, n int, before time.Time) {
	t.Helper()
	var writes []*firestorepb.Write
	for i := range n {
		writes = append(writes, &firestorepb.Write{Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{
			Name:   fmt.Sprintf("%s/documents/calendar/x/events/%020d", p.database(), i+1),
			Fields: values{"requestedAt": timestamp(before.Add(-time.Duration(i%200) * time.Second))},
		}}})
	}
	for some := range slices.Chunk(writes, 500) {
		p.commit(t, some...)
	}
}

func TestWhatWasReadBeforeIsCountedAndNotReadAgainUnlessACommitCameLate(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	rpcs := new(storetest.RPCs)
	s := p.open(t, grpc.WithStatsHandler(rpcs))
	acquired(t, s, "a")
	start := p.read(t, p.event("a", 1)).CreateTime.AsTime().Add(-1)
	p.many(t, 2400, start.Add(-20*time.Second))
	const count, read = "RunAggregationQuery", "RunQuery"
	look := func(what string, after time.Time, events []string, calls ...string) {
		t.Helper()
		rpcs.Take()
		if diff := cmp.Diff(events, since(t, s, after)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(calls, rpcs.Take()); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", what, diff)
		}
	}
	look("the first", start, []string{"a 1"}, read, read, read)
	look("the next", start, []string{"a 1"}, count, read)
	acquired(t, s, "b")
	look("with one event more", start.Add(time.Millisecond), []string{"a 1", "b 1"}[1:], count, read)
	look("of longer ago", start.Add(-time.Minute), []string{"a 1", "b 1"}, read, read, read)
	// An event that was committed now, minutes after its request.
	late := p.read(t, p.event("a", 1))
	late.Fields["requestedAt"] = timestamp(start.Add(-time.Minute))
	p.write(t, p.event("c", 1), late.Fields)
	after := p.read(t, p.event("c", 1)).CreateTime.AsTime().Add(-1)
	look("after a late commit", after, []string{"c 1"}, count, read, read, read)
	look("and while it is in sight", after, []string{"c 1"}, read, read, read)
}
