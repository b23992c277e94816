package rule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// carried is an election of the new store, whose clock shows another time, after the old store's
// snapshot was carried into it.
func carried(t *testing.T, to, from rule.Snapshot) rule.Snapshot {
	t.Helper()
	ch, err := rule.Carry(to, rule.CarryCommand{From: from})
	require.NoError(t, err)
	return apply(to, ch)
}

// elsewhere is an election that the new store has never seen.
func elsewhere() rule.Snapshot {
	return rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon.Add(-time.Hour), Guard: guard}
}

// done is s after a command that cannot fail.
func done(t *testing.T, s rule.Snapshot, rules ...decision) rule.Snapshot {
	t.Helper()
	for _, rule := range rules {
		ch, err := rule(s)
		require.NoError(t, err)
		s = apply(s, ch)
	}
	return s
}

func deleted(s rule.Snapshot) (rule.Change, error) {
	return rule.Apply(s, leadership.Delete{Force: true})
}

func configured(lock time.Duration) decision {
	return applies(leadership.Configure{Config: leadership.Config{LockDelay: lock}})
}

func released(s rule.Snapshot) (rule.Change, error) {
	r := s.Record
	return rule.Apply(s, leadership.Release{LeaseRequest: rule.Renewal{Election: "jobs", CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token}.Request()})
}

func byBob(s rule.Snapshot) (rule.Change, error) {
	return rule.Acquire(s, rule.AcquireCommand{CandidateID: "bob", KeyHash: hash('b')})
}

// opensAfter says how long it takes until bob is granted the election, though it were deleted.
func opensAfter(s rule.Snapshot) time.Duration {
	s.Record.Deleted = false
	_, err := byBob(s)
	var e *leadership.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// nextGrant is the lease of the next leader, once one can be granted.
func nextGrant(t *testing.T, s rule.Snapshot) leadership.Lease {
	t.Helper()
	s.Record.Deleted = false
	s.Now = s.Now.Add(opensAfter(s))
	return new(done(t, s, byBob)).Lease()
}

func TestACarriedElectionGoesOnAndIsGrantedWhenTheOldLeaseIsOver(t *testing.T) {
	const slack = time.Second
	lockDelay := done(t, held(t, 0), configured(time.Minute))
	expired := lockDelay
	expired.Now = expired.Now.Add(40 * time.Second)
	over := lockDelay
	over.Now = over.Now.Add(2 * time.Minute)
	for name, c := range map[string]struct {
		from  rule.Snapshot
		event leadership.EventType
		opens time.Duration
		// because is why the last term ended, as the next leader is told.
		because leadership.EndReason
	}{
		"never seen":              {elsewhere(), "", 0, ""},
		"configured, never led":   {done(t, elsewhere(), configured(time.Minute)), leadership.EventConfigured, 0, ""},
		"released":                {done(t, held(t, time.Second), released), leadership.EventConfigured, 0, leadership.EndsReleased},
		"held":                    {held(t, 10*time.Second), leadership.EventConfigured, 20*time.Second + 2*guard + slack, leadership.EndsExpired},
		"held, with a lock delay": {lockDelay, leadership.EventConfigured, 90*time.Second + 2*guard + slack, leadership.EndsExpired},
		"run out, locked":         {expired, leadership.EventConfigured, 50*time.Second + 2*guard + slack, leadership.EndsExpired},
		"run out, open":           {over, leadership.EventConfigured, 0, leadership.EndsExpired},
		"deleted by force":        {done(t, held(t, 10*time.Second), deleted), leadership.EventDeleted, 20*time.Second + 2*guard + slack, leadership.EndsDeleted},
		"yielded":                 {yielded(t), leadership.EventConfigured, 10*time.Second + 2*guard + slack, leadership.EndsExpired},
	} {
		got := carried(t, elsewhere(), c.from)
		want := rule.Record{Election: "jobs", Token: c.from.Record.Token, Policy: c.from.Record.Policy, Deleted: c.from.Record.Deleted}
		rest := got.Record
		rest.Revision, rest.EndedAt, rest.LockFor = 0, time.Time{}, 0
		if because := nextGrant(t, got).PreviousEnd; because != c.because {
			t.Errorf("%s: the next leader is told that the last term was ended by %q, want %q", name, because, c.because)
		}
		rest.Standing.Ended, want.Standing.Created = want.Standing.Ended, c.from.Lease().CreatedAt
		assert.Empty(t, cmp.Diff(want, rest), "%s (-want +got)", name)
		if got.Record.Revision <= c.from.Record.Revision && c.event != "" {
			t.Errorf("%s: revision %d follows %d", name, got.Record.Revision, c.from.Record.Revision)
		}
		if opens := opensAfter(got); opens != c.opens {
			t.Errorf("%s: can be led after %v, want %v", name, opens, c.opens)
		}
		ch, _ := rule.Carry(elsewhere(), rule.CarryCommand{From: c.from})
		if n := len(ch.Events); c.event == "" && n != 0 || c.event != "" && (n != 1 || ch.Events[0].Type != c.event) {
			t.Errorf("%s: events %+v, want one, %q", name, ch.Events, c.event)
		}
	}
}

func TestCarryingAgainIsTheSameAsOnce(t *testing.T) {
	for name, from := range map[string]rule.Snapshot{
		"held":     held(t, 10*time.Second),
		"released": done(t, held(t, time.Second), ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: time.Hour}), released),
		"deleted":  done(t, held(t, time.Second), deleted),
	} {
		to := carried(t, elsewhere(), from)
		buried := done(t, from, deleted)
		for what, again := range map[string]rule.Snapshot{"as it was": from, "with its tombstone": buried} {
			for _, later := range []time.Duration{0, 5 * time.Second} {
				again.Now, to.Now = from.Now.Add(later), elsewhere().Now.Add(later+900*time.Millisecond) // over a slow line
				if ch, err := rule.Carry(to, rule.CarryCommand{From: again}); err != nil || !ch.Empty() {
					t.Errorf("%s, %s, after %v: got %+v, %v; want nothing", name, what, later, ch, err)
				}
			}
		}
		if buried.Record.Revision >= to.Record.Revision {
			t.Errorf("%s: the tombstone is at revision %d, and the new store at %d", name, buried.Record.Revision, to.Record.Revision)
		}
	}
}

