package firestore

import (
	"bytes"
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"regent/leadership"
	"regent/leadership/rule"
)

const ticketDatabase = database("projects/p/databases/(default)")

// sealing is a handle that knows a secret and sends nothing.
func sealing(tb testing.TB, seed byte) *Store {
	tb.Helper()
	return &Store{database: ticketDatabase, memory: newMemory(4), sealer: sealer{keys: ringOf(tb, seed, 0), tried: true, asked: epoch.Add(time.Hour)}}
}

// ringOf is a ring of a key and, unless that is 0, the one before it.
func ringOf(tb testing.TB, newest, previous byte) keyring {
	tb.Helper()
	var ring keyring
	for seed, k := range map[byte]*sealKey{newest: &ring.newest, previous: &ring.previous} {
		if seed == 0 {
			continue
		}
		key, err := newSealKey(bytes.Repeat([]byte{seed}, secretBytes))
		require.NoError(tb, err)
		*k = key
	}
	return ring
}

// ticketed is a renewal of the lease with a ticket of it.
func (s *Store) ticketed(tb testing.TB, doc document, due time.Time) rule.Renewal {
	tb.Helper()
	c := renewalOf(doc.record)
	if c.Ticket = s.ticket(tb.Context(), doc, due); c.Ticket == "" {
		tb.Fatal("there is no ticket")
	}
	return c
}

// grantedAt is the version that a grant at epoch+n seconds left.
func grantedAt(e leadership.Election, n int) document {
	doc := version(e, n)
	doc.record.AcquiredAt = doc.updated
	return doc
}

func withMetadata(doc document, bytes int) document {
	doc.record.Metadata = leadership.Metadata(`{"m":"` + strings.Repeat("x", bytes-len(`{"m":""}`)) + `"}`)
	return doc
}

func TestATicketHasTheLeaseAsItsHeartbeatLeftIt(t *testing.T) {
	t.Parallel()
	s := sealing(t, 1)
	granted := grantedAt("jobs", 0)
	renewed := granted
	renewed.record.HeartbeatAt = granted.updated
	limited := granted
	limited.record.EndsBy, limited.record.EndsBecause = epoch.Add(time.Hour), leadership.EndsMaxTerm
	for what, c := range map[string]struct {
		doc document
		due time.Time
	}{
		"a grant":                   {granted, time.Time{}},
		"a renewal":                 {renewed, granted.record.LeaseEnd()},
		"a lease that ends by then": {limited, time.Time{}},
		"metadata that fit in":      {withMetadata(granted, 250), time.Time{}},
	} {
		if got := s.open(t.Context(), s.ticketed(t, c.doc, c.due)); got != c.doc {
			t.Errorf("%s: got %+v\nwant %+v", what, got, c.doc)
		}
	}
}

func TestATicketHasAtMostOneKiB(t *testing.T) {
	t.Parallel()
	s := sealing(t, 1)
	doc := grantedAt(leadership.Election(strings.Repeat("e", 128)), 0)
	doc.record.LeaderID = leadership.CandidateID(strings.Repeat("c", 128))
	doc.record.EndsBy, doc.record.EndsBecause = epoch.Add(time.Hour), leadership.EndReason(strings.Repeat("b", 64))
	doc.record.Token, doc.record.Revision, doc.heartbeats = leadership.MaxToken, math.MaxInt64, math.MaxInt64-1
	doc.record.Standing.Note = strings.Repeat("n", 256)
	doc.record.Policy.Unknown = `{"x":"` + strings.Repeat("p", 10<<10) + `"}`
	for _, metadata := range []int{10, 100, 300, 4 << 10} {
		doc := withMetadata(doc, metadata)
		c := s.ticketed(t, doc, doc.record.LeaseEnd())
		if len(c.Ticket) > leadership.MaxTicketBytes {
			t.Errorf("metadata of %d bytes: a ticket of %d bytes", metadata, len(c.Ticket))
		}
		s.memory = newMemory(4)
		if got := s.open(t.Context(), c); got != (document{}) {
			t.Errorf("a handle that never read the lease has made it up: %+v", got)
		}
		older := doc
		older.updated, older.record.HeartbeatAt, older.heartbeats = doc.updated.Add(-time.Second), doc.updated.Add(-time.Second), 1
		s.memory.remember(older, epoch)
		if got := s.open(t.Context(), c); got.updated != doc.updated || got.record != doc.record {
			t.Errorf("a handle that remembers what was left out: got %+v\nwant %+v", got, doc)
		}
		s.memory = newMemory(4)
		s.memory.remember(withMetadata(older, metadata+1), epoch)
		if got := s.open(t.Context(), c); got != (document{}) {
			t.Errorf("a handle that remembers other metadata renews: %+v", got)
		}
	}
}

