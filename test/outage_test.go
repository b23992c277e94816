package test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/machine"
	"regent/test/proxy"
)

// The promises for the time in which one instance cannot reach Pub/Sub, or one half of it.
const (
	heardWithin     = 20 * time.Second // a change, by all at the other instance
	announcedWithin = time.Minute      // a change, by a subscriber of the topic
)

// Two instances, and A cannot publish. What A commits is seen at B nevertheless, and B announces
// it. Both say what is wrong, until nothing is.
func TestWhatAnInstanceCannotAnnounceIsHeardAndAnnouncedByAnother(t *testing.T) {
	machine.Share(t)
	for _, c := range []struct {
		name string
		line func(t *testing.T, host string) (addr string, cut, heal func())
	}{
		{"the line to Pub/Sub is cut", func(t *testing.T, host string) (string, func(), func()) {
			line := proxy.NewLine(t, host)
			return line.Addr(), line.Cut, line.Heal
		}},
		{"publishing fails", func(t *testing.T, host string) (string, func(), func()) {
			gate := newGate(t, host)
			return gate.Addr(), func() { gate.Shut("Publish") }, gate.Open
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			on := newTopic(t)
			addr, cut, heal := c.line(t, on.host)
			in := inFirestore(t).announcing(on)
			a, b := live(t, in.withEnv("PUBSUB_EMULATOR_HOST="+addr).serve(t)), live(t, in.serve(t))
			said := newSubscriber(t, on)
			x := newAudience(t, a, b)
			cut()
			released := x.release()
			awaitDetail(t, a, wire.Degraded, "cannot announce events", patience)
			x.requireHeard()
			// B says so for 10 s at least, between the look that finds what A left and the next.
			awaitDetail(t, b, wire.Degraded, "another instance cannot announce events", patience)
			said.requireReleases(x.elections(), released)
			awaitDetail(t, a, wire.Degraded, "cannot announce events", patience) // still, though nothing is left to announce
			heal()
			awaitDetail(t, a, wire.Healthy, "", patience)
			awaitDetail(t, b, wire.Healthy, "", patience)
		})
	}
}

// Two instances, and A hears nothing, though it can publish. What B commits is seen at A
// nevertheless, what A commits is announced by A, and A says what is wrong, until nothing is.
func TestAnInstanceThatHearsNothingSeesWhatOthersChange(t *testing.T) {
	machine.Share(t)
	on := newTopic(t)
	gate := newGate(t, on.host)
	in := inFirestore(t).announcing(on)
	a, b := live(t, in.withEnv("PUBSUB_EMULATOR_HOST="+gate.Addr()).serve(t)), live(t, in.serve(t))
	said := newSubscriber(t, on)
	x := newAudience(t, b, a)
	gate.Shut("StreamingPull")
	released := x.release()
	if detail := awaitHealth(t, a, wire.Degraded); detail != "events of other instances do not arrive: "+
		"changes that they make are seen later, within the bound that cached reads state" {
		t.Errorf("A says %q", detail)
	}
	x.requireHeard()
	said.requireReleases(x.elections(), released)
	y := newAudience(t, a, b)
	released = y.release()
	y.requireHeard()
	said.requireReleases(y.elections(), released)
	awaitHealth(t, b, wire.Healthy)
	gate.Open()
	awaitDetail(t, a, wire.Healthy, "", patience)
}

func newGate(t *testing.T, target string) *proxy.Gate {
	t.Helper()
	gate, err := proxy.NewGate(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gate.Close)
	return gate
}

// audience is a waiter, a long poll, a stream, a stream of all elections and a reader at one
// instance, and a leader for each of them, at another one.
type audience struct {
	*testing.T
	ctx    context.Context
	makes  *server
	leads  map[leadership.Election]leadership.LeaseRequest
	heard  map[leadership.Election]chan error // what becomes of those who listen
	begun  time.Time
	listen sync.WaitGroup
	late   machine.Excuses
}

// newAudience returns once all listen.
func newAudience(t *testing.T, makes, hears *server) *audience {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	x := &audience{T: t, ctx: ctx, makes: makes, leads: map[leadership.Election]leadership.LeaseRequest{}, heard: map[leadership.Election]chan error{}}
	t.Cleanup(func() {
		cancel()
		x.listen.Wait()
		x.late.Check(t)
	})
	for name, listen := range map[string]func(leadership.Lease, chan<- struct{}) error{
		"waiter": func(l leadership.Lease, ready chan<- struct{}) error { return x.wait(hears, l, ready) },
		"poll":   func(l leadership.Lease, ready chan<- struct{}) error { return x.poll(hears, l, ready) },
		"stream": func(l leadership.Lease, ready chan<- struct{}) error {
			return x.follow(hears, streamOf(l.Election), l, ready)
		},
		"feed": func(l leadership.Lease, ready chan<- struct{}) error {
			return x.follow(hears, wire.PathEvents, l, ready)
		},
		"reader": func(l leadership.Lease, ready chan<- struct{}) error { return x.read(hears, l, ready) },
	} {
		e := leadership.Election(fmt.Sprintf("%s-%d", name, time.Now().UnixNano()))
		key := leadership.NewKey()
		g, err := makes.client.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: &key, LeaseDuration: leaseOfPair})
		if err != nil {
			t.Fatal(err)
		}
		x.leads[e] = leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: key, Token: g.Token}
		heard, ready := make(chan error, 1), make(chan struct{})
		x.heard[e] = heard
		x.listen.Go(func() { heard <- listen(g.Lease, ready) })
		select {
		case <-ready:
		case err := <-heard:
			t.Fatalf("%s: %v", e, err)
		}
	}
	<-time.After(time.Second) // what was asked is waited for, and all is announced
	return x
}

