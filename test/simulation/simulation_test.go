package simulation_test

import (
	"cmp"
	"flag"
	"io"
	"os"
	"runtime"
	"testing"

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
	if total.Unlocked == 0 && runs >= 60 {
		t.Error("no operator has unlocked an election")
	}
	if (total.Epochs == 0 || total.Deposed == 0 || total.Reports == 0) && runs >= 60 {
		t.Error("no leader went on under the next token, or reported, or was deposed")
	}
	if (total.Ballots == 0 || total.Bids == 0 || total.Preempted == 0) && runs >= 60 {
		t.Error("no candidate has bid, or none has won, or none has preempted a leader")
	}
	if (total.TakenOver == 0 || total.Stood == 0) && runs >= 60 {
		t.Error("no leader has handed over, or no lease stood on another one")
	}
	t.Logf("%+v", total)
}

// It is not parallel, so that no other test starts or ends goroutines meanwhile.
func TestRunsLeaveNoGoroutineBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := range uint64(10) {
		simulation.Run(simulation.Config{Seed: seed, Leases: 30})
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched() // those that have ended may still be counted
	}
	t.Errorf("%d goroutines are left of 10 runs", runtime.NumGoroutine()-before)
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