func TestATicketOpensForNothingButItsOwnLease(t *testing.T) {
	t.Parallel()
	s := sealing(t, 1)
	doc := grantedAt("jobs", 0)
	right := s.ticketed(t, doc, time.Time{})
	s.memory.remember(version("else", 0), epoch)
	if _, _, ok := s.memory.heartbeat(right, s.open(t.Context(), right)); !ok {
		t.Fatal("it does not renew its own lease")
	}
	sealed, err := base64.RawURLEncoding.DecodeString(string(right.Ticket))
	require.NoError(t, err)
	text := string(right.Ticket)
	another, elsewhere := sealing(t, 2), sealing(t, 1)
	elsewhere.database = "projects/p/databases/other"
	tickets := map[string]leadership.Ticket{
		"empty":                "",
		"no ticket":            "ticket",
		"cut short":            right.Ticket[:len(right.Ticket)-4],
		"cut at its front":     right.Ticket[4:],
		"its header alone":     right.Ticket[:6],
		"longer":               right.Ticket + "AAAA",
		"padded":               right.Ticket + "=",
		"of another alphabet":  leadership.Ticket(base64.RawStdEncoding.EncodeToString(append(sealed, 0xfb, 0xef, 0xbe))),
		"with a line break":    leadership.Ticket(text[:8] + "\n" + text[8:]),
		"over 1 KiB":           leadership.Ticket(strings.Repeat("A", leadership.MaxTicketBytes+1)),
		"of another secret":    another.ticketed(t, doc, time.Time{}).Ticket,
		"of another database":  elsewhere.ticketed(t, doc, time.Time{}).Ticket,
		"of another election":  s.ticketed(t, version("other", 0), time.Time{}).Ticket,
		"not in this alphabet": "ä" + right.Ticket[2:],
	}
	for i := range sealed {
		forged := bytes.Clone(sealed)
		forged[i] ^= 1
		tickets["forged at byte "+string(rune('0'+i%10))+strings.Repeat("+", i/10)] = leadership.Ticket(base64.RawURLEncoding.EncodeToString(forged))
	}
	for what, ticket := range tickets {
		c := right
		c.Ticket = ticket
		if _, _, ok := s.memory.heartbeat(c, s.open(t.Context(), c)); ok {
			t.Errorf("a ticket %s renews", what)
		}
	}
	for what, spoil := range map[string]func(*rule.Renewal){
		"election":  func(c *rule.Renewal) { c.Election = "other" },
		"candidate": func(c *rule.Renewal) { c.CandidateID = "eve" },
		"key":       func(c *rule.Renewal) { c.KeyHash[31]++ },
		"token":     func(c *rule.Renewal) { c.Token++ },
	} {
		c := right
		spoil(&c)
		if _, _, ok := s.memory.heartbeat(c, s.open(t.Context(), c)); ok {
			t.Errorf("a ticket renews for another %s", what)
		}
	}
}

