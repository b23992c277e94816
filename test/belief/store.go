package belief

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// lease is the store's state of the election, without the token, which is always the newest.
type lease struct {
	leader  int8  // a candidate's number, from 1; 0 for none
	former  bool  // it was granted to a key that the candidate no longer has
	age     uint8 // of the last heartbeat in seconds, up to the lease's and the lock delay
	late    bool  // a heartbeat was committed after the end, and may be taken back
	deleted bool
	cap     uint8 // seconds until the lease ends by an operator's order; 0 for none
	drained bool  // the order was a pause, not an eviction
	paused  bool
	lock    uint8 // seconds for which no candidate may lead, by the vacant record

	// The rules do not see the fields below. an operator has ended the lease; its leader may
	// believe in it until its end if it has not learned of that
	cut bool
	// seconds for which no candidate may lead because the last lease was not released, if its end
	// is recorded
	owed uint8
}

// heldBy reports whether the candidate leads under its present key, or would if no operator had
// ended its lease.
func (l lease) heldBy(who int8, duration int) bool {
	return l.leader == who+1 && !l.former && int(l.age) < duration
}

// left returns how many seconds the lease lasts; 0 or less if it is over.
func (l lease) left(m *Model) int {
	left := m.Lease - int(l.age)
	if l.cap > 0 {
		left = min(left, int(l.cap))
	}
	return left
}

// recorded returns the leader in the record.
func (l lease) recorded() int8 {
	if l.cut {
		return 0
	}
	return l.leader
}

// tick lets a second pass.
func (l *lease) tick(m *Model) {
	l.lock -= min(l.lock, 1)
	l.owed -= min(l.owed, 1)
	if l.leader != 0 {
		l.age = min(l.age+1, uint8(m.Lease+m.Delay))
		if l.cap == 1 {
			l.age = max(l.age, uint8(m.Lease)) // it is over: as if it had run out
		}
		if l.cap -= min(l.cap, 1); int(l.age) >= m.Lease {
			l.cap, l.drained = 0, false
		}
	}
	if l.cut && int(l.age) >= m.Lease {
		l.leader, l.former, l.age, l.cut, l.cap, l.drained = 0, false, 0, false, 0, false
	}
}

// request is a call to the store.
type request struct {
	verb   verb
	who    int8
	former bool // with a key that the candidate no longer has
	behind bool // with a token that is not the newest
	// the earlier read of its transaction: readLive, readFree, or neither if it reads and commits
	// at once
	read place
}

// decision is the result of a request.
type decision struct {
	lease   lease
	changed bool  // something was written
	granted bool  // with the next token
	done    bool  // not refused
	left    uint8 // of the lease, if the caller holds it
	broken  Property
}

// input is all that a decision depends on.
type input struct {
	lease
	request
}

// decide runs the rule once for each input, because the rule is pure.
func (x *search) decide(l lease, r request) decision {
	in := input{l, r}
	d, ok := x.decided[in]
	if !ok {
		d = x.model.decide(l, r)
		x.decided[in] = d
	}
	x.broken = cmp.Or(x.broken, d.broken)
	return d
}

// The store's time and newest token in every decision. Any values would do.
const newest leadership.Token = 7

var now = time.Unix(1_000_000, 0)

// decide runs the real rule, and commits.
func (m *Model) decide(l lease, r request) decision {
	change, err := m.rule(m.snapshot(l, r), r)
	if err != nil || change.Empty() {
		return decision{lease: l, done: err == nil}
	}
	late := m.commit(&change, r)
	s := rule.Snapshot{Record: change.Record, Now: now}
	d := decision{lease: m.lease(s.Record, l, r), changed: true, granted: s.Record.Token == newest+1, done: true}
	d.lease.late = late
	if s.Record.LeaderID != "" && !late {
		d.left = uint8(s.Lease().ExpiresIn / second)
	}
	d.broken = m.misdecided(l, r, s.Record, d)
	return d
}

// snapshot returns the election as the transaction has read it: now or, if it has read before,
// while the lease still lasted. The rules do not depend on how long before.
func (m *Model) snapshot(l lease, r request) rule.Snapshot {
	s := rule.Snapshot{Record: m.record(l), Now: now}
	if end := s.Record.LeaseEnd(); s.Record.LeaderID != "" && r.read == readLive && !now.Before(end) {
		s.Now = end.Add(-1)
	}
	return s
}

