package counts

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/test/load"
)

var update = flag.Bool("update", false, "write the counts to testdata; review them before you commit them")

func TestOperationsCostWhatTestdataSays(t *testing.T) {
	onEach(t, func(t *testing.T, p Place) {
		done, err := Operations(t.Context(), p)
		require.NoError(t, err)
		compare(t, string(p.kind), OperationsTable(p.kind, done))
		t.Run("promised costs", func(t *testing.T) { promised(t, p.kind, done) })
	})
}

// promised holds the counts to what is promised of what a leader leaves behind: testdata may be
// written anew, and this may not.
func promised(t *testing.T, kind emulators.Kind, done []Operation) {
	costOf := func(name string) Cost {
		return done[slices.IndexFunc(done, func(o Operation) bool { return o.Name == name })].Cost
	}
	more := costOf(inheritName).minus(costOf(grantName))
	if more.Written != 1 || more.RPCs() != 4 {
		t.Errorf("a grant that inherits costs %+v more than one that does not; want a write, and 4 RPCs", more)
	}
	more = costOf(inDoubtName).minus(costOf(inheritName))
	if more.Written != 1 || more.RPCs() != 2 {
		t.Errorf("one with effects in doubt costs %+v more than one without; want a write, and 2 RPCs", more)
	}
	want := map[string][2]int{putAgainName: {1, 1}, beginAgainName: {1, 1}, finishName: {1, 1}, proposeName: {2, 1}, decideName: {2, 1}, putUnknownName: {2, 1}, appendName: {1, 2}, appendMostName: {1, 2}, appendRepeatName: {1, 0}}
	if kind == emulators.KindSpanner {
		want = map[string][2]int{putAgainName: {2, 1}, beginAgainName: {2, 1}, finishName: {2, 1}, proposeName: {3, 1}, decideName: {3, 1}, putUnknownName: {2, 1}, appendName: {2, 2}, appendMostName: {2, 2}, appendRepeatName: {2, 0}}
	}
	if poll := costOf(pollName); poll.RPCs() != 0 {
		t.Errorf("a waiting elector's poll costs %+v, want nothing", poll)
	}
	for name, want := range want {
		if got := costOf(name); got.RPCs() != want[0] || got.Written != want[1] {
			t.Errorf("%s: %+v; want %d RPCs and %d writes", name, got, want[0], want[1])
		}
	}
}

func TestRenewalsThroughSeveralInstancesCostWhatTheyCostThroughOne(t *testing.T) {
	onEach(t, func(t *testing.T, p Place) {
		found, err := InTurn(t.Context(), p, 36, fleets()...)
		require.NoError(t, err)
		for _, f := range found {
			if diff := cmp.Diff(found[0].Cost, f.Cost); diff != "" || f.Cost.Written != 36 {
				t.Errorf("%d renewals through %d instances (-through one +counted):\n%s", f.Cost.Written, f.Instances, diff)
			}
			if p.kind == emulators.KindFirestore && (f.Cost.RPCs() != 36 || f.Cost.Read != 0) {
				t.Errorf("through %d instances: %+v; want a call and no read for each renewal", f.Instances, f.Cost)
			}
		}
	})
}

func TestReadersOfOneElectionShareOneReadPerExpiry(t *testing.T) {
	onEach(t, func(t *testing.T, p Place) {
		cost, err := Readers(t.Context(), p, 10, time.Minute)
		require.NoError(t, err)
		if want := readsAnHour / 60; cost.RPCs() != want || cost.Written != 0 {
			t.Errorf("in a minute they cost %+v, want %d reads", cost, want)
		}
	})
}

// A leader that is alone waits for no other; the more there are, the less each costs. How much less
// depends on the machine: alone, each would cost as much as the first.
func TestRenewalsThatComeTogetherCostFewerCalls(t *testing.T) {
	onEach(t, func(t *testing.T, p Place) {
		h, err := p.Open(t.Context())
		require.NoError(t, err)
		defer h.Close()
		inst, err1 := instance.New(instance.Config{Store: h, Name: "regent-test"})
		leases, err2 := granted(t.Context(), service.New(h), newAgent("ann"), 16)
		require.NoError(t, errors.Join(err1, err2))
		perRenewal := func(leaders int) float64 { // each renews again as soon as it is answered
			const rounds = 10
			h.Take()
			err := load.Each(leaders, leaders, func(i int) (err error) {
				for n := 0; n < rounds && err == nil; n++ {
					_, err = inst.Renew(t.Context(), leases[i])
				}
				return err
			})
			asked, _ := h.Take()
			if err != nil || asked.Written != leaders*rounds {
				t.Errorf("%d renewals: %+v, %v", leaders*rounds, asked, err)
			}
			return float64(asked.RPCs()) / float64(leaders*rounds)
		}
		alone, crowd := perRenewal(1), perRenewal(16)
		if want := map[emulators.Kind]float64{emulators.KindFirestore: 1, emulators.KindSpanner: 2}[p.kind]; alone != want {
			t.Errorf("one leader's renewal costs %v calls, want %v", alone, want)
		}
		if crowd > alone/2 {
			t.Errorf("a renewal beside 15 others costs %v calls, want half of %v at most", crowd, alone)
		}
	})
}

// onEach runs a test on an empty database of each store.
func onEach(t *testing.T, test func(*testing.T, Place)) {
	t.Helper()
	t.Parallel()
	for kind, host := range map[emulators.Kind]func(testing.TB) string{
		emulators.KindFirestore: emulators.Firestore,
		emulators.KindSpanner:   emulators.Spanner,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p, err := NewPlace(t.Context(), kind, host(t))
			require.NoError(t, err)
			test(t, p)
		})
	}
}

// compare compares with the file in testdata.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the costs differ from %s; if that is intended: go test ./test/load/counts -update (-written +counted)\n%s", file, diff)
	}
}
