package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"regent/emulators"
	"regent/test/faults"
	"regent/test/turn"
)

var (
	runs = flag.Int("runs", 0, "how many runs on each store; 0 for two on bolt and one on each emulator")
	seed = flag.Uint64("seed", 1, "of the first run; each next one has the next")
)

// rig is the one of all tests; nil until somebody asks. The tests that use it do not run side by side: they would take each other's time.
var rig *faults.Rig

func TestMain(m *testing.M) {
	done := turn.Take()
	code := m.Run()
	done()
	if rig != nil {
		rig.Close()
	}
	os.Exit(code)
}

func rigOf(t *testing.T, c faults.RigConfig) *faults.Rig {
	t.Helper()
	if rig == nil {
		made, err := faults.NewRig(context.WithoutCancel(t.Context()), faults.RigConfig{})
		if err != nil {
			t.Fatal(err)
		}
		rig = made
	}
	r := rig.With(c)
	for _, what := range r.LeftOut() {
		t.Log("left out: ", what)
	}
	return r
}

func TestNoFaultBreaksAPromiseOnBolt(t *testing.T) {
	n := *runs
	if n == 0 {
		n = 2
	}
	play(t, faults.Bolt, rigOf(t, faults.RigConfig{}), n)
}

func TestNoFaultBreaksAPromiseOnFirestore(t *testing.T) {
	play(t, faults.Firestore, rigOf(t, faults.RigConfig{Firestore: emulators.Firestore(t), PubSub: emulators.PubSub(t)}), max(*runs, 1))
}

func TestNoFaultBreaksAPromiseOnSpanner(t *testing.T) {
	play(t, faults.Spanner, rigOf(t, faults.RigConfig{Spanner: emulators.Spanner(t), PubSub: emulators.PubSub(t)}), max(*runs, 1))
}

func play(t *testing.T, store faults.Store, r *faults.Rig, n int) {
	for i := range n {
		s := *seed + uint64(i)
		t.Run(fmt.Sprintf("seed %d", s), func(t *testing.T) {
			t.Log(faults.NewPlan(store, s, r.Can))
			result, err := faults.Run(t.Context(), faults.Config{Store: store, Seed: s, Rig: r})
			if err != nil {
				t.Error(err)
			}
			t.Logf("%+v", result)
		})
	}
}

// Whoever lies is found out: a run in which nobody can fail proves nothing.
func TestALieIsFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		lie   faults.Lie
		found string
	}{
		"leaders that believe for a second too long":   {faults.Lie{Belief: time.Second}, "ME2: "},
		"observers that do not tell of all they heard": {faults.Lie{Deaf: true}, "EV: lost"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := faults.Run(t.Context(), faults.Config{Store: faults.Bolt, Seed: *seed, Dir: dir, Rig: rigOf(t, faults.RigConfig{}), Lie: c.lie})
			requireFound(t, err, c.found)
			kept, _ := os.ReadDir(dir)
			if len(kept) != 1 || !strings.Contains(err.Error(), kept[0].Name()) {
				t.Errorf("it does not say where the run is kept (%v): %v", kept, err)
			}
		})
	}
}

// A server that takes a lease for over while a part of it is left elects two leaders, and is found out.
func TestABugOfTheServerIsFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds everything once more")
	}
	const rule = "if left := end.Add(s.Guard).Sub(s.Now); left > "
	overlay := plant(t, "../../leadership/record.go", rule+"0 {", rule+"900*time.Millisecond {")
	r, err := faults.NewRig(t.Context(), faults.RigConfig{Overlay: overlay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	_, err = faults.Run(t.Context(), faults.Config{Store: faults.Bolt, Seed: *seed, Dir: t.TempDir(), Rig: r})
	requireFound(t, err, "ME2: two leaders", "Linear: illegal")
}

// plant makes an overlay in which a file has the one text in place of the other.
func plant(t *testing.T, file, good, bad string) (overlay string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), good) != 1 {
		t.Fatalf("%s does not have %q once", file, good)
	}
	original, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	planted, overlay := filepath.Join(t.TempDir(), "planted.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: planted}})
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(planted, []byte(strings.Replace(string(text), good, bad, 1)), 0o600)
	if err := errors.Join(err, os.WriteFile(overlay, replace, 0o600)); err != nil {
		t.Fatal(err)
	}
	return overlay
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
