package faults_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/test/faults"
	"regent/test/machine"
	"regent/test/proxy"
)

var (
	runs = flag.Int("runs", 0, "how many runs on each store; 0 for two on a file and one on each emulator, or one on each with -short")
	keep = flag.String("keep", "", "the folder in which failed runs are kept; that of temporary files if empty")
	seed = flag.Uint64("seed", 1, "of the first run; each next one has the next")
)

// programs builds what all runs use, once.
var programs = sync.OnceValues(func() (*faults.Setup, error) { return faults.NewSetup(faults.SetupConfig{}) })

// A run has many processes: a few runs side by side are what two processors carry.
func TestMain(m *testing.M) { machine.MainTogether(m, 4) }

func setupOf(t *testing.T, c faults.SetupConfig) *faults.Setup {
	t.Helper()
	setup, err := programs()
	require.NoError(t, err)
	if !setup.Shifts {
		t.Log("left out: other boots and shifted clocks, for unshare -T does not work here")
	}
	return setup.With(c)
}

func TestNoFaultBreaksAPromiseOnFile(t *testing.T) {
	play(t, faults.File, faults.SetupConfig{}, cmp.Or(*runs, machine.Size(1, 2)))
}

func TestNoFaultBreaksAPromiseOnFirestore(t *testing.T) {
	play(t, faults.Firestore, faults.SetupConfig{Firestore: emulators.Firestore(t), PubSub: emulators.PubSub(t)}, max(*runs, 1))
}

func TestNoFaultBreaksAPromiseOnSpanner(t *testing.T) {
	play(t, faults.Spanner, faults.SetupConfig{Spanner: emulators.Spanner(t), PubSub: emulators.PubSub(t)}, max(*runs, 1))
}

func play(t *testing.T, store faults.Store, c faults.SetupConfig, n int) {
	machine.Share(t)
	r := setupOf(t, c)
	for i := range n {
		s := *seed + uint64(i)
		t.Run(fmt.Sprintf("seed %d", s), func(t *testing.T) {
			result, err := run(t, faults.Config{Store: store, Seed: s, Setup: r, Dir: *keep})
			if err != nil {
				t.Error(err)
			}
			t.Logf("%+v", result)
			t.Logf("looked at: 1 runs, %d operations, %d unknown outcomes, %d changes, %d changes of leader, %d changes of leader at seats, "+
				"%d events delivered, %d effects, %d decisions, %d faults, %d excuses", result.Operations, result.Unknown, result.Changes,
				result.Leaders, result.Seats, result.Deliveries, result.Effects, result.Decisions, len(result.Faults), result.Late)
		})
	}
}

// run plays a run, and another one with a later seed and leases twice as long in the place of one
// that proves nothing, as on a machine that is busy otherwise. Even that one has kept what safety
// it can show: a violation is never redrawn.
func run(t *testing.T, c faults.Config) (result faults.Result, err error) {
	t.Helper()
	const later = 1_000_000 // seeds
	c.Lease = machine.Size(3*time.Second, 0)
	var redrawn machine.Excuses
	redrawn.Redo(func(int) error {
		plan := faults.NewPlan(c.Store, c.Seed, c.Setup.Shifts, c.Lease)
		if len(c.Faults) > 0 {
			plan.Faults = c.Faults
		}
		t.Log(plan)
		result, err = faults.Run(t.Context(), c)
		c.Seed, c.Lease = c.Seed+later, 2*plan.Lease
		if errors.Is(err, faults.ErrInvalid) {
			return err
		}
		return nil
	})
	redrawn.Check(t)
	return result, err
}

// While a server is stopped its callers hang up, and ask again with the same key once it goes on: a
// grant whose reply was lost is told to its leader at once, and not kept in line for.
func TestNoLeaderIsKeptWaitingByAServerThatStops(t *testing.T) {
	for store, c := range map[faults.Store]faults.SetupConfig{
		faults.File:      {},
		faults.Firestore: {Firestore: emulators.Firestore(t), PubSub: emulators.PubSub(t)},
	} {
		t.Run(string(store), func(t *testing.T) {
			machine.Share(t)
			c := faults.Config{Store: store, Seed: *seed, Setup: setupOf(t, c)}
			times := machine.Size(1, 5)
			for i := range times * faults.NewPlan(store, c.Seed, c.Setup.Shifts, 0).Servers {
				server, at := fmt.Sprintf("server-%d", i/times), time.Duration(i%times)*4*time.Second
				c.Faults = append(c.Faults, faults.Fault{Kind: faults.Stutter, Target: server, At: at, For: time.Second})
				if store == faults.Firestore { // long attempts, so that callers return during those of others
					slow := proxy.Conditions{Latency: 50 * time.Millisecond}
					c.Faults = append(c.Faults, faults.Fault{Kind: faults.Bad, Target: server + " > store", At: at, For: time.Second, Weather: slow})
				}
			}
			if _, err := run(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A run that could not fail would prove nothing: agents that lie are found out.
func TestALieIsFound(t *testing.T) {
	machine.Share(t)
	for name, c := range map[string]struct {
		lie   faults.Lie
		found string
	}{
		"leaders that believe for too long":            {faults.Lie{Belief: machine.Size(3*time.Second, time.Second)}, "ME2: "},
		"observers that do not tell of all they heard": {faults.Lie{Deaf: true}, "EV: lost"},
	} {
		t.Run(name, func(t *testing.T) {
			machine.Share(t)
			dir := t.TempDir()
			_, err := run(t, faults.Config{Store: faults.File, Seed: *seed, Dir: dir, Setup: setupOf(t, faults.SetupConfig{}), Lie: c.lie})
			requireFound(t, err, c.found)
			kept, _ := os.ReadDir(dir)
			if !slices.ContainsFunc(kept, func(e os.DirEntry) bool { return strings.Contains(err.Error(), e.Name()) }) {
				t.Errorf("it does not say where the run is kept (%v): %v", kept, err)
			}
		})
	}
}

// requireFound wants an error that is a violation, and says so.
func requireFound(t *testing.T, err error, found ...string) {
	t.Helper()
	var v *faults.Violation
	if !errors.As(err, &v) {
		t.Fatalf("error %v, want a violation", err)
	}
	for _, want := range found {
		if text := strings.Join(v.What, "\n"); !strings.Contains(text, want) {
			t.Errorf("no %q is found, but:\n%s", want, text)
		}
	}
}
