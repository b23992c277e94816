package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/test/machine"
)

// A call that changes something names what it changes: a token, a revision, the id of an order, an
// end. So a late copy of it is recognized or refused, and changes nothing. The table below has, for
// each verb, the answer to a copy in each of these situations.
const (
	atOnce       = "at once"
	undone       = "after its effect was undone"
	anotherTerm  = "after a new term"
	anotherEpoch = "after a new epoch"
	restored     = "after a restore"
	noCell       = leadership.Code("-")                   // the situation cannot come about
	counts       = leadership.Code("it counts once more") // the exceptions
	forgotten    = leadership.Revision(1 << 20)           // what a restore raises tokens above
	theActor     = "ann"                                  // who gives orders
	theChild     = leadership.Election("child")           // below the election of a row
	aReason      = "a reason"
	aLong        = time.Hour
)

var situations = []string{atOnce, undone, anotherTerm, anotherEpoch, restored}

// repeat is a row of the table.
type repeat struct {
	verb string
	// before brings the election into the state for the call, from a lease of ann with token 1.
	before []step
	call   func(*repeated) step // as it is decided on then
	undo   []step
	next   []step             // of the leader of another term, as it begins
	want   [5]leadership.Code // of a copy in each situation; "" for none
}

// step is one call.
type step func(context.Context, *repeated) error

// repeated is an election in which a call is made again.
type repeated struct {
	*pair
	leadership.Election
	store   service.Store
	service Subject // what leads to a situation needs no server
	via     Subject // of the call under way
	answer  any     // to the last call of the ledger, as far as a copy has the same one
	key     map[leadership.CandidateID]leadership.Key
}

func (r *repeated) now() leadership.Lease {
	r.Helper()
	l, err := r.service.Get(r.Context(), r.Election)
	if err != nil {
		r.Fatalf("%s: get: %v", r.Election, err)
	}
	return l
}

func (r *repeated) of(who leadership.CandidateID, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: r.Election, CandidateID: who, Key: r.key[who], Token: token}
}

func (r *repeated) do(what string, all ...step) {
	r.Helper()
	for i, one := range all {
		if err := one(r.Context(), r); err != nil {
			r.Fatalf("%s: %s, step %d: %v", r.Election, what, i, err)
		}
	}
}

// made returns a call of one kind with the request.
func made[R any](do func(Subject, context.Context, R) (leadership.Lease, error), request R) step {
	return func(ctx context.Context, r *repeated) error {
		_, err := do(r.via, ctx, request)
		return err
	}
}

func acquired(who leadership.CandidateID) step {
	return func(ctx context.Context, r *repeated) error {
		key := r.key[who]
		_, err := r.via.Acquire(ctx, leadership.AcquireRequest{Election: r.Election, CandidateID: who, Key: &key})
		return err
	}
}

// by returns a call of the leader at that time, with its token.
func by[R any](do func(Subject, context.Context, R) (leadership.Lease, error), request func(leadership.LeaseRequest) R) step {
	return then(leaders(do, request))
}

func same(l leadership.LeaseRequest) leadership.LeaseRequest { return l }

func released(l leadership.LeaseRequest) leadership.Command {
	return leadership.Release{LeaseRequest: l}
}

func steppedDown(l leadership.LeaseRequest) leadership.Command {
	return leadership.StepDown{LeaseRequest: l, Reason: aReason, For: aLong}
}

func askedForApproval(l leadership.LeaseRequest) leadership.Command {
	return leadership.RequestApproval{LeaseRequest: l, Note: aReason}
}

func yielded(l leadership.LeaseRequest) leadership.Command { return leadership.Yield{LeaseRequest: l} }

func delegated(l leadership.LeaseRequest) leadership.DelegateRequest {
	return leadership.DelegateRequest{LeaseRequest: l, Child: string(theChild)}
}

func handsOverTo(to leadership.CandidateID) func(leadership.LeaseRequest) leadership.Command {
	return func(l leadership.LeaseRequest) leadership.Command {
		return leadership.HandOver{LeaseRequest: l, To: to, Within: time.Minute}
	}
}

func handedOverTo(to leadership.CandidateID) step { return by(Subject.Do, handsOverTo(to)) }

