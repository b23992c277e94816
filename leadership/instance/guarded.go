package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/service"
	"regent/leadership/wire"
)

// Protocol has the calls of agents and operators. A *service.Service and a *client.Client implement
// it too.
type Protocol interface {
	// Do carries out a command.
	Do(context.Context, leadership.Command) (leadership.Lease, error)
	Acquire(context.Context, leadership.AcquireRequest) (leadership.Grant, error)
	Renew(context.Context, leadership.LeaseRequest) (leadership.Lease, error)
	BatchRenew(context.Context, []leadership.LeaseRequest) ([]leadership.Result, error)
	CheckToken(context.Context, leadership.TokenCheck) (leadership.Lease, error)
	BatchCheckTokens(context.Context, []leadership.TokenCheck) ([]leadership.Result, error)
	Get(context.Context, leadership.Election) (leadership.Lease, error)
	List(context.Context, leadership.ListRequest) (leadership.Page, error)
	Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error)
	Overrides(context.Context, leadership.Election) ([]leadership.Override, error)
	Explain(context.Context, leadership.ExplainRequest) (leadership.Explanation, error)

	Delegate(context.Context, leadership.DelegateRequest) (leadership.Lease, error)
}

// Ledger has the calls about checkpoints, journals, effects and proposals. A *service.Ledger and a
// *client.Client implement it too.
type Ledger interface {
	PutCheckpoint(context.Context, leadership.CheckpointRequest) (leadership.Checkpoint, error)
	Checkpoint(context.Context, leadership.Election) (leadership.Checkpoint, error)
	OpenJournal(context.Context, leadership.LeaseRequest) (leadership.JournalHead, error)
	AppendJournal(context.Context, leadership.AppendRequest) (leadership.JournalHead, error)
	ReadJournal(context.Context, leadership.JournalRequest) (leadership.JournalPage, error)
	SnapshotJournal(context.Context, leadership.SnapshotRequest) (leadership.JournalHead, error)
	ReadSnapshot(context.Context, leadership.Election) (leadership.JournalSnapshot, error)
	BeginEffect(context.Context, leadership.EffectRequest) (leadership.Effect, error)
	FinishEffect(context.Context, leadership.FinishRequest) (leadership.Effect, error)
	Effects(context.Context, leadership.Election) (leadership.Effects, error)
	Propose(context.Context, leadership.ProposeRequest) (leadership.Proposal, error)
	Decide(context.Context, leadership.DecideRequest) (leadership.Proposal, error)
	Proposals(context.Context, leadership.Election) (leadership.Proposals, error)
}

// Service is what the APIs, such as REST, call: an *Instance, or a *Guarded in front of it.
type Service interface {
	Protocol
	Ledger

	// Campaign is Acquire for a request with Wait. The grant is nil if there is an error. With
	// pointers the stack of a call stays small; ten thousand may wait.
	Campaign(context.Context, *leadership.AcquireRequest) (*leadership.Grant, error)
	// Read reads an election as cheaply as the request allows.
	Read(context.Context, leadership.ReadRequest) (leadership.Reading, error)
	// Await blocks until the election has a newer revision than r.Known, and reads it. If the wait
	// is over first, news is false and there is no reading.
	Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (reading leadership.Reading, news bool, err error)
	// Watch reads an election and opens a stream of its events; Feed opens one of many.
	Watch(context.Context, leadership.WatchRequest) (leadership.Reading, *Watch, error)
	Feed(ctx context.Context, which leadership.Selection, after Cursor) (*Feed, error)
	// Census reads the elections that are selected, page by page.
	Census(ctx context.Context, which leadership.Selection) (*Census, error)
	// All reads all elections whose names begin with the prefix, in the order of their names.
	All(ctx context.Context, prefix string) ([]leadership.Lease, error)
	// Join makes the caller a member, and reads the election. Leave ends that.
	Join(context.Context, leadership.JoinRequest) (leadership.Reading, error)
	Leave(context.Context, leadership.LeaveRequest) error
	// Members reads the election with its members.
	Members(context.Context, leadership.Election) (leadership.Members, error)
	// AwaitAcknowledgement waits until enough members follow a token, and says which.
	AwaitAcknowledgement(context.Context, leadership.AcknowledgementRequest) (leadership.Acknowledgement, error)
	// Tree reads an election and the elections delegated below it, parents before their children.
	Tree(context.Context, leadership.Election) (leadership.Tree, error)
	// FollowJournal opens a stream of the entries of a journal.
	FollowJournal(context.Context, leadership.JournalRequest) (*JournalFeed, error)
	// Tick announces events left in the outbox, records the ends of leases that ran out, and
	// retires elections.
	Tick(context.Context) (Ticked, error)
}

