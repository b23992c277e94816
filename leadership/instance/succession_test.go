package instance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
)

// leaves lets ann lead, leave a checkpoint, and release.
func (b *books) leaves(i *instance.Instance) {
	b.Helper()
	b.leads(i)
	_, err := i.PutCheckpoint(b.Context(), leadership.CheckpointRequest{LeaseRequest: b.holder(), Sequence: 1, Task: "sums", Data: json.RawMessage(`{"done":7}`)})
	require.NoError(b, err)
	_, err = i.Do(b.Context(), leadership.Release{LeaseRequest: b.holder()})
	require.NoError(b, err)
}

func (b *books) read(i *instance.Instance) leadership.Lease {
	b.Helper()
	l, err := i.Get(b.Context(), "jobs")
	require.NoError(b, err)
	return l
}

func TestALeaderThatCouldNotInheritAsksAgainWithItsKey(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint("wait=", wait), func(t *testing.T) {
			withJournals(t, func(b *books) {
				i, c, _ := b.start("a")
				b.leaves(i)
				r := leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", Key: new(leadership.NewKey()), LeaseDuration: time.Hour, Wait: wait, Inherit: true}
				c.failing(leadership.StoreUnavailable)
				_, err := i.Acquire(b.Context(), r)
				require.ErrorIs(b, err, leadership.OutcomeUnknown)
				if l := b.read(i); l.LeaderID != "bob" || l.Token != 2 {
					b.Errorf("%s leads with token %d, want bob with 2", l.LeaderID, l.Token)
				}
				c.failing(nil)
				for range 2 {
					g, err := i.Acquire(b.Context(), r)
					if err != nil || g.Token != 2 || g.Inherited == nil || string(g.Inherited.Data) != `{"done":7}` || g.Inherited.LeaderID != "ann" {
						b.Fatalf("again: %+v, %v", g, err)
					}
				}
			})
		})
	}
}

func TestALeaseIsGivenBackIfItsCallerGotNoKeyAndNoInheritance(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint("wait=", wait), func(t *testing.T) {
			withJournals(t, func(b *books) {
				i, c, _ := b.start("a")
				b.leaves(i)
				r := leadership.AcquireRequest{Election: "jobs", CandidateID: "bob", LeaseDuration: time.Hour, Wait: wait, Inherit: true}
				c.failing(leadership.StoreUnavailable)
				_, err := i.Acquire(b.Context(), r)
				require.ErrorIs(b, err, leadership.StoreUnavailable)
				if l := b.read(i); l.State != leadership.Vacant || l.Token != 2 {
					b.Errorf("%+v, want a lease that was given back", l)
				}
				c.failing(nil)
				if g, err := i.Acquire(b.Context(), r); err != nil || g.Inherited == nil || g.Inherited.Task != "sums" {
					b.Errorf("again: %+v, %v", g, err)
				}
			})
		})
	}
}

// waits lets a candidate wait, and returns what became of it.
func (b *books) waits(i *instance.Instance, r leadership.AcquireRequest) (granted chan error) {
	granted = make(chan error, 1)
	r.Election, r.Wait, r.LeaseDuration = "jobs", leadership.MaxWait, time.Hour
	ctx := b.Context()
	go func() {
		_, err := i.Acquire(ctx, r)
		granted <- err
	}()
	synctest.Wait()
	return granted
}

func TestAHandOverWithoutANameIsToTheBestThatCanSayThatItIsReady(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		ask := func(want leadership.CandidateID) {
			b.Helper()
			l, err := i.Do(context.Background(), leadership.HandOver{LeaseRequest: b.holder()})
			if want == "" {
				assert.ErrorIs(b, err, leadership.NotEligible)
				return
			}
			if err != nil || l.Succession.To != want {
				b.Errorf("handed over to %+v, %v; want %s", l.Succession, err, want)
			}
		}
		ask("")
		key := func() *leadership.Key { return new(leadership.NewKey()) }
		b.waits(i, leadership.AcquireRequest{CandidateID: "keyless"})
		ask("")
		b.waits(other, leadership.AcquireRequest{CandidateID: "elsewhere", Key: key()})
		time.Sleep(3 * time.Second)
		b.waits(i, leadership.AcquireRequest{CandidateID: "witness", Key: key(), Candidacy: leadership.Candidacy{Role: leadership.RoleWitness}})
		b.waits(i, leadership.AcquireRequest{CandidateID: "bob", Key: key()})
		b.waits(i, leadership.AcquireRequest{CandidateID: "cy", Key: key()})
		ask("bob")
	})
}

