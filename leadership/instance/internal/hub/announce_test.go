package hub_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
	"regent/store/memory"
)

// server is a service with its hub. Events that it publishes are heard by all instances, or not, or
// late.
type server struct {
	*leadership.Service
	hub *hub.Hub
}

// fleet is instances on one store.
type fleet []*server

func newFleet(t *testing.T, size int, random *rand.Rand) fleet {
	var mu sync.Mutex // guards random
	store, start := memory.New(memory.Config{}), time.Now()
	all := make(fleet, size)
	for i := range all {
		in := new(server)
		in.Service = leadership.New(store.Open(), publisher(func(e leadership.Event) {
			in.hub.Publish(e)
			for _, other := range all {
				mu.Lock()
				lost, late := random.IntN(3) == 0, time.Duration(random.IntN(20_000))*time.Millisecond
				mu.Unlock()
				if other != in && !lost {
					time.AfterFunc(late, func() { other.hub.Publish(e) })
				}
			}
		}))
		in.hub = newHub(t, hub.Config{Store: in.Service, Now: func() time.Duration { return time.Since(start) }})
		all[i] = in
	}
	return all
}

// publisher is a function that hears events.
type publisher func(leadership.Event)

func (p publisher) Publish(events ...leadership.Event) {
	for _, e := range events {
		p(e)
	}
}

// lead leads an election for a while, through instances that change, and then releases it or just
// goes.
func (f fleet) lead(t *testing.T, e leadership.Election, random *rand.Rand) (end time.Time, released bool) {
	some := func() *server { return f[random.IntN(len(f))] }
	in := some()
	g, err := in.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", LeaseDuration: time.Duration(1+random.IntN(10)) * time.Second})
	if err != nil {
		t.Error(err)
		return end, true
	}
	in.hub.Learn(g.Lease, view.Committed, in.hub.Now())
	lease := leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}
	for range random.IntN(5) {
		time.Sleep(g.LeaseDuration / 3)
		in = some()
		l, err := in.Renew(t.Context(), lease)
		if err != nil {
			t.Error(err)
		}
		in.hub.Learn(l, view.Committed, in.hub.Now())
	}
	end = time.Now().Add(g.LeaseDuration)
	if random.IntN(2) == 0 {
		return end, false
	}
	in = some()
	l, err := in.Release(t.Context(), lease)
	if err != nil {
		t.Error(err)
	}
	in.hub.Learn(l, view.Committed, in.hub.Now())
	return end, true
}

func TestEachLeaseThatRunsOutIsAnnouncedSoonWhateverWasHeard(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 3, rand.New(rand.NewPCG(seed, 0)))
				ctx, cancel := context.WithCancel(t.Context())
				var running, leaders sync.WaitGroup
				for _, in := range f {
					running.Go(func() { in.hub.Run(ctx) })
				}
				for i := range uint64(20) {
					leaders.Go(func() { f.terms(t, leadership.Election(fmt.Sprint("jobs-", i)), rand.New(rand.NewPCG(seed, i+1))) })
				}
				leaders.Wait()
				time.Sleep(time.Minute)
				for i, in := range f {
					if n := remembered(in.hub); n > 0 {
						t.Errorf("instance %d still remembers %d elections", i, n)
					}
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// terms leads an election again and again, and checks how each term was said to end.
func (f fleet) terms(t *testing.T, e leadership.Election, random *rand.Rand) {
	for range 5 {
		end, released := f.lead(t, e, random)
		latest := end.Add(10*time.Millisecond + delay + jitter + nap) // 10 s of lease may drift by 10 ms
		time.Sleep(time.Until(latest) + time.Nanosecond)
		l, err := f[0].Get(t.Context(), e)
		if err != nil {
			t.Error(err)
		}
		events, err := f[0].Events(t.Context(), leadership.EventsRequest{Election: e})
		if err != nil {
			t.Error(err)
		}
		last := events[len(events)-1]
		if want := map[bool]leadership.EventType{true: leadership.EventReleased, false: leadership.EventExpired}[released]; last.Type != want || l.Revision != last.Revision {
			t.Errorf("%s: %v after the end of the lease the last event is %q, want %q", e, time.Since(end), last.Type, want)
		}
	}
}
