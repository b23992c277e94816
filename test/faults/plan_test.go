package faults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"regent/test/faults"
)

// able is a machine that can do everything.
var able = faults.Abilities{TimeNamespaces: true, NetworkNamespaces: true, Freezable: []string{"firestore", "spanner", "topic"}}

func TestTheSameSeedMakesTheSamePlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		a, b := faults.NewPlan(faults.Spanner, seed, able, 0), faults.NewPlan(faults.Spanner, seed, able, 0)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("seed %d makes two plans:\n%s", seed, diff)
		}
	}
}

func TestPlansTryEverythingThatCanGoWrong(t *testing.T) {
	t.Parallel()
	everything := []faults.Kind{
		faults.Kill, faults.Pause, faults.Stutter, faults.End, faults.KillGuard, faults.StopGuard, faults.Bad, faults.Reset, faults.Cut,
		faults.Point, faults.OtherBoot, faults.Partition, faults.Frozen, faults.Mute, faults.Deaf,
	}
	drawn := map[faults.Kind]int{}
	for seed := range uint64(1000) {
		p := faults.NewPlan(faults.Firestore, seed, able, 0)
		if n := p.Candidates(); n < 5 || n > 32 {
			t.Errorf("seed %d has %d candidates", seed, n)
		}
		if n := len(p.Faults); n < 1 || n > 4 {
			t.Errorf("seed %d has %d faults", seed, n)
		}
		for _, f := range p.Faults {
			drawn[f.Kind]++
		}
	}
	for _, k := range everything {
		if drawn[k] < 10 {
			t.Errorf("%s is in %d of 1000 plans", k, drawn[k])
		}
	}
}

func TestLeadersOfSomeElectionsHandOver(t *testing.T) {
	t.Parallel()
	handing, not := 0, 0
	for seed := range uint64(1000) {
		p := faults.NewPlan(faults.File, seed, able, 0)
		for _, e := range p.Elections {
			if len(p.Successors[e]) > 1 {
				handing++
			} else {
				not++
			}
		}
	}
	if handing < 500 || not < 500 {
		t.Errorf("in 1000 plans, leaders of %d elections hand over, and those of %d do not", handing, not)
	}
}

func TestAPlanAsksForNothingThatTheMachineCannotDo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		p := faults.NewPlan(faults.File, seed, faults.Abilities{}, 0)
		for _, f := range p.Faults {
			switch f.Kind {
			case faults.Point, faults.OtherBoot, faults.Partition, faults.Frozen, faults.Mute, faults.Deaf:
				t.Errorf("seed %d: %v", seed, f)
			}
		}
		for _, group := range p.Groups {
			if group.Offset != 0 || group.Isolated {
				t.Errorf("seed %d: %+v", seed, group)
			}
		}
	}
}

// Both a run and its guard being stopped is out of reach of what they promise.
func TestNoPlanHarmsARunAndAGuardTogether(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		p := faults.NewPlan(faults.File, seed, able, 0)
		runs := map[string]bool{}
		for _, w := range p.Wrappers {
			runs[w.Name] = true
		}
		harmed := 0
		for _, f := range p.Faults {
			if runs[f.Target] {
				harmed++
			}
		}
		if harmed > 1 {
			t.Errorf("seed %d harms runs %d times: %v", seed, harmed, p)
		}
	}
}
