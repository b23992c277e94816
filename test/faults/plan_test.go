package faults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"regent/test/faults"
)

func TestTheSameSeedMakesTheSamePlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		a, b := faults.NewPlan(faults.Spanner, seed, true, 0), faults.NewPlan(faults.Spanner, seed, true, 0)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("seed %d makes two plans:\n%s", seed, diff)
		}
	}
}

func TestPlansTryEverythingThatCanGoWrong(t *testing.T) {
	t.Parallel()
	everything := []faults.Kind{
		faults.Kill, faults.Pause, faults.Stutter, faults.End, faults.KillGuard, faults.StopGuard, faults.Bad, faults.Reset, faults.Cut,
		faults.Point, faults.OtherBoot, faults.Partition, faults.Mute, faults.Deaf,
	}
	drawn := map[faults.Kind]int{}
	handing, not := 0, 0
	for seed := range uint64(1000) {
		p := faults.NewPlan(faults.Firestore, seed, true, 0)
		if n := p.Candidates(); n < 5+4 || n > 32+5 {
			t.Errorf("seed %d has %d candidates", seed, n)
		}
		for _, f := range p.Faults {
			drawn[f.Kind]++
		}
		for _, e := range p.Elections {
			if len(p.Successors[e]) > 1 {
				handing++
			} else {
				not++
			}
		}
	}
	for _, k := range everything {
		if drawn[k] < 10 {
			t.Errorf("%s is in %d of 1000 plans", k, drawn[k])
		}
	}
	if handing < 500 || not < 500 {
		t.Errorf("in 1000 plans, leaders of %d elections hand over, and those of %d do not", handing, not)
	}
}

// A run and its guard that are both stopped are out of reach of what they promise.
func TestAPlanAsksForNothingThatCannotBe(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		p := faults.NewPlan(faults.File, seed, false, 0)
		runs, harmed := map[string]bool{}, 0
		for _, w := range p.Wrappers {
			runs[w.Name] = true
		}
		for _, f := range p.Faults {
			switch f.Kind {
			case faults.Point, faults.OtherBoot, faults.Mute, faults.Deaf:
				t.Errorf("seed %d: %v", seed, f)
			}
			if runs[f.Target] {
				harmed++
			}
		}
		if harmed > 1 {
			t.Errorf("seed %d harms runs %d times: %v", seed, harmed, p)
		}
		for _, group := range p.Groups {
			if group.Offset != 0 {
				t.Errorf("seed %d: %+v", seed, group)
			}
		}
	}
}
