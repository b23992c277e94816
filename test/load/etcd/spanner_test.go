package main

import (
	"strings"
	"testing"
	"time"

	"regent/emulators/need"
)

// Both systems take over from a leader that is killed, and from one that gives up, and their calls
// are counted, on a real emulator with real processes.
func TestSpindleAndRegentTakeOverOnTheEmulator(t *testing.T) {
	t.Parallel()
	host, stop, err := startEmulator(t.Context(), t.TempDir())
	if err != nil && strings.Contains(err.Error(), "no emulator is available") {
		need.Lacks(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	b := &bench{dir: t.TempDir(), emulator: host, plan: plan{
		Leases: []time.Duration{2 * time.Second}, TakeOvers: 1, TakeOverRounds: 1, CallLeases: []time.Duration{2 * time.Second}, CallsFor: 5 * time.Second,
	}}
	if b.binary, err = b.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := b.besideSpindle(t.Context(), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	found := all.Contests
	if len(found) != 3 || len(all.Versions) != 2 {
		t.Fatalf("%d contests with %v, want 3 with the versions of spindle and its client", len(found), all.Versions)
	}
	for _, c := range found[:2] {
		for _, l := range c.Lines() {
			if l.Count != 1 || l.P50.Median <= 0 {
				t.Errorf("%s, %s: %+v", c.ID, l.Name, l)
			}
		}
	}
	for i, r := range found[2].Rows {
		for k, e := range found[2].Entrants {
			calls := r.Samples[k][0].Count
			switch {
			case i == 0 && k == 0 && calls > 0:
				t.Errorf("%s made %v calls without a process", e.Name, calls)
			case i > 0 && calls == 0:
				t.Errorf("%s made no calls while %s", e.Name, r.Aspect)
			}
		}
	}
}