// Op is a call, or one part of a batch, that asks a Gate for admission.
type Op struct {
	*wire.Row // of the verb

	Election  leadership.Election    // "" unless the call is about one
	Candidate leadership.CandidateID // the candidate as which the call is made; "" for none
	Prefix    string                 // with a call about all elections whose names begin with it
	// Token is the token that the caller acts under. A release does not act: it says that its
	// caller has stopped.
	Token leadership.Token
	Lease time.Duration // the duration that an acquire asks for; 0: as the election is configured
	Waits bool          // the call waits, or is a stream: it may last long
	// Batch is shared by a batch and its parts; nil for other calls.
	Batch *Batch
	N     int // how many calls it counts for; 0 for a part, which is counted by its batch
	// Further marks a right that a call needs in addition to its own: it is not a call itself.
	Further bool
	// Bytes is the size of the data that a leader sends, and Entries the number of journal entries.
	Bytes, Entries int
	// Reason is the caller's reason, for audits. It is not validated yet.
	Reason string
}

// Batch counts the parts of a batch that a gate has refused, so that the gate can report them
// together.
type Batch struct {
	First   leadership.Election // of the first refused part
	Refused int
}

// Note counts a refused part.
func (b *Batch) Note(e leadership.Election) {
	if b.Refused++; b.Refused == 1 {
		b.First = e
	}
}

// Gate decides whether a call is admitted, and is told how it ended. Its methods may be called
// concurrently.
type Gate interface {
	// Enter returns an error if the call must not be made; then nothing is done. Otherwise done, if
	// it is not nil, is called once with the call's error: after the reply, or when a stream
	// closes. A batch enters first as a whole and then part by part: a refused part fails alone.
	Enter(ctx context.Context, op Op) (done func(error), err error)
}

// Filter is a Gate that hides elections from lists.
type Filter interface {
	Gate
	// Visible reports whether the caller may see the election in an answer to the op.
	Visible(ctx context.Context, op Op, e leadership.Election) bool
	// Covered returns the names, and patterns of names, for which Visible may be true: no others
	// are read.
	Covered(ctx context.Context, op Op) []leadership.Election
}

// Witness is a Gate that is told of each acquire that was answered with a lease.
type Witness interface {
	Gate
	Granted(ctx context.Context, op Op, g leadership.Grant)
}

// Rechecker is a Gate that is asked once more about a waiting candidate, right before the store is
// asked for its lease: its rights may have changed while it stood in line.
type Rechecker interface {
	Gate
	// Recheck returns an error if the call would no longer be admitted.
	Recheck(ctx context.Context, op Op) error
}

// Meter is a Gate that is told the cost of a call once that is known: how many records the answer
// has and, as op.Bytes, how many bytes it has read or written in addition to its own.
type Meter interface {
	Gate
	Answered(ctx context.Context, op Op, records int)
}

// Guarded is a Service behind gates: every call passes them in order before it is made, whichever
// API it came through. Its methods are those of Service.
type Guarded struct {
	service Service
	gates   []Gate
	filters []Filter
	rows    map[wire.Verb]*wire.Row
}

// Guard returns the service behind the gates, the outermost first.
func Guard(service Service, gates ...Gate) *Guarded {
	g := &Guarded{service: service, gates: gates, rows: map[wire.Verb]*wire.Row{}}
	for _, row := range wire.Verbs() {
		g.rows[row.Verb] = &row
	}
	for _, gate := range gates {
		if f, ok := gate.(Filter); ok {
			g.filters = append(g.filters, f)
		}
	}
	return g
}

// entered are the done functions of the gates that have admitted a call.
type entered []func(error)

func (e entered) done(err error) {
	for _, done := range slices.Backward(e) {
		done(err)
	}
}

// errPanicked is the error that gates are told if a call panicked.
var errPanicked = errors.New("instance: the call panicked")

