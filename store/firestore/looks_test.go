package firestore

import (
	"testing"
	"time"
)

func TestAllOfTheOutboxIsLookedAtOnceAnHour(t *testing.T) {
	t.Parallel()
	var l outboxLooks
	all := 0
	for at := epoch; at.Before(epoch.Add(24 * time.Hour)); at = at.Add(15 * time.Second) {
		since := l.from()
		if since.IsZero() {
			all++
		} else if since.After(at.Add(-5 * time.Minute)) {
			t.Fatalf("at %v it looks since %v, and a commit may take five minutes", at, since)
		}
		l.complete(at, time.Time{}, since.IsZero())
	}
	if all < 23 || all > 25 {
		t.Errorf("all of the outbox is looked at %d times a day, want once an hour", all)
	}
}

func TestWhatIsLeftInTheOutboxStaysInSight(t *testing.T) {
	t.Parallel()
	var l outboxLooks
	l.complete(epoch, time.Time{}, true)
	left := epoch.Add(time.Minute)
	for n := range 40 {
		l.complete(epoch.Add(time.Duration(n)*time.Minute), left, false)
		if since := l.from(); since.After(left) {
			t.Fatalf("it looks since %v, and what was requested at %v is still there", since, left)
		}
	}
}

func TestALookWithoutAnIndexIsTriedAgainEachHour(t *testing.T) {
	t.Parallel()
	var l outboxLooks
	built, tries, part := epoch.Add(3*time.Hour+time.Minute), 0, 0
	for at := epoch; at.Before(epoch.Add(5 * time.Hour)); at = at.Add(15 * time.Second) {
		since := l.from()
		switch {
		case since.IsZero():
		case at.Before(built):
			tries++
			l.lost(true)
		default:
			part++
		}
		l.complete(at, time.Time{}, since.IsZero() || at.Before(built))
	}
	if tries < 3 || tries > 4 || part < 200 {
		t.Errorf("without an index for three hours it was tried %d times, want once an hour; then %d looks were at a part, want nearly all of an hour", tries, part)
	}
}
