package hub_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// tombstone is the refusal for a deleted election.
func tombstone() *leadership.Error {
	l := vacantAt(8, 0)
	l.Deleted = true
	return &leadership.Error{Code: leadership.NotFound, Lease: &l}
}

func (w *cached) wantAbsent(r leadership.ReadRequest) {
	w.t.Helper()
	r.Election = jobs
	if got, err := w.Read(w.t.Context(), r); !errors.Is(err, leadership.NotFound) {
		w.t.Errorf("got %+v and %v, want %s", got, err, leadership.NotFound)
	}
}

func TestAbsenceIsKeptAsALeaseIs(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"never seen": &leadership.Error{Code: leadership.NotFound}, "deleted": tombstone()} {
		t.Run(name, func(t *testing.T) {
			withCache(t, func(t *testing.T, w *cached) {
				w.fails(refusal)
				for range 2000 {
					w.wantAbsent(leadership.ReadRequest{})
				}
				w.wantGets(1)
				time.Sleep(hub.DefaultExpiry - 1)
				w.wantAbsent(leadership.ReadRequest{})
				w.wantGets(1)
				w.wantAbsent(leadership.ReadRequest{Strong: true})
				w.wantGets(2)
				time.Sleep(time.Nanosecond)
				w.wantAbsent(leadership.ReadRequest{})
				w.wantGets(3)
			})
		})
	}
}

func TestAnElectionThatBeginsIsNoLongerAbsent(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*cached){
		"by an event": func(w *cached) {
			w.Publish(leadership.Event{Election: jobs, Revision: 9, Type: leadership.EventAcquired, LeaderID: "ann", Token: 2})
		},
		"by an own change": func(w *cached) { w.Hub.Learn(new(heldAt(9, time.Hour)), view.Committed, w.now()) },
		"by a strong read": func(w *cached) {
			_, err := w.Read(w.t.Context(), leadership.ReadRequest{Election: jobs, Strong: true})
			assert.NoError(w.t, err)
		},
	} {
		for was, refusal := range map[string]error{"never seen": &leadership.Error{Code: leadership.NotFound}, "deleted": tombstone()} {
			t.Run(was+", "+name, func(t *testing.T) {
				withCache(t, func(t *testing.T, w *cached) {
					w.fails(refusal)
					w.wantAbsent(leadership.ReadRequest{})
					w.stores(heldAt(9, time.Hour))
					time.Sleep(time.Millisecond)
					happens(w)
					w.wantRevision(w.read(0), 9)
				})
			})
		}
	}
}

func TestAnAbsenceThatIsOlderThanWhatIsKnownIsNotKept(t *testing.T) {
	withCache(t, func(t *testing.T, w *cached) {
		w.fails(&leadership.Error{Code: leadership.NotFound})
		w.after = func(context.Context) {
			w.after = nil
			w.stores(heldAt(1, time.Hour))
			w.Publish(leadership.Event{Election: jobs, Revision: 1, Type: leadership.EventAcquired, LeaderID: "ann", Token: 1})
		}
		w.wantAbsent(leadership.ReadRequest{})
		w.wantRevision(w.read(0), 1)
	})
}

func TestAbsencesLeaveRoomForElections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var gets atomic.Int64
		h := newHub(t, hub.Config{Size: 10, Store: stub{get: func(_ context.Context, e leadership.Election) (leadership.Lease, error) {
			gets.Add(1)
			if e != jobs {
				return leadership.Lease{}, &leadership.Error{Code: leadership.NotFound}
			}
			return heldAt(1, time.Hour), nil
		}}})
		for i := range 100 {
			_, err := h.Read(t.Context(), leadership.ReadRequest{Election: leadership.Election(fmt.Sprint("absent-", i))})
			require.ErrorIs(t, err, leadership.NotFound)
		}
		gets.Store(0)
		for range 10 {
			_, err := h.Read(t.Context(), leadership.ReadRequest{Election: jobs})
			require.NoError(t, err)
		}
		if n := gets.Load(); n != 1 {
			t.Errorf("the store was read %d times for an election that exists, want once", n)
		}
		for range 2 { // each grant needs it
			_, err := h.Read(t.Context(), leadership.ReadRequest{Election: leadership.HaltsElection})
			require.ErrorIs(t, err, leadership.NotFound)
		}
		if n := gets.Load(); n != 2 {
			t.Errorf("in a full cache the halts were read %d times, want once", n-1)
		}
		assert.EqualValues(t, 7, remembered(h), "elections are remembered, want 5 that are absent, one that is not, and the halts")
	})
}
