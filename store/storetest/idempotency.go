package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

// script is what the idempotency cases do: each mutation once, and each has an effect.
var script = []struct {
	name string
	call func(context.Context, *leadership.Service, leadership.Election, *leadership.Token) error
}{
	{"configure", func(ctx context.Context, s *leadership.Service, e leadership.Election, _ *leadership.Token) error {
		_, err := s.Configure(ctx, leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{
			Config: leadership.Config{LeaseDuration: time.Hour, LockDelay: time.Second},
		}})
		return err
	}},
	{"acquire", scriptAcquire("ann")},
	{"renew", func(ctx context.Context, s *leadership.Service, e leadership.Election, token *leadership.Token) error {
		_, err := s.Renew(ctx, leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: scriptKey("ann"), Token: *token})
		return err
	}},
	{"release", func(ctx context.Context, s *leadership.Service, e leadership.Election, token *leadership.Token) error {
		_, err := s.Release(ctx, leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: scriptKey("ann"), Token: *token})
		return err
	}},
	{"acquire by another", scriptAcquire("bob")},
	{"delete", func(ctx context.Context, s *leadership.Service, e leadership.Election, _ *leadership.Token) error {
		_, err := s.Delete(ctx, leadership.DeleteRequest{Election: e, DeleteCommand: leadership.DeleteCommand{Force: true}})
		return err
	}},
	{"recreate", func(ctx context.Context, s *leadership.Service, e leadership.Election, _ *leadership.Token) error {
		_, err := s.Configure(ctx, leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{
			Config: leadership.Config{LeaseDuration: time.Minute},
		}})
		return err
	}},
}

func scriptKey(candidate string) (k leadership.Key) {
	copy(k[:], candidate)
	return k
}

func scriptAcquire(candidate string) func(context.Context, *leadership.Service, leadership.Election, *leadership.Token) error {
	return func(ctx context.Context, s *leadership.Service, e leadership.Election, token *leadership.Token) error {
		key := scriptKey(candidate)
		g, err := s.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: leadership.CandidateID(candidate), Key: &key})
		*token = g.Token
		return err
	}
}

// idempotencyCases plant each fault at each call of the script, whose caller simply asks again. The
// end must be as if nothing had gone wrong.
func idempotencyCases() []contractCase {
	var cases []contractCase
	for fault, name := range map[Fault]string{Refused: "refused", Lost: "done with the reply lost", Delayed: "done late"} {
		cases = append(cases, contractCase{
			"the same call again, after any fault, does what once would have done: a call that is " + name,
			func(h *handles) { h.survives(fault) },
		})
	}
	return cases
}

func (h *handles) survives(fault Fault) {
	for at := range script {
		e := leadership.Election(fmt.Sprintf("round-%d", at))
		calls := 0
		faulty := Faulty(h.a, func() Fault {
			calls++
			if calls == at+1 {
				return fault
			}
			return None
		})
		h.play(faulty, e)
		// A late call is carried out behind the last one.
		if _, err := faulty.Update(h.Context(), e, func(leadership.Snapshot) (leadership.Change, error) { return leadership.Change{}, nil }); err != nil {
			h.Fatal(err)
		}
		want := []string{
			"1 configured leader= token=0 previous=",
			"2 acquired leader=ann token=1 previous=",
			"3 released leader= token=1 previous=ann",
			"4 acquired leader=bob token=2 previous=",
			"5 deleted leader= token=2 previous=bob",
			"6 recreated leader= token=2 previous=",
		}
		var got []string
		for _, event := range h.events(h.b, e) {
			got = append(got, told(event))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			h.Errorf("fault at call %d: history (-want +got):\n%s", at+1, diff)
		}
	}
}

// play runs the script as a client does that repeats what it got no answer to.
func (h *handles) play(store leadership.Store, e leadership.Election) {
	h.Helper()
	s := leadership.New(store)
	var token leadership.Token
	for _, step := range script {
		err := h.eventually(func() error { return step.call(h.Context(), s, e, &token) })
		if err != nil {
			h.Fatalf("%s: %v", step.name, err)
		}
	}
}
