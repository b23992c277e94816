package test

import (
	"strings"
	"testing"
	"time"

	"regent/leadership/wire"
	"regent/test/machine"
	"regent/test/proxy"
)

const sane = 5 * time.Second // for what should take milliseconds, on a machine that does other things too

// A change at one instance is seen at the other: by readers, watchers and waiting candidates. How
// long that takes is reported.
func TestAChangeAtOneInstanceIsSeenAtTheOther(t *testing.T) {
	machine.Share(t)
	rounds := machine.Size(10, 50)
	for _, c := range []struct {
		name  string
		begin func(*testing.T) (a, b *server)
	}{
		{"file, one instance", func(t *testing.T) (a, b *server) {
			s := inFile(t).serve(t)
			return s, s
		}},
		{"firestore and pubsub", func(t *testing.T) (a, b *server) {
			in := inFirestore(t).announcing(newTopic(t))
			return live(t, in.serve(t)), live(t, in.serve(t))
		}},
	} {
		t.Run(c.name, func(t *testing.T) { // not beside others, for it measures
			a, b := c.begin(t)
			p := newPair(t, a, b)
			ann, bob := &agent{id: "ann"}, &agent{id: "bob"}
			if _, err := p.acquire(a, ann, 0); err != nil {
				t.Fatal(err)
			}
			took := delays{}
			for range rounds {
				if err := p.round(ann, bob, took); err != nil {
					t.Fatalf("%v\nA says:\n%s\nB says:\n%s", err, a.log, b.log)
				}
			}
			p.check()
			t.Log(took)
			if took.worst() > machine.Size(patience, sane) {
				t.Errorf("the longest delay is %v", took.worst())
			}
		})
	}
}

// live waits until the server hears events.
func live(t testing.TB, s *server) *server {
	t.Helper()
	awaitHealth(t, s, wire.Healthy)
	return s
}

// awaitHealth waits until the server reports that health, and returns the detail that it gives.
func awaitHealth(t testing.TB, s *server, want wire.HealthStatus) (detail string) {
	t.Helper()
	return awaitDetail(t, s, want, "", patience)
}

// awaitDetail is awaitHealth for a detail that has a text in it.
func awaitDetail(t testing.TB, s *server, want wire.HealthStatus, text string, patience time.Duration) (detail string) {
	t.Helper()
	ctx := within(t, patience)
	for {
		var health wire.Health
		err := get(ctx, s.URL+wire.PathReady, &health)
		if err == nil && health.Status == want && strings.Contains(health.Detail, text) {
			return health.Detail
		}
		if ctx.Err() != nil {
			t.Fatalf("%s is not %s (%q) within %v, but %+v, %v\n%s", s.URL, want, text, patience, health, err, s.log)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Two instances, and the connection of one of them to Pub/Sub is cut or stalls. It goes on serving:
// no reading is older than its stated age, watchers get everything, later, and /health/ready
// reports the trouble until it is over.
func TestWithoutEventsReadsStayWithinTheirBoundAndStreamsGetEverything(t *testing.T) {
	machine.Share(t)
	for _, c := range []struct {
		name string
		harm func(*proxy.Line)
	}{
		{"cut", (*proxy.Line).Cut},
		{"stalled", (*proxy.Line).Stall},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			on := newTopic(t)
			line := proxy.NewLine(t, on.host)
			in := inFirestore(t).announcing(on)
			a := live(t, in.serve(t))
			b := live(t, in.withEnv("PUBSUB_EMULATOR_HOST="+line.Addr()).serve(t))
			p := newPair(t, a, b)
			ann, bob := &agent{id: "ann"}, &agent{id: "bob"}
			if _, err := p.acquire(a, ann, 0); err != nil {
				t.Fatal(err)
			}
			before, without, after := delays{}, delays{}, delays{}
			p.rounds(2, ann, bob, before)
			c.harm(line)
			harmed := time.Now()
			for time.Since(harmed) < 3*time.Second { // whether or not it was noticed
				p.handOver(ann, bob)
			}
			detail := awaitHealth(t, b, wire.Degraded)
			t.Logf("noticed within %v: %s", time.Since(harmed).Round(100*time.Millisecond), detail)
			if !strings.Contains(detail, "events") {
				t.Errorf("the detail says nothing of events: %q", detail)
			}
			p.rounds(1, ann, bob, without)
			line.Heal()
			healed := time.Now()
			awaitHealth(t, b, wire.Healthy)
			t.Logf("live again within %v", time.Since(healed).Round(100*time.Millisecond))
			p.rounds(5, ann, bob, after)
			p.check()
			t.Logf("before: %v\nwithout events: %v\nafter: %v", before, without, after)
			if after.worst() > machine.Size(patience, sane) {
				t.Errorf("the longest delay after all was healed is %v", after.worst())
			}
		})
	}
}

// rounds are several.
func (p *pair) rounds(n int, ann, bob *agent, took delays) {
	p.t.Helper()
	for range n {
		if err := p.round(ann, bob, took); err != nil {
			p.t.Fatalf("%v\nA says:\n%s\nB says:\n%s", err, p.a.log, p.b.log)
		}
	}
}

// handOver makes changes at a, from ann to bob and back, and does not wait.
func (p *pair) handOver(ann, bob *agent) {
	p.t.Helper()
	for _, who := range [][2]*agent{{ann, bob}, {bob, ann}} {
		if _, err := p.release(p.a, who[0]); err != nil {
			p.t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
		if _, err := p.acquire(p.a, who[1], 0); err != nil {
			p.t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}
