package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/service"
	"regent/test/machine"
)

// terms are leaders one after the other, with a service and a ledger on both handles.
type terms struct {
	*logs
	service [2]*service.Service
	ledger  [2]*service.Ledger
}

func (l *logs) terms() *terms {
	t := &terms{logs: l}
	for i, s := range []service.Store{l.handles.a, l.handles.b} {
		t.service[i] = service.New(s)
		t.ledger[i] = service.NewLedger(t.service[i], journalOf(l, s))
	}
	return t
}

// grant makes the candidate lead through the handle, for an hour.
func (t *terms) grant(handle int, candidate string) leadership.Grant {
	t.Helper()
	key := leadership.NewKey()
	g, err := t.service[handle].Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: &key, LeaseDuration: long})
	if err != nil {
		t.Fatalf("acquire by %s: %v", candidate, err)
	}
	return g
}

// leaseIn names a granted lease.
func leaseIn(g leadership.Grant) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}
}

// expire lets every lease end.
func (t *terms) expire() {
	t.Helper()
	t.backing.Advance(t, long+time.Hour)
}

// entries are so many, the first of which has the given number.
func entries(from, count int) (all []leadership.Entry) {
	for i := range count {
		all = append(all, leadership.Entry{Type: "put", Data: fmt.Appendf(nil, `{"n":%d}`, from+i)})
	}
	return all
}

func (t *terms) append(handle int, g leadership.Grant, after leadership.Index, all []leadership.Entry) (leadership.JournalHead, error) {
	return t.ledger[handle].AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: leaseIn(g), After: after, Entries: all})
}

// appended expects an append to succeed.
func (t *terms) appended(handle int, g leadership.Grant, after leadership.Index, count int) {
	t.Helper()
	h, err := t.append(handle, g, after, entries(int(after)+1, count))
	if err != nil || h.Index != after+leadership.Index(count) || h.Token != g.Token {
		t.Fatalf("append of %d entries after %d with token %d: got %+v, %v", count, after, g.Token, h, err)
	}
}

// read reads a journal to its end.
func (t *terms) read(handle int, after leadership.Index, limit int) (all []leadership.Entry) {
	t.Helper()
	for range 1000 {
		page, err := t.ledger[handle].ReadJournal(t.Context(), leadership.JournalRequest{Election: jobs, After: after, Limit: limit})
		switch {
		case err != nil:
			t.Fatalf("read after %d: %v", after, err)
		case len(page.Entries) == 0 && page.Index > after:
			t.Fatalf("read after %d: nothing, and the journal is at %d", after, page.Index)
		case len(page.Entries) == 0:
			return all
		}
		for _, e := range page.Entries {
			if after++; e.Index != after {
				t.Fatalf("entry %d where %d was due", e.Index, after)
			}
		}
		all = append(all, page.Entries...)
	}
	t.Fatal("the journal does not end")
	return nil
}

// has expects the journal to have the numbers from one to the other, each at its index.
func (t *terms) has(handle int, from, to int) {
	t.Helper()
	all := t.read(handle, leadership.Index(from-1), 7)
	if len(all) != to-from+1 {
		t.Fatalf("got %d entries after %d, want %d", len(all), from-1, to-from+1)
	}
	for i, e := range all {
		if want := fmt.Sprintf(`{"n":%d}`, from+i); string(e.Data) != want || e.Type != "put" || e.Token == 0 || e.At.IsZero() {
			t.Errorf("entry %d is %+v, want %s", e.Index, e, want)
		}
	}
}

func (t *terms) refused(what string, err error, code leadership.Code) *leadership.Error {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("%s: got %v, want %s", what, err, code)
	}
	e, _ := errors.AsType[*leadership.Error](err)
	return e
}

func (t *terms) begin(handle int, g leadership.Grant, id leadership.EffectID) (leadership.Effect, error) {
	return t.ledger[handle].BeginEffect(t.Context(), leadership.EffectRequest{LeaseRequest: leaseIn(g), ID: id})
}

