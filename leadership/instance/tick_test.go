package instance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

// overdue is a store with an event that was left behind, three leases that have ended, one that has
// not, and an election to be retired. It is for a bubble.
func overdue(t *testing.T, past int) service.Store {
	t.Helper()
	store := memory.New(memory.Config{})
	s := service.New(store)
	lead := func(e leadership.Election, d time.Duration) leadership.LeaseRequest {
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", LeaseDuration: d})
		require.NoError(t, err)
		return leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}
	}
	r := leadership.Configure{Election: "retiring"}
	r.Config.RetireAfter = time.Hour
	_, err := s.Do(t.Context(), r)
	require.NoError(t, err)
	for i := range past {
		_, err := s.Do(t.Context(), leadership.Release{LeaseRequest: lead(leadership.Election(fmt.Sprintf("past-%d", i)), 0)})
		require.NoError(t, err)
	}
	announced(t, store)
	for _, e := range []leadership.Election{"a", "b", "c"} {
		lead(e, time.Minute)
	}
	lead("lasting", 24*time.Hour)
	time.Sleep(2 * time.Hour)
	return store
}

// asleep returns an instance that does not run, on the bubble's clock.
func asleep(t *testing.T, store service.Store, to *bus) *instance.Instance {
	t.Helper()
	begin := time.Now()
	i, err := instance.New(instance.Config{Store: store, Name: "a", Bus: to, Now: func() time.Duration { return time.Since(begin) }})
	require.NoError(t, err)
	return i
}

// announced marks all events.
func announced(t *testing.T, store service.Store) {
	t.Helper()
	for {
		events, err := store.Unannounced(t.Context(), "", leadership.MaxBatch)
		require.NoError(t, err)
		if len(events) == 0 {
			return
		}
		var ids []leadership.EventID
		for _, e := range events {
			ids = append(ids, e.ID())
		}
		require.NoError(t, store.MarkAnnounced(t.Context(), ids))
	}
}

func TestTickAnnouncesFirstThenRecordsEndsThenRetires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		store := overdue(t, 10)
		i := asleep(t, &storetest.Fake{Store: store, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			switch c.Method {
			case "Unannounced", "Held", "Retirable":
				if n := len(calls); n == 0 || calls[n-1] != c.Method {
					calls = append(calls, c.Method)
				}
			}
			return next(ctx)
		}}, &bus{})
		done, err := i.Tick(t.Context())
		if want := (instance.Ticked{Announced: 4 + 4, Expired: 3, Retired: 1}); err != nil || done != want {
			t.Errorf("got %+v, %v; want %+v", done, err, want)
		}
		if want := []string{"Unannounced", "Held", "Retirable", "Unannounced"}; !slices.Equal(calls, want) {
			t.Errorf("called %v, want %v", calls, want)
		}
		done, err = i.Tick(t.Context())
		if err != nil || done != (instance.Ticked{}) {
			t.Errorf("again: got %+v, %v; want nothing to do", done, err)
		}
	})
}

func TestPartOfATickThatFailsOrHangsLeavesTheOthersTheirTurn(t *testing.T) {
	for _, part := range []string{"Unannounced", "Held", "Retirable"} {
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s hangs: %v", part, hangs), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { tickWithout(t, part, hangs) })
			})
		}
	}
}

func tickWithout(t *testing.T, part string, hangs bool) {
	planted := errors.New("planted")
	i := asleep(t, &storetest.Fake{Store: overdue(t, 0), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method != part {
			return next(ctx)
		}
		if hangs {
			<-ctx.Done()
		}
		return fmt.Errorf("%w: %w", leadership.StoreUnavailable, planted)
	}}, &bus{})
	began := time.Now()
	done, err := i.Tick(t.Context())
	if !errors.Is(err, planted) || !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("got %v, want what was planted", err)
	}
	if took := time.Since(began); took > instance.TickTime || !hangs && took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for other, n := range map[string]int{"Unannounced": done.Announced, "Held": done.Expired, "Retirable": done.Retired} {
		if (n > 0) == (other == part) {
			t.Errorf("without %s: got %+v", part, done)
		}
	}
}
