package instance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// gate writes down what enters and how it ends, and refuses what it is told to.
type gate struct {
	name   string
	told   *[]string
	ops    []instance.Op
	refuse func(instance.Op) error
}

func (g *gate) Enter(_ context.Context, op instance.Op) (func(error), error) {
	g.ops = append(g.ops, op)
	if g.refuse != nil {
		if err := g.refuse(op); err != nil {
			return nil, err
		}
	}
	g.tell("in", op, nil)
	return func(err error) { g.tell("out", op, err) }, nil
}

func (g *gate) tell(what string, op instance.Op, err error) {
	*g.told = append(*g.told, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %v", g.name, what, op.Verb, op.Election, errors.Unwrap(fmt.Errorf("%w", err)))))
}

var errRefused = errors.New("refused")

func newGuarded(t *testing.T, gates ...*gate) (*instance.Guarded, *[]string) {
	t.Helper()
	store := memory.New(memory.Config{})
	inst, err := instance.New(instance.Config{Store: store, Journal: store, Name: "a", Alone: true})
	require.NoError(t, err)
	runs(t, inst)
	told := new([]string)
	var all []instance.Gate
	for _, g := range gates {
		g.told = told
		all = append(all, g)
	}
	return instance.Guard(inst, all...), told
}

// Every method enters under a verb that has a row; every row that asks who calls has a method.
func TestEveryMethodEntersUnderItsVerb(t *testing.T) {
	t.Parallel()
	spy := &gate{}
	s, _ := newGuarded(t, spy)
	ctx := t.Context()
	lease := leadership.LeaseRequest{Election: "e", CandidateID: "ann", Token: 7}
	check := leadership.TokenCheck{Election: "e", Token: 7}
	order := func(kind leadership.OrderKind) leadership.Order {
		return leadership.Order{Election: "e", Kind: kind, Reason: "why"}
	}
	seen := map[wire.Verb]bool{}
	for _, c := range []struct {
		call func()
		want instance.Op
		verb wire.Verb
	}{
		{func() { s.Acquire(ctx, leadership.AcquireRequest{Election: "e", CandidateID: "ann"}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbAcquire},
		{func() { s.Acquire(ctx, leadership.AcquireRequest{Election: "e", CandidateID: "ann", Wait: 1e6}) }, instance.Op{Election: "e", Candidate: "ann", Waits: true, N: 1}, wire.VerbAcquire},
		{func() { s.Acquire(ctx, leadership.AcquireRequest{Election: "E", CandidateID: "ann", Wait: 1e6}) }, instance.Op{Election: "E", Candidate: "ann", N: 1}, wire.VerbAcquire},
		{func() { s.Renew(ctx, lease) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, N: 1}, wire.VerbRenew},
		{func() { s.Do(ctx, leadership.Release{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbRelease},
		{func() { s.CheckToken(ctx, check) }, instance.Op{Election: "e", Token: 7, N: 1}, wire.VerbCheckToken},
		{func() { s.BatchRenew(ctx, []leadership.LeaseRequest{lease}) }, instance.Op{N: 1}, wire.VerbBatchRenew},
		{func() { s.BatchCheckTokens(ctx, []leadership.TokenCheck{check, {Election: "f"}}) }, instance.Op{N: 2}, wire.VerbBatchCheckTokens},
		{func() { s.BatchRenew(ctx, nil) }, instance.Op{N: 1}, wire.VerbBatchRenew},
		{func() { s.Get(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbRead},
		{func() { s.Read(ctx, leadership.ReadRequest{Election: "e"}) }, instance.Op{Election: "e", N: 1}, wire.VerbRead},
		{func() { s.Await(ctx, leadership.ReadRequest{Election: "e"}, time.Millisecond) }, instance.Op{Election: "e", Waits: true, N: 1}, wire.VerbRead},
		{func() { s.List(ctx, leadership.ListRequest{}) }, instance.Op{N: 1}, wire.VerbList},
		{func() { s.Events(ctx, leadership.EventsRequest{Election: "e"}) }, instance.Op{Election: "e", N: 1}, wire.VerbEvents},
		{func() { s.Watch(ctx, leadership.WatchRequest{Election: "e"}) }, instance.Op{Election: "e", Waits: true, N: 1}, wire.VerbWatch},
		{func() { s.Feed(ctx, leadership.Selection{Prefix: "p"}, instance.Cursor{}) }, instance.Op{Prefix: "p", Waits: true, N: 1}, wire.VerbWatchAll},
		{func() { s.Census(ctx, leadership.Selection{Prefix: "p"}) }, instance.Op{Prefix: "p", N: 1}, wire.VerbWatchAll},
		{func() { s.Feed(ctx, leadership.Selection{Of: "e"}, instance.Cursor{}) }, instance.Op{Prefix: "e.", Waits: true, N: 1}, wire.VerbWatchAll},
		{func() { s.Census(ctx, leadership.Selection{Of: "e"}) }, instance.Op{Prefix: "e.", N: 1}, wire.VerbWatchAll},
		{func() { s.All(ctx, "p") }, instance.Op{Prefix: "p", N: 1}, wire.VerbWatchAll},
		{func() { s.Do(ctx, leadership.Configure{Election: "e"}) }, instance.Op{Election: "e", N: 1}, wire.VerbConfigure},
		{func() { s.Do(ctx, leadership.Delete{Election: "e"}) }, instance.Op{Election: "e", N: 1}, wire.VerbDelete},
		{func() { s.Do(ctx, leadership.Unlock{Election: "e", Reason: "why"}) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbUnlock},
		{func() { s.Do(ctx, order(leadership.OrderAssign)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbAssign},
		{func() { s.Do(ctx, order(leadership.OrderEvict)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbEvict},
		{func() { s.Do(ctx, order(leadership.OrderPause)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbPause},
		{func() { s.Do(ctx, order(leadership.OrderResume)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbResume},
		{func() { s.Do(ctx, order(leadership.OrderBan)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbBan},
		{func() { s.Do(ctx, order(leadership.OrderApprove)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbApprove},
		{func() { s.Do(ctx, order(leadership.OrderLift)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbLift},
		{func() { s.Do(ctx, order(leadership.OrderHalt)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbHalt},
		{func() { s.Do(ctx, order(leadership.OrderUnhalt)) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbUnhalt},
		{func() { s.Overrides(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbOverrides},
		{func() { s.Do(ctx, leadership.Judge{Election: "e", Token: 7, Evidence: "why"}) }, instance.Op{Election: "e", Reason: "why", N: 1}, wire.VerbJudge},
		{func() { s.Do(ctx, leadership.StepDown{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbStepDown},
		{func() { s.Do(ctx, leadership.RequestApproval{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, N: 1}, wire.VerbRequestApproval},
		{func() { s.Explain(ctx, leadership.ExplainRequest{Election: "e", CandidateID: "ann"}) }, instance.Op{Election: "e", N: 1}, wire.VerbExplain},
		{func() { s.Join(ctx, leadership.JoinRequest{Election: "e", CandidateID: "ann"}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbJoin},
		{func() { s.Leave(ctx, leadership.LeaveRequest{Election: "e", CandidateID: "ann"}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbLeave},
		{func() { s.Members(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbMembers},
		{func() {
			s.AwaitAcknowledgement(ctx, leadership.AcknowledgementRequest{Election: "e", Token: 7, Wait: 1e6})
		}, instance.Op{Election: "e", Waits: true, N: 1}, wire.VerbAcknowledgement},
		{func() { s.Tick(ctx) }, instance.Op{N: 1}, wire.VerbTick},
		{func() { s.Do(ctx, leadership.HandOver{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, N: 1}, wire.VerbHandOver},
		{func() { s.Do(ctx, leadership.SayReady{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbSayReady},
		{func() { s.Do(ctx, leadership.SayServing{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbSayServing},
		{func() { s.Do(ctx, leadership.Yield{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", N: 1}, wire.VerbYield},
		{func() { s.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: lease}) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, N: 1}, wire.VerbDelegate},
		{func() { s.Tree(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbTree},
		{func() {
			s.PutCheckpoint(ctx, leadership.CheckpointRequest{LeaseRequest: lease, Data: []byte("{}")})
		}, instance.Op{Election: "e", Candidate: "ann", Token: 7, Bytes: 2, N: 1}, wire.VerbPutCheckpoint},
		{func() { s.Checkpoint(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbCheckpoint},
		{func() { s.OpenJournal(ctx, lease) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, N: 1}, wire.VerbOpenJournal},
		{func() {
			s.AppendJournal(ctx, leadership.AppendRequest{LeaseRequest: lease, Entries: []leadership.Entry{{Data: []byte("1")}, {Data: []byte("23")}}})
		}, instance.Op{Election: "e", Candidate: "ann", Token: 7, Entries: 2, Bytes: 3, N: 1}, wire.VerbAppendJournal},
		{func() { s.ReadJournal(ctx, leadership.JournalRequest{Election: "e"}) }, instance.Op{Election: "e", N: 1}, wire.VerbJournal},
		{func() { s.FollowJournal(ctx, leadership.JournalRequest{Election: "e"}) }, instance.Op{Election: "e", Waits: true, N: 1}, wire.VerbFollowJournal},
		{func() {
			s.SnapshotJournal(ctx, leadership.SnapshotRequest{LeaseRequest: lease, Data: []byte("{}")})
		}, instance.Op{Election: "e", Candidate: "ann", Token: 7, Bytes: 2, N: 1}, wire.VerbSnapshotJournal},
		{func() { s.ReadSnapshot(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbReadSnapshot},
		{func() { s.BeginEffect(ctx, leadership.EffectRequest{LeaseRequest: lease, ID: "mail"}) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, Bytes: 4, N: 1}, wire.VerbBeginEffect},
		{func() {
			s.FinishEffect(ctx, leadership.FinishRequest{EffectRequest: leadership.EffectRequest{LeaseRequest: lease, ID: "mail"}, Result: []byte("1")})
		}, instance.Op{Election: "e", Candidate: "ann", Token: 7, Bytes: 5, N: 1}, wire.VerbFinishEffect},
		{func() { s.Effects(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbEffects},
		{func() {
			s.Propose(ctx, leadership.ProposeRequest{Election: "e", CandidateID: "ann", Kind: "k", Data: []byte("{}"), Wait: 1e6})
		}, instance.Op{Election: "e", Candidate: "ann", Waits: true, Bytes: 3, N: 1}, wire.VerbPropose},
		{func() { s.Decide(ctx, leadership.DecideRequest{LeaseRequest: lease, Note: "no"}) }, instance.Op{Election: "e", Candidate: "ann", Token: 7, Bytes: 2, N: 1}, wire.VerbDecide},
		{func() { s.Proposals(ctx, "e") }, instance.Op{Election: "e", N: 1}, wire.VerbProposals},
	} {
		spy.ops = nil
		c.call()
		if len(spy.ops) == 0 {
			t.Errorf("%s does not enter", c.verb)
			continue
		}
		got, want := spy.ops[0], c.want
		if got.Row == nil || got.Verb != c.verb {
			t.Errorf("%s enters with the row %+v", c.verb, got.Row)
		}
		if batch := got.Batch != nil; batch != (c.verb.Row().Parts != "") {
			t.Errorf("%s enters as a batch: %v", c.verb, batch)
		}
		got.Row, got.Batch = nil, nil
		if got != want {
			t.Errorf("%s enters as %+v, want %+v", c.verb, got, want)
		}
		seen[c.verb] = true
	}
	for _, row := range wire.Verbs() {
		if len(row.Roles) > 0 && !seen[row.Verb] {
			t.Errorf("no method of Guarded enters as %s", row.Verb)
		}
	}
}

func TestAStreamThatMakesItsReaderAMemberNeedsTheRightToJoin(t *testing.T) {
	t.Parallel()
	may := wire.VerbJoin
	spy := &gate{name: "a", refuse: func(op instance.Op) error {
		if op.Candidate == "bob" && op.Verb == may {
			return errRefused
		}
		return nil
	}}
	s, told := newGuarded(t, spy)
	watch := func(id leadership.CandidateID) error {
		*told = nil
		_, watch, err := s.Watch(t.Context(), leadership.WatchRequest{Election: "jobs", Member: id})
		if err == nil {
			watch.Close()
		}
		return err
	}
	if err := watch("ann"); err != nil || len(*told) != 4 || !strings.HasPrefix((*told)[0], "a in join jobs") || !strings.HasPrefix((*told)[1], "a in watch jobs") {
		t.Errorf("%v; the gate was told %q, want of a join and a watch, and of the end of both", err, *told)
	}
	for _, op := range spy.ops {
		if wantN := map[wire.Verb]int{wire.VerbWatch: 1}[op.Verb]; op.Candidate != "ann" || op.N != wantN {
			t.Errorf("%s enters as %+v, want as ann, and to count for %d calls", op.Verb, op, wantN)
		}
	}
	for _, may = range []wire.Verb{wire.VerbJoin, wire.VerbWatch} {
		assert.ErrorIs(t, watch("bob"), errRefused, "without the right to %s", may)
	}
	if want := []string{"a in join jobs <nil>", "a out join jobs refused"}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
	if err := watch(""); err != nil || len(*told) != 2 {
		t.Errorf("a stream without a member: %v, told %q", err, *told)
	}
}

func TestAStreamOfAnElectionAndItsSeatsNeedsTheRightToWatchTheElection(t *testing.T) {
	t.Parallel()
	s, _ := newGuarded(t, &gate{name: "a", refuse: func(op instance.Op) error {
		if op.Verb == wire.VerbWatch && op.Election == "gpu" {
			return errRefused
		}
		return nil
	}})
	which := leadership.Selection{Of: "gpu"}
	_, err := s.Feed(t.Context(), which, instance.Cursor{})
	assert.ErrorIs(t, err, errRefused, "the feed")
	_, err = s.Census(t.Context(), which)
	assert.ErrorIs(t, err, errRefused, "the census")
}

func TestAGateHearsThatALaterOneRefused(t *testing.T) {
	t.Parallel()
	last := &gate{name: "c"}
	s, told := newGuarded(t, &gate{name: "a"}, &gate{name: "b", refuse: func(instance.Op) error { return errRefused }}, last)
	_, err := s.Do(t.Context(), leadership.Configure{Election: "jobs"})
	assert.ErrorIs(t, err, errRefused)
	if want := []string{"a in configure jobs <nil>", "a out configure jobs refused"}; !slices.Equal(*told, want) || len(last.ops) != 0 {
		t.Errorf("told %q, want %q; the last gate was asked %d times", *told, want, len(last.ops))
	}
	if page, err := s.List(t.Context(), leadership.ListRequest{}); err == nil || len(page.Leases) > 0 {
		t.Errorf("%v, %v", page, err)
	}
}

func TestThePartsOfABatchEnterOneByOne(t *testing.T) {
	t.Parallel()
	s, told := newGuarded(t, &gate{name: "a"}, &gate{name: "b", refuse: func(op instance.Op) error {
		if op.Election == "foreign" {
			return errRefused
		}
		return nil
	}})
	ctx := t.Context()
	g, err := s.Acquire(ctx, leadership.AcquireRequest{Election: "own", CandidateID: "ann"})
	require.NoError(t, err)
	*told = nil
	results, err := s.BatchRenew(ctx, []leadership.LeaseRequest{
		{Election: "foreign", CandidateID: "ann", Key: g.Key, Token: 1}, {Election: "own", CandidateID: "ann", Key: g.Key, Token: g.Token},
	})
	if err != nil || !errors.Is(results[0].Err, errRefused) || results[1].Err != nil || results[1].Lease.Election != "own" {
		t.Errorf("%v, %v", results, err)
	}
	want := []string{
		"a in batchRenew  <nil>", "b in batchRenew  <nil>",
		"a in renew foreign <nil>", "a out renew foreign refused",
		"a in renew own <nil>", "b in renew own <nil>", "b out renew own <nil>", "a out renew own <nil>",
		"b out batchRenew  <nil>", "a out batchRenew  <nil>",
	}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Error(diff)
	}
}

func TestAGateHearsTheEndOfAStreamOnce(t *testing.T) {
	t.Parallel()
	s, told := newGuarded(t, &gate{name: "a"})
	_, w, err := s.Watch(t.Context(), leadership.WatchRequest{Election: "jobs"})
	require.NoError(t, err)
	if len(*told) != 1 {
		t.Errorf("told %q while the stream is open", *told)
	}
	w.Close()
	w.Close()
	if want := []string{"a in watch jobs <nil>", "a out watch jobs <nil>"}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
}

// panicking panics at every call, for it has no service.
type panicking struct{ instance.Service }

func TestAGateHearsOfAPanic(t *testing.T) {
	t.Parallel()
	g := &gate{name: "a", told: new([]string)}
	s := instance.Guard(panicking{}, g)
	for name, call := range map[string]func(){
		"renew": func() { s.Renew(t.Context(), leadership.LeaseRequest{}) },
		"batch": func() { s.BatchRenew(t.Context(), make([]leadership.LeaseRequest, 2)) },
		"watch": func() { s.Watch(t.Context(), leadership.WatchRequest{}) },
	} {
		*g.told = nil
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is lost", name)
				}
			}()
			call()
		}()
		ended := slices.DeleteFunc(slices.Clone(*g.told), func(s string) bool { return !strings.HasSuffix(s, "instance: the call panicked") })
		if len(ended) != len(*g.told)/2 || len(ended) == 0 {
			t.Errorf("%s: told %q", name, *g.told)
		}
	}
}

// short answers a batch with too few results.
type short struct{ instance.Service }

func (short) BatchRenew(context.Context, []leadership.LeaseRequest) ([]leadership.Result, error) {
	return make([]leadership.Result, 1), nil
}

func TestABatchWithTooFewResultsIsAnError(t *testing.T) {
	t.Parallel()
	s := instance.Guard(short{}, &gate{told: new([]string)})
	if results, err := s.BatchRenew(t.Context(), make([]leadership.LeaseRequest, 2)); err == nil {
		t.Errorf("results %v for two renewals", results)
	}
}

// reader is a gate that may refuse to let its callers read the overrides.
type reader struct {
	gate
	may bool
}

func (r *reader) Recheck(_ context.Context, op instance.Op) error {
	if op.Verb == wire.VerbOverrides && op.Election == "jobs" && !r.may {
		return errRefused
	}
	return nil
}

func TestARefusalNamesItsOrderOnlyToReadersOfTheOverrides(t *testing.T) {
	t.Parallel()
	for _, may := range []bool{true, false} {
		s, _ := newGuarded(t)
		ctx := t.Context()
		g, err := s.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
		require.NoError(t, err)
		_, err = s.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}})
		require.NoError(t, err)
		l, err := s.Do(ctx, leadership.Order{Election: "jobs", Kind: leadership.OrderBan, CandidateID: "bob", For: time.Hour, Reason: "a secret", Actor: "eve"})
		require.NoError(t, err)
		ban := l.Overrides.List()[0]
		s = instance.Guard(s, &reader{gate: gate{told: new([]string)}, may: may})
		_, err = s.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "bob"})
		refusal, ok := errors.AsType[*leadership.Error](err)
		if !ok || refusal.Reason != leadership.ReasonBanned || refusal.Cause == nil || !refusal.Cause.Until.Equal(ban.Until) || refusal.RetryAfter <= 0 {
			t.Fatalf("refused with %+v", refusal)
		}
		want := leadership.Cause{Code: leadership.ReasonBanned, Until: ban.Until, Left: refusal.Cause.Left}
		if may {
			want.Override, want.Actor, want.Because = ban.ID, "eve", "a secret"
		}
		if told := strings.Contains(refusal.Detail, "secret") && strings.Contains(refusal.Detail, "eve"); *refusal.Cause != want || told != may {
			t.Errorf("by a caller that may read the overrides: %v; the cause is %+v, %s", may, *refusal.Cause, refusal.Detail)
		}
		_, err = s.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", Wait: time.Millisecond})
		if err == nil || !may && strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("in line: %v", err)
		}
		x, err := s.Explain(ctx, leadership.ExplainRequest{Election: "jobs", CandidateID: "bob"})
		if err != nil || len(x.Causes) == 0 || x.Causes[0].Code != leadership.ReasonBanned || (x.Causes[0].Actor == "eve") != may || (x.Causes[0].Because == "a secret") != may {
			t.Errorf("explained to a caller that may read the overrides: %v: %+v, %v", may, x, err)
		}
	}
}
