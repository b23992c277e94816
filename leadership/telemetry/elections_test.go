package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/telemetry"
)

func TestTheOldestOfTooManyElectionsAreForgotten(t *testing.T) {
	t.Parallel()
	var told []leadership.Event
	for n := range 1000 {
		e := leadership.Election(fmt.Sprint("e-", n))
		told = append(told,
			leadership.Event{Election: e, Revision: 1, Type: leadership.EventAcquired, At: time.Now(), LeaderID: "ann", Token: 1},
			leadership.Event{Election: e, Revision: 2, Type: leadership.EventExpired, At: time.Now(), PreviousLeaderID: "ann", Token: 1})
	}
	if known, eyed, held, vacant := telemetry.Remembered(100, told...); known != 100 || eyed != 100 || held != 0 || vacant != 100 {
		t.Errorf("%d known, %d looked at, %d held, %d vacant; want 100, 100, 0, 100", known, eyed, held, vacant)
	}
}

func TestAnElectionWithNewsIsNotTheOldest(t *testing.T) {
	t.Parallel()
	acquired := func(e leadership.Election) leadership.Event {
		return leadership.Event{Election: e, Revision: 1, Type: leadership.EventAcquired, At: time.Now(), LeaderID: "ann", Token: 1}
	}
	released := leadership.Event{Election: "a", Revision: 2, Type: leadership.EventReleased, At: time.Now(), PreviousLeaderID: "ann", Token: 1}
	if _, _, held, vacant := telemetry.Remembered(2, acquired("a"), acquired("b"), released, acquired("c")); held != 1 || vacant != 1 {
		t.Errorf("%d held, %d vacant; want c and a, of which there was news after b", held, vacant)
	}
}
