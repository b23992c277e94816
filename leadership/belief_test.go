package leadership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
)

// leaseOf is an answer by which so much is left of a lease of that duration.
func leaseOf(left, duration time.Duration) leadership.Lease {
	return leadership.Lease{State: leadership.Held, ExpiresIn: left, LeaseDuration: duration}
}

// tenSeconds is an answer that grants or renews a lease of 10 s, of which all is left.
var tenSeconds = leaseOf(10*time.Second, 10*time.Second)

// believed is the belief in 10 s that were granted at once to what was sent at 0, and when it ends.
func believed(margin time.Duration) (b leadership.Belief, end time.Duration) {
	return leadership.Believe(0, 0, leadership.Grant{Lease: tenSeconds}, margin), leadership.Deadline(0, 0, 10*time.Second, margin)
}

// ended reports an error if anything is left of the belief at any of the moments, in their order.
func ended(t *testing.T, name string, b *leadership.Belief, moments ...time.Duration) {
	t.Helper()
	for _, now := range moments {
		if left := b.Left(now); left != 0 {
			t.Errorf("%s: at %v there are %v left, and it was over", name, now, left)
		}
	}
}

func TestABeliefLastsUntilTheDeadlineOfItsGrantAndTheLeaseAMarginLonger(t *testing.T) {
	t.Parallel()
	const sent, lease = time.Hour, 10 * time.Second
	for _, c := range []struct {
		name          string
		heard, waited time.Duration // counted from sent
		margin        time.Duration
	}{
		{"no margin", 0, 0, 0},
		{"a margin", 0, 0, time.Second},
		{"an answer that took its time", 9 * time.Second, 0, 500 * time.Millisecond},
		{"a minute in line", time.Minute + time.Second, time.Minute, time.Second},
	} {
		b := leadership.Believe(sent, sent+c.heard, leadership.Grant{Lease: tenSeconds, Waited: c.waited}, c.margin)
		end := leadership.Deadline(sent, c.waited, lease, c.margin)
		if got := b.Deadline(); got != end {
			t.Errorf("%s: the deadline is %v, want %v", c.name, got, end)
		}
		if got := b.LeaseEnd(); got != end+c.margin {
			t.Errorf("%s: the lease can be over at %v, want %v", c.name, got, end+c.margin)
		}
		if got, want := b.Left(sent+c.heard), end-sent-c.heard; got != want {
			t.Errorf("%s: %v left when it is heard of, want %v", c.name, got, want)
		}
		assert.EqualValues(t, 1, b.Left(end-1), "%s: left a nanosecond before the deadline", c.name)
		ended(t, c.name, &b, end)
	}
}

func TestAGrantThatIsHeardOfAfterItsDeadlineIsNotBelieved(t *testing.T) {
	t.Parallel()
	_, end := believed(time.Second)
	for name, b := range map[string]leadership.Belief{
		"heard of at the deadline":               leadership.Believe(0, end, leadership.Grant{Lease: tenSeconds}, time.Second),
		"a margin of all of it":                  leadership.Believe(0, 0, leadership.Grant{Lease: tenSeconds}, 10*time.Second),
		"a lease that was over when it was read": leadership.Believe(0, 0, leadership.Grant{Lease: leaseOf(0, 10*time.Second)}, 0),
	} {
		ended(t, name, &b, 0)
		if left := b.Renewed(0, 0, tenSeconds); left != 0 {
			t.Errorf("%s: renewed, %v are left", name, left)
		}
	}
}

func TestEndedBeliefIsNotRevived(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(b *leadership.Belief, end time.Duration){
		"the deadline was seen":                  func(b *leadership.Belief, end time.Duration) { b.Left(end) },
		"it was ended":                           func(b *leadership.Belief, _ time.Duration) { b.End() },
		"an answer was heard after the deadline": func(b *leadership.Belief, end time.Duration) { b.Renewed(end-1, end, tenSeconds) },
	} {
		b, end := believed(time.Second)
		over(&b, end)
		ended(t, name, &b, 0, end-1, end, end+time.Hour) // also if the clock should go back
		if left := b.Renewed(end, end, tenSeconds); left != 0 || b.Deadline() != end {
			t.Errorf("%s: renewed, %v are left, until %v", name, left, b.Deadline())
		}
		ended(t, name, &b, 0)
	}
}

func TestLateAnswerRevivesNoBeliefEvenIfUnaskedSinceTheDeadline(t *testing.T) {
	t.Parallel()
	b, end := believed(0)
	assert.Zero(t, b.Renewed(9*time.Second, 12*time.Second, tenSeconds), "left after the answer")
	ended(t, "a late answer", &b, 12*time.Second, 9*time.Second)
	if got := b.Deadline(); got != end {
		t.Errorf("the deadline is %v, and was %v", got, end)
	}
}

func TestTheAnswerToAnOlderRenewalDoesNotMoveTheDeadlineBack(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]struct {
		sent   time.Duration
		answer leadership.Lease
	}{
		"an older one":              {2 * time.Second, tenSeconds},
		"one of a shorter lease":    {6 * time.Second, leaseOf(time.Second, time.Second)},
		"one of which less is left": {6 * time.Second, leaseOf(time.Second, 10*time.Second)},
	} {
		b, _ := believed(0)
		b.Renewed(5*time.Second, 6*time.Second, tenSeconds)
		end := b.Deadline()
		if left := b.Renewed(older.sent, 7*time.Second, older.answer); left != end-7*time.Second || b.Deadline() != end {
			t.Errorf("%s: %v left, the deadline was %v and is %v", name, left, end, b.Deadline())
		}
	}
}

func TestTimeInLineNeverExceedsTimeSinceTheRequest(t *testing.T) {
	t.Parallel()
	b := leadership.Believe(0, time.Second, leadership.Grant{Lease: tenSeconds, Waited: time.Minute}, 0)
	if want := leadership.Deadline(0, time.Second, 10*time.Second, 0); b.Deadline() != want {
		t.Errorf("the deadline is %v, want %v", b.Deadline(), want)
	}
	ended(t, "a minute in line, of a second", &b, 11*time.Second)
}

func TestAnAnswerSaysNoMoreThanALeaseCanBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer leadership.Lease
		most   time.Duration
	}{
		{"more is left than it lasts", leaseOf(time.Hour, 10*time.Second), 10 * time.Second},
		{"it lasts longer than any lease", leaseOf(1000*time.Hour, 1000*time.Hour), leadership.MaxLeaseDuration},
	} {
		b := leadership.Believe(0, 0, leadership.Grant{Lease: c.answer}, 0)
		if end := leadership.Deadline(0, 0, c.most, 0); b.Deadline() != end {
			t.Errorf("%s: granted, it is believed in until %v, want %v", c.name, b.Deadline(), end)
		}
		b, _ = believed(0)
		b.Renewed(time.Second, time.Second, c.answer)
		if end := leadership.Deadline(time.Second, 0, c.most, 0); b.Deadline() != end {
			t.Errorf("%s: renewed, it is believed in until %v, want %v", c.name, b.Deadline(), end)
		}
	}
}