func given(c leadership.Command) step { return made(Subject.Do, c) }

func saidReady(who leadership.CandidateID) step {
	return func(ctx context.Context, r *repeated) error {
		_, err := r.via.Do(ctx, leadership.SayReady{LeaseRequest: r.of(who, r.now().Token)})
		return err
	}
}

// then is a call that is decided on at the time of the step.
func then(call func(*repeated) step) step {
	return func(ctx context.Context, r *repeated) error { return call(r)(ctx, r) }
}

func order(o leadership.Order) step { return then(ordered(o)) }

func ordered(o leadership.Order) func(*repeated) step {
	return func(r *repeated) step {
		l, o := r.now(), o
		o.Actor, o.Reason, o.IfRevision = theActor, aReason, l.Revision
		if o.Kind == leadership.OrderApprove {
			o.Token = l.Token
		}
		if o.Kind == leadership.OrderLift {
			all, err := r.service.Overrides(r.Context(), r.Election)
			if err != nil || len(all) != 1 {
				r.Fatalf("%s: %d orders stand, %v", r.Election, len(all), err)
			}
			o.Override = all[0].ID
		}
		return given(o.In(r.Election))
	}
}

// steady returns a call that does not depend on the present state.
func steady(s step) func(*repeated) step { return func(*repeated) step { return s } }

// leaders returns a call by the leader at the time of the first call.
func leaders[R any](do func(Subject, context.Context, R) (leadership.Lease, error), request func(leadership.LeaseRequest) R) func(*repeated) step {
	return func(r *repeated) step {
		l := r.now()
		return made(do, request(r.of(l.LeaderID, l.Token)))
	}
}

func configured(c leadership.Config) func(*repeated) step {
	return func(r *repeated) step {
		command := leadership.Configure{Config: c, IfRevision: leadership.NeverSeen}
		command.Config.LeaseDuration, command.Config.Term = aLong, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 10 * aLong}}
		if l, err := r.service.Get(r.Context(), r.Election); err == nil {
			command.IfRevision = l.Revision
		} else if e, ok := errors.AsType[*leadership.Error](err); ok && e.Lease != nil {
			command.IfRevision = e.Lease.Revision
		}
		return given(command.In(r.Election))
	}
}

func configure(c leadership.Config) step { return then(configured(c)) }

func judged(v leadership.Verdict) func(*repeated) step {
	return func(r *repeated) step {
		l := r.now()
		return given(leadership.Judge{Election: r.Election, Token: l.Token, Verdict: v, Evidence: aReason, Actor: theActor, IfRevision: l.Revision})
	}
}

// ledger returns the ledger for the present call.
func (r *repeated) ledger() instance.Ledger {
	if client, is := r.via.(instance.Ledger); is {
		return client
	}
	return service.NewLedger(r.service.(*service.Service), journalOf(r, r.store))
}

func opened(l leadership.LeaseRequest) step {
	return func(ctx context.Context, r *repeated) error {
		_, err := r.ledger().OpenJournal(ctx, l)
		return err
	}
}

// logged is a call of the ledger; a copy of it has the same answer.
func logged[Q, R any](do func(instance.Ledger, context.Context, Q) (R, error), request Q, answer func(R) any) step {
	return func(ctx context.Context, r *repeated) error {
		got, err := do(r.ledger(), ctx, request)
		r.answer = answer(got)
		return err
	}
}

func leaves(sequence int64) func(leadership.LeaseRequest) step {
	return func(l leadership.LeaseRequest) step {
		request := leadership.CheckpointRequest{LeaseRequest: l, Sequence: sequence, Data: fmt.Appendf(nil, "%d", sequence)}
		return logged(instance.Ledger.PutCheckpoint, request, func(p leadership.Checkpoint) any { return p })
	}
}

// entries are so many, the first of which has the given number.
func entries(from, count int) (all []leadership.Entry) {
	for i := range count {
		all = append(all, leadership.Entry{Type: "put", Data: fmt.Appendf(nil, `{"n":%d}`, from+i)})
	}
	return all
}

func appended(after leadership.Index) func(leadership.LeaseRequest) step {
	return func(l leadership.LeaseRequest) step {
		return logged(instance.Ledger.AppendJournal, leadership.AppendRequest{LeaseRequest: l, After: after, Entries: entries(int(after)+1, 2)}, indexOf)
	}
}

