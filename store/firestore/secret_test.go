package firestore_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
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

// counted is a service on a handle of its own, whose RPCs are counted.
type counted struct {
	*service.Service
	rpcs *storetest.RPCs
}

func (p project) counted(t *testing.T) counted {
	t.Helper()
	rpcs := new(storetest.RPCs)
	return counted{service.New(p.open(t, grpc.WithStatsHandler(rpcs))), rpcs}
}

// warm lets the handle read the secret of tickets.
func (c counted) warm(t *testing.T, e leadership.Election) counted {
	t.Helper()
	if _, err := c.Acquire(t.Context(), newAgent("warm").ask(e)); err != nil {
		t.Fatal(err)
	}
	return c
}

// renew renews with the ticket of the last reply, and returns the next one.
func (c counted) renew(t *testing.T, r leadership.LeaseRequest, want ...string) leadership.Ticket {
	t.Helper()
	c.rpcs.Take()
	l, err := c.Renew(t.Context(), r)
	require.NoError(t, err)
	if diff := cmp.Diff(want, c.rpcs.Take()); diff != "" {
		t.Errorf("RPCs (-want +got):\n%s", diff)
	}
	if l.Ticket == "" {
		t.Error("the reply has no ticket")
	}
	return l.Ticket
}

func TestALostTicketCostsOneRead(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	here, there := p.counted(t).warm(t, "w1"), p.counted(t).warm(t, "w2")
	ann := newAgent("ann")
	g, err := here.Acquire(t.Context(), ann.ask("jobs"))
	require.NoError(t, err)
	r := ann.lease("jobs", g.Token)
	there.renew(t, r, "BatchGetDocuments", "Commit")
	r.Ticket = "forged"
	here.renew(t, r, "Commit", "BatchGetDocuments", "Commit") // what it remembers is out of date, too
	r.Ticket = g.Ticket
	there.renew(t, r, "Commit", "BatchGetDocuments", "Commit")
}

func TestHandlesThatCreateTheSecretAtOnceAgreeOnOne(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	const n = 8
	var handles [n]counted
	var tickets [n]leadership.LeaseRequest
	ann := newAgent("ann")
	var all sync.WaitGroup
	for i := range n {
		handles[i] = p.counted(t)
		all.Go(func() {
			e := leadership.Election("jobs" + string(rune('0'+i)))
			g, err := handles[i].Acquire(t.Context(), ann.ask(e))
			if err != nil {
				t.Error(err)
			}
			tickets[i] = ann.lease(e, g.Token)
			tickets[i].Ticket = g.Ticket
		})
	}
	all.Wait()
	for i := range n {
		handles[(i+1)%n].renew(t, tickets[i], "Commit")
	}
}

const secretName = "/documents/leadershipTickets/secret"

func TestAnOldSecretIsReplacedAndItsTicketsStayGood(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	old := p.counted(t)
	ann := newAgent("ann")
	g, err := old.Acquire(t.Context(), ann.ask("jobs"))
	require.NoError(t, err)
	name := p.database() + secretName
	first := p.read(t, name)
	p.write(t, name, values{"createdAt": timestamp(first.Fields["createdAt"].GetTimestampValue().AsTime().Add(-7 * 24 * time.Hour))}, "createdAt")
	fresh := p.counted(t).warm(t, "w")
	second := p.read(t, name)
	if !bytes.Equal(second.Fields["previous"].GetBytesValue(), first.Fields["key"].GetBytesValue()) ||
		bytes.Equal(second.Fields["key"].GetBytesValue(), first.Fields["key"].GetBytesValue()) {
		t.Error("it was not replaced, or the key before is lost")
	}
	r := ann.lease("jobs", g.Token)
	r.Ticket = g.Ticket
	r.Ticket = fresh.renew(t, r, "Commit")
	// a handle that does not know the new key yet is no worse off than without a ticket
	r.Ticket = old.renew(t, r, "Commit", "BatchGetDocuments", "Commit")
	fresh.renew(t, r, "Commit")
}

func TestWithoutASecretThereAreNoTicketsAndAllElseWorks(t *testing.T) {
	t.Parallel()
	for what, doc := range map[string]values{
		"of a newer program": {"schema": integer(2), "keys": text("x")},
		"damaged":            {"schema": integer(1), "key": bytesValue([]byte("short")), "previous": bytesValue(nil), "createdAt": timestamp(time.Now())},
	} {
		p := newProject(t)
		name := p.database() + secretName
		p.write(t, name, doc)
		before := p.read(t, name)
		s, ann := p.counted(t), newAgent("ann")
		g, err := s.Acquire(t.Context(), ann.ask("jobs"))
		if err != nil || g.Ticket != "" {
			t.Errorf("%s: a grant has the ticket %q, %v", what, g.Ticket, err)
		}
		r := ann.lease("jobs", g.Token)
		r.Ticket = "of another time"
		if l, err := s.Renew(t.Context(), r); err != nil || l.Ticket != "" {
			t.Errorf("%s: a renewal has the ticket %q, %v", what, l.Ticket, err)
		}
		if after := p.read(t, name); !after.UpdateTime.AsTime().Equal(before.UpdateTime.AsTime()) {
			t.Errorf("%s: it was overwritten", what)
		}
	}
}

// hang lets every read of the secret wait until its context ends.
func hang() grpc.DialOption {
	return grpc.WithStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		s, err := stream(ctx, desc, cc, method, opts...)
		return &hanging{s}, err
	})
}

type hanging struct{ grpc.ClientStream }

func (s *hanging) SendMsg(m any) error {
	if r, ok := m.(*firestorepb.BatchGetDocumentsRequest); ok && strings.HasSuffix(r.Documents[0], secretName) {
		<-s.Context().Done()
		return s.Context().Err()
	}
	return s.ClientStream.SendMsg(m)
}

func TestASecretThatCannotBeReadHoldsUpABatchForASecondAtMost(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	ann, here := newAgent("ann"), service.New(p.open(t))
	there := service.New(p.open(t, hang()))
	var batch []leadership.LeaseRequest
	for i := range 20 {
		e := leadership.Election(fmt.Sprint("e", i))
		g, err := here.Acquire(t.Context(), ann.ask(e))
		require.NoError(t, err)
		r := ann.lease(e, g.Token)
		r.Ticket = g.Ticket
		batch = append(batch, r)
	}
	began := time.Now()
	results, err := there.BatchRenew(t.Context(), batch)
	if took := time.Since(began); took > 15*time.Second { // each of them for a second would be twenty
		t.Errorf("the batch took %v", took)
	}
	for i, r := range results {
		if r.Err != nil || r.Lease.Ticket != "" {
			t.Errorf("%s: %v, ticket %q", batch[i].Election, r.Err, r.Lease.Ticket)
		}
	}
	if err != nil || len(results) != len(batch) {
		t.Errorf("%d results, %v", len(results), err)
	}
}
