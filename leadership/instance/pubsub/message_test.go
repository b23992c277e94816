package pubsub_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"regent/leadership"
	"regent/leadership/instance/pubsub"
)

func takeover() leadership.Event {
	return leadership.Event{
		Election: "reports", Revision: 12, Type: leadership.EventAcquired, At: epoch, LeaderID: "ann", PreviousLeaderID: "bob", Token: 7, RequestID: "req-1",
		Actor: "ann@example.com", Reason: "because", Detail: `{"n":1}`,
	}
}

func TestAMessageIsWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	m := encode(t, takeover())
	var got map[string]any
	require.NoError(t, json.Unmarshal(m.Data, &got))
	want := map[string]any{
		"v": 1.0, "election": "reports", "revision": 12.0, "type": "acquired", "at": "2026-03-01T12:00:00.123456Z",
		"leaderId": "ann", "previousLeaderId": "bob", "fencingToken": 7.0, "requestId": "req-1",
		"actor": "ann@example.com", "reason": "because", "detail": map[string]any{"n": 1.0},
	}
	assert.Empty(t, cmp.Diff(want, got), "data (-want +got)")
	attributes := map[string]string{"election": "reports", "revision": "12", "type": "acquired", "leaderId": "ann", "fencingToken": "7"}
	assert.Empty(t, cmp.Diff(attributes, m.Attributes), "attributes (-want +got)")
	assert.EqualValues(t, "reports", m.OrderingKey, "the ordering key")
}

func TestEveryEventIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, kind := range []leadership.EventType{
		leadership.EventAcquired, leadership.EventUpdated, leadership.EventReleased, leadership.EventExpired,
		leadership.EventConfigured, leadership.EventDeleted, leadership.EventRecreated, "handedOver",
	} {
		for _, leader := range []leadership.CandidateID{"", "ann", "A-z_0.9@b:c"} {
			want := takeover()
			want.Type, want.LeaderID, want.PreviousLeaderID, want.Token, want.RequestID = kind, leader, leader, leadership.MaxToken, ""
			m := encode(t, want)
			if _, ok := m.Attributes["leaderId"]; ok != (leader != "") {
				t.Errorf("with the leader %q the attribute leaderId is %q", leader, m.Attributes["leaderId"])
			}
			got, err := pubsub.Decode(m)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
	}
}