// begins expects an effect to be in the state, by the leader with that token.
func (t *terms) begins(handle int, g leadership.Grant, id leadership.EffectID, state leadership.EffectState, by leadership.Token) leadership.Effect {
	t.Helper()
	e, err := t.begin(handle, g, id)
	if err != nil || e.ID != id || e.State != state || e.Token != by || e.At.IsZero() {
		t.Fatalf("begin %s with token %d: got %+v, %v; want %s by token %d", id, g.Token, e, err, state, by)
	}
	return e
}

func (t *terms) finish(handle int, g leadership.Grant, id leadership.EffectID, result string) (leadership.Effect, error) {
	return t.ledger[handle].FinishEffect(t.Context(), leadership.FinishRequest{EffectRequest: leadership.EffectRequest{LeaseRequest: leaseIn(g), ID: id}, Result: json.RawMessage(result)})
}

func (t *terms) finishes(handle int, g leadership.Grant, id leadership.EffectID, result string) {
	t.Helper()
	if e, err := t.finish(handle, g, id, result); err != nil || e.State != leadership.EffectDone || string(e.Result) != result || e.Token != g.Token {
		t.Fatalf("finish %s with token %d: got %+v, %v", id, g.Token, e, err)
	}
}

var ledgerCases = []journalCase{
	{"what a leader has appended is read through every handle, in order and without a gap", func(l *logs) {
		t := l.terms()
		ann := t.grant(0, "ann")
		h, err := t.ledger[0].OpenJournal(t.Context(), leaseIn(ann))
		if err != nil || h.Index != 0 || h.Token != ann.Token || h.Snapshot != 0 {
			t.Fatalf("open: got %+v, %v", h, err)
		}
		for after, count := range []int{1, 0, 5, 0, 0, 0, 0, 13} {
			if count > 0 {
				t.appended(0, ann, leadership.Index(after-min(after, 1)), count)
			}
		}
		t.has(1, 1, 19)
		t.has(0, 4, 19)
		if got := t.read(1, 19, 5); len(got) > 0 {
			t.Errorf("after the end: got %v", got)
		}
		if h, err := t.ledger[1].Head(t.Context(), jobs); err != nil || h.Index != 19 || h.Token != ann.Token {
			t.Errorf("head: got %+v, %v", h, err)
		}
	}},
	{"once a successor has opened the journal no earlier leader appends, and nothing is missing", func(l *logs) {
		t := l.terms()
		ann := t.grant(0, "ann")
		t.appended(0, ann, 0, 3)
		t.expire()
		bob := t.grant(1, "bob")
		t.appended(0, ann, 3, 2) // late, and before the successor has looked
		h, err := t.ledger[1].OpenJournal(t.Context(), leaseIn(bob))
		if err != nil || h.Index != 5 || h.Token != bob.Token {
			t.Fatalf("open by the successor: got %+v, %v; want index 5", h, err)
		}
		_, err = t.append(0, ann, 5, entries(6, 1))
		t.refused("append by the earlier leader", err, leadership.TokenStale)
		_, err = t.ledger[0].SnapshotJournal(t.Context(), leadership.SnapshotRequest{LeaseRequest: leaseIn(ann), UpTo: 2, Data: json.RawMessage("1")})
		t.refused("snapshot by the earlier leader", err, leadership.TokenStale)
		_, err = t.ledger[0].OpenJournal(t.Context(), leaseIn(ann))
		t.refused("open by the earlier leader", err, leadership.LeaseLost)
		t.appended(1, bob, 5, 2)
		t.has(0, 1, 7)
		_, err = t.append(0, ann, 3, entries(4, 2))
		t.refused("a late repetition", err, leadership.TokenStale)
	}},
	{"entries that a snapshot stands for are deleted, and a reader of them is told where to start", func(l *logs) {
		t := l.terms()
		ann := t.grant(0, "ann")
		for after := 0; after < 12; after += 4 {
			t.appended(0, ann, leadership.Index(after), 4)
		}
		if _, err := t.ledger[1].ReadSnapshot(t.Context(), jobs); !errors.Is(err, leadership.NotFound) {
			t.Errorf("no snapshot yet: got %v", err)
		}
		snap := func(handle int, upTo leadership.Index, data string) (leadership.JournalHead, error) {
			return t.ledger[handle].SnapshotJournal(t.Context(), leadership.SnapshotRequest{LeaseRequest: leaseIn(ann), UpTo: upTo, Data: json.RawMessage(data)})
		}
		_, err := snap(0, 13, "1")
		if e := t.refused("a snapshot beyond the end", err, leadership.IndexMismatch); e.Index != 12 {
			t.Errorf("got index %d, want 12", e.Index)
		}
		for range 2 {
			if h, err := snap(0, 6, `{"sum":21}`); err != nil || h.Snapshot != 6 || h.Index != 12 {
				t.Fatalf("snapshot: got %+v, %v", h, err)
			}
		}
		s, err := t.ledger[1].ReadSnapshot(t.Context(), jobs)
		if err != nil || s.UpTo != 6 || string(s.Data) != `{"sum":21}` || s.Token != ann.Token || s.At.IsZero() {
			t.Errorf("read snapshot: got %+v, %v", s, err)
		}
		_, err = t.ledger[1].ReadJournal(t.Context(), leadership.JournalRequest{Election: jobs})
		if e := t.refused("from the beginning", err, leadership.HistoryCompacted); e.Index != 6 {
			t.Errorf("got index %d, want 6", e.Index)
		}
		t.has(1, 7, 12)
		t.appended(1, ann, 12, 3)
		if h, err := snap(1, 3, `"old"`); err != nil || h.Snapshot != 6 { // a later one stands
			t.Errorf("an older snapshot: got %+v, %v", h, err)
		}
		if h, err := snap(1, 15, `"all"`); err != nil || h.Snapshot != 15 {
			t.Errorf("a snapshot of all: got %+v, %v", h, err)
		}
		if s, err := t.ledger[0].ReadSnapshot(t.Context(), jobs); err != nil || s.UpTo != 15 || string(s.Data) != `"all"` {
			t.Errorf("read snapshot: got %+v, %v", s, err)
		}
		if got := t.read(0, 15, 10); len(got) > 0 {
			t.Errorf("after the end: got %v", got)
		}
		t.appended(0, ann, 15, 2)
		t.has(1, 16, 17)
	}},
	{"a proposal is known and decided once through every handle, while the election is vacant too", func(l *logs) {
		t := l.terms()
		ann := t.grant(0, "ann")
		ttl := 5 * long
		propose := func(handle int, id leadership.ProposalID) (leadership.Proposal, error) {
			return t.ledger[handle].Propose(t.Context(), leadership.ProposeRequest{Election: jobs, CandidateID: "dora", ID: id, Kind: "scale", Data: json.RawMessage(` {"to": 3}`), TTL: ttl})
		}
		decide := func(handle int, g leadership.Grant, id leadership.ProposalID, v leadership.ProposalVerdict) (leadership.Proposal, error) {
			return t.ledger[handle].Decide(t.Context(), leadership.DecideRequest{LeaseRequest: leaseIn(g), ID: id, Verdict: v, Note: "as asked"})
		}
		for handle := range 2 {
			if p, err := propose(handle, "p"); err != nil || p.Decision != nil || string(p.Data) != `{"to":3}` || p.Until.Sub(p.At) != 5*long {
				t.Fatalf("propose: got %+v, %v", p, err)
			}
		}
		p, err := decide(1, ann, "p", leadership.ProposalAccepted)
		if err != nil || p.Decision == nil || p.Decision.Token != ann.Token || p.Decision.At.IsZero() {
			t.Fatalf("decide: got %+v, %v", p, err)
		}
		if again, err := decide(0, ann, "p", leadership.ProposalAccepted); err != nil || *again.Decision != *p.Decision {
			t.Errorf("decide again: got %+v, %v; want %+v", again.Decision, err, p.Decision)
		}
		_, err = decide(0, ann, "p", leadership.ProposalRejected)
		t.refused("another verdict", err, leadership.InvalidArgument)
		if again, err := propose(0, "p"); err != nil || again.Decision == nil || again.Decision.Verdict != leadership.ProposalAccepted {
			t.Errorf("propose again: got %+v, %v; want the decision", again, err)
		}
		t.expire() // of the lease, while the proposals are kept
		if _, err := propose(1, "q"); err != nil {
			t.Fatalf("propose to a vacant election: %v", err)
		}
		_, err = decide(0, ann, "q", leadership.ProposalAccepted)
		t.refused("decide after the lease has ended", err, leadership.LeaseLost)
		bob := t.grant(1, "bob")
		if p, err := decide(1, bob, "q", leadership.ProposalRejected); err != nil || p.Decision.LeaderID != "bob" {
			t.Fatalf("decide by the successor: got %+v, %v", p, err)
		}
		_, err = decide(0, ann, "q", leadership.ProposalAccepted)
		t.refused("decide by the earlier leader", err, leadership.TokenStale)
		all, err := t.ledger[0].Proposals(t.Context(), jobs)
		if err != nil || len(all.Open) != 0 || len(all.Decided) != 2 || all.Decided[1].ID != "q" {
			t.Errorf("read: got %+v, %v", all, err)
		}
		ttl = leadership.MinProposalTTL
		if _, err := propose(0, "r"); err != nil {
			t.Fatalf("propose for a second: %v", err)
		}
		t.backing.Advance(t, 2*ttl)
		machine.Eventually(t, "its ttl is over", func() bool {
			all, err := t.ledger[1].Proposals(t.Context(), jobs)
			return err == nil && len(all.Open) == 0 && len(all.Decided) == 2
		})
		_, err = decide(0, bob, "r", leadership.ProposalAccepted)
		t.refused("decide what is kept no longer", err, leadership.NotFound)
	}},
	{"an effect is begun by one leader at a time, and is done for all that follow once it is finished", func(l *logs) {
		t := l.terms()
		ann := t.grant(0, "ann")
		t.begins(0, ann, "mail", leadership.EffectNew, ann.Token)
		t.begins(1, ann, "mail", leadership.EffectNew, ann.Token) // the reply was lost
		t.begins(0, ann, "bill", leadership.EffectNew, ann.Token)
		t.finishes(1, ann, "bill", `{"n":1}`)
		t.finishes(0, ann, "bill", `{"n":1}`)
		_, err := t.finish(0, ann, "bill", `{"n":2}`)
		t.refused("another result", err, leadership.InvalidArgument)
		_, err = t.finish(0, ann, "call", `1`)
		t.refused("an effect that was not begun", err, leadership.NotFound)
		t.expire()
		bob := t.grant(1, "bob")
		t.begins(0, ann, "call", leadership.EffectNew, ann.Token) // late, and before the successor has looked
		if err := t.ledger[1].Inherit(t.Context(), &bob); err != nil {
			t.Fatal(err)
		}
		var ids []leadership.EffectID
		for _, e := range bob.InDoubt {
			ids = append(ids, e.ID)
			if e.State != leadership.EffectInDoubt || e.Token != ann.Token || e.LeaderID != "ann" || e.At.IsZero() {
				t.Errorf("in doubt: got %+v", e)
			}
		}
		if !slices.Equal(ids, []leadership.EffectID{"mail", "call"}) {
			t.Errorf("in doubt are %v, want mail and call", ids)
		}
		_, err = t.begin(0, ann, "late")
		t.refused("begin by the earlier leader", err, leadership.TokenStale)
		_, err = t.finish(0, ann, "mail", "")
		t.refused("finish by the earlier leader", err, leadership.TokenStale)
		if e := t.begins(1, bob, "bill", leadership.EffectDone, ann.Token); string(e.Result) != `{"n":1}` {
			t.Errorf("done with the result %s", e.Result)
		}
		t.begins(1, bob, "call", leadership.EffectInDoubt, ann.Token)
		t.finishes(1, bob, "call", "")
		t.begins(0, bob, "call", leadership.EffectDone, bob.Token)
		all, err := t.ledger[0].Effects(t.Context(), jobs)
		if err != nil || all.Token != bob.Token || len(all.Effects) != 3 {
			t.Errorf("effects: got %+v, %v", all, err)
		}
	}},
}
