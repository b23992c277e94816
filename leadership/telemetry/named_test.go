package telemetry_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/leadership/telemetry/telemetrytest"
	"regent/store/memory"
)

// byName has the fixture show elections by name.
func byName(w *telemetrytest.Fixture, all ...leadership.Election) {
	w.Helper()
	require.NoError(w, w.Metrics.ByName(all))
}

// wantNamed checks what is shown by name.
func wantNamed(w *telemetrytest.Fixture, when string, want map[string]float64) {
	w.Helper()
	got := map[string]float64{}
	for series, value := range w.Read() {
		if name, ok := strings.CutPrefix(series, "regent.election."); ok {
			got[name] = value
		}
	}
	assert.Empty(w, cmp.Diff(want, got), "%s: -want +got", when)
}

func deleteElection(w *telemetrytest.Fixture, e leadership.Election) {
	w.Helper()
	_, err := w.Service.Do(w.Context(), leadership.Delete{Election: e, Force: true})
	require.NoError(w, err)
}

func TestElectionsThatMatchAreShownByNameUntilTheyAreDeleted(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		byName(w, "deploy.*", "nightly")
		ann := w.Lead("deploy.eu", "ann")
		w.Lead("deployed", "ann")
		go w.Acquire("deploy.eu", "bob", time.Minute)
		w.Settle(7 * time.Second)
		wantNamed(w, "ann leads", map[string]float64{
			"led{election=deploy.eu}": 1, "token{election=deploy.eu}": 1, "changed.age{election=deploy.eu}": 7, "waiting{election=deploy.eu}": 1, "omitted": 0,
		})
		before := w.Read()
		if calls := w.Read().Since(before).Sum("regent.store.duration:count"); calls > 0 {
			w.Errorf("a collection makes %v calls of the store", calls)
		}
		w.Release(ann)
		w.Settle(3 * time.Second)
		wantNamed(w, "bob leads", map[string]float64{
			"led{election=deploy.eu}": 1, "token{election=deploy.eu}": 2, "changed.age{election=deploy.eu}": 3, "waiting{election=deploy.eu}": 0, "omitted": 0,
		})
		w.Lead("nightly", "ann")
		deleteElection(w, "deploy.eu")
		w.Settle(35 * time.Second)
		wantNamed(w, "ann's lease has run out", map[string]float64{
			"led{election=nightly}": 0, "token{election=nightly}": 1, "changed.age{election=nightly}": 5, "waiting{election=nightly}": 0, "omitted": 0,
		})
		deleteElection(w, "nightly")
		wantNamed(w, "both are deleted", map[string]float64{"omitted": 0})
	})
}

func TestTwoHundredElectionsAreShownByNameAndTheOthersCounted(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		byName(w, "*")
		for n := range 202 {
			w.Lead(leadership.Election(fmt.Sprint("e-", n)), "ann")
		}
		shown := func() (n int, omitted float64) {
			got := w.Read()
			for series := range got {
				if strings.HasPrefix(series, "regent.election.led") {
					n++
				}
			}
			return n, got["regent.election.omitted"]
		}
		if n, omitted := shown(); n != 200 || omitted != 2 {
			w.Errorf("%d shown and %v omitted; want 200 and 2", n, omitted)
		}
		deleteElection(w, "e-0")
		w.Lead("e-201", "ann") // which is news of it
		if n, omitted := shown(); n != 200 || omitted != 1 || w.Read()["regent.election.led{election=e-201}"] != 1 {
			w.Errorf("%d shown and %v omitted after one was deleted; want 200 and 1, with e-201", n, omitted)
		}
	})
}

func TestOfAnElectionWithSeatsTheFreeOnesAreShown(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		byName(w, "gpu")
		seats := leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 2}}
		_, err := w.Service.Do(w.Context(), seats)
		require.NoError(t, err)
		w.Lead("gpu", "ann")
		wantNamed(w, "ann leads", map[string]float64{
			"led{election=gpu}": 1, "seats.free{election=gpu}": 1, "token{election=gpu}": 0, "waiting{election=gpu}": 0, "omitted": 0,
		})
		w.Lead("gpu", "bob")
		go w.Acquire("gpu", "cy", time.Minute)
		w.Settle(25 * time.Second)
		values(w, "all seats are led", w.Read(), map[string]float64{
			"regent.election.seats.free{election=gpu}": 0, "regent.election.waiting{election=gpu}": 1, "regent.elections.leaderless": 0,
		})
		order(w, "gpu", leadership.Order{Kind: leadership.OrderPause, For: 10 * time.Minute})
		w.Settle(35 * time.Second)
		values(w, "paused, with free seats", w.Read(), map[string]float64{
			"regent.election.seats.free{election=gpu}": 2, "regent.elections.paused": 1, "regent.elections.leaderless": 0,
		})
	})
}

// An instance that begins knows what is there already, and hears what others change.
func TestElectionsOfOtherInstancesAreShownByName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		others := service.New(store.Open())
		lead := func(e leadership.Election) {
			t.Helper()
			_, err := others.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: new(leadership.NewKey())})
			require.NoError(t, err)
		}
		lead("jobs.a") // by a leader that is gone, with its instance
		w := telemetrytest.Beside(t, store.Open())
		byName(w, "jobs.*", "once")
		go w.Metrics.Follow(t.Context(), w.Service)
		w.Settle(10 * time.Second)
		wantNamed(w, "at the start", map[string]float64{
			"led{election=jobs.a}": 1, "token{election=jobs.a}": 1, "changed.age{election=jobs.a}": 10, "waiting{election=jobs.a}": 0, "omitted": 0,
		})
		lead("once")
		w.Settle(10 * time.Second)
		if got := w.Read(); got["regent.election.led{election=once}"] != 1 || got["regent.election.changed.age{election=once}"] != 10 {
			w.Errorf("the grant of another instance was not heard of: %v", got)
		}
		_, err := others.Do(t.Context(), leadership.Delete{Election: "once", Force: true})
		require.NoError(t, err)
		w.Settle(15 * time.Second)
		wantNamed(w, "one is deleted elsewhere, and a lease has run out unseen", map[string]float64{
			"led{election=jobs.a}": 0, "token{election=jobs.a}": 1, "changed.age{election=jobs.a}": 5, "waiting{election=jobs.a}": 0, "omitted": 0,
		})
	})
}