func TestUnknownMembersOfLaterVersionsAreSkipped(t *testing.T) {
	t.Parallel()
	m := encode(t, takeover())
	m.Data = []byte(strings.Replace(string(m.Data), "{", `{"region":{"name":"eu"},`, 1))
	m.Attributes["region"] = "eu"
	if got, err := pubsub.Decode(m); err != nil || got != takeover() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// strangers are messages that are not events, named by their fault.
func strangers(tb testing.TB) map[string]*pubsubpb.PubsubMessage {
	found := map[string]*pubsubpb.PubsubMessage{
		"an empty one":     {Data: []byte(""), Attributes: map[string]string{"a": "b"}},
		"text":             {Data: []byte("hello")},
		"another document": {Data: []byte(`{"kind":"storage#object","v":1}`)},
		"null":             {Data: []byte("null")},
		"a list":           {Data: []byte("[]")},
		"a deep list":      {Data: []byte(strings.Repeat("[", 20_000))},
	}
	spoil := func(what string, f func(*pubsubpb.PubsubMessage)) {
		m := encode(tb, takeover())
		f(m)
		found[what] = m
	}
	for _, name := range []string{"election", "revision", "type", "fencingToken", "leaderId"} {
		spoil("no attribute "+name, func(m *pubsubpb.PubsubMessage) { delete(m.Attributes, name) })
		spoil("another attribute "+name, func(m *pubsubpb.PubsubMessage) { m.Attributes[name] += "0" })
	}
	spoil("no attributes", func(m *pubsubpb.PubsubMessage) { m.Attributes = nil })
	spoil("no ordering key", func(m *pubsubpb.PubsubMessage) { m.OrderingKey = "" })
	spoil("another ordering key", func(m *pubsubpb.PubsubMessage) { m.OrderingKey = "others" })
	spoil("something after it", func(m *pubsubpb.PubsubMessage) { m.Data = append(m.Data, "{}"...) })
	spoil("cut off", func(m *pubsubpb.PubsubMessage) { m.Data = m.Data[:len(m.Data)-1] })
	spoil("far too long", func(m *pubsubpb.PubsubMessage) { m.Data = append(m.Data, strings.Repeat(" ", 64<<10)...) })
	for what, f := range map[string]func(*leadership.Event){
		"a bad election":        func(e *leadership.Event) { e.Election = "../etc" },
		"no election":           func(e *leadership.Event) { e.Election = "" },
		"a long election":       func(e *leadership.Event) { e.Election = leadership.Election(strings.Repeat("a", 129)) },
		"a bad leader":          func(e *leadership.Event) { e.LeaderID = "ann smith" },
		"a bad previous leader": func(e *leadership.Event) { e.PreviousLeaderID = "<b>" },
		"revision 0":            func(e *leadership.Event) { e.Revision = 0 },
		"a negative revision":   func(e *leadership.Event) { e.Revision = -1 },
		"a revision too far":    func(e *leadership.Event) { e.Revision = 1 << 53 },
		"a negative token":      func(e *leadership.Event) { e.Token = -1 },
		"a token too far":       func(e *leadership.Event) { e.Token = leadership.MaxToken + 1 },
		"no type":               func(e *leadership.Event) { e.Type = "" },
		"a type with a space":   func(e *leadership.Event) { e.Type = "not a type" },
		"a long type":           func(e *leadership.Event) { e.Type = leadership.EventType(strings.Repeat("a", 65)) },
		"no time":               func(e *leadership.Event) { e.At = time.Time{} },
	} {
		e := takeover()
		f(&e)
		found[what] = encode(tb, e)
	}
	for _, version := range []string{"0", "2", `"1"`} {
		spoil("version "+version, func(m *pubsubpb.PubsubMessage) {
			m.Data = []byte(strings.Replace(string(m.Data), `"v":1`, `"v":`+version, 1))
		})
	}
	spoil("a time before the calendar", func(m *pubsubpb.PubsubMessage) {
		m.Data = []byte(strings.Replace(string(m.Data), "2026-03-01T12:00:00.123456Z", "0001-01-01T00:00:00+01:00", 1))
	})
	spoil("a time after the calendar", func(m *pubsubpb.PubsubMessage) {
		m.Data = []byte(strings.Replace(string(m.Data), "2026-03-01T12:00:00.123456Z", "9999-12-31T23:59:59-01:00", 1))
	})
	return found
}

func TestMessageThatIsNoEventIsRefused(t *testing.T) {
	t.Parallel()
	for what, m := range strangers(t) {
		if got, err := pubsub.Decode(m); err == nil {
			t.Errorf("%s: it is read as %+v", what, got)
		}
	}
	if got, err := pubsub.Decode(nil); err == nil {
		t.Errorf("nothing is read as %+v", got)
	}
}

// FuzzMessage looks for a message that breaks the reader, or that it reads otherwise than it was
// meant.
func FuzzMessage(f *testing.F) {
	add := func(m *pubsubpb.PubsubMessage) {
		a := m.Attributes
		f.Add(m.Data, m.OrderingKey, a["election"], a["type"], a["fencingToken"], a["revision"], a["leaderId"])
	}
	add(encode(f, takeover()))
	for _, m := range strangers(f) {
		if len(m.Data) < 1<<10 {
			add(m)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, key, election, kind, token, revision, leader string) {
		m := &pubsubpb.PubsubMessage{Data: data, OrderingKey: key, Attributes: map[string]string{
			"election": election, "type": kind, "fencingToken": token, "revision": revision, "leaderId": leader,
		}}
		e, err := pubsub.Decode(m)
		if err != nil {
			return
		}
		again := encode(t, e)
		maps.DeleteFunc(m.Attributes, func(_, value string) bool { return value == "" })
		if !maps.Equal(again.Attributes, m.Attributes) || again.OrderingKey != key {
			t.Errorf("%v is written again with %v", m, again.Attributes)
		}
		if got, err := pubsub.Decode(again); err != nil || got != e {
			t.Errorf("%+v is written and read as %+v, %v", e, got, err)
		}
	})
}

func encode(tb testing.TB, e leadership.Event) *pubsubpb.PubsubMessage {
	tb.Helper()
	m, err := pubsub.Encode(e)
	require.NoError(tb, err)
	return proto.CloneOf(m)
}