func TestALeaseRenewedAfterItWasCarriedLocksForLongerAndChangesNothingElse(t *testing.T) {
	from := held(t, 10*time.Second)
	to := carried(t, elsewhere(), from)
	before := to.Record
	from.Record.HeartbeatAt = from.Now
	to = carried(t, to, done(t, from, deleted))
	if opens := opensAfter(to); opens < 30*time.Second {
		t.Errorf("can be led after %v, and its leader may believe for 30s", opens)
	}
	if to.Record.Deleted || to.Record.Token != before.Token || to.Record.Policy != before.Policy || to.Record.Revision != before.Revision+1 {
		t.Errorf("got %+v, before %+v", to.Record, before)
	}
}

func TestCarryRespectsTheRecordInTheNewStore(t *testing.T) {
	old := done(t, held(t, 40*time.Second), byBob) // token 2
	vacant := done(t, held(t, time.Second), released)
	led := held(t, 40*time.Second)
	led = done(t, led, byBob)
	led = done(t, led, released)
	led = done(t, led, byBob) // token 3
	busy := vacant
	busy.Record.Revision = 50
	ahead := held(t, time.Hour)
	ahead.Record.Revision = 50
	for name, c := range map[string]struct {
		to   rule.Snapshot
		err  error
		want leadership.Token // 0: nothing is written
	}{
		"led with a lower token":       {held(t, time.Second), leadership.LeaseHeld, 0},
		"just over, with a lower one":  {held(t, 30*time.Second+guard/2), leadership.LeaseHeld, 0},
		"led with the same token":      {old, leadership.LeaseHeld, 0},
		"led with a higher token":      {led, nil, 0},
		"vacant with a lower token":    {vacant, nil, 2},
		"at a higher revision":         {busy, nil, 2},
		"run out with a lower token":   {held(t, time.Hour), nil, 2},
		"run out at a higher revision": {ahead, nil, 2},
		"deleted, with a lower token":  {done(t, vacant, deleted), nil, 2},
		"vacant with a higher token":   {done(t, led, released), nil, 0},
		"deleted, with a higher token": {done(t, led, deleted), nil, 0},
	} {
		_, ch, err := decided(c.to, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Carry(s, rule.CarryCommand{From: old})
		})
		if !errors.Is(err, c.err) || (c.want == 0) != ch.Empty() || c.want != 0 && (ch.Record.Token != c.want || ch.Record.Deleted || ch.Record.LeaderID != "" || ch.Record.Revision <= c.to.Record.Revision) {
			t.Errorf("%s: got %+v, %v; want token %d, %v", name, ch.Record, err, c.want, c.err)
		}
	}
}