// enter asks every gate. If one refuses, those before it are told the error.
func (g *Guarded) enter(ctx context.Context, verb wire.Verb, op Op) (in entered, err error) {
	if op.Row = g.rows[verb]; op.Row == nil {
		return nil, fmt.Errorf("instance: verb %q has no row in wire.Verbs", verb)
	}
	for _, gate := range g.gates {
		done, err := gate.Enter(ctx, op)
		if err != nil {
			in.done(err)
			return nil, err
		}
		if done != nil {
			if in == nil {
				in = make(entered, 0, len(g.gates))
			}
			in = append(in, done)
		}
	}
	return in, nil
}

// answered tells the gates how many records the answer to a call has.
func (g *Guarded) answered(ctx context.Context, verb wire.Verb, records int) {
	g.cost(ctx, Op{Row: g.rows[verb]}, records)
}

func (g *Guarded) cost(ctx context.Context, op Op, records int) {
	for _, gate := range g.gates {
		if m, ok := gate.(Meter); ok {
			m.Answered(ctx, op, records)
		}
	}
}

// guarded makes a call if all gates admit it.
func guarded[A, R any](ctx context.Context, g *Guarded, verb wire.Verb, op Op, call func(context.Context, A) (R, error), argument A) (result R, err error) {
	in, err := g.enter(ctx, verb, op)
	if err != nil {
		return result, err
	}
	err = errPanicked
	defer func() {
		in.done(err)
		err = g.discreet(ctx, op.Election, err)
	}()
	return call(ctx, argument)
}

// whole is guarded for a call that reads, and mostly rewrites, all effects or all proposals of an
// election. It charges the gates for their bytes, even if the call fails.
func whole[A, R any](ctx context.Context, g *Guarded, verb wire.Verb, op Op, call func(context.Context, A) (R, error), argument A) (R, error) {
	var bytes atomic.Int64
	defer func() { g.cost(ctx, Op{Row: g.rows[verb], Bytes: int(bytes.Load())}, 0) }()
	return guarded(service.WithWhole(ctx, &bytes), g, verb, op, call, argument)
}

// opened opens a stream if all gates admit it. They are told of its end when it is closed.
func opened[S interface{ OnClose(func()) }](ctx context.Context, g *Guarded, verb wire.Verb, op Op, open func() (S, error)) (stream S, err error) {
	op.Waits, op.N = true, 1
	in, err := g.enter(ctx, verb, op)
	if err != nil {
		return stream, err
	}
	err = errPanicked
	defer func() {
		if err != nil {
			in.done(err)
		}
	}()
	if stream, err = open(); err == nil {
		stream.OnClose(sync.OnceFunc(func() { in.done(nil) }))
	}
	return stream, err
}

// batched makes those parts of a batch that the gates admit. The results are in the batch's order.
func batched[T any](ctx context.Context, g *Guarded, verb wire.Verb, batch []T, part func(T) Op, call func(context.Context, []T) ([]leadership.Result, error)) ([]leadership.Result, error) {
	whole := &Batch{}
	return guarded(ctx, g, verb, Op{N: max(len(batch), 1), Batch: whole}, func(ctx context.Context, batch []T) (results []leadership.Result, err error) {
		made := batch                    // the admitted parts
		at := make([]int, 0, len(batch)) // at[i] is the index of made[i] in the batch
		ins := make([]entered, len(batch))
		err = errPanicked
		defer func() {
			for _, i := range at {
				outcome := err
				if outcome == nil {
					outcome = results[i].Err
				}
				ins[i].done(outcome)
			}
		}()
		for i, r := range batch {
			op := part(r)
			op.Batch = whole
			in, refused := g.enter(ctx, g.rows[verb].Parts, op)
			if refused == nil {
				ins[i], at = in, append(at, i)
				continue
			}
			if results == nil {
				results = make([]leadership.Result, len(batch))
			}
			results[i].Err = refused
		}
		if len(at) < len(batch) {
			made = nil
			for _, i := range at {
				made = append(made, batch[i])
			}
		}
		if len(made) == 0 && len(batch) > 0 {
			return results, nil
		}
		answers, err := call(ctx, made)
		if err == nil && len(answers) != len(made) {
			err = fmt.Errorf("instance: %d results for %d parts of a batch", len(answers), len(made))
		}
		if err != nil {
			return nil, err
		}
		if len(answers) == len(batch) {
			results = answers
			return results, nil
		}
		for i := range answers {
			results[at[i]] = answers[i]
		}
		return results, nil
	}, batch)
}

