package firestore

import (
	"maps"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

func takeover() leadership.Event {
	return leadership.Event{
		Election:         "jobs",
		Revision:         12,
		Type:             leadership.EventExpired,
		At:               epoch,
		LeaderID:         "bob",
		PreviousLeaderID: "ann",
		Token:            7,
		RequestID:        "r-1",
		Actor:            "ann@example.com",
		Reason:           "because",
		Detail:           `{"n":1}`,
	}
}

// due is when the events of these tests may be deleted.
var due = epoch.AddDate(0, 1, 0)

// stored is an event's document as Firestore keeps it.
func stored(ev leadership.Event) values {
	v := encodeEvent(ev, due)
	v[requestedField] = instant(epoch)
	return v
}

func TestAnEventThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for name := range stored(takeover()) {
		without, other := stored(takeover()), stored(takeover())
		delete(without, name)
		other[name] = &firestorepb.Value{}
		if got, err := decodeEvent(takeover().ID(), other, epoch); err == nil {
			t.Errorf("%s has no type: it is read as %+v", name, got)
		}
		if got, err := decodeEvent(takeover().ID(), without, epoch); err == nil && name != unannouncedField {
			t.Errorf("%s is missing: it is read as %+v", name, got)
		}
	}
	for what, change := range map[string]values{
		"another revision than its name's": {revisionField: integer(13)},
		"no type":                          {typeField: text("")},
		"a token that cannot be":           {tokenField: integer(-1)},
		"an unknown schema":                {schemaField: integer(2)},
		"an unknown field":                 {"note": text("")},
		"a mark that says no":              {unannouncedField: boolean(false)},
		"no time of its request":           {requestedField: instant(time.Time{})},
		"no time when it may be deleted":   {deleteField: instant(time.Time{})},
	} {
		v := stored(takeover())
		maps.Copy(v, change)
		if got, err := decodeEvent(takeover().ID(), v, epoch); err == nil {
			t.Errorf("%s: it is read as %+v", what, got)
		}
	}
}

func TestARequestIDThatIsNotUTF8DoesNotKeepItsChangeFromBeingWritten(t *testing.T) {
	t.Parallel()
	ev := takeover()
	ev.RequestID = "a\xffb"
	got, err := decodeEvent(ev.ID(), unmarshal(t, marshal(t, stored(ev))), epoch)
	if err != nil || got.RequestID != "a\uFFFDb" {
		t.Errorf("got %q, %v", got.RequestID, err)
	}
}

func TestNamesOfEventsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	const d = database("projects/p/databases/(default)")
	for _, id := range []leadership.EventID{{Election: "a", Revision: 1}, {Election: "a.b_c-d", Revision: 1<<63 - 1}} {
		if got, ok := d.parseEvent(d.event(id)); !ok || got != id {
			t.Errorf("%s is read as %v, %v", d.event(id), got, ok)
		}
	}
	const documents = "projects/p/databases/(default)/documents/"
	for _, name := range []string{
		"", documents, documents + "leadership/a", documents + "leadership/a/events", documents + "leadership/a/events/1",
		documents + "leadership/a/events/00000000000000000000", documents + "leadership/a/events/-0000000000000000001",
		documents + "leadership/a/events/+0000000000000000001", documents + "leadership/a/events/99999999999999999999",
		documents + "leadership/a/events/00000000000000000001/x/y", documents + "leadership/A/events/00000000000000000001",
		documents + "leadership//events/00000000000000000001", documents + "leadership/a/history/newest",
		documents + "other/a/events/00000000000000000001", "projects/q/databases/(default)/documents/leadership/a/events/00000000000000000001",
	} {
		if got, ok := d.parseEvent(name); ok {
			t.Errorf("%s is read as %v", name, got)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add("leadership/jobs/events/00000000000000000012", marshal(f, stored(takeover())))
	f.Add("leadership/jobs/events/00000000000000000013", marshal(f, stored(takeover())))
	f.Add("leadership/jobs/events/12", marshal(f, values{schemaField: integer(1)}))
	const d = database("projects/p/databases/(default)")
	f.Fuzz(func(t *testing.T, path string, fields []byte) {
		name := d.documents() + "/" + path
		id, ok := d.parseEvent(name)
		if !ok {
			return
		}
		if d.event(id) != name {
			t.Errorf("%s is read as %v", name, id)
		}
		ev, err := decodeEvent(id, unmarshal(t, fields), epoch)
		if err != nil {
			return
		}
		again, err := decodeEvent(id, stored(ev), epoch) // also what was of the schema before
		if diff := cmp.Diff(ev, again); err != nil || diff != "" {
			t.Errorf("read, written and read again: %v (-want +got):\n%s", err, diff)
		}
	})
}
