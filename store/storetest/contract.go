package storetest

import (
	"fmt"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// contractCase is one sentence of the Store contract.
type contractCase struct {
	rule string
	run  func(*handles)
}

// handles is one case's store, opened twice.
type handles struct {
	testing.TB
	backing Backing
	a, b    service.Store
}

// RunStore checks each sentence of a store's contract, and compares the store with the rules on
// random walks.
func RunStore(t *testing.T, h Harness) {
	runUpgrade(t, h)
	for _, cases := range [][]contractCase{updateCases, renewCases, readCases, dueCases, sinceCases, outboxCases, pruningCases, failureCases, changeCases, termCases, damageCases(), walkCases()} {
		for _, c := range cases {
			t.Run(c.rule, func(t *testing.T) {
				t.Parallel()
				backing := h(t)
				c.run(&handles{TB: t, backing: backing, a: backing.Open(t), b: backing.Open(t)})
				if t.Failed() {
					t.Logf("the rule: %s", c.rule)
				}
			})
		}
	}
}

// put returns a change of configuration, which every store must store with its event.
func put(lock time.Duration) func(rule.Snapshot) (rule.Change, error) {
	return apply(leadership.Configure{Config: leadership.Config{LockDelay: lock}})
}

func apply(c leadership.Command) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) { return rule.Apply(s, c) }
}

// renewalOf returns the renewal by which holder renews or releases the lease with that token.
func renewalOf(e leadership.Election, holder string, token leadership.Token) rule.Renewal {
	return rule.Renewal{Election: e, CandidateID: leadership.CandidateID(holder), KeyHash: hashOf(holder), Token: token}
}

// hashOf stands for the hash of the holder's key.
func hashOf(holder string) leadership.KeyHash {
	var k leadership.Key
	copy(k[:], holder)
	return k.Hash()
}

func acquire(holder string, lease time.Duration) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Acquire(s, rule.AcquireCommand{CandidateID: leadership.CandidateID(holder), KeyHash: hashOf(holder), LeaseDuration: lease})
	}
}

func (h *handles) update(s service.Store, e leadership.Election, decide func(rule.Snapshot) (rule.Change, error)) rule.Snapshot {
	h.Helper()
	snap, err := s.Update(h.Context(), e, rule.Expect{}, decide)
	if err != nil {
		h.Fatalf("update %s: %v", e, err)
	}
	return snap
}

func (h *handles) get(s service.Store, e leadership.Election) rule.Snapshot {
	h.Helper()
	snap, err := s.Get(h.Context(), e)
	if err != nil {
		h.Fatalf("get %s: %v", e, err)
	}
	return snap
}

func (h *handles) events(s service.Store, e leadership.Election) []leadership.Event {
	h.Helper()
	events, err := s.Events(h.Context(), e, 0, 1000)
	if err != nil {
		h.Fatalf("events of %s: %v", e, err)
	}
	return events
}

// eventually repeats a call while its error says that it may be repeated, as callers do.
func eventually(call func() error) error {
	var err error
	for range 50 {
		if err = call(); !again(err) {
			return err
		}
	}
	return err
}

func told(e leadership.Event) string {
	return fmt.Sprintf("%d %s leader=%s token=%d previous=%s", e.Revision, e.Type, e.LeaderID, e.Token, e.PreviousLeaderID)
}
