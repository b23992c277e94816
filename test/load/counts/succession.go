package counts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
)

// The names of the operations of which a test holds more than that they cost what testdata says.
const (
	putAgainName     = "checkpoint, each further one of a term"
	putUnknownName   = "checkpoint, through a server that has not had one"
	grantName        = "grant of a vacant election, without inheriting"
	inheritName      = "grant of a vacant election that inherits a checkpoint"
	beginAgainName   = "begin of an effect, each further one of a term"
	finishName       = "finish of an effect"
	proposeName      = "proposal, each further one"
	decideName       = "decision on a proposal"
	inDoubtName      = "grant of a vacant election that inherits a checkpoint and effects in doubt"
	appendName       = "append of an entry to a journal"
	appendMostName   = "append of 500 entries"
	appendRepeatName = "append repeated, whose reply was lost"
	headName         = "look of a follower at a journal where nothing was appended"
)

// successions lets ann hand over to bob, in two phases.
func (s *script) successions() error {
	const e = "succession"
	ready := s.sends(leadership.SayReady{LeaseRequest: s.bob.lease(e, 1)})
	return all(
		s.configures(e, leadership.Config{}), s.acquire(s.ann, e),
		s.counted("hand-over: the leader names its successor", s.sends(leadership.HandOver{LeaseRequest: s.ann.lease(e, 1), To: s.bob.id})),
		s.counted("hand-over: a renewal meanwhile", s.renew(s.ann, e, 1)),
		s.counted("hand-over: the successor is ready", ready),
		s.counted("hand-over: the same again", ready),
		s.counted("hand-over: the leader yields", s.sends(leadership.Yield{LeaseRequest: s.ann.lease(e, 1)})),
		s.counted("hand-over: the successor takes over", s.acquire(s.bob, e)),
		s.configures("promoted", leadership.Config{Promotion: true}), s.acquire(s.ann, "promoted"),
		s.counted("promotion: the leader serves", s.sends(leadership.SayServing{LeaseRequest: s.ann.lease("promoted", 1)})),
	)
}

// checkpoints lets leaders leave checkpoints for each other.
func (s *script) checkpoints() error {
	const e = "checkpoints"
	put := func(h Handle, data string) error {
		_, err := ledgerOn(h).PutCheckpoint(s.ctx, leadership.CheckpointRequest{LeaseRequest: s.ann.lease(e, 1), Sequence: int64(data[0] - '0'), Task: "count", Data: json.RawMessage(data)})
		return err
	}
	puts := func(data string) func() error { return func() error { return put(s.handle, data) } }
	grant := func(a agent, inherit bool) func(Handle) error {
		return func(h Handle) error {
			inst, err := instance.New(instance.Config{Store: h, Journal: h, Name: "regent-other", Alone: true})
			if err != nil {
				return err
			}
			if err := s.halts(inst); err != nil {
				return err
			}
			h.Take()
			ask := a.ask(e)
			ask.Inherit = inherit
			g, err := inst.Acquire(s.ctx, ask)
			if err == nil && inherit != (g.Inherited != nil) {
				err = fmt.Errorf("it inherits %+v", g.Inherited)
			}
			return err
		}
	}
	return all(
		s.configures(e, leadership.Config{}), s.acquire(s.ann, e),
		s.counted("checkpoint, the first of a term", puts("1")),
		s.counted(putAgainName, puts("2")),
		s.elsewhere(putUnknownName, func(h Handle) error { return put(h, "3") }),
		s.counted("checkpoint, after one through another server", puts("4")),
		s.counted("reading a checkpoint", func() error { _, err := ledgerOn(s.handle).Checkpoint(s.ctx, e); return err }),
		s.releases(s.ann, e, 1),
		s.elsewhere(grantName, grant(s.bob, false)),
		s.releases(s.bob, e, 2),
		s.elsewhere(inheritName, grant(s.bob, true)),
	)
}

// effects lets a leader do things once.
func (s *script) effects() error {
	const e = "effects"
	ledger := ledgerOn(s.handle)
	begin := func(id leadership.EffectID) step {
		return func() error {
			_, err := ledger.BeginEffect(s.ctx, leadership.EffectRequest{LeaseRequest: s.ann.lease(e, 1), ID: id})
			return err
		}
	}
	finish := func() error {
		_, err := ledger.FinishEffect(s.ctx, leadership.FinishRequest{EffectRequest: leadership.EffectRequest{LeaseRequest: s.ann.lease(e, 1), ID: "b"}, Result: json.RawMessage("1")})
		return err
	}
	return all(
		s.configures(e, leadership.Config{}), s.acquire(s.ann, e),
		s.counted("begin of an effect, the first of a term", begin("a")),
		s.counted(beginAgainName, begin("b")),
		s.counted(finishName, finish),
		s.counted("the same again, whose reply was lost", finish),
		s.counted("reading the effects", func() error { _, err := ledger.Effects(s.ctx, e); return err }),
		func() error {
			_, err := ledger.PutCheckpoint(s.ctx, leadership.CheckpointRequest{LeaseRequest: s.ann.lease(e, 1), Sequence: 1, Data: json.RawMessage("1")})
			return err
		},
		s.releases(s.ann, e, 1),
		s.elsewhere(inDoubtName, func(h Handle) error {
			g, err := service.New(h).Acquire(s.ctx, s.bob.ask(e))
			if err == nil {
				err = ledgerOn(h).Inherit(s.ctx, &g)
			}
			if err == nil && len(g.InDoubt) != 1 {
				err = fmt.Errorf("in doubt are %+v", g.InDoubt)
			}
			return err
		}),
	)
}

