package wire

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// BenchmarkDocuments writes and reads the documents of a leader's calls, as this package does and
// by package json alone.
func BenchmarkDocuments(b *testing.B) {
	lease := NewLease(held())
	grant := Grant{Lease: lease}
	event := NewEvent(leadership.Event{
		Election: "planner", Revision: 8, Type: "leader_elected", At: lease.LastHeartbeat, LeaderID: "agent-7", Token: 4, RequestID: "2f1c9a7be0d14c55", Actor: "planner@example.com",
	})
	request := leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Token: 4, Ticket: "AbC-_123", Report: []byte(`{"progress":412,"eta":"20m"}`)}
	acquire := AcquireRequest{CandidateID: "agent-7", LeaseDuration: new(lease.LeaseDuration), Metadata: lease.Metadata, Wait: lease.LeaseDuration}
	batch := make([]leadership.LeaseRequest, 100)
	var results Results
	for i := range batch {
		batch[i] = request
		results.Results = append(results.Results, Result{Election: "planner", Lease: &lease})
	}
	renewals := NewRenewals(batch)
	write := func(name string, v any) {
		b.Run("write/"+name+"/wire", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Marshal(v)
			}
		})
		b.Run("write/"+name+"/json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				json.MarshalWrite(bytes.NewBuffer(make([]byte, 0, usual)), v, jsontext.AllowInvalidUTF8(true))
			}
		})
	}
	write("lease", &lease)
	write("grant", &grant)
	write("event", event)
	write("result", &results.Results[0])
	write("renewal", NewLeaseRequest(request))
	write("acquire", acquire)
	write("renewals", renewals)
	b.Run("write/renewals/call", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Marshal(NewRenewals(batch))
		}
	})
	read := func(name string, v any, fresh func() any, alone func([]byte, any) error, fast func([]byte, any) error) {
		text, err := Marshal(v)
		require.NoError(b, err)
		for how, read := range map[string]func([]byte, any) error{"wire": fast, "json": alone} {
			b.Run("read/"+name+"/"+how, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					require.NoError(b, read(text, fresh()))
				}
			})
		}
	}
	unmarshal := func(text []byte, into any) error { return json.Unmarshal(text, into) }
	read("lease", &lease, func() any { return new(Lease) }, unmarshal, Unmarshal)
	read("grant", &grant, func() any { return new(Grant) }, unmarshal, Unmarshal)
	read("event", event, func() any { return new(Event) }, unmarshal, Unmarshal)
	read("results", results, func() any { return new(Results) }, unmarshal, Unmarshal)
	read("renewal", NewLeaseRequest(request), func() any { return new(LeaseRequest) }, decodeAny, Decode)
	read("acquire", acquire, func() any { return new(AcquireRequest) }, decodeAny, Decode)
	read("renewals", renewals, func() any { return new(Renewals) }, decodeAny, Decode)
}
