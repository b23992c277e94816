package clients_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/wire"
	"regent/test/clients"
)

// ledgerTrials are of what a leader leaves behind.
var ledgerTrials = []trial{
	{name: "a late copy of an earlier checkpoint replaces no newer one", needs: []ability{callsToo}, run: func(s *scene) {
		late := make(chan func() reply, 1)
		s.gate.on(wire.VerbPutCheckpoint, 1, func(x *exchange) {
			late <- func() reply { return x.ask(context.Background()) }
			lose(x)
		})
		d := s.start(clients.Options{})
		d.leads(1)
		d.tells("call checkpoint")
		d.awaits(clients.Done, 1)
		d.tells("call newer")
		d.awaits(clients.Done, 2)
		if a := (<-late)(); a.status != http.StatusConflict {
			s.Errorf("the late copy is answered %d %s", a.status, a.body)
		}
		p, err := s.present.owner.Checkpoint(s.Context(), s.election)
		s.need(err)
		if string(p.Data) != `"there"` || p.Sequence != 2 {
			s.Errorf("the checkpoint is %+v\n%s", p, s.story())
		}
		d.stops()
	}},
	{name: "an effect that an earlier leader has not finished is in doubt, and is finished once", needs: []ability{callsToo}, run: func(s *scene) {
		bob := s.bob()
		_, err := s.present.owner.BeginEffect(s.Context(), leadership.EffectRequest{LeaseRequest: bob.LeaseRequest, ID: "once"})
		s.need(err)
		bob.release()
		s.gate.on("begin", 1, lose)
		s.gate.on("finish", 1, lose)
		d := s.start(clients.Options{})
		d.leads(2)
		d.tells("call begin")
		if e := d.awaits(clients.Item, 1); e.Type != string(leadership.EffectInDoubt) {
			s.Errorf("the effect is %q\n%s", e.Type, s.story())
		}
		d.tells("call finish")
		d.awaits(clients.Done, 2)
		all, err := s.present.owner.Effects(s.Context(), s.election)
		s.need(err)
		if e := all.Effects; len(e) != 1 || e[0].State != leadership.EffectDone || e[0].Token != 2 || string(e[0].Result) != `"here"` {
			s.Errorf("the effects are %+v\n%s", all, s.story())
		}
		d.stops()
	}},
	{name: "a proposal is awaited over a lost reply, and decided once", needs: []ability{callsToo}, run: func(s *scene) {
		s.gate.on(wire.VerbPropose, 1, lose)
		s.gate.on(wire.VerbDecide, 1, lose)
		d := s.start(clients.Options{})
		d.leads(1)
		d.tells("call propose")
		for open := 0; open == 0; {
			all, err := s.present.owner.Proposals(s.Context(), s.election)
			s.need(err)
			open = len(all.Open)
			time.Sleep(10 * time.Millisecond)
		}
		d.tells("call decide")
		if e := d.awaits(clients.Item, 1); e.Type != string(leadership.ProposalAccepted) {
			s.Errorf("the proposal is %q\n%s", e.Type, s.story())
		}
		d.awaits(clients.Done, 2)
		all, err := s.present.owner.Proposals(s.Context(), s.election)
		s.need(err)
		if p := all.Decided; len(p) != 1 || len(all.Open) > 0 || p[0].Decision.Token != 1 {
			s.Errorf("the proposals are %+v\n%s", all, s.story())
		}
		d.stops()
	}},
	{name: "a follower of a journal begins anew after its store was restored", needs: []ability{callsToo}, run: func(s *scene) {
		bob := s.bob()
		_, err := s.present.owner.AppendJournal(s.Context(), leadership.AppendRequest{LeaseRequest: bob.LeaseRequest, Entries: []leadership.Entry{
			{Data: []byte(`1`)}, {Data: []byte(`2`)},
		}})
		s.need(err)
		d := s.start(clients.Options{Idle: true})
		d.tells("call follow")
		d.awaits(clients.Item, 2)
		_, err = s.store.Amend(s.Context(), rule.LogID{Election: s.election, Kind: rule.LogJournal}, func(l rule.Log) (rule.LogChange, error) {
			return rule.RaisedLog(l, 1000, true)
		})
		s.need(err)
		d.awaits(clients.Done, 1)
		var got []string
		for _, e := range d.said() {
			if e.Event == clients.Item {
				got = append(got, fmt.Sprint(e.Type, " ", e.Revision))
			}
		}
		if want := []string{"entry 1", "entry 2", "snapshot 0", "entry 1", "entry 2"}; !slices.Equal(got, want) {
			s.Errorf("it has got %q, want %q\n%s", got, want, s.story())
		}
		d.tells("stop")
		d.ends()
		bob.release()
	}},
	{name: "an append whose reply is lost is repeated in a new epoch, and is there once", needs: []ability{callsToo}, run: func(s *scene) {
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.gate.on("append", 1, func(x *exchange) {
			x.committed()
			err := s.newEpoch()
			for err == nil && !d.hasToken(2) && x.r.Context().Err() == nil {
				<-time.After(20 * time.Millisecond)
			}
			abort()
		})
		d.tells("call append")
		d.awaits(clients.Done, 1)
		if again := s.asked("append", 2); again.FencingToken != 2 {
			s.Errorf("it is repeated with token %d\n%s", again.FencingToken, s.story())
		}
		page, err := s.present.owner.ReadJournal(s.Context(), leadership.JournalRequest{Election: s.election})
		s.need(err)
		if len(page.Entries) != 1 || page.Token != 2 {
			s.Errorf("the journal is %+v\n%s", page, s.story())
		}
		d.stops()
	}},
}

// newEpoch lets the first leader go on under the next token.
func (s *scene) newEpoch() error {
	now, err := s.present.owner.Get(s.Context(), s.election)
	if err == nil {
		_, err = s.present.owner.Do(s.Context(), leadership.Order{Election: s.election, Kind: leadership.OrderApprove, Token: 1, NewEpoch: true, Actor: "olga", Reason: "a checkpoint", IfRevision: now.Revision})
	}
	return err
}

// hasToken reports whether the driver goes by the token.
func (p *process) hasToken(token int64) bool {
	for _, e := range p.said() {
		if e.Event == clients.Tick && e.Token == token {
			return true
		}
	}
	return false
}
