package firestore_test

import (
	"context"
	"fmt"
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

// Of the documents of vacant elections, some of which are to be retired one day, a tick reads none.
func TestATickReadsOnlyWhatIsHeld(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	var read documents
	service := service.New(p.open(t, grpc.WithStatsHandler(&read)))
	lead := func(e leadership.Election) leadership.LeaseRequest {
		g, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", LeaseDuration: time.Hour})
		require.NoError(t, err)
		return leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}
	}
	for i := range 10 {
		e := leadership.Election(fmt.Sprint("past-", i))
		_, err := service.Do(t.Context(), leadership.Configure{Election: e, Config: leadership.Config{RetireAfter: time.Duration(i%2) * time.Hour}})
		require.NoError(t, err)
		_, err = service.Do(t.Context(), leadership.Release{LeaseRequest: lead(e)})
		require.NoError(t, err)
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