// proposals asks a leader something.
func (s *script) proposals() error {
	const e = "proposals"
	ledger := ledgerOn(s.handle)
	propose := func(id leadership.ProposalID) step {
		return func() error {
			_, err := ledger.Propose(s.ctx, leadership.ProposeRequest{Election: e, CandidateID: "dora", ID: id, Kind: "ask"})
			return err
		}
	}
	decide := func() error {
		_, err := ledger.Decide(s.ctx, leadership.DecideRequest{LeaseRequest: s.ann.lease(e, 1), ID: "b", Verdict: leadership.ProposalAccepted})
		return err
	}
	return all(
		s.configures(e, leadership.Config{}), s.acquire(s.ann, e),
		s.counted("proposal, the first of an election", propose("a")),
		s.counted(proposeName, propose("b")),
		s.counted("proposal repeated, whose reply was lost", propose("b")),
		s.counted(decideName, decide),
		s.counted("reading the proposals", func() error { _, err := ledger.Proposals(s.ctx, e); return err }),
	)
}

// ledgerOn returns a ledger on a handle.
func ledgerOn(h Handle) *service.Ledger { return service.NewLedger(service.New(h), h) }

// elsewhere is counted through another handle, as at another server.
func (s *script) elsewhere(name string, do func(Handle) error) step {
	return func() error {
		other, err := s.place.Open(s.ctx)
		if err != nil {
			return err
		}
		defer other.Close()
		if err := do(other); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		asked, relay := other.Take()
		s.done = append(s.done, Operation{name, asked.plus(relay)})
		return nil
	}
}

// journals lets a leader write a journal, and a reader follow it.
func (s *script) journals() error {
	const e = "journals"
	ledger := ledgerOn(s.handle)
	add := func(after leadership.Index, n int) func() error {
		entries := make([]leadership.Entry, n)
		for i := range entries {
			entries[i] = leadership.Entry{Type: "put", Data: json.RawMessage(`{"key":"a","value":1}`)}
		}
		return func() error {
			_, err := ledger.AppendJournal(s.ctx, leadership.AppendRequest{LeaseRequest: s.ann.lease(e, 1), After: after, Entries: entries})
			return err
		}
	}
	read := func(after leadership.Index) step {
		return func() error {
			_, err := ledger.ReadJournal(s.ctx, leadership.JournalRequest{Election: e, After: after, Limit: leadership.MaxPageSize})
			return err
		}
	}
	return all(
		s.configures(e, leadership.Config{}), s.acquire(s.ann, e),
		s.counted("opening a journal", func() error { _, err := ledger.OpenJournal(s.ctx, s.ann.lease(e, 1)); return err }),
		s.counted(appendName, add(0, 1)),
		s.counted(appendMostName, add(1, leadership.MaxEntries)),
		s.counted(appendRepeatName, add(1, leadership.MaxEntries)),
		add(501, 1), add(502, 1),
		s.counted("reading a journal with 4 appends", read(0)),
		s.counted("reading a journal at its end", read(503)),
		s.counted(headName, func() error { _, err := ledger.Head(s.ctx, e); return err }),
		s.counted("snapshot of a journal with 4 appends, of which it deletes 3", func() error {
			_, err := ledger.SnapshotJournal(s.ctx, leadership.SnapshotRequest{LeaseRequest: s.ann.lease(e, 1), UpTo: 502, Data: json.RawMessage("1")})
			return err
		}),
		s.counted("reading the snapshot", func() error { _, err := ledger.ReadSnapshot(s.ctx, e); return err }),
	)
}

