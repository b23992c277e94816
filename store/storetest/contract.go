package storetest

import (
	"testing"
	"time"

	"regent/leadership"
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
	a, b    leadership.Store
}

// RunStore checks each sentence of a store's contract, and compares the store with the rules on
// random walks.
func RunStore(t *testing.T, h Harness) {
	runUpgrade(t, h)
	for _, cases := range [][]contractCase{updateCases, renewCases, readCases, dueCases, sinceCases, outboxCases, pruningCases, failureCases, changeCases, termCases, ballotCases, damageCases(), walkCases()} {
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

// put makes a change of configuration, which every store must keep and tell of.
func put(lock time.Duration) func(leadership.Snapshot) (leadership.Change, error) {
	return func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Configure{Config: leadership.Config{LockDelay: lock}}.Apply(s)
	}
}

// renewalOf is what holder asks to renew or release the lease with that token.
func renewalOf(e leadership.Election, holder string, token leadership.Token) leadership.Renewal {
	return leadership.Renewal{Election: e, CandidateID: leadership.CandidateID(holder), KeyHash: hashOf(holder), Token: token}
}

// hashOf stands for the hash of the holder's key.
func hashOf(holder string) leadership.KeyHash {
	var k leadership.Key
	copy(k[:], holder)
	return k.Hash()
}

func acquire(holder string, lease time.Duration) func(leadership.Snapshot) (leadership.Change, error) {
	return func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Acquire(s, leadership.AcquireCommand{CandidateID: leadership.CandidateID(holder), KeyHash: hashOf(holder), LeaseDuration: lease})
	}
}

func (h *handles) update(s leadership.Store, e leadership.Election, decide func(leadership.Snapshot) (leadership.Change, error)) leadership.Snapshot {
	h.Helper()
	snap, err := s.Update(h.Context(), e, leadership.Expect{}, decide)
	if err != nil {
		h.Fatalf("update %s: %v", e, err)
	}
	return snap
}

func (h *handles) get(s leadership.Store, e leadership.Election) leadership.Snapshot {
	h.Helper()
	snap, err := s.Get(h.Context(), e)
	if err != nil {
		h.Fatalf("get %s: %v", e, err)
	}
	return snap
}

func (h *handles) events(s leadership.Store, e leadership.Election) []leadership.Event {
	h.Helper()
	events, err := s.Events(h.Context(), e, 0, 1000)
	if err != nil {
		h.Fatalf("events of %s: %v", e, err)
	}
	return events
}

// eventually repeats a call while the store says that it may be repeated, as its callers do.
func (h *handles) eventually(call func() error) error {
	var err error
	for range 50 {
		if err = call(); !again(err) {
			return err
		}
	}
	return err
}
