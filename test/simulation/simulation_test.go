package simulation_test

import (
	"cmp"
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"regent/test/machine"
	"regent/test/simulation"
)

var (
	seeds  = flag.Int("seeds", 0, "how many runs; 0 for 60, or 6 with -short")
	first  = flag.Uint64("seed", 1, "the seed of the first run; with -seeds 1 what happens in it is written out")
	leases = flag.Int("leases", 500, "how many leases long each is")
)

func runs() int { return cmp.Or(*seeds, machine.Size(6, 60)) }

func TestAllHoldsWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	var total simulation.Figures
	runs := runs()
	for n := range runs {
		c := simulation.Config{Seed: *first + uint64(n), Leases: *leases}
		if *seeds == 1 {
			c.Log = io.Writer(os.Stdout)
		}
		r := simulation.Run(c)
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		total = total.Plus(r.Figures)
	}
	for what, n := range map[string]int{
		"election was unlocked": total.Unlocked, "leader went on under the next token": total.Epochs, "leader was deposed": total.Deposed,
		"leader reported": total.Reports, "ballot ended": total.Ballots, "leader was preempted": total.Preempted,
		"leader handed over": total.TakenOver, "lease stood on another one": total.Stood,
		"seat was granted": total.Seated, "term ended for there were fewer seats": total.Lowered, "candidate was refused in a halt": total.Halted,
	} {
		if n == 0 && runs >= 60 {
			t.Errorf("no %s", what)
		}
	}
	t.Logf("%+v", total)
	t.Logf("looked at: %d election-hours, %d seeds, %d renewals, %d changes of leader, %d faults, %d stale writes refused",
		total.Elections/time.Hour, runs, total.Renewals, total.Changes, total.Faults, total.Refused)
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	t.Parallel()
	for seed := range machine.Size[uint64](1, 10) {
		c := simulation.Config{Seed: seed, Leases: 200}
		once, again := simulation.Run(c), simulation.Run(c)
		if once.Digest != again.Digest || once.Figures != again.Figures {
			t.Errorf("seed %d: two runs differ:\n%+v\n%+v", seed, once.Figures, again.Figures)
		}
		c.Seed += 1000
		if other := simulation.Run(c); other.Digest == once.Digest {
			t.Errorf("seeds %d and %d have the same digest", seed, c.Seed)
		}
	}
}