func snapped(upTo leadership.Index) func(leadership.LeaseRequest) step {
	return func(l leadership.LeaseRequest) step {
		return logged(instance.Ledger.SnapshotJournal, leadership.SnapshotRequest{LeaseRequest: l, UpTo: upTo, Data: fmt.Appendf(nil, "%d", upTo)}, indexOf)
	}
}

func indexOf(h leadership.JournalHead) any { return h.Index }

func proposed(id leadership.ProposalID) step {
	return func(ctx context.Context, r *repeated) error {
		request := leadership.ProposeRequest{Election: r.Election, CandidateID: "dora", ID: id, Kind: "ask"}
		return logged(instance.Ledger.Propose, request, func(p leadership.Proposal) any { return p.At })(ctx, r)
	}
}

func decided(id leadership.ProposalID) func(leadership.LeaseRequest) step {
	return func(l leadership.LeaseRequest) step {
		request := leadership.DecideRequest{LeaseRequest: l, ID: id, Verdict: leadership.ProposalAccepted}
		return logged(instance.Ledger.Decide, request, func(p leadership.Proposal) any { return p.Decision })
	}
}

func begins(id leadership.EffectID) func(leadership.LeaseRequest) step {
	return func(l leadership.LeaseRequest) step {
		return logged(instance.Ledger.BeginEffect, leadership.EffectRequest{LeaseRequest: l, ID: id}, func(e leadership.Effect) any { return e.ID })
	}
}

func finishes(id leadership.EffectID, result string) func(leadership.LeaseRequest) step {
	return func(l leadership.LeaseRequest) step {
		request := leadership.FinishRequest{EffectRequest: leadership.EffectRequest{LeaseRequest: l, ID: id}, Result: []byte(result)}
		return logged(instance.Ledger.FinishEffect, request, func(e leadership.Effect) any { return e })
	}
}

// inherited is an acquire that asks for the checkpoint of the leader before.
func inherited(who leadership.CandidateID) step {
	return func(ctx context.Context, r *repeated) error {
		key := r.key[who]
		g, err := r.via.Acquire(ctx, leadership.AcquireRequest{Election: r.Election, CandidateID: who, Key: &key, Inherit: true})
		if ledger, is := r.ledger().(*service.Ledger); is && err == nil { // a Service alone does not look at it
			err = ledger.Inherit(ctx, &g)
		}
		r.answer = []any{g.Inherited, g.InDoubt}
		return err
	}
}

// written is a call of the ledger by the leader at the time of the first, and write one by the
// leader at the time of the step.
func written(call func(leadership.LeaseRequest) step) func(*repeated) step {
	return func(r *repeated) step {
		l := r.now()
		return call(r.of(l.LeaderID, l.Token))
	}
}

func write(call func(leadership.LeaseRequest) step) step { return then(written(call)) }

// childDeleted deletes the child of an election.
func childDeleted(ctx context.Context, r *repeated) error {
	return given(leadership.Delete{Election: r.Election + "." + theChild, Force: true})(ctx, r)
}

var (
	pause  = leadership.Order{Kind: leadership.OrderPause, For: aLong}
	ban    = leadership.Order{Kind: leadership.OrderBan, CandidateID: "dan", For: aLong}
	lift   = leadership.Order{Kind: leadership.OrderLift}
	resume = leadership.Order{Kind: leadership.OrderResume}
)

// since are the answers to a copy once the effect was undone, and in the situations after that.
func since(undone, later leadership.Code) [5]leadership.Code {
	return [5]leadership.Code{"", undone, later, later, later}
}

// stale is the answer to a copy of a call of the ledger once a later leader has opened the log.
// Until then the log's own mark admits the leader before: its copies are known.
const (
	stale      = leadership.TokenStale
	lost       = leadership.LeaseLost
	held       = leadership.LeaseHeld
	mismatch   = leadership.RevisionMismatch
	otherIndex = leadership.IndexMismatch
)