func TestAHandOverWithoutANameKeepsTheSuccessorThatIsNamed(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		b.waits(other, leadership.AcquireRequest{CandidateID: "elsewhere", Key: new(leadership.NewKey())})
		time.Sleep(3 * time.Second)
		for _, also := range []leadership.CandidateID{"", "bob"} {
			if also != "" {
				b.waits(i, leadership.AcquireRequest{CandidateID: also, Key: new(leadership.NewKey())})
			}
			l, err := i.Do(context.Background(), leadership.HandOver{LeaseRequest: b.holder()})
			if err != nil || l.Succession.To != "elsewhere" {
				b.Errorf("with %q in line: handed over to %+v, %v; want elsewhere", also, l.Succession, err)
			}
		}
	})
}

func TestAHandOverBetweenInstancesLeavesNoVacancy(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		_, watch, err := other.Watch(b.Context(), leadership.WatchRequest{Election: "jobs"})
		require.NoError(b, err)
		defer watch.Close()
		key := leadership.NewKey()
		granted := b.waits(other, leadership.AcquireRequest{CandidateID: "bob", Key: &key})
		_, err = i.Do(b.Context(), leadership.HandOver{LeaseRequest: b.holder(), To: "bob"})
		require.NoError(b, err)
		synctest.Wait()
		if l, err := other.Read(b.Context(), leadership.ReadRequest{Election: "jobs"}); err != nil || l.Succession.To != "bob" || l.Succession.Ready {
			b.Errorf("a cached read shows %+v, %v", l.Succession, err)
		}
		_, err = other.Do(b.Context(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "bob", Key: key, Token: 1}})
		require.NoError(b, err)
		l, err := i.Renew(b.Context(), b.holder())
		if err != nil || !l.Succession.Ready {
			b.Errorf("the leader is told %+v, %v", l.Succession, err)
		}
		before := time.Now()
		_, err = i.Do(b.Context(), leadership.Yield{LeaseRequest: b.holder()})
		require.NoError(b, err)
		require.NoError(b, <-granted)
		if took := time.Since(before); took > 20*time.Millisecond {
			b.Errorf("the successor leads after %v", took)
		}
		if l, err := other.Read(b.Context(), leadership.ReadRequest{Election: "jobs"}); err != nil || l.LeaderID != "bob" || l.Token != 2 || l.Succession.To != "" {
			b.Errorf("after it: %+v, %v", l, err)
		}
	})
}

func TestNoIncarnationElsewhereStealsTheSuccessionFromTheOneThatWaited(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		key, stolen := leadership.NewKey(), leadership.NewKey()
		steals := func(how string) {
			b.Helper()
			var refused *leadership.Error
			thief := leadership.LeaseRequest{Election: "jobs", CandidateID: "bob", Key: stolen, Token: 1}
			if _, err := other.Do(b.Context(), leadership.SayReady{LeaseRequest: thief}); !errors.As(err, &refused) || refused.Code != leadership.LeaseHeld || refused.Reason != leadership.ReasonIncarnation {
				b.Errorf("%s: another bob, at another instance: %v, want %s", how, err, leadership.ReasonIncarnation)
			}
		}
		b.leads(i)
		granted := b.waits(i, leadership.AcquireRequest{CandidateID: "bob", Key: &key})
		_, err := i.Do(b.Context(), leadership.Order{Election: "jobs", Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Minute, Reason: "an upgrade", Actor: "dee"})
		require.NoError(b, err)
		steals("assigned")
		_, err = i.Do(b.Context(), leadership.Order{Election: "jobs", Kind: leadership.OrderLift, Override: b.order(i), Reason: "later", Actor: "dee"})
		require.NoError(b, err)
		_, err = i.Do(b.Context(), leadership.HandOver{LeaseRequest: b.holder(), To: "bob"})
		require.NoError(b, err)
		steals("named")
		_, err = other.Do(b.Context(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "bob", Key: key, Token: 1}})
		assert.NoError(b, err)
		_, err = i.Do(b.Context(), leadership.Yield{LeaseRequest: b.holder()})
		require.NoError(b, err)
		assert.NoError(b, <-granted)
	})
}

// order is the one order that stands.
func (b *books) order(i *instance.Instance) leadership.OverrideID {
	b.Helper()
	all, err := i.Overrides(b.Context(), "jobs")
	if err != nil || len(all) != 1 {
		b.Fatalf("%+v, %v; want one order", all, err)
	}
	return all[0].ID
}