func (g *Guarded) Acquire(ctx context.Context, r leadership.AcquireRequest) (granted leadership.Grant, err error) {
	if r.Restore != 0 {
		in, refused := g.enter(ctx, wire.VerbConfigure, Op{Election: r.Election, N: 1, Further: true})
		if refused != nil {
			return leadership.Grant{}, refused
		}
		defer func() { in.done(err) }()
	}
	if r.Wait > 0 {
		grant, err := g.Campaign(ctx, &r)
		if err != nil {
			return leadership.Grant{}, err
		}
		return *grant, nil
	}
	if err := g.stands(ctx, &r); err != nil {
		return leadership.Grant{}, err
	}
	op := Op{Election: r.Election, Candidate: r.CandidateID, Lease: r.LeaseDuration, N: 1}
	grant, err := guarded(ctx, g, wire.VerbAcquire, op, g.service.Acquire, r)
	if err == nil {
		g.witnessed(ctx, op, &grant)
	}
	return grant, err
}

func (g *Guarded) Campaign(ctx context.Context, r *leadership.AcquireRequest) (*leadership.Grant, error) {
	if err := g.stands(ctx, r); err != nil {
		return nil, err
	}
	op := Op{Election: r.Election, Candidate: r.CandidateID, Lease: r.LeaseDuration, Waits: r.Validate() == nil, N: 1}
	if op.Waits {
		again := op
		again.Row = g.rows[wire.VerbAcquire]
		r.InLine.Recheck = func() error { return cmp.Or(g.recheck(ctx, again), g.standsStill(ctx, r)) }
	}
	grant, err := guarded(ctx, g, wire.VerbAcquire, op, g.service.Campaign, r)
	if err == nil {
		g.witnessed(ctx, op, grant)
	}
	return grant, err
}

// witnessed tells the gates of a grant.
func (g *Guarded) witnessed(ctx context.Context, op Op, grant *leadership.Grant) {
	op.Row = g.rows[wire.VerbAcquire]
	for _, gate := range g.gates {
		if w, ok := gate.(Witness); ok {
			w.Granted(ctx, op, *grant)
		}
	}
}

func (g *Guarded) Do(ctx context.Context, c leadership.Command) (leadership.Lease, error) {
	t := c.Target()
	op := Op{Election: t.Election, Candidate: t.Candidate, Token: t.Token, Reason: t.Reason, N: 1}
	return guarded(ctx, g, wire.Verb(c.Name()), op, g.service.Do, c)
}

func (g *Guarded) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	op := Op{Election: r.Election, Candidate: r.CandidateID, Token: r.Token, N: 1}
	return guarded(ctx, g, wire.VerbRenew, op, g.service.Renew, r)
}

// BatchRenew implements Protocol. Leases that the caller may not renew are refused one by one.
func (g *Guarded) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	part := func(r leadership.LeaseRequest) Op {
		return Op{Election: r.Election, Candidate: r.CandidateID, Token: r.Token}
	}
	return batched(ctx, g, wire.VerbBatchRenew, batch, part, g.service.BatchRenew)
}

func (g *Guarded) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	return guarded(ctx, g, wire.VerbCheckToken, Op{Election: r.Election, Token: r.Token, N: 1}, g.service.CheckToken, r)
}

// BatchCheckTokens implements Protocol. Tokens that the caller may not check are refused one by
// one.
func (g *Guarded) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	part := func(r leadership.TokenCheck) Op { return Op{Election: r.Election, Token: r.Token} }
	return batched(ctx, g, wire.VerbBatchCheckTokens, batch, part, g.service.BatchCheckTokens)
}

func (g *Guarded) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	return guarded(ctx, g, wire.VerbRead, Op{Election: e, N: 1}, g.service.Get, e)
}

func (g *Guarded) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	return guarded(ctx, g, wire.VerbRead, Op{Election: r.Election, N: 1}, g.service.Read, r)
}

func (g *Guarded) Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (reading leadership.Reading, news bool, err error) {
	op := Op{Election: r.Election, Waits: true, N: 1}
	reading, err = guarded(ctx, g, wire.VerbRead, op, func(ctx context.Context, r leadership.ReadRequest) (reading leadership.Reading, err error) {
		reading, news, err = g.service.Await(ctx, r, wait)
		return reading, err
	}, r)
	return reading, news, err
}