// repeats is the table. Calls that change no record are not in it, nor are those that a clock alone
// decides (tick). A key is spent with its term: see "Identity". People are asked again for an
// approval, and nothing else changes.
var repeats = []repeat{
	{verb: "acquire", before: []step{by(Subject.Do, released)}, call: steady(acquired("cy")), undo: []step{by(Subject.Do, released)}, want: since(counts, held)},
	{verb: "renew", call: leaders(Subject.Renew, same), want: since(noCell, lost)},
	{verb: "release", call: leaders(Subject.Do, released), undo: []step{acquired("ann")}},
	{verb: "step-down", call: leaders(Subject.Do, steppedDown), undo: []step{order(lift), acquired("ann")}},
	{verb: "request-approval", call: leaders(Subject.Do, askedForApproval), undo: []step{order(leadership.Order{Kind: leadership.OrderApprove})}, want: since(counts, lost)},
	{verb: "hand-over", call: leaders(Subject.Do, handsOverTo("bob")), undo: []step{handedOverTo("cy")}, want: since(leadership.NotEligible, lost)},
	{
		verb: "say-ready", before: []step{handedOverTo("cy")}, call: func(r *repeated) step { return given(leadership.SayReady{LeaseRequest: r.of("cy", 1)}) },
		undo: []step{handedOverTo("dan")}, want: since(leadership.NotEligible, stale),
	},
	{verb: "yield", before: []step{handedOverTo("bob"), saidReady("bob")}, call: leaders(Subject.Do, yielded), undo: []step{acquired("bob")}},
	{verb: "delegate", call: leaders(Subject.Delegate, delegated), want: since(noCell, lost)},
	{verb: "delegate-deleted", call: leaders(Subject.Delegate, delegated), undo: []step{childDeleted}, want: since(leadership.ElectionDeleted, leadership.ElectionDeleted)},
	{verb: "configure", call: configured(leadership.Config{LockDelay: time.Second}), undo: []step{configure(leadership.Config{})}, want: since(mismatch, mismatch)},
	{
		verb: "delete", call: func(r *repeated) step {
			return given(leadership.Delete{Election: r.Election, Force: true, IfRevision: r.now().Revision})
		},
		undo: []step{configure(leadership.Config{}), unlocked}, want: since(mismatch, mismatch),
	},
	{verb: "unlock", call: func(r *repeated) step { return given(r.unlock()) }, undo: []step{acquired("ann")}, want: since(held, held)},
	{verb: "assign", call: ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "ann", For: aLong}), undo: []step{order(lift)}, want: since(mismatch, mismatch)},
	{verb: "pause", call: ordered(pause), undo: []step{order(resume)}, want: since(mismatch, mismatch)},
	{verb: "resume", before: []step{order(pause)}, call: ordered(resume), undo: []step{order(pause)}, // a new term needs the pause lifted
		want: [5]leadership.Code{1: mismatch, 4: mismatch}},
	{verb: "ban", call: ordered(ban), undo: []step{order(lift)}, want: since(mismatch, mismatch)},
	{verb: "lift", before: []step{order(ban)}, call: ordered(lift), undo: []step{order(ban)}}, // the id is that of the first ban
	{verb: "evict", call: ordered(leadership.Order{Kind: leadership.OrderEvict}), want: [5]leadership.Code{"", noCell, mismatch, mismatch, stale}},
	{verb: "evict-by-token", call: ordered(leadership.Order{Kind: leadership.OrderEvict, Token: 1}), want: since(noCell, "")},
	{verb: "approve", call: ordered(leadership.Order{Kind: leadership.OrderApprove, For: aLong}), want: since(noCell, stale)},
	{verb: "judge", call: judged(leadership.VerdictBad), undo: []step{then(judged(leadership.VerdictGood))}, want: since(mismatch, stale)},
	{
		verb: "inherit", before: []step{write(leaves(1)), by(Subject.Do, released)}, call: steady(inherited("cy")), undo: []step{by(Subject.Do, released)},
		want: since(counts, held),
	},
	{verb: "put-checkpoint", call: written(leaves(1)), undo: []step{write(leaves(2))}, next: []step{write(leaves(1))}, want: since(otherIndex, stale)},
	{verb: "put-checkpoint-not-inherited", call: written(leaves(1)), undo: []step{write(leaves(2))}, want: [5]leadership.Code{"", otherIndex, otherIndex, otherIndex, stale}},
	{verb: "begin-effect", call: written(begins("one")), undo: []step{write(finishes("one", "1"))}, next: []step{write(begins("two"))}, want: since("", stale)},
	{verb: "begin-effect-not-begun-since", call: written(begins("one")), undo: []step{write(finishes("one", "1"))}, want: [5]leadership.Code{4: stale}},
	{
		verb: "finish-effect", before: []step{write(begins("one"))}, call: written(finishes("one", "1")), undo: []step{write(begins("two"))},
		next: []step{write(begins("three"))}, want: since("", stale),
	},
	{verb: "open-journal", call: written(opened), next: []step{write(opened)}, want: since(noCell, lost)},
	{verb: "append", call: written(appended(0)), undo: []step{write(snapped(2))}, next: []step{write(opened)}, want: since("", stale)},
	{verb: "append-not-opened-since", call: written(appended(0)), undo: []step{write(snapped(2))}, want: [5]leadership.Code{4: stale}},
	{verb: "append-followed", call: written(appended(0)), undo: []step{write(appended(2))}, want: [5]leadership.Code{"", otherIndex, otherIndex, otherIndex, stale}},
	{
		verb: "snapshot", before: []step{write(appended(0))}, call: written(snapped(1)), undo: []step{write(snapped(2))}, next: []step{write(appended(2))},
		want: since("", stale),
	},
	{verb: "propose", call: steady(proposed("p")), undo: []step{write(decided("p"))}}, // as long as it is kept
	{verb: "decide", before: []step{proposed("p"), proposed("q")}, call: written(decided("p")), next: []step{write(decided("q"))}, want: since(noCell, stale)},
	{verb: "decide-none-since", before: []step{proposed("p")}, call: written(decided("p")), want: [5]leadership.Code{"", noCell, lost, lost, stale}},
}