// hierarchy lets leases stand on others.
func (s *script) hierarchy() error {
	const top, part, region = "tree", "tree.part", "region"
	via := func(e, of leadership.Election) step {
		return func() error {
			ask := s.ann.ask(e)
			ask.Via = leadership.Via{Election: of, Token: 1}
			_, err := s.service.Acquire(s.ctx, ask)
			return err
		}
	}
	delegate := func() error {
		_, err := s.service.Delegate(s.ctx, leadership.DelegateRequest{
			LeaseRequest: s.ann.lease(top, 1), Child: "part", Limits: leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: leadership.AsParent},
		})
		return err
	}
	return all(
		s.configures(top, leadership.Config{}), s.acquire(s.ann, top),
		s.counted("delegating a part of a task", delegate),
		s.counted("the same again, whose reply was lost", delegate),
		s.counted("grant of a delegated election", s.acquire(s.bob, part)),
		s.counted("renewal of its lease, while the parent's stays as it is", s.renew(s.bob, part, 1)),
		s.renew(s.ann, top, 1),
		s.counted("renewal of its lease, after the parent's was renewed", s.renew(s.bob, part, 1)),
		s.configures(region, leadership.Config{LeadersOf: "tre"}),
		s.counted("grant by the lease of another election (via)", via(region, top)),
		s.counted("tree of two elections", func() error { _, err := s.service.Tree(s.ctx, top); return err }),
	)
}

// seats lets an election have several leaders.
func (s *script) seats() error {
	const whole = "gpu"
	seats := func(n int) step { return s.configures(whole, leadership.Config{Seats: n}) }
	lead := func(a agent, e leadership.Election) func() error { // through an instance that knows the halts
		return func() error {
			_, err := s.inst.Acquire(s.ctx, a.ask(e))
			return err
		}
	}
	var granted chan error               // to the last that waits
	wait := func(a agent) func() error { // until it stands in line, and nothing is asked of the store
		return func() error {
			answer := make(chan error, 1)
			granted = answer
			go func() {
				ask := a.ask(whole)
				ask.Wait = leadership.MaxWait
				_, err := s.inst.Acquire(s.ctx, ask)
				answer <- err
			}()
			for stands, rpcs := false, 0; !stands || rpcs > 0; {
				if err := pause(s.ctx, 500*time.Millisecond); err != nil {
					return err
				}
				asked, _ := s.handle.Take()
				rpcs = asked.RPCs()
				m, err := s.inst.Members(s.ctx, whole)
				if err != nil {
					return err
				}
				stands = slices.ContainsFunc(m.Members, func(one leadership.Member) bool { return one.ID == a.id })
			}
			return nil
		}
	}
	gus := newAgent("gus")
	free := func(l leadership.LeaseRequest) func() error {
		return func() error {
			if _, err := s.inst.Do(s.ctx, leadership.Release{LeaseRequest: l}); err != nil {
				return err
			}
			return <-granted
		}
	}
	return all(
		s.counted("giving an election 3 seats", seats(3)),
		s.counted("grant of a seat, of 3 that are read first", s.acquire(s.ann, whole)),
		s.acquire(gus, whole), // gus begins at seat 2
		s.counted("one seat less", seats(2)),
		wait(s.bob),
		func() error { return s.halts(s.inst) },
		s.counted("release of a seat, and its grant to the candidate that waits", free(s.ann.lease(whole+".1", 1))),
		wait(newAgent("dan")),
		wait(newAgent("eve")),
		func() error { return s.halts(s.inst) },
		s.counted("assignment of a seat that is led", func() error {
			_, err := s.inst.Do(s.ctx, leadership.Order{Kind: leadership.OrderAssign, Election: whole + ".2", CandidateID: "eve", For: time.Hour, Reason: "it has to be", Actor: "olga"})
			return err
		}),
		s.counted("release of that seat, and its grant to the second in line", free(gus.lease(whole+".2", 1))),
		func() error {
			_, err := s.inst.Do(s.ctx, leadership.Order{Kind: leadership.OrderHalt, Election: "gp*", For: time.Hour, Reason: "it has to be", Actor: "olga"})
			return err
		},
		func() error { return s.halts(s.inst) },
		s.counted("grant while others are halted, as the instance knows", lead(s.ann, "free")),
		s.counted("refusal in a halt that the instance knows", refuses(lead(s.ann, whole))),
		s.seatBallot,
	)
}

// seatBallot lets a candidate bid for the seats of an election.
func (s *script) seatBallot() error {
	const whole = "cpu"
	var turn time.Duration
	return all(
		s.configures(whole, leadership.Config{Seats: 2, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: time.Second}}),
		s.counted("bid for a seat, of 2 that are read first", func() error {
			_, err := s.service.Acquire(s.ctx, s.bob.ask(whole))
			refusal, ok := errors.AsType[*leadership.Error](err)
			if !ok || refusal.Reason != leadership.ReasonBallot {
				return fmt.Errorf("it has not bid: %w", err)
			}
			turn = refusal.RetryAfter
			return nil
		}),
		func() error { return pause(s.ctx, turn) },
		s.counted("grant of a seat in its turn, of 2 that are read first", s.acquire(s.bob, whole)),
	)
}
