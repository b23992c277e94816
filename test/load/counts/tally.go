package counts

import (
	"context"
	"path"
	"strings"
	"sync"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/stats"

	"regent/test/proxy"
)

// Tally counts what the calls of a gRPC client ask of Firestore or Spanner. It is a stats.Handler,
// so it also sees calls that are sent again. A call counts once it has ended. The zero value is
// ready.
type Tally struct {
	mu    sync.Mutex // guards all below
	asked Cost
	relay Cost
}

// Take returns what was asked since the last Take. The calls of the relay, which reads the outbox
// and marks what it has announced, are separate: they come at any time.
func (t *Tally) Take() (asked, relay Cost) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, relay = t.asked, t.relay
	t.asked, t.relay = Cost{}, Cost{}
	return asked, relay
}

// call is one RPC under way. grpc reports its parts in order.
type call struct {
	method string
	cost   Cost
	outbox bool   // it is the relay's
	rows   answer // of Spanner's answer
}

type callKey struct{}

// TagRPC implements stats.Handler.
func (t *Tally) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{}, &call{method: path.Base(info.FullMethodName)})
}

// HandleRPC implements stats.Handler.
func (t *Tally) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c := ctx.Value(callKey{}).(*call)
	switch s := s.(type) {
	case *stats.OutPayload:
		c.sent(s.Payload)
	case *stats.InPayload:
		c.got(s.Payload)
	case *stats.End:
		t.add(c)
	}
}

// TagConn implements stats.Handler.
func (t *Tally) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (t *Tally) HandleConn(context.Context, stats.ConnStats) {}

func (t *Tally) add(c *call) {
	c.cost.Calls = proxy.Calls{c.method: 1}
	c.cost.Read += c.rows.rows()
	if c.method == "RunQuery" {
		c.cost.Read = max(c.cost.Read, 1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.outbox {
		t.relay = t.relay.plus(c.cost)
	} else {
		t.asked = t.asked.plus(c.cost)
	}
}

// sent counts a request. Spanner's answer to a commit does not say what was written, so that counts
// here, even if it is refused.
func (c *call) sent(message any) {
	switch m := message.(type) {
	case *firestorepb.RunQueryRequest:
		c.outbox = strings.Contains(m.GetStructuredQuery().GetWhere().String(), outboxField)
	case *firestorepb.BatchWriteRequest:
		c.outbox = len(m.Writes) > 0 && len(m.Writes[0].GetUpdateMask().GetFieldPaths()) == 1 && m.Writes[0].UpdateMask.FieldPaths[0] == outboxField
	case *spannerpb.ExecuteSqlRequest:
		c.outbox = outboxTag(m.GetRequestOptions().GetRequestTag())
	case *spannerpb.ReadRequest:
		c.outbox = outboxTag(m.GetRequestOptions().GetRequestTag())
	case *spannerpb.CommitRequest:
		c.outbox = outboxTag(m.GetRequestOptions().GetTransactionTag())
		for _, mutation := range m.Mutations {
			c.cost.Written += rowsOf(mutation)
		}
	}
}

// outboxField marks an event's document as one to announce.
const outboxField = "unannounced"

// outboxTag reports whether the tag is of a call that reads or marks Spanner's outbox.
func outboxTag(tag string) bool { return strings.HasSuffix(tag, "announced") }

// rowsOf returns how many rows a mutation writes. It cannot count rows that are deleted by a range
// of keys.
func rowsOf(m *spannerpb.Mutation) int {
	write := m.GetInsert()
	for _, other := range []*spannerpb.Mutation_Write{m.GetUpdate(), m.GetInsertOrUpdate(), m.GetReplace()} {
		if write == nil {
			write = other
		}
	}
	return len(write.GetValues())
}

// got counts an answer, or a part of one.
func (c *call) got(message any) {
	switch m := message.(type) {
	case *firestorepb.BatchGetDocumentsResponse:
		if m.Result != nil {
			c.cost.Read++
		}
	case *firestorepb.RunQueryResponse:
		if m.Document != nil {
			c.cost.Read++
		}
	case *firestorepb.CommitResponse:
		c.cost.Written += len(m.WriteResults)
	case *firestorepb.BatchWriteResponse:
		for _, s := range m.Status {
			if s.GetCode() == 0 {
				c.cost.Written++
			}
		}
	case *spannerpb.ResultSet:
		c.cost.Read += len(m.Rows)
		c.cost.Written += int(m.GetStats().GetRowCountExact())
	case *spannerpb.PartialResultSet:
		c.rows.add(m)
		c.cost.Written += int(m.GetStats().GetRowCountExact())
	}
}

// answer counts the values of an answer that comes in parts. A row may be cut anywhere.
type answer struct {
	columns, values int
	cut             bool // the last value goes on in the next part
}

func (a *answer) add(part *spannerpb.PartialResultSet) {
	a.columns = max(a.columns, len(part.GetMetadata().GetRowType().GetFields()))
	a.values += len(part.Values)
	if a.cut && len(part.Values) > 0 {
		a.values--
	}
	a.cut = part.ChunkedValue
}

func (a *answer) rows() int {
	if a.columns == 0 {
		return 0
	}
	return a.values / a.columns
}
