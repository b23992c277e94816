package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/test/faults/record"
	"regent/test/proxy"
)

// Kind is a kind of fault.
type Kind string

// The kinds. Each fault ends by itself, with everything mended.
const (
	Kill      Kind = "kill"       // SIGKILL, and a restart
	Pause     Kind = "pause"      // SIGSTOP, and SIGCONT
	Stutter   Kind = "stutter"    // a server is stopped and goes on, again and again
	End       Kind = "end"        // SIGTERM, and a restart once it has ended
	KillGuard Kind = "kill guard" // that of a `regent run`
	StopGuard Kind = "stop guard"
	Bad       Kind = "weather"    // of a hop
	Reset     Kind = "reset"      // all connections of a hop, again and again
	Cut       Kind = "cut"        // connections of a hop at a byte, one after the other
	Point     Kind = "failpoint"  // a server dies at a point of its code, and is restarted
	OtherBoot Kind = "other boot" // a server is killed, and comes back with another boot clock
	Partition Kind = "partition"  // nothing passes from or to a group, the store or the topic; it arrives afterwards
	Mute      Kind = "mute"       // a server cannot publish, and hears
	Deaf      Kind = "deaf"       // a server hears nothing, and can publish
)

// Fault is a planned fault.
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
	Hit     int              // Point: which hit of it, from 1
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

// faults draws one to four faults that do not interfere: no part and no hop has two of them.
func (d *drawer) faults() {
	for n := 1 + d.rand.IntN(maxFaults); len(d.plan.Faults) < n; {
		f, ok := d.fault()
		interferes := func(other Fault) bool {
			return d.slot(f) == d.slot(other) || f.parts(other.Target) || other.parts(f.Target)
		}
		if !ok || slices.ContainsFunc(d.plan.Faults, interferes) {
			continue
		}
		f.At = d.between(0, 1500*time.Millisecond)
		d.plan.Faults = append(d.plan.Faults, f)
		d.prepare(f)
	}
}

// prepare makes what the fault needs part of the plan.
func (d *drawer) prepare(f Fault) {
	for i := range d.plan.Groups {
		t := &d.plan.Groups[i]
		for j := range t.Members {
			if (f.Kind == KillGuard || f.Kind == StopGuard) && t.Members[j].Role == record.Steady {
				t.Members[j].Role = record.Caller // an agent that keeps the lease would keep a run from ever having a guard
			}
		}
	}
}

// slot names what a fault has for itself. All faults of runs and their guards share one slot: if
// both were stopped, no process would be left that could end the command.
func (d *drawer) slot(f Fault) string {
	if f.Kind == KillGuard || f.Kind == StopGuard || slices.ContainsFunc(d.plan.Wrappers, func(w Wrapper) bool { return w.Name == f.Target }) {
		return "runs"
	}
	return f.Target
}

// fault draws one. ok is false if this plan has no place for it.
func (d *drawer) fault() (f Fault, ok bool) {
	f.For = d.between(100*time.Millisecond, 5*time.Second)
	switch d.rand.IntN(14) {
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
		return d.partition(f)
	case 12, 13:
		return d.topicFault(f)
	}
	return f, true
}

// topicFault draws half an outage of the topic, for one server. Many last for so long that another
// server announces what this one cannot.
func (d *drawer) topicFault(f Fault) (Fault, bool) {
	f.Kind, f.Target = []Kind{Mute, Deaf}[d.rand.IntN(2)], hopName(serverName(d.server()), "topic")
	f.For = d.between(time.Second, 25*time.Second)
	return f, d.plan.Store != File
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
	switch d.rand.IntN(3) {
	case 0:
		f.Kind, f.For = Stutter, d.between(time.Second, 4*time.Second)
		return f, true
	case 1:
		f.Kind, f.Offset = OtherBoot, time.Duration(1+d.rand.IntN(10_000_000))*time.Second
		return f, d.shifts
	}
	points := []string{"outbox:committed", "outbox:published", "outbox:marked"}
	f.Kind, f.Point, f.Hit = Point, points[d.rand.IntN(len(points))], 1+d.rand.IntN(5)
	return f, d.plan.Store != File
}

func (d *drawer) partition(f Fault) (Fault, bool) {
	f.Kind, f.Target = Partition, d.group()
	if d.rand.IntN(2) == 0 {
		f.Target = []string{"store", "topic"}[d.rand.IntN(2)]
		return f, d.plan.Store != File
	}
	return f, true
}

// parts reports whether it is a partition of an end of the hop.
func (f Fault) parts(hop string) bool {
	from, to, _ := strings.Cut(hop, " > ")
	return f.Kind == Partition && (f.Target == from || f.Target == to)
}

// part is a server, a group or a `regent run`.
func (d *drawer) part() string {
	switch d.rand.IntN(3) {
	case 0:
		return fmt.Sprintf("server-%d", d.server())
	case 1:
		return d.group()
	}
	if len(d.plan.Wrappers) == 0 {
		return d.group()
	}
	return d.plan.Wrappers[d.rand.IntN(len(d.plan.Wrappers))].Name
}

func (d *drawer) group() string { return d.plan.Groups[d.rand.IntN(len(d.plan.Groups))].Name }

// hop is a way from one part to another.
func (d *drawer) hop() string {
	server := d.server()
	n := d.rand.IntN(6)
	switch {
	case n == 0:
		return hopName(d.group(), ledgerName)
	case n == 1 && len(d.plan.Wrappers) > 0:
		w := d.plan.Wrappers[d.rand.IntN(len(d.plan.Wrappers))]
		return hopName(w.Name, serverName(w.Server))
	case (n == 2 || n == 3) && d.plan.Store != File:
		return hopName(serverName(server), []string{"store", "topic"}[n-2])
	}
	return hopName(d.group(), serverName(server))
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
