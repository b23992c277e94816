package counts

import (
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"regent/test/proxy"
)

// tallied returns what a call of that method is counted as.
func tallied(t *testing.T, method string, events ...stats.RPCStats) (asked, relay Cost) {
	t.Helper()
	tally := new(Tally)
	ctx := tally.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: "/google.some.v1.Service/" + method})
	for _, e := range append(events, &stats.End{}) {
		tally.HandleRPC(ctx, e)
	}
	return tally.Take()
}

func got(message any) stats.RPCStats { return &stats.InPayload{Payload: message} }

func sent(message any) stats.RPCStats { return &stats.OutPayload{Payload: message} }

// part is a part of an answer of two columns.
func part(values int, cut bool) stats.RPCStats {
	p := &spannerpb.PartialResultSet{ChunkedValue: cut}
	for range values {
		p.Values = append(p.Values, structpb.NewStringValue("x"))
	}
	return got(p)
}

func TestRowsCutAnywhereAreCounted(t *testing.T) {
	t.Parallel()
	fields := []*spannerpb.StructType_Field{{Name: "a"}, {Name: "b"}}
	head := got(&spannerpb.PartialResultSet{Metadata: &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{Fields: fields}}})
	// Three rows: of the second the first value comes in three pieces.
	asked, _ := tallied(t, "ExecuteStreamingSql", head, part(3, true), part(1, true), part(2, false), part(2, false))
	if asked.Read != 3 || asked.Calls.String() != (proxy.Calls{"ExecuteStreamingSql": 1}).String() {
		t.Errorf("counted: %+v", asked)
	}
}

func TestRefusedWritesOfABatchAreNotCounted(t *testing.T) {
	t.Parallel()
	reply := new(firestorepb.BatchWriteResponse)
	for _, code := range []codes.Code{codes.OK, codes.FailedPrecondition, codes.OK} {
		reply.Status = append(reply.Status, status.New(code, "").Proto())
	}
	if asked, _ := tallied(t, "BatchWrite", got(reply)); asked.Written != 2 {
		t.Errorf("counted: %+v", asked)
	}
}

func TestMissingDocumentAndEmptyQueryCountAsRead(t *testing.T) {
	t.Parallel()
	missing := &firestorepb.BatchGetDocumentsResponse{Result: &firestorepb.BatchGetDocumentsResponse_Missing{Missing: "x"}}
	if asked, _ := tallied(t, "BatchGetDocuments", got(missing)); asked.Read != 1 {
		t.Errorf("a missing document: %+v", asked)
	}
	if asked, _ := tallied(t, "RunQuery", got(&firestorepb.RunQueryResponse{})); asked.Read != 1 {
		t.Errorf("an empty query: %+v", asked)
	}
}

func TestRelayIsCountedApart(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]bool{"unannounced": true, "announced": true, "renew": false} {
		options := &spannerpb.RequestOptions{RequestTag: "app=regent,action=" + action}
		for _, message := range []any{&spannerpb.ExecuteSqlRequest{RequestOptions: options}, &spannerpb.ReadRequest{RequestOptions: options}} {
			asked, relay := tallied(t, "ExecuteStreamingSql", sent(message))
			if (relay.RPCs() == 1) != want || (asked.RPCs() == 0) != want {
				t.Errorf("%s, %T: asked %v, of the relay %v", action, message, asked.Calls, relay.Calls)
			}
		}
	}
}
