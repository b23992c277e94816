package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

const (
	delay  = 250 * time.Millisecond
	jitter = 500 * time.Millisecond
	nap    = 10 * time.Millisecond // ends this close together share a wake-up
)

// lookout is a hub that runs, and a store that remembers when it was asked.
type lookout struct {
	*cached
	log bytes.Buffer

	// Guarded by mu.
	looks  []time.Duration
	answer func(context.Context) (leadership.Lease, error) // nil: the end is recorded
}

// withLookout runs the test in a bubble, with a lookout that runs.
func withLookout(t *testing.T, test func(t *testing.T, w *lookout)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &lookout{cached: &cached{t: t, start: time.Now()}}
		w.Hub = newHub(t, hub.Config{Store: stub{expire: w.expire}, Now: w.now, Log: slog.New(slog.NewTextHandler(&w.log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		test(t, w)
		cancel()
		running.Wait()
	})
}

// Learn is what the instance does with a lease that it has granted or renewed, or that was
// released.
func (w *lookout) Learn(l leadership.Lease) { w.Hub.Learn(&l, view.Committed, w.now()) }

func (w *lookout) expire(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	w.mu.Lock()
	w.looks = append(w.looks, time.Since(w.start))
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		return answer(ctx)
	}
	return leadership.Lease{Election: e, State: leadership.Vacant, Revision: 1000}, nil
}

func (w *lookout) answers(answer func(context.Context) (leadership.Lease, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// after lets time pass, and returns when the store was asked since the start.
func (w *lookout) after(d time.Duration) []time.Duration {
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.looks...)
}

// wantLooks checks that there was a look soon after each of the ends, and no other.
func (w *lookout) wantLooks(ends ...time.Duration) {
	w.t.Helper()
	looks := w.after(0)
	if len(looks) != len(ends) {
		w.t.Fatalf("the store was asked at %v, want it asked soon after %v", looks, ends)
	}
	for i, end := range ends {
		if soonest, latest := end+delay, end+end/1000+delay+jitter+nap; looks[i] < soonest || looks[i] > latest {
			w.t.Errorf("the store was asked at %v, want from %v to %v", looks[i], soonest, latest)
		}
	}
}

func event(r leadership.Revision, t leadership.EventType, leader leadership.CandidateID) leadership.Event {
	return leadership.Event{Election: "jobs", Revision: r, Type: t, LeaderID: leader}
}

func TestALeaseThatRunsOutIsLookedAfterOnceAndSoon(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{time.Second, 30 * time.Second, 24 * time.Hour} {
		t.Run(lease.String(), func(t *testing.T) {
			withLookout(t, func(_ *testing.T, w *lookout) {
				w.Learn(heldAt(1, lease))
				w.after(2 * lease)
				w.wantLooks(lease)
				w.wantSlots(0)
			})
		})
	}
}

func TestALeaseThatIsDoneWithIsNotLookedAfter(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*lookout){
		"released here":      func(w *lookout) { w.Learn(vacantAt(2, 0)) },
		"released elsewhere": func(w *lookout) { w.Publish(event(2, leadership.EventReleased, "")) },
		"found expired":      func(w *lookout) { w.Publish(event(2, leadership.EventExpired, "")) },
		"deleted":            func(w *lookout) { w.Publish(event(2, leadership.EventDeleted, "")) },
		"led by another, who asked elsewhere": func(w *lookout) {
			w.Publish(event(3, leadership.EventAcquired, "bob"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withLookout(t, func(_ *testing.T, w *lookout) {
				w.Learn(heldAt(1, 30*time.Second))
				time.Sleep(time.Second)
				end(w)
				w.wantSlots(0)
				w.after(time.Hour)
				w.wantLooks()
			})
		})
	}
}

func TestALeaseThatGoesOnIsLookedAfter(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*lookout){
		"configured":                      func(w *lookout) { w.Publish(event(6, leadership.EventConfigured, "ann")) },
		"updated":                         func(w *lookout) { w.Publish(event(6, leadership.EventUpdated, "ann")) },
		"its own grant is heard":          func(w *lookout) { w.Publish(event(5, leadership.EventAcquired, "ann")) },
		"the end before it is heard late": func(w *lookout) { w.Publish(event(4, leadership.EventReleased, "")) },
		"the reply to an older call":      func(w *lookout) { w.Learn(heldAt(4, time.Hour)) },
		"a release before it":             func(w *lookout) { w.Learn(vacantAt(4, 0)) },
		"another election":                func(w *lookout) { w.Publish(leadership.Event{Election: "other", Revision: 9}) },
	} {
		t.Run(name, func(t *testing.T) {
			withLookout(t, func(_ *testing.T, w *lookout) {
				w.Learn(heldAt(5, 30*time.Second))
				happens(w)
				w.after(2 * time.Hour)
				w.wantLooks(30 * time.Second)
			})
		})
	}
}

func TestAStoreThatGoesOnNotAnsweringIsGivenUpAndTheLogSaysSo(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{leadership.StoreUnavailable: 8, leadership.OutcomeUnknown: 8, leadership.RecordCorrupt: 1} {
		t.Run(err.Error(), func(t *testing.T) {
			withLookout(t, func(t *testing.T, w *lookout) {
				w.answers(func(context.Context) (leadership.Lease, error) {
					return leadership.Lease{}, fmt.Errorf("test: %w", err)
				})
				w.Learn(heldAt(1, 30*time.Second))
				if looks := w.after(24 * time.Hour); len(looks) != want {
					t.Errorf("the store was asked at %v, want %d looks", looks, want)
				} else if span := looks[want-1] - looks[0]; want > 1 && span < time.Minute {
					t.Errorf("given up after %v, want more than a minute", span)
				}
				w.wantSlots(0)
				if lines := strings.Split(strings.TrimSpace(w.log.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "election=jobs") || !strings.Contains(lines[0], err.Error()) {
					t.Errorf("logged %q, want one line that names the election and the cause", lines)
				}
			})
		})
	}
}

func TestFewLooksAreUnderWayAtOnce(t *testing.T) {
	withLookout(t, func(t *testing.T, w *lookout) {
		const leases = 100
		var mu sync.Mutex
		var busy, most, done int
		w.answers(func(context.Context) (leadership.Lease, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(2 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			busy--
			done++
			return vacantAt(2, 0), nil
		})
		for i := range leases {
			lease := heldAt(1, 30*time.Second)
			lease.Election = leadership.Election(fmt.Sprint("jobs-", i))
			w.Learn(lease)
		}
		w.after(time.Minute)
		assert.Empty(t, cmp.Diff([]int{leases, 16}, []int{done, most}), "looks done, and most at once (-want +got)")
		w.wantSlots(0)
	})
}

func TestALookThatTakesTooLongIsEnded(t *testing.T) {
	withLookout(t, func(t *testing.T, w *lookout) {
		w.answers(func(ctx context.Context) (leadership.Lease, error) {
			<-ctx.Done()
			w.answers(nil)
			return leadership.Lease{}, fmt.Errorf("test: %w: %w", leadership.OutcomeUnknown, ctx.Err())
		})
		w.Learn(heldAt(1, 30*time.Second))
		if looks := w.after(time.Hour); len(looks) != 2 || looks[1]-looks[0] < 10*time.Second || looks[1]-looks[0] > 12*time.Second {
			t.Errorf("the store was asked at %v, want a second look when the first had taken 10s", looks)
		}
	})
}

func TestAfterASuspensionTheLeasesThatEndedMeanwhileAreLookedAfter(t *testing.T) {
	withLookout(t, func(t *testing.T, w *lookout) {
		w.Learn(heldAt(1, time.Hour))
		w.after(time.Second)
		w.leap(2 * time.Hour) // the timers of the process have stood still
		if looks := w.after(time.Minute); len(looks) != 1 {
			t.Errorf("the store was asked at %v, want one look within a minute", looks)
		}
	})
}

func TestRunWaitsForTheLooksThatAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var ended bool
		l := newHub(t, hub.Config{
			Now: func() time.Duration { return time.Since(start) },
			Store: stub{expire: func(ctx context.Context, _ leadership.Election) (leadership.Lease, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended = true
				return leadership.Lease{}, leadership.OutcomeUnknown
			}},
		})
		l.Learn(new(heldAt(1, 59*time.Second)), view.Committed, 0)
		if l.Run(ctx); !ended {
			t.Error("Run returned before the look had ended")
		}
	})
}