// List implements Protocol. It leaves out elections that the caller may not see; see visible.
func (g *Guarded) List(ctx context.Context, r leadership.ListRequest) (page leadership.Page, err error) {
	read := 0
	defer func() { g.answered(ctx, wire.VerbList, max(read, len(page.Leases))) }()
	if len(g.filters) == 0 || r.Validate() != nil {
		return guarded(ctx, g, wire.VerbList, Op{N: 1}, g.service.List, r)
	}
	return guarded(ctx, g, wire.VerbList, Op{N: 1}, func(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
		return g.visible(ctx, r, &read)
	}, r)
}

func (g *Guarded) Events(ctx context.Context, r leadership.EventsRequest) ([]leadership.Event, error) {
	events, err := guarded(ctx, g, wire.VerbEvents, Op{Election: r.Election, N: 1}, g.service.Events, r)
	g.answered(ctx, wire.VerbEvents, len(events))
	return events, err
}

// Watch implements Service. A watch that makes its caller a member needs the right to join, too.
func (g *Guarded) Watch(ctx context.Context, r leadership.WatchRequest) (reading leadership.Reading, watch *Watch, err error) {
	op := Op{Election: r.Election, Candidate: r.Member}
	if r.Member != "" {
		var joined entered
		if joined, err = g.enter(ctx, wire.VerbJoin, op); err != nil { // not counted as a call: the watch is
			return reading, nil, err
		}
		defer func() { joined.done(err) }()
	}
	watch, err = opened(ctx, g, wire.VerbWatch, op, func() (watch *Watch, err error) {
		reading, watch, err = g.service.Watch(ctx, r)
		return watch, err
	})
	return reading, watch, err
}

// Feed implements Service. The caller must be allowed to watch all elections whose names begin with
// the prefix; with which.Of, that election and all whose names begin with its name and a dot, as
// its seats' do.
func (g *Guarded) Feed(ctx context.Context, which leadership.Selection, after Cursor) (*Feed, error) {
	return opened(ctx, g, wire.VerbWatchAll, opOf(which), func() (feed *Feed, err error) {
		whole, err := g.enterWhole(ctx, which)
		if err != nil {
			return nil, err
		}
		defer func() { whole.done(err) }()
		return g.service.Feed(ctx, which, after)
	})
}

// opOf returns the Op with which a stream of many elections enters.
func opOf(which leadership.Selection) Op {
	if which.Of != "" {
		return Op{Prefix: string(which.Of) + "."}
	}
	return Op{Prefix: which.Prefix}
}

// enterWhole also enters for the election which.Of itself, if that is set. It is not counted as a
// call: the stream of its seats is.
func (g *Guarded) enterWhole(ctx context.Context, which leadership.Selection) (entered, error) {
	if which.Of == "" {
		return nil, nil
	}
	return g.enter(ctx, wire.VerbWatch, Op{Election: which.Of})
}

// Census implements Service. It needs the rights of Feed.
func (g *Guarded) Census(ctx context.Context, which leadership.Selection) (*Census, error) {
	op := opOf(which)
	op.N = 1
	c, err := guarded(ctx, g, wire.VerbWatchAll, op, func(ctx context.Context, which leadership.Selection) (c *Census, err error) {
		whole, err := g.enterWhole(ctx, which)
		if err != nil {
			return nil, err
		}
		defer func() { whole.done(err) }()
		return g.service.Census(ctx, which)
	}, which)
	if err == nil {
		c.answered = func(ctx context.Context, records int) { g.answered(ctx, wire.VerbWatchAll, records) }
	}
	return c, err
}

// All implements Service. It needs the rights of Feed. The caller is charged for the elections
// afterwards: if it were refused on the way, it would begin again, and be refused again.
func (g *Guarded) All(ctx context.Context, prefix string) ([]leadership.Lease, error) {
	all, err := guarded(ctx, g, wire.VerbWatchAll, Op{Prefix: prefix, N: 1}, g.service.All, prefix)
	g.answered(ctx, wire.VerbWatchAll, len(all))
	return all, err
}

func (g *Guarded) Overrides(ctx context.Context, e leadership.Election) ([]leadership.Override, error) {
	return guarded(ctx, g, wire.VerbOverrides, Op{Election: e, N: 1}, g.service.Overrides, e)
}

func (g *Guarded) Tick(ctx context.Context) (Ticked, error) {
	return guarded(ctx, g, wire.VerbTick, Op{N: 1}, func(ctx context.Context, _ struct{}) (Ticked, error) {
		return g.service.Tick(ctx)
	}, struct{}{})
}
