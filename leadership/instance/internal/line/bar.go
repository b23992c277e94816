package line

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// bar is what an order, or the policy, has against a grant. A candidate that it is about stands
// aside: it keeps its place, and the store is not asked for it until the bar is over.
type bar struct {
	learnt  time.Duration
	until   time.Duration     // when it may be over: never too early, as far as is known
	refusal *leadership.Error // with a Cause
}

// bars are those that the line has been refused for, and that no event may have lifted since.
type bars struct {
	own  map[caller]*bar // against one candidate, as the principal as which it calls
	only *bar            // against all candidates but Cause.Only
	all  *bar            // against all
}

// caller is a candidate, and the principal as which it calls.
type caller struct {
	id        leadership.CandidateID
	principal string
}

func callerOf(r leadership.AcquireRequest) caller { return caller{r.CandidateID, r.InLine.Principal} }

const (
	// unheard is how long one candidate stands aside at most while not all events are heard.
	unheard = 30 * time.Second
	// unstated is how long a line waits for an event if no time is stated.
	unstated = time.Minute
)

// stands reports whether the bar counts.
func (b *bar) stands(now time.Duration) bool { return b != nil && now < b.until }

// any reports whether there may be a bar.
func (b *bars) any() bool { return len(b.own) > 0 || b.only != nil || b.all != nil }

// of is what bars the candidate now; nil if nothing is known.
func (b *bars) of(c caller, now time.Duration) *bar {
	if own := b.own[c]; own.stands(now) {
		return own
	}
	if b.only.stands(now) && b.only.refusal.Cause.Only != c.id {
		return b.only
	}
	if b.all.stands(now) {
		return b.all
	}
	return nil
}

// over is when the first of those that stand is over; never if none stands.
func (b *bars) over(now time.Duration) time.Duration {
	at := never
	for _, other := range b.own {
		if other.stands(now) {
			at = min(at, other.until)
		}
	}
	for _, other := range []*bar{b.only, b.all} {
		if other.stands(now) {
			at = min(at, other.until)
		}
	}
	return at
}

// barred takes a refusal that an order, or the policy, is behind.
func (l *Line) barred(c caller, refusal *leadership.Error, now time.Duration) {
	cause := refusal.Cause
	b := &bar{learnt: now, refusal: refusal}
	left, most := cause.Left, unheard
	switch {
	case cause.Code == leadership.ReasonBanned, cause.Code == leadership.ReasonAssigned && cause.Only == "":
		if l.bars.own == nil {
			l.bars.own = make(map[caller]*bar)
		}
		l.bars.own[c] = b
	case cause.Code == leadership.ReasonAssigned:
		l.bars.only = b
	case cause.Code == leadership.ReasonParent:
		l.bars.all, most = b, view.Poll
		left = l.orphaned(refusal)
	default:
		l.bars.all, most = b, view.Poll
	}
	if left <= 0 {
		left = unstated
	}
	if !l.common.View.Live() {
		left = min(left, most)
	}
	b.until = now + left + l.common.jitter(timerSpread)
	l.top.known = false
}

// unbar forgets the bars, because an event may have lifted some, or one that did was missed. The
// head asks when a lease may be had.
func (l *Line) unbar(within, now time.Duration) {
	barred := l.bars.any()
	l.bars, l.top.known = bars{}, false
	at := max(l.open(now), now) + l.common.jitter(within)
	if barred && l.next <= now { // the bars alone have put it off
		l.next = at
	} else {
		l.askAt(min(l.next, at))
	}
}
