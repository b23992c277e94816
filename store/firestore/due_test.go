package firestore_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"regent/leadership"
	"regent/leadership/service"
)

// documents counts the documents that come in replies, which is what Firestore bills. A document
// that was asked for and is not there counts too.
type documents struct{ n atomic.Int64 }

func (d *documents) HandleRPC(_ context.Context, s stats.RPCStats) {
	in, ok := s.(*stats.InPayload)
	if !ok {
		return
	}
	switch reply := in.Payload.(type) {
	case *firestorepb.RunQueryResponse:
		if reply.Document != nil {
			d.n.Add(1)
		}
	case *firestorepb.BatchGetDocumentsResponse:
		d.n.Add(1)
	}
}

func (d *documents) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (d *documents) HandleConn(context.Context, stats.ConnStats)                       {}
func (d *documents) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// past adds copies of a document.
func (p project) past(tb testing.TB, of leadership.Election, n int) {
	tb.Helper()
	doc := p.read(tb, p.lease(of))
	var writes []*firestorepb.Write
	for i := range n {
		name := p.lease(leadership.Election(fmt.Sprintf("%s-%05d", of, i)))
		writes = append(writes, &firestorepb.Write{Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{Name: name, Fields: doc.Fields}}})
	}
	for some := range slices.Chunk(writes, 500) {
		p.commit(tb, some...)
	}
}

// TestTickReadsOnlyWhatIsHeldAmongTenThousandPastElections counts documents: ten thousand vacant
// elections, some of which are to be retired one day, and three that are held.
func TestTickReadsOnlyWhatIsHeldAmongTenThousandPastElections(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	var read documents
	service := service.New(p.open(t, grpc.WithStatsHandler(&read)))
	lead := func(e leadership.Election) leadership.LeaseRequest {
		g, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", LeaseDuration: time.Hour})
		require.NoError(t, err)
		return leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}
	}
	retiring := leadership.Configure{Election: "retiring"}
	retiring.Config.RetireAfter = time.Hour
	if _, err := service.Do(t.Context(), retiring); err != nil {
		t.Fatal(err)
	}
	for _, e := range []leadership.Election{"retiring", "past"} {
		if _, err := service.Do(t.Context(), leadership.Release{LeaseRequest: lead(e)}); err != nil {
			t.Fatal(err)
		}
		p.past(t, e, 5000)
	}
	for _, e := range []leadership.Election{"a", "b", "c"} {
		lead(e)
	}
	read.n.Store(0)
	if n, err := service.ExpireAll(t.Context()); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if n := read.n.Load(); n != 3 {
		t.Errorf("the ends took %d documents, want the 3 that are held", n)
	}
	read.n.Store(0)
	if n, err := service.RetireAll(t.Context()); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if n := read.n.Load(); n > 2 {
		t.Errorf("the retirements took %d documents, want the 2 that tell the time", n)
	}
}

// TestRenewalTouchesNoIndexedField keeps renewals from paying for the indexes of the tick.
func TestRenewalTouchesNoIndexedField(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	service := service.New(p.open(t))
	g, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
	require.NoError(t, err)
	before := p.read(t, p.lease("jobs")).Fields
	if _, err := service.Renew(t.Context(), leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}); err != nil {
		t.Fatal(err)
	}
	after := p.read(t, p.lease("jobs")).Fields
	for _, name := range []string{"leaderId", "retireAt"} {
		if before[name].String() != after[name].String() {
			t.Errorf("a renewal has changed %s from %v to %v", name, before[name], after[name])
		}
	}
}