// commit sets the instant of the commit, as the stores do. A heartbeat that comes too late leaves
// the end where it was: see rule.StartOf. A heartbeat that was decided at this very instant
// is never late: there the rule has no such safeguard.
func (m *Model) commit(c *rule.Change, r request) (late bool) {
	if !c.Heartbeat {
		return false
	}
	late = r.read == readLive && !c.Before.IsZero() && !now.Before(c.Before)
	if late {
		c.Record = c.Committed(now)
	} else {
		c.Record.HeartbeatAt = now
	}
	return late
}

// misdecided returns a property that the decision breaks, or "".
func (m *Model) misdecided(l lease, from request, r rule.Record, d decision) Property {
	lasted := l.leader != 0 && int(l.age) < m.Lease
	switch {
	case l.cap > 0 && (from.verb == renew || from.verb == acquire) && !d.granted && d.left > l.cap:
		return CapKept
	case r.LeaderID != "" && !d.granted && lasted && (r.LeaderID != name(l.leader-1) || d.lease.left(m) < l.left(m)):
		return PromiseKept
	case from.verb == epoch && (r.Token != newest+1 || !lasted || r.LeaderID != name(l.leader-1)):
		return TokensRise
	case from.verb == epoch:
		return ""
	case d.granted && l.paused:
		return PauseKept
	case r.Token != newest && (!d.granted || r.Token != newest+1):
		return TokensRise
	case d.granted && lasted:
		return OneLeaseATime
	case d.granted && !lasted && (l.owed > 0 || l.recorded() != 0 && int(l.age) < m.Lease+m.Delay):
		return DelayKept
	case !d.granted && d.left > 0 && (!lasted || l.late):
		return EndIsEnd
	}
	return ""
}

// rule runs the real rule.
func (m *Model) rule(s rule.Snapshot, r request) (rule.Change, error) {
	id, key := name(r.who), key(r.who, r.former)
	renewal := rule.Renewal{Election: s.Record.Election, CandidateID: id, KeyHash: key, Token: newest}
	if r.behind {
		renewal.Token--
	}
	switch r.verb {
	case acquire:
		return rule.Acquire(s, rule.AcquireCommand{CandidateID: id, KeyHash: key, LeaseDuration: time.Duration(m.Lease) * second})
	case renew:
		return rule.Renew(s, renewal)
	case release:
		return rule.Apply(s, leadership.Release{LeaseRequest: renewal.Request()})
	case takeBack:
		return rule.Lapse(s, newest, s.Record.HeartbeatAt, s.Record.LeaseEnd())
	case cut, drop:
		return rule.Apply(s, leadership.Delete{Force: r.verb == cut})
	case free, freeBlind:
		return m.unlock(s, r)
	case retire:
		return m.retire(s)
	case evict, drain, resume, epoch:
		return m.order(s, r.verb)
	case depose:
		return rule.Apply(s, leadership.Judge{Token: newest, Verdict: leadership.VerdictBad, Evidence: "it is wrong", Actor: "eve"})
	case bringBack:
		if !s.Record.Deleted {
			return rule.Change{}, nil
		}
		return rule.Apply(s, leadership.Configure{Config: m.config()})
	}
	return rule.Expire(s)
}

// order runs the rule for an operator's order.
func (m *Model) order(s rule.Snapshot, v verb) (rule.Change, error) {
	c := leadership.Order{Reason: "it has to be", Actor: "eve"}
	switch v {
	case evict:
		c.Kind = leadership.OrderEvict
	case drain:
		c.Kind, c.For, c.Mode = leadership.OrderPause, pauseFor, leadership.PauseDrain
	case resume:
		c.Kind = leadership.OrderResume
	case epoch:
		c.Kind, c.Token, c.NewEpoch = leadership.OrderApprove, newest, true
	}
	return rule.Apply(s, c)
}

// pauseFor is the time of a pause, long enough that only a resume ends it.
const pauseFor = time.Hour

// unlock runs the rule with the acknowledgement that its refusal asks for, or without any.
func (m *Model) unlock(s rule.Snapshot, r request) (rule.Change, error) {
	c := leadership.Unlock{Reason: "it hangs"}
	change, err := rule.Apply(s, c)
	if r.verb == free {
		_, c.Acknowledge, _ = strings.Cut(fmt.Sprint(err), "with exactly this acknowledge: ")
		return rule.Apply(s, c)
	}
	return change, err
}