// unlock is the call that ends the present wait.
func (r *repeated) unlock() leadership.Unlock {
	u := leadership.Unlock{Election: r.Election, Reason: aReason, Actor: theActor, Acknowledge: "yes"}
	_, err := r.service.Do(r.Context(), u)
	_, u.Acknowledge, _ = strings.Cut(r.refused(err, leadership.LeaseHeld).Detail, "with exactly this acknowledge: ")
	return u
}

func unlocked(ctx context.Context, r *repeated) error {
	return given(r.unlock())(ctx, r)
}

// come brings the situation about, after the call was made.
func (r *repeated) come(situation string, row repeat) {
	r.Helper()
	if situation == atOnce {
		return
	}
	r.do("undo", row.undo...)
	if situation == anotherTerm || situation == anotherEpoch {
		if l := r.now(); l.State == leadership.Held {
			r.do("the term ends", by(Subject.Do, released))
		}
		for _, o := range r.orders() {
			o := leadership.Order{Kind: leadership.OrderLift, Override: o, Actor: theActor, Reason: "x"}
			r.do("lift", given(o.In(r.Election)))
		}
		r.do("a new term", acquired("bob"))
	}
	if situation == anotherEpoch {
		r.do("a new epoch", order(leadership.Order{Kind: leadership.OrderApprove, NewEpoch: true}))
	}
	if situation == anotherTerm || situation == anotherEpoch {
		r.do("next", row.next...)
	}
	if situation == restored {
		_, err := r.store.Update(r.Context(), r.Election, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Raise(s, rule.RaiseCommand{Above: forgotten})
		})
		if err != nil {
			r.Fatalf("%s: restore: %v", r.Election, err)
		}
		for _, kind := range logKinds {
			if _, err := journalOf(r, r.store).Amend(r.Context(), rule.LogID{Election: r.Election, Kind: kind}, func(l rule.Log) (rule.LogChange, error) {
				return rule.RaisedLog(l, leadership.Token(forgotten), true)
			}); err != nil {
				r.Fatalf("%s: restore the %s: %v", r.Election, kind, err)
			}
		}
	}
}

func (r *repeated) orders() (ids []leadership.OverrideID) {
	all, err := r.service.Overrides(r.Context(), r.Election)
	require.NoError(r, err)
	for _, o := range all {
		ids = append(ids, o.ID)
	}
	return ids
}