func TestATicketOfALeaseThatIsOverOrNeedsANewerProgramDoesNotRenew(t *testing.T) {
	t.Parallel()
	s := sealing(t, 1)
	doc := grantedAt("jobs", 0)
	c := s.ticketed(t, doc, time.Time{})
	s.memory.remember(version("other", 60), doc.record.LeaseEnd())
	if _, _, ok := s.memory.heartbeat(c, s.open(t.Context(), c)); ok {
		t.Error("it renews a lease that is over by the store's time")
	}
	newer := sealing(t, 1)
	newer.codec = rule.Codec{Next: true}
	doc.record.Policy.Description, doc.record.Needs = "x", newer.codec.Program()
	c = newer.ticketed(t, doc, time.Time{})
	if got := newer.open(t.Context(), c); got != doc {
		t.Errorf("the program that it needs: got %+v, want %+v", got, doc)
	}
	if got := s.open(t.Context(), c); got != (document{}) {
		t.Errorf("an older program would renew %+v", got)
	}
}

func TestTheKeyBeforeStillOpensTickets(t *testing.T) {
	t.Parallel()
	s := sealing(t, 1)
	doc := grantedAt("jobs", 0)
	c := s.ticketed(t, doc, time.Time{})
	s.sealer.keys = ringOf(t, 2, 1)
	if got := s.open(t.Context(), c); got != doc {
		t.Errorf("one rotation later: got %+v, want %+v", got, doc)
	}
	if next := s.ticketed(t, doc, time.Time{}); next.Ticket[:6] == c.Ticket[:6] {
		t.Error("it is sealed with the key before")
	}
	s.sealer.keys = ringOf(t, 3, 2)
	if got := s.open(t.Context(), c); got != (document{}) {
		t.Errorf("two rotations later it opens: %+v", got)
	}
}

// A field that a ticket does not know would be lost in the next one, so then there is none.
func TestATicketHasEveryFieldOfALeaseDocument(t *testing.T) {
	t.Parallel()
	all := values{renewedField: nil, dueField: nil}
	maps.Copy(all, encodeRecord(heldRecord(), rule.Carried{}, 0, writeOf{}))
	got, want := slices.Sorted(slices.Values(ticketFields())), slices.Sorted(maps.Keys(all))
	if !slices.Equal(got, want) {
		t.Errorf("tickets have %v\na document has %v; add what is missing to ticketFields, and raise ticketForm", got, want)
	}
	doc := grantedAt("jobs", 0)
	v := encodeRecord(doc.record, rule.Carried{}, 0, writeOf{heartbeat: true})
	v["new"] = integer(1)
	if _, err := pack(doc, v, true); err == nil {
		t.Error("a field is dropped")
	}
}

func FuzzTicket(f *testing.F) {
	s := sealing(f, 1)
	doc := grantedAt("jobs", 0)
	right := s.ticketed(f, doc, time.Time{})
	f.Add(string(right.Ticket), []byte{})
	f.Add(string(right.Ticket[:20]), []byte{0x0a, 0x00})
	f.Add("", []byte("x"))
	f.Fuzz(func(t *testing.T, text string, plain []byte) {
		c := right
		c.Ticket = leadership.Ticket(text)
		sealed, _ := base64.RawURLEncoding.DecodeString(text)
		if got := s.open(t.Context(), c); got != (document{}) && (got != doc || base64.RawURLEncoding.EncodeToString(sealed) != text) {
			t.Errorf("%q opens: %+v", text, got)
		}
		// what only a handle that knows the secret could have sealed
		if got, err := s.unpack(plain); err == nil {
			again, err := s.values(got, writeOf{heartbeat: true})
			if err != nil {
				t.Fatalf("%+v cannot be written: %v", got, err)
			}
			if _, err := pack(got, again, true); err != nil {
				t.Errorf("%+v: %v", got, err)
			}
		}
		var values firestorepb.ArrayValue
		if proto.Unmarshal(plain, &values) == nil {
			c.Ticket = s.sealer.keys.newest.seal(s.database, plain)
			s.open(t.Context(), c) // does not panic
		}
	})
}