// retire runs the rule on an election that has been vacant for long enough, if it is vacant.
// Nothing else depends on how long it was.
func (m *Model) retire(s rule.Snapshot) (rule.Change, error) {
	if r := &s.Record; r.LeaderID == "" {
		r.EndedAt = r.EndedAt.Add(-m.config().RetireAfter)
		r.LockFor += min(r.LockFor, 1) * m.config().RetireAfter // the lock ends when it would have
	}
	return rule.Retire(s)
}

func (m *Model) config() leadership.Config {
	c := leadership.Config{LockDelay: time.Duration(m.Delay) * second}
	if m.Trips {
		c.Term.Verdicts = 1
	}
	if m.Operator {
		c.RetireAfter = leadership.MinRetireAfter
	}
	return c
}

// record returns the record of the lease.
func (m *Model) record(l lease) rule.Record {
	r := rule.Record{
		Election: "reports", Token: newest, Revision: leadership.Revision(2 * newest), Policy: rule.Policy{Config: m.config()}, Deleted: l.deleted,
	}
	if l.paused {
		r.Standing.Overrides = leadership.NewOverrides([]leadership.Override{{
			ID: "pause-1", Kind: leadership.OverridePause, Mode: leadership.PauseDrain, Actor: "eve", Reason: "it has to be", Since: now, Until: now.Add(pauseFor),
		}})
	}
	if l.recorded() == 0 {
		r.EndedAt, r.LockFor = now, time.Duration(l.lock)*second
		return r
	}
	r.LeaderID, r.KeyHash = name(l.leader-1), key(l.leader-1, l.former)
	r.LeaseDuration, r.HeartbeatAt = time.Duration(m.Lease)*second, now.Add(-time.Duration(l.age)*second)
	if l.cap > 0 {
		r.EndsBy, r.EndsBecause = now.Add(time.Duration(l.cap)*second), leadership.EndsEvicted
		if l.drained {
			r.EndsBecause = leadership.EndsDrained
		}
		r.Standing.Ends.Ordered, r.Standing.Ends.Because = r.EndsBy, r.EndsBecause
	}
	return r
}

// lease returns the model's lease of the record after the request.
func (m *Model) lease(r rule.Record, before lease, from request) lease {
	switch {
	case r.LeaderID == "":
		return m.vacant(r, before, from)
	case r.Token == newest+1 && from.verb != epoch:
		return lease{leader: from.who + 1, former: from.former, paused: r.Standing.Overrides != ""}
	}
	before.age = uint8(min(int(now.Sub(r.HeartbeatAt)/second), m.Lease+m.Delay))
	before.cap, before.drained, before.paused = 0, r.EndsBecause == leadership.EndsDrained, r.Standing.Overrides != ""
	if left := r.LeaseEnd().Sub(now); left <= 0 {
		before.age, before.drained = uint8(min(int(-left/second)+m.Lease, m.Lease+m.Delay)), false
	} else if !r.EndsBy.IsZero() {
		before.cap = uint8(r.EndsBy.Sub(now) / second)
	}
	return before
}

// vacant is lease for a record without a leader.
func (m *Model) vacant(r rule.Record, before lease, from request) lease {
	lasted := int(before.age) < m.Lease
	after := before
	after.paused = r.Standing.Overrides != ""
	after.deleted, after.lock = r.Deleted, uint8(max(r.EndedAt.Add(r.LockFor).Sub(now), 0)/second)
	if from.verb == free {
		after.owed, after.cut = 0, false
		after.vacate()
		return after
	}
	if before.recorded() == 0 {
		return after
	}
	if from.verb != release || !lasted && from.read != readLive {
		after.owed = uint8(before.left(m) + m.Delay)
	}
	if after.cut = (from.verb == cut || from.verb == retire || from.verb == depose) && lasted; !after.cut {
		after.vacate()
	}
	return after
}

// vacate forgets the lease.
func (l *lease) vacate() { l.leader, l.former, l.age, l.cap, l.drained = 0, false, 0, 0, false }

func name(who int8) leadership.CandidateID {
	return [most]leadership.CandidateID{"ann", "bob", "cy", "dee"}[who]
}

// key returns the hash of a candidate's present key, or of a former one.
func key(who int8, former bool) leadership.KeyHash {
	h := leadership.KeyHash{byte(who + 1)}
	if former {
		h[1] = 1
	}
	return h
}