func TestWhatCannotBeTrustedIsNotCarried(t *testing.T) {
	from := done(t, held(t, time.Second), released)
	from.Record.Policy.LockDelay = -1
	if ch, err := rule.Carry(elsewhere(), rule.CarryCommand{From: from}); !errors.Is(err, leadership.RecordCorrupt) || !ch.Empty() {
		t.Errorf("got %+v, %v; want %s", ch, err, leadership.RecordCorrupt)
	}
}

func TestARaisedElectionIsPastEverythingAndLocked(t *testing.T) {
	lock := done(t, held(t, 0), configured(time.Minute))
	long := held(t, 0)
	long.Record.LeaseDuration = time.Hour
	for name, c := range map[string]struct {
		s       rule.Snapshot
		lock    time.Duration
		event   leadership.EventType
		deleted bool
		opens   time.Duration
	}{
		"never seen":              {elsewhere(), 0, leadership.EventConfigured, false, 30*time.Second + guard},
		"released":                {done(t, held(t, time.Second), released), 0, leadership.EventConfigured, false, 30*time.Second + guard},
		"released, a longer lock": {done(t, held(t, time.Second), released), time.Hour, leadership.EventConfigured, false, time.Hour + guard},
		"held":                    {held(t, 10*time.Second), 0, leadership.EventExpired, false, 30*time.Second + guard},
		"held for longer":         {long, time.Minute, leadership.EventExpired, false, time.Hour + guard},
		"held, with a lock delay": {lock, 0, leadership.EventExpired, false, 90*time.Second + guard},
		"run out":                 {held(t, time.Hour), 0, leadership.EventExpired, false, 30*time.Second + guard},
		"deleted":                 {done(t, long, deleted), 0, leadership.EventDeleted, true, time.Hour + guard},
	} {
		command := rule.RaiseCommand{Above: 1000, Lock: c.lock}
		ch, err := rule.Raise(c.s, command)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := leadership.Event{Election: "jobs", Revision: 1000, Token: 1000, Type: c.event, PreviousLeaderID: c.s.Record.LeaderID}
		assert.Empty(t, cmp.Diff([]leadership.Event{want}, ch.Events), "%s: events (-want +got)", name)
		s := apply(c.s, ch)
		r := s.Record
		if r.Token != 1000 || r.Revision != 1000 || r.LeaderID != "" || r.Deleted != c.deleted || r.Policy != c.s.Record.Policy || opensAfter(s) != c.opens {
			t.Errorf("%s: got %+v, can be led after %v, want after %v", name, r, opensAfter(s), c.opens)
		}
		s.Now = s.Now.Add(time.Second)
		if again, err := rule.Raise(s, command); err != nil || !again.Empty() {
			t.Errorf("%s: again: got %+v, %v; want nothing", name, again, err)
		}
	}
}

