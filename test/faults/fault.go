package faults

import (
	"fmt"
	"slices"
	"time"

	"regent/test/faults/cast"
	"regent/test/proxy"
)

// Kind is a way in which something goes wrong.
type Kind string

// The kinds. All end by themselves, with what was broken in order again.
const (
	Kill      Kind = "kill"       // SIGKILL, and a new start
	Pause     Kind = "pause"      // SIGSTOP, and SIGCONT
	End       Kind = "end"        // SIGTERM, and a new start once it is gone
	KillGuard Kind = "kill guard" // that of a `regent run`
	StopGuard Kind = "stop guard"
	Bad       Kind = "weather"    // of a hop
	Reset     Kind = "reset"      // all connections of a hop, again and again
	Cut       Kind = "cut"        // connections of a hop at a byte, one after the other
	Point     Kind = "failpoint"  // a server dies at a point of its code, and is started anew
	OtherBoot Kind = "other boot" // a server is killed, and comes back with another boot clock
	Partition Kind = "partition"  // a troupe's network is away
	Frozen    Kind = "frozen"     // an emulator is stopped
)

// Fault is something that goes wrong.
type Fault struct {
	Kind   Kind
	Target string        // a part or a hop
	At     time.Duration // after the warm-up
	For    time.Duration

	Weather proxy.Conditions // Bad
	Way     proxy.Way        // Cut
	After   int              // Cut: bytes
	RST     bool             // Cut: with RST instead of FIN
	Point   string           // Point
	Hit     int              // Point: at the how manieth time
	Offset  time.Duration    // OtherBoot
}

// String says what goes wrong, without when.
func (f Fault) what() string {
	switch f.Kind {
	case Bad:
		return fmt.Sprintf("%s: %v", f.Target, f.Weather)
	case Cut:
		return fmt.Sprintf("%s: cut after %d bytes of each %v", f.Target, f.After, f.Way)
	case Point:
		return fmt.Sprintf("%s dies at %s:%d", f.Target, f.Point, f.Hit)
	case OtherBoot:
		return fmt.Sprintf("%s comes back with a boot clock shifted by %v", f.Target, f.Offset)
	}
	return fmt.Sprintf("%s %s", f.Kind, f.Target)
}

// String says what goes wrong, and when.
func (f Fault) String() string { return fmt.Sprintf("after %v, for %v: %s", f.At, f.For, f.what()) }

const maxFaults = 4

// faults draws one to four that do not get in each other's way: no part and no hop has two of them.
func (d *drawer) faults() {
	taken := map[string]bool{}
	for n := 1 + d.rand.IntN(maxFaults); len(d.plan.Faults) < n; {
		f, ok := d.fault()
		slot := d.slot(f)
		if !ok || taken[slot] {
			continue
		}
		taken[slot] = true
		f.At = d.between(0, 1500*time.Millisecond)
		d.plan.Faults = append(d.plan.Faults, f)
		d.prepare(f)
	}
}

// prepare makes what the fault needs part of the plan.
func (d *drawer) prepare(f Fault) {
	for i := range d.plan.Troupes {
		t := &d.plan.Troupes[i]
		t.Isolated = t.Isolated || f.Kind == Partition && f.Target == t.Name
		for j := range t.Members {
			if (f.Kind == KillGuard || f.Kind == StopGuard) && t.Members[j].Role == cast.Steady {
				t.Members[j].Role = cast.Caller // somebody who stays would keep a run from ever having a guard
			}
		}
	}
}

// slot is what a fault has for itself. There is one for everything that happens to runs and their guards: if both are stopped nobody is left who
// could end the command, which is out of their reach.
func (d *drawer) slot(f Fault) string {
	if f.Kind == KillGuard || f.Kind == StopGuard || slices.ContainsFunc(d.plan.Wrappers, func(w Wrapper) bool { return w.Name == f.Target }) {
		return "runs"
	}
	return f.Target
}