// logKinds are those of a leader.
var logKinds = []rule.LogKind{rule.LogCheckpoint, rule.LogJournal, rule.LogEffects, rule.LogProposals}

// told is the history of the election and of its child, without the part that a restore has
// forgotten, and the contents of its logs.
func (r *repeated) told(after leadership.Revision) (lines []string) {
	for child, after := range map[leadership.Election]leadership.Revision{"": after, "." + theChild: 0} {
		events, err := r.store.Events(r.Context(), r.Election+child, after, 1000)
		if err != nil {
			r.Fatalf("%s: events: %v", r.Election, err)
		}
		for _, e := range events {
			lines = append(lines, string(child)+told(e))
		}
	}
	slices.Sort(lines)
	journal := journalOf(r, r.store)
	for _, kind := range logKinds {
		head, err := journal.Look(r.Context(), rule.LogID{Election: r.Election, Kind: kind})
		if err != nil {
			r.Fatalf("%s: look at the %s: %v", r.Election, kind, err)
		}
		lines = append(lines, string(kind)+" "+head.Text+" "+head.Body)
	}
	snapshot, err := journal.Snapshot(r.Context(), rule.LogID{Election: r.Election, Kind: rule.LogJournal})
	if err != nil {
		r.Fatalf("%s: snapshot: %v", r.Election, err)
	}
	segments, err := journal.Segments(r.Context(), rule.LogID{Election: r.Election, Kind: rule.LogJournal}, 0, 1000)
	if err != nil {
		r.Fatalf("%s: segments: %v", r.Election, err)
	}
	for _, s := range append(segments, snapshot) {
		lines = append(lines, fmt.Sprintf("%d to %d: %s", s.First, s.Last, s.Data))
	}
	return lines
}

// repeatCases make each call of the table, bring each situation about, and make a copy of the call.
// The short form does so on a far store for a fifth of the table: the rules are the same on each.
func repeatCases() (all []protocolCase) {
	for i, situation := range situations {
		all = append(all, protocolCase{"a call that is made again changes nothing: " + situation, func(p *pair) {
			store := p.backing.Open(p)
			each := 1 // of how many rows one is taken
			if p.backing.Far && testing.Short() {
				each = len(situations)
			}
			for n, row := range repeats {
				if (n+i+machine.Drawn())%each == 0 && row.want[i] != noCell {
					p.repeat(store, row, situation, row.want[i])
				}
			}
		}})
	}
	return all
}

func (p *pair) repeat(store service.Store, row repeat, situation string, want leadership.Code) {
	p.Helper()
	r := &repeated{pair: p, Election: leadership.Election(row.verb), store: store, service: service.New(store), key: make(map[leadership.CandidateID]leadership.Key)}
	r.via = r.service
	for _, who := range []leadership.CandidateID{"ann", "bob", "cy", "dan"} {
		r.key[who] = leadership.NewKey()
	}
	r.do("begin", configure(leadership.Config{}), acquired("ann"))
	r.do("before", row.before...)
	call := row.call(r)
	r.via = r.a
	r.answer = nil
	r.do("the call", call)
	answer := r.answer
	r.via = r.service
	r.come(situation, row)
	var forgets leadership.Revision
	if situation == restored {
		forgets = forgotten - 1
	}
	before := r.told(forgets)
	r.via = r.b // through another server
	err := call(r.Context(), r)
	diff := cmp.Diff(before, r.told(forgets))
	switch {
	case want == counts:
		if diff == "" || err != nil {
			p.Errorf("%s, %s: %v; it is known to count once more", row.verb, situation, err)
		}
	case diff != "":
		p.Errorf("%s, %s: a copy of the call has changed something (-before +after):\n%s", row.verb, situation, diff)
	case want == "" && err != nil, want != "" && !errors.Is(err, want):
		p.Errorf("%s, %s: a copy of the call is answered %v; want %s", row.verb, situation, err, fmt.Sprintf("%q", want))
	case want == "" && !cmp.Equal(r.answer, answer):
		p.Errorf("%s, %s: a copy of the call is answered %v; want %v, as before", row.verb, situation, r.answer, answer)
	}
}