func TestNothingIsRaisedToWhatMayHaveBeenSeen(t *testing.T) {
	s := held(t, time.Second)
	s.Record.Revision = 50
	raised := done(t, held(t, time.Second), func(s rule.Snapshot) (rule.Change, error) {
		return rule.Raise(s, rule.RaiseCommand{Above: 50})
	})
	raised.Now = raised.Now.Add(time.Hour)
	for name, c := range map[string]struct {
		s       rule.Snapshot
		command rule.RaiseCommand
	}{
		"its own revision":          {s, rule.RaiseCommand{Above: 50}},
		"less":                      {s, rule.RaiseCommand{Above: 49}},
		"raised, and granted":       {done(t, raised, byBob), rule.RaiseCommand{Above: 50}},
		"raised, and configured":    {done(t, raised, configured(time.Minute)), rule.RaiseCommand{Above: 50}},
		"raised, locked for longer": {raised, rule.RaiseCommand{Above: 50, Lock: time.Hour}},
		"nothing":                   {elsewhere(), rule.RaiseCommand{}},
		"the first grant":           {elsewhere(), rule.RaiseCommand{Above: 1}},
		"no room for a grant":       {s, rule.RaiseCommand{Above: rule.MaxRaise + 1}},
		"a negative lock":           {s, rule.RaiseCommand{Above: 51, Lock: -1}},
		"a lock that is no longer":  {s, rule.RaiseCommand{Above: 51, Lock: 49 * time.Hour}},
	} {
		if ch, err := rule.Raise(c.s, c.command); !errors.Is(err, leadership.InvalidArgument) || !ch.Empty() {
			t.Errorf("%s: got %+v, %v; want %s", name, ch, err, leadership.InvalidArgument)
		}
	}
	if got := done(t, s, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Raise(s, rule.RaiseCommand{Above: rule.MaxRaise})
	}); got.Record.Token != leadership.Token(rule.MaxRaise) {
		t.Errorf("got %+v", got.Record)
	}
}

// FuzzTransfer plays a program as FuzzRules does and, after some of its steps, moves the election
// to another store, or loses what happened since then, restores it and raises it. What must be true
// of the rules must be true across that.
func FuzzTransfer(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 10, 2, 0, 31, 0, 1, 1, 3, 1, 0, 0, 1, 200}, byte(1), byte(0))
	f.Add([]byte{5, 2, 0, 0, 0, 0, 4, 0, 20, 5, 1, 0, 0, 1, 200, 5, 0, 0, 0, 1, 130}, byte(2), byte(3))
	f.Add([]byte{0, 0, 0, 0, 0, 255, 0, 1, 255, 0, 0, 200, 0, 1, 9, 0, 1, 255, 0, 2, 255}, byte(1), byte(1))
	f.Add([]byte("000!A0"), byte('A'), byte(1)) // raised, and unlocked before it was ever led
	f.Fuzz(func(t *testing.T, program []byte, after, how byte) {
		m := &machine{T: t, snap: rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}, clock: noon}
		program = m.play(program, int(after%16))
		if how%2 == 0 {
			m.moveTo(time.Duration(how) * time.Minute)
		} else {
			backup := m.snap.Record
			program = m.play(program, int(how/2%16))
			m.restore(backup)
		}
		m.play(program, len(program))
	})
}

// play takes some steps, and returns the rest of the program.
func (m *machine) play(program []byte, steps int) []byte {
	for ; steps > 0 && len(program) >= 3; steps-- {
		m.step(program[0], program[1], program[2])
		program = program[3:]
	}
	return program
}

// moveTo goes on in another store, whose clock is that far ahead.
func (m *machine) moveTo(ahead time.Duration) {
	old := m.snap
	m.clock = m.clock.Add(ahead)
	for i := range m.terms {
		m.terms[i].start, m.terms[i].end = m.terms[i].start.Add(ahead), m.terms[i].end.Add(ahead)
	}
	m.snap = rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: m.clock, Guard: guard}
	m.snap = carried(m.T, m.snap, old)
	if old.Record.Revision > 0 && m.snap.Record.Revision < old.Record.Revision+3 || m.snap.Record.Token != old.Record.Token {
		m.Fatalf("%+v was carried as %+v", old.Record, m.snap.Record)
	}
	m.goOn()
}

// restore goes on from a record of before, raised past everything since.
func (m *machine) restore(backup rule.Record) {
	above := max(m.snap.Record.Revision+1, rule.MinRaise)
	m.snap.Record, m.snap.Now = backup, m.clock
	m.snap = done(m.T, m.snap, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Raise(s, rule.RaiseCommand{Above: above, Lock: leadership.DefaultLeaseDuration})
	})
	m.goOn()
}

func (m *machine) goOn() {
	r := m.snap.Record
	m.newest = rule.Newest{Revision: r.Revision, Token: r.Token}
	require.NoError(m, rule.Verify(m.snap, m.newest))
}
