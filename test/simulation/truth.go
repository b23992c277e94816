package simulation

import (
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Property is a checked property, by its name in the design.
type Property string

// The properties.
const (
	ME1 Property = "ME-1: the store-time intervals of two tokens never overlap"
	ME2 Property = "ME-2: no agent believes that it leads after its lease has ended"
	FT  Property = "FT: tokens strictly increase"
	EV  Property = "EV: every change is announced, in order, without a gap, and nothing else is"
	ID  Property = "ID: the same call again does what once would have done"
	BS  Property = "BS: what an instance shows was true within its stated age, and never goes back"
	OV  Property = "OV: no lease is granted against an order that stands"
	LV  Property = "LV: without faults a willing candidate leads before long, and no leader changes without need"
)

// Violation is a property that did not hold.
type Violation struct {
	Property Property
	At       time.Duration // since the run began
	Detail   string
}

// String is what, when and how.
func (v Violation) String() string { return fmt.Sprintf("%s; %v: %s", v.Property, v.At, v.Detail) }

// truth is the state of all elections by an observer of every commit. It has its own short
// statement of what the rules must not do, and calls none of them.
type truth struct {
	w           *timeline
	figures     *Figures
	slack       time.Duration // by which the clocks of the store's servers differ
	skewed      bool          // the store's clock leaps: ME-2 cannot be kept
	settled     bool          // nothing goes wrong any more
	elections   map[leadership.Election]*reign
	replaced    map[leadership.EventID]time.Duration    // when each change was made
	grants      map[leadership.KeyHash]leadership.Token // the newest of each key
	keys        map[tokenOf]leadership.KeyHash          // of the candidate that each token was told to
	violations  []Violation
	changes     int // of leader
	involuntary int
	believers   func(e leadership.Election) []*agent
	// what operators have acknowledged, to unlock an election, and the tokens after which they have
	acknowledged map[string]bool
	unlocked     map[tokenOf]bool
	lasted       map[tokenOf]time.Time // the latest end that the lease of a token was ever to have
}

// reign is the true state of an election.
type reign struct {
	token    leadership.Token
	first    leadership.Token // the first of the leader's tokens
	revision leadership.Revision
	leader   leadership.CandidateID
	start    time.Time
	end      time.Time     // of the lease, by its heartbeats
	lock     time.Duration // after a lease that was not released
	late     time.Time     // when it had ended, if what prolonged it last came after that and no caller was told that it counts
	free     bool          // it was released
	// of the present term
	successor leadership.KeyHash // that is ready
	yielded   bool
	gave      time.Time // the end that the leader has given up
	yieldedAt leadership.Revision
}

func (t *truth) reign(e leadership.Election) *reign {
	r, ok := t.elections[e]
	if !ok {
		r = &reign{free: true}
		t.elections[e] = r
	}
	return r
}

func (t *truth) accuse(p Property, format string, args ...any) {
	v := Violation{p, t.w.now, fmt.Sprintf(format, args...)}
	t.violations = append(t.violations, v)
	t.w.tell("VIOLATION %v", v)
}

// committed checks a change that has just been committed at that time of the store's, and was
// decided at an earlier one.
func (t *truth) committed(before rule.Record, ch rule.Change, decided, at time.Time) {
	e, now := before.Election, ch.Record
	r := t.reign(e)
	t.numbered(r, now, ch.Events)
	for _, event := range ch.Events {
		t.replaced[event.ID()] = t.w.now
		t.w.note(string(event.Type), int64(event.Revision))
		t.w.tell("%s: revision %d, %s, leader %q, token %d, at %v", e, event.Revision, event.Type, event.LeaderID, event.Token, at.Sub(epoch))
		t.seatedBy(now, event)
		switch event.Type {
		case leadership.EventReleased:
			t.released(r, now, decided)
		case leadership.EventExpired:
			t.involuntary++
			t.expired(r, before, now)
		case leadership.EventAcquired:
			if before.LeaderID != "" && r.free && ch.Events[0].Type == leadership.EventReleased {
				t.takenOver(r, now)
			} else if before.Policy.Ballot.HasBallot() {
				t.figures.Ballots++
			}
			t.granted(r, before, now, at)
			r.successor, r.yielded, r.gave = leadership.KeyHash{}, false, time.Time{}
		case leadership.EventHandingOver:
			if strings.Contains(event.Detail, "preempt") {
				t.figures.Preempted++
			}
		case leadership.EventReady:
			t.ready(r, now, event)
		case leadership.EventYielded:
			t.gaveUp(r, now, event)
		case leadership.EventDeposed:
			t.deposed(r, before, now, event)
		case leadership.EventEpoch:
			t.epoch(r, before, now)
		case leadership.EventUnlocked:
			t.unlock(r, event)
		}
	}
	if now.LeaderID == "" {
		r.leader = ""
		return
	}
	if now.LeaderID != r.leader && now.Token == before.Token {
		t.accuse(ME1, "%s: %q leads instead of %q, with the same token %d", e, now.LeaderID, r.leader, now.Token)
	}
	r.leader, r.lock = now.LeaderID, now.Policy.LockDelay
	if ch.Heartbeat {
		t.w.note("heartbeat", int64(now.Token))
		if r.late = (time.Time{}); isLate(ch, at) {
			r.late = r.end
			return
		}
		end := at.Add(now.LeaseDuration)
		if !now.EndsBy.IsZero() && now.EndsBy.Before(end) {
			end = now.EndsBy
		}
		if now.Token == before.Token {
			t.renewed(r, now, at, end)
		} else if before.LeaderID == now.LeaderID && end.Before(r.end) && r.late.IsZero() && r.first < r.token {
			t.accuse(ME1, "%s: the lease of token %d was to end at %v, and that of the next ends at %v", e, before.Token, r.end.Sub(epoch), end.Sub(epoch))
		}
		r.start, r.end = at, end
		t.lasts(now, end)
		return
	}
	if due := ch.Prolongs(&before); !due.IsZero() && !at.Before(due) && r.late.IsZero() {
		r.late = r.end // as after a late heartbeat
	}
	if end := now.LeaseEnd(); r.late.IsZero() {
		if end.Before(r.end) {
			t.accuse(ME1, "%s: an order lets the lease of token %d end at %v, and %v was promised", e, now.Token, end.Sub(epoch), r.end.Sub(epoch))
		}
		r.end = end
		t.lasts(now, end)
	}
}

// lasts notes until when a lease is to last, and checks it against the one that it stands on.
func (t *truth) lasts(now rule.Record, end time.Time) {
	id := tokenOf{now.Election, now.Token}
	t.lasted[id] = latest(t.lasted[id], end)
	t.within(now, end)
}

// deposed notes the end of a term by its policy. Its leader may miss that until the promised end.
func (t *truth) deposed(r *reign, before, now rule.Record, e leadership.Event) {
	t.figures.Deposed++
	if strings.Contains(e.Detail, "endsBecause") { // it ran out
		t.expired(r, before, now)
		return
	}
	r.free, r.lock = false, before.Policy.LockDelay
}

// epoch checks that the next token is the same leader's.
func (t *truth) epoch(r *reign, before, now rule.Record) {
	if before.LeaderID == "" || now.LeaderID != before.LeaderID || now.KeyHash != before.KeyHash || now.Token != before.Token+1 {
		t.accuse(ME1, "%s: after token %d of %q an epoch gives %d to %q", now.Election, before.Token, before.LeaderID, now.Token, now.LeaderID)
	}
	t.grants[now.KeyHash] = now.Token
}

// renewed checks that a renewed lease ends no sooner than it would have.
func (t *truth) renewed(r *reign, now rule.Record, at, end time.Time) {
	if !at.Before(r.end) {
		r.late = r.end
	}
	if end.Before(r.end) {
		t.accuse(ME1, "%s: the lease of token %d was to end at %v, and now ends at %v", now.Election, now.Token, r.end.Sub(epoch), end.Sub(epoch))
	}
}

// released checks that only a lease that still lasts is released: after one that has run out the
// lock delay must pass.
func (t *truth) released(r *reign, now rule.Record, decided time.Time) {
	r.free = true
	if !decided.Before(r.end) {
		t.accuse(ME1, "%s: token %d was released at %v, and its lease had run out at %v", now.Election, now.Token, decided.Sub(epoch), r.end.Sub(epoch))
	}
}

// expired checks that a lease is recorded as expired only after its end. A heartbeat that came too
// late may be taken back.
func (t *truth) expired(r *reign, before, now rule.Record) {
	r.free, r.lock = false, before.Policy.LockDelay
	if !r.late.IsZero() && now.EndedAt.Equal(r.late) {
		r.end = r.late
	}
	if now.LeaderID == "" && now.EndedAt.Before(r.end) {
		t.accuse(ME1, "%s: the lease of token %d ends at %v, and is recorded as over since %v", now.Election, now.Token, r.end.Sub(epoch), now.EndedAt.Sub(epoch))
	}
}

// unlock checks that an operator has acknowledged until when the leader may believe in its lease,
// and that this is not before the end of the lease. It is what excuses two leaders.
func (t *truth) unlock(r *reign, e leadership.Event) {
	sentence, _, _ := strings.Cut(strings.TrimPrefix(e.Detail, `{"twoMayBelieveUntil":"`), `"`)
	until, err := time.Parse(time.RFC3339Nano, sentence)
	if err != nil || !t.acknowledged["two leaders may believe until "+sentence] || until.Before(r.end) && !r.free && r.late.IsZero() {
		t.accuse(ME1, "%s: unlocked with the detail %s, and the lease of token %d ends at %v", e.Election, e.Detail, r.token, r.end.Sub(epoch))
	}
	r.free = true
	for token := r.first; token <= e.Token; token++ { // the leader may not have heard of a new epoch
		t.unlocked[tokenOf{e.Election, token}] = true
	}
}

// numbered checks FT and EV: one token for each grant, one revision for each event.
func (t *truth) numbered(r *reign, now rule.Record, events []leadership.Event) {
	for _, event := range events {
		want := r.token
		switch event.Type {
		case leadership.EventAcquired:
			want++
			r.first = want
		case leadership.EventEpoch:
			want++
		}
		if event.Token != want {
			t.accuse(FT, "%s: after token %d a change (%s) has token %d", now.Election, r.token, event.Type, event.Token)
		}
		if event.Revision != r.revision+1 {
			t.accuse(EV, "%s: after revision %d comes %d", now.Election, r.revision, event.Revision)
		}
		r.token, r.revision = event.Token, event.Revision
	}
	if now.Token != r.token || now.Revision != r.revision {
		t.accuse(FT, "%s: the record has token %d and revision %d, its history %d and %d", now.Election, now.Token, now.Revision, r.token, r.revision)
	}
}

// granted checks ME-1, ME-2 and ID.
func (t *truth) granted(r *reign, before, now rule.Record, at time.Time) {
	t.changes++
	if last, ok := t.grants[now.KeyHash]; ok && last == before.Token && before.LeaderID != "" && at.Before(r.end) {
		t.accuse(ID, "%s: %q got token %d after %d, with the same key and while its lease lasted", now.Election, now.LeaderID, now.Token, last)
	}
	t.grants[now.KeyHash] = now.Token
	earliest := r.start.Add(-t.slack)
	if !r.free {
		earliest = r.end
	}
	if at.Before(earliest) {
		t.accuse(ME1, "%s: token %d was granted to %q %v before the lease of token %d had ended", now.Election, now.Token, now.LeaderID, earliest.Sub(at), now.Token-1)
	}
	if locked := earliest.Add(r.lock); !r.free && at.Before(locked) && before.Policy.LockDelay >= r.lock {
		t.accuse(ME1, "%s: token %d was granted %v before the lock delay of %v was over", now.Election, now.Token, locked.Sub(at), r.lock)
	}
	r.free = false
	if t.skewed {
		return
	}
	for _, a := range t.believers(now.Election) {
		if left := a.left(); left > 0 && a.token != now.Token && !t.unlocked[tokenOf{now.Election, a.token}] {
			t.accuse(ME2, "%s: %s believes in token %d for another %v, and token %d was granted to %q", now.Election, a.name, a.token, left, now.Token, now.LeaderID)
		}
	}
}

// heard checks that an announced event was committed, and is unchanged.
func (t *truth) heard(e leadership.Event, committed []leadership.Event) {
	if e.Revision < 1 || int(e.Revision) > len(committed) {
		t.accuse(EV, "%s: revision %d is announced, and there are %d: %+v", e.Election, e.Revision, len(committed), e)
	} else if was := committed[e.Revision-1]; was != e {
		t.accuse(EV, "%s: revision %d is announced as %+v, and it is %+v", e.Election, e.Revision, e, was)
	}
}

// answered checks an answer of the service: no heartbeat counts that came after the end of its
// lease, and no two keys have the same token. An earlier heartbeat may be answered later than that.
func (t *truth) answered(l leadership.Lease, key leadership.KeyHash) {
	r := t.reign(l.Election)
	if l.State != leadership.Held || l.Token == r.token && !r.late.IsZero() && !l.ReadAt.Before(r.late) {
		t.accuse(ME1, "%s: a heartbeat of token %d counts that came when its lease was over", l.Election, l.Token)
	}
	if holder, ok := t.keys[tokenOf{l.Election, l.Token}]; ok && holder != key {
		t.accuse(FT, "%s: token %d belongs to two keys", l.Election, l.Token)
	}
	t.keys[tokenOf{l.Election, l.Token}] = key
}

// tokenOf is a token that a caller was told.
type tokenOf struct {
	election leadership.Election
	token    leadership.Token
}

// believes checks an agent's present belief against the store: it must not outlast the lease.
func (t *truth) believes(a *agent) {
	r := t.reign(a.election)
	if t.skewed || a.left() == 0 {
		return
	}
	end := r.end.Sub(epoch) + t.slack // as seen by the slowest of the store's clocks
	if until := t.w.now + a.clock.until(a.left()+a.margin); r.first <= a.token && a.token <= r.token && until > end {
		t.accuse(ME2, "%s: %s believes in token %d until %v but for a margin of %v, and its lease ends at %v", a.election, a.name, a.token, until, a.margin, end)
	}
	if a.token > r.token {
		t.accuse(FT, "%s: %s believes in token %d, and the newest is %d", a.election, a.name, a.token, r.token)
	}
}