// release ends all leases, and returns when.
func (x *audience) release() time.Time {
	x.Helper()
	x.begun = time.Now()
	for e, lease := range x.leads {
		if _, err := x.makes.client.Release(x.ctx, lease); err != nil {
			x.Fatalf("%s: %v", e, err)
		}
	}
	return x.begun
}

func (x *audience) elections() (all []leadership.Election) {
	for e := range x.leads {
		all = append(all, e)
	}
	return all
}

// requireHeard waits until all have heard of the releases, in time.
func (x *audience) requireHeard() {
	x.Helper()
	never := time.After(patience)
	for e, heard := range x.heard {
		select {
		case err := <-heard:
			if err != nil {
				x.Errorf("%s: %v", e, err)
			}
			x.late.InTime(string(e)+" has heard of the release", time.Since(x.begun), heardWithin)
		case <-never:
			x.Fatalf("%s has not heard of the release within %v\n%s", e, patience, x.makes.log)
		}
	}
}

func (x *audience) wait(at *server, l leadership.Lease, ready chan<- struct{}) error {
	close(ready)
	key := leadership.NewKey()
	_, err := at.client.Acquire(x.ctx, leadership.AcquireRequest{Election: l.Election, CandidateID: "bob", Key: &key, LeaseDuration: leaseOfPair, Wait: time.Minute})
	return err
}

func (x *audience) poll(at *server, l leadership.Lease, ready chan<- struct{}) error {
	close(ready)
	request, err := http.NewRequestWithContext(x.ctx, http.MethodGet, at.URL+wire.Path(l.Election, "")+"?wait=60s", nil)
	if err != nil {
		return err
	}
	request.Header.Set("If-None-Match", wire.ETag(l.Revision))
	var answer wire.Lease
	if _, err := exchange(patient, request, &answer); err != nil {
		return err
	}
	if answer.State != leadership.Vacant {
		return fmt.Errorf("the poll says that it is %s", answer.State)
	}
	return nil
}

func (x *audience) follow(at *server, path string, l leadership.Lease, ready chan<- struct{}) error {
	ctx, stop := context.WithCancel(x.ctx)
	defer stop()
	f := listener("stream", path, new(checker.Recorder))
	f.ready = func() { close(ready) }
	f.got = func(e leadership.Event) {
		if e.Election == l.Election && e.Type == leadership.EventReleased {
			stop()
		}
	}
	err := f.follow(ctx, at)
	if ctx.Err() != nil && x.ctx.Err() == nil {
		return nil
	}
	return err
}

func (x *audience) read(at *server, l leadership.Lease, ready chan<- struct{}) error {
	for n := 0; ; n++ {
		r, err := at.client.Read(x.ctx, leadership.ReadRequest{Election: l.Election})
		if err != nil || r.State == leadership.Vacant {
			return err
		}
		if n == 0 {
			close(ready)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// subscriber is one of the topic.
type subscriber struct {
	*testing.T
	late machine.Excuses
	mu   sync.Mutex // guards seen
	seen map[leadership.Election]bool
}

func newSubscriber(t *testing.T, on topic) *subscriber {
	t.Helper()
	s := &subscriber{T: t, seen: map[leadership.Election]bool{}}
	t.Cleanup(func() { s.late.Check(t) })
	on.consume(t, func(e leadership.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[e.Election] = s.seen[e.Election] || e.Type == leadership.EventReleased
	})
	return s
}

// requireReleases waits until the releases of all these elections were announced, in time.
func (s *subscriber) requireReleases(all []leadership.Election, released time.Time) {
	s.Helper()
	for _, e := range all {
		for !s.has(e) {
			if time.Since(released) > announcedWithin+patience {
				s.Fatalf("the release of %s was not announced within %v", e, announcedWithin+patience)
			}
			<-time.After(10 * time.Millisecond)
		}
		s.late.InTime(fmt.Sprintf("the release of %s is announced", e), time.Since(released), announcedWithin)
	}
}

func (s *subscriber) has(e leadership.Election) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[e]
}
