package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// scanned are replies as servers write them, all of which are read without reflection.
func scanned(t testing.TB) (texts []string, into []func() any) {
	t.Helper()
	add := func(v any, fresh func() any) {
		text, err := Marshal(v)
		require.NoError(t, err)
		texts, into = append(texts, string(text), string(text)+"\n"), append(into, fresh, fresh)
	}
	noted, bare, ticketed := held(), held(), held()
	noted.Note, noted.Config.MaxLeaseDuration, noted.Config.RetireAfter = "from Monday on", time.Hour, 24*time.Hour
	bare.Metadata, bare.AcquiredAt = "", time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	ticketed.Ticket, ticketed.LeaderID = "AbC-_123", "agent-8"
	reported := held()
	reported.EndsBy, reported.EndsBecause, reported.EndsIn = reported.LeaseExpiration, leadership.EndsStuck, time.Second
	reported.Report, reported.ReportedAt, reported.ReportAge = `{"progress":412,"eta":"20m","dependencies":{"bq":"ok"}}`, reported.LastHeartbeat, time.Second
	results := Results{}
	for _, l := range []leadership.Lease{held(), held(), noted, bare, ticketed, reported, reported, vacant(), limited()} {
		add(NewLease(l), func() any { return new(Lease) })
		add(NewReading(leadership.Reading{Lease: l, Bound: time.Second}), func() any { return new(Lease) })
		add(NewGrant(leadership.Grant{Lease: l, Key: leadership.Key{1}, Waited: time.Minute}), func() any { return new(Grant) })
		results.Results = append(results.Results, Result{Election: l.Election, Lease: new(NewLease(l))})
		add(results, func() any { return new(Results) })
	}
	return texts, into
}

func TestUsualRepliesAreReadWithoutReflection(t *testing.T) {
	t.Parallel()
	texts, into := scanned(t)
	for i, text := range texts {
		got, want := into[i](), into[i]()
		if !read([]byte(text), got) {
			t.Errorf("not read: %s", text)
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(text), want))
		assert.Empty(t, cmp.Diff(want, got), "%s (-json +read)", text)
	}
}

// requireReadAlike requires that each document is read without reflection only if json takes the
// text for it, as a request and as a reply, and with the same meaning. It returns which are.
func requireReadAlike(t *testing.T, text string) (taken map[reflect.Type]bool) {
	t.Helper()
	taken = map[reflect.Type]bool{}
	for i, got := range documents() {
		want := documents()[i]
		if read([]byte(text), got) {
			taken[reflect.TypeOf(got)] = true
			require.NoError(t, json.Unmarshal([]byte(text), want), "%q is read as %T, but json", text, got)
			require.NoError(t, decodeAny([]byte(text), documents()[i]), "%q is read as %T,", text, got)
		}
		if !reflect.DeepEqual(want, got) {
			diff := cmp.Diff(want, got)
			t.Fatalf("%q (read: %v; -json +read)\n%s", text, taken, diff)
		}
	}
	return taken
}

func TestNothingIsReadThatJSONRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "{}", "null", `{"results":null}`, `{"results":[]}`, `{"results":[{}]}`, `{"results":[{"election":"a"}]}`, `{"results":[{"election":"a","lease":{}}]}`,
		`{"results":[{"lease":{"state":"held"},"election":"a"}]}`, `{"results":[{"election":"a","lease":{"metadata":{"b":"","a":""}}}]}`,
		`{"results":[],"results":[]}`, `{"key":"","key":""}`, `{"metadata":{"":"","":""}}`, `{"fencingToken":01}`, `{"fencingToken":1e2}`, `{"leaseDuration":"030s"}`,
		`{"readAt":"2027-02-29T12:00:00Z"}`, `{"readAt":"2027-03-01T12:00:00.Z"}`, `{"readAt":"2027-03-01T24:00:00Z"}`, `{"readAt":"2027-03-01T12:00:00,5Z"}`,
	} {
		requireReadAlike(t, text)
	}
	texts, _ := scanned(t)
	reported := texts[slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, `"report"`) })]
	for _, text := range []string{texts[4], texts[6], reported} { // a grant, a batch, and a lease with a report
		for i := range text {
			requireReadAlike(t, text[:i])
			requireReadAlike(t, text[:i]+text[i+1:])
			for _, c := range []string{`"`, `\`, "{", "}", "[", "]", ",", ":", "0", "9", "-", ".", " ", "\n", "\x00", "\xff", "é", "Z", "e", "null", `,"deleted":true`, `"deleted":false,`} {
				requireReadAlike(t, text[:i]+c+text[i:])
				requireReadAlike(t, text[:i]+c+text[i+1:])
			}
		}
	}
}

func FuzzReadAgreesWithJSON(f *testing.F) {
	texts, _ := scanned(f)
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { requireReadAlike(t, text) })
}

func FuzzAppendRenewals(f *testing.F) {
	f.Add("planner", "agent-7", []byte{1, 2}, int64(7), "ticket")
	f.Add("<&\u2028>", "\xff\x00\"\\", []byte{}, int64(-1), "")
	f.Fuzz(func(t *testing.T, election, candidate string, key []byte, token int64, ticket string) {
		r := leadership.LeaseRequest{Election: leadership.Election(election), CandidateID: leadership.CandidateID(candidate), Token: leadership.Token(token), Ticket: leadership.Ticket(ticket)}
		copy(r.Key[:], key)
		requireWrittenAlike(t, NewLeaseRequest(r))
		for n := range 3 {
			w := NewRenewals([]leadership.LeaseRequest{r, {Election: "other"}}[:n])
			requireWrittenAlike(t, w)
			for i, r := range []leadership.LeaseRequest{r, {Election: "other"}}[:n] {
				if got, want := w.Renewals[i].Value, (Renewal{r.Election, NewLeaseRequest(r)}); !cmp.Equal(got, want) {
					t.Errorf("an entry is %+v, want %+v", got, want)
				}
			}
		}
	})
}