// fault draws one. ok is false where this plan has no place for it.
func (d *drawer) fault() (f Fault, ok bool) {
	f.For = d.between(100*time.Millisecond, 5*time.Second)
	switch d.rand.IntN(12) {
	case 0, 1:
		f.Kind, f.Target, f.For = Kill, d.part(), d.between(0, time.Second)
	case 2, 3:
		f.Kind, f.Target = Pause, d.part()
	case 4:
		f.Kind, f.Target, f.For = End, d.part(), d.between(0, time.Second)
	case 5, 6, 7:
		f.Kind, f.Target, f.Weather = Bad, d.hop(), d.weather()
	case 8:
		f.Kind, f.Target = []Kind{Reset, Cut}[d.rand.IntN(2)], d.hop()
		f.Way, f.After, f.RST = proxy.Way(d.rand.IntN(2)), d.rand.IntN(1200), d.rand.IntN(2) == 0
		f.For = max(f.For, time.Second)
	case 9:
		return d.guardFault(f)
	case 10:
		return d.serverFault(f)
	case 11:
		return d.machineFault(f)
	}
	return f, true
}

func (d *drawer) guardFault(f Fault) (Fault, bool) {
	if len(d.plan.Wrappers) == 0 {
		return f, false
	}
	f.Kind, f.Target = []Kind{KillGuard, StopGuard}[d.rand.IntN(2)], d.plan.Wrappers[d.rand.IntN(len(d.plan.Wrappers))].Name
	return f, true
}

func (d *drawer) serverFault(f Fault) (Fault, bool) {
	f.Target, f.For = fmt.Sprintf("server-%d", d.server()), d.between(0, time.Second)
	if d.rand.IntN(2) == 0 {
		f.Kind, f.Offset = OtherBoot, time.Duration(1+d.rand.IntN(10_000_000))*time.Second
		return f, d.can.TimeNamespaces
	}
	points := []string{"relay:committed", "relay:published", "relay:marked"}
	f.Kind, f.Point, f.Hit = Point, points[d.rand.IntN(len(points))], 1+d.rand.IntN(5)
	return f, d.plan.Store != Bolt
}

func (d *drawer) machineFault(f Fault) (Fault, bool) {
	if d.rand.IntN(2) == 0 {
		what := []string{string(d.plan.Store), "topic"}[d.rand.IntN(2)]
		if f.Kind, f.Target = Frozen, "store"; what == "topic" {
			f.Target = what
		}
		return f, d.plan.Store != Bolt && slices.Contains(d.can.Freezable, what)
	}
	f.Kind, f.Target = Partition, d.troupe()
	return f, d.can.NetworkNamespaces
}

// part is a server, a troupe or a `regent run`.
func (d *drawer) part() string {
	switch d.rand.IntN(3) {
	case 0:
		return fmt.Sprintf("server-%d", d.server())
	case 1:
		return d.troupe()
	}
	if len(d.plan.Wrappers) == 0 {
		return d.troupe()
	}
	return d.plan.Wrappers[d.rand.IntN(len(d.plan.Wrappers))].Name
}

func (d *drawer) troupe() string { return d.plan.Troupes[d.rand.IntN(len(d.plan.Troupes))].Name }

// hop is a way from one part to another.
func (d *drawer) hop() string {
	server := d.server()
	n := d.rand.IntN(6)
	switch {
	case n == 0:
		return hopName(d.troupe(), ledgerName)
	case n == 1 && len(d.plan.Wrappers) > 0:
		w := d.plan.Wrappers[d.rand.IntN(len(d.plan.Wrappers))]
		return hopName(w.Name, serverName(w.Server))
	case (n == 2 || n == 3) && d.plan.Store != Bolt:
		return hopName(serverName(server), []string{"store", "topic"}[n-2])
	}
	return hopName(d.troupe(), serverName(server))
}

func serverName(i int) string        { return fmt.Sprintf("server-%d", i) }
func hopName(from, to string) string { return from + " > " + to }

const ledgerName = "ledger"

func (d *drawer) weather() proxy.Conditions {
	switch d.rand.IntN(8) {
	case 0:
		return proxy.Conditions{Latency: d.between(time.Millisecond, d.plan.Lease), Jitter: d.between(time.Millisecond, d.plan.Lease/2), Seed: d.rand.Uint64()}
	case 1:
		return proxy.Conditions{Lost: [2]bool{true, true}}
	case 2:
		return proxy.Conditions{Lost: [2]bool{proxy.Request: true}}
	case 3, 4:
		return proxy.Conditions{Lost: [2]bool{proxy.Reply: true}}
	case 5:
		return proxy.Conditions{Rate: 100 + d.rand.IntN(4000)}
	case 6:
		return proxy.Conditions{Refuse: true}
	}
	return proxy.Conditions{HalfOpen: true, Lost: [2]bool{d.rand.IntN(2) == 0, true}}
}
