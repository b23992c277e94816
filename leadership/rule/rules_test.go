package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// The suites in store/storetest try the rules on every store. Here stand the corners that no store
// can be brought into at will: single instants, a guard of one's choice, and what must hold for
// every sequence of commands.

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const guard = 50 * time.Millisecond

func hash(b byte) leadership.KeyHash {
	return leadership.Key{b}.Hash()
}

// apply does what a store does with a change that commits at s.Now.
func apply(s rule.Snapshot, ch rule.Change) rule.Snapshot {
	if ch.Empty() {
		return s
	}
	if ch.Heartbeat { // also a late one, as in a store that knows nothing of StartOf
		ch.Record.HeartbeatAt = s.Now
	}
	s.Record = ch.Record
	return s
}

// held is ann's lease of 30 s, granted at noon, looked at later.
func held(t *testing.T, later time.Duration) rule.Snapshot {
	t.Helper()
	s := rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}
	ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: hash('a')})
	require.NoError(t, err)
	s = apply(s, ch)
	s.Now = s.Now.Add(later)
	return s
}

func TestALeaseEndsAtItsEndForItsLeaderAndAGuardLaterForOthers(t *testing.T) {
	const lease = 30 * time.Second
	for _, c := range []struct {
		at          time.Duration
		renew, take bool
		state       leadership.State
	}{
		{lease - 1, true, false, leadership.Held},
		{lease, false, false, leadership.Vacant},
		{lease + guard - 1, false, false, leadership.Vacant},
		{lease + guard, false, true, leadership.Vacant},
	} {
		s := held(t, c.at)
		_, err := rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1})
		if (err == nil) != c.renew || err != nil && !errors.Is(err, leadership.LeaseLost) {
			t.Errorf("at %v: renew: %v, want done %v", c.at, err, c.renew)
		}
		ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: "bob", KeyHash: hash('b')})
		if (err == nil) != c.take || err != nil && !errors.Is(err, leadership.LeaseHeld) {
			t.Errorf("at %v: acquire: %v, want done %v", c.at, err, c.take)
		}
		if c.take && ch.Record.Token != 2 {
			t.Errorf("at %v: token %d, want 2", c.at, ch.Record.Token)
		}
		if l := s.Lease(); l.State != c.state {
			t.Errorf("at %v: state %s, want %s", c.at, l.State, c.state)
		}
	}
}

// The detail of a refusal names its reason: each case has a word that must be in it.
func TestARefusalSaysWhatIsSo(t *testing.T) {
	check := func(token leadership.Token) decision {
		return func(s rule.Snapshot) (rule.Change, error) {
			return rule.Change{}, rule.Check(s, token)
		}
	}
	renew := func(key byte) decision {
		return func(s rule.Snapshot) (rule.Change, error) {
			return rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash(key), Token: 1})
		}
	}
	configure := func(at leadership.Revision) decision {
		return applies(leadership.Configure{IfRevision: at, Config: leadership.Config{LockDelay: time.Hour}})
	}
	live, over := held(t, time.Second), held(t, 30*time.Second)
	next := done(t, live, released, byBob)
	for _, c := range []struct {
		s    rule.Snapshot
		rule decision
		says string
	}{
		{live, check(2), "never granted"},
		{over, check(1), "has ended"},
		{next, check(1), "is stale"},
		{yielded(t), check(1), "has yielded"},
		{yielded(t), renew('a'), "was yielded"},
		{done(t, live, deleted), renew('a'), "is deleted"},
		{over, renew('a'), "has ended"},
		{live, renew('x'), "another key"},
		{next, renew('a'), `"bob" leads`},
		{elsewhere(), renew('a'), "never had a leader"},
		{done(t, live, released), renew('a'), "has no leader"},
		{yielded(t), acquire("bob", 'x'), "has yielded"},
		{live, acquire("ann", 'x'), "another key"},
		{live, byBob, `"ann" leads`},
		{over, byBob, "clocks"},
		{done(t, over, configure(0)), byBob, "cannot be led"},
		{live, func(s rule.Snapshot) (rule.Change, error) { return unlock(s, "") }, `"ann" leads`},
		{elsewhere(), configure(7), "does not exist"},
		{done(t, live, deleted), configure(leadership.NeverSeen), "exists, deleted"},
		{live, configure(leadership.NeverSeen), "exists already"},
		{live, configure(7), "at revision 1, not 7"},
	} {
		if e := refused(t, c.s, c.rule); !strings.Contains(e.Detail, c.says) {
			t.Errorf("%s: %q, want that it says %q", e.Code, e.Detail, c.says)
		}
	}
}

func TestAHeartbeatThatCameTooLateIsTakenBackUnlessSomethingHappenedSince(t *testing.T) {
	s := held(t, 31*time.Second)
	before := s.Record.LeaseEnd()
	s.Record.HeartbeatAt = s.Now // committed a second late
	ch, err := rule.Lapse(s, 1, s.Now, before)
	if err != nil || ch.Record.LeaderID != "" || !ch.Record.EndedAt.Equal(before) || len(ch.Events) != 1 || ch.Events[0].Type != leadership.EventExpired {
		t.Errorf("got %+v, %v; want the lease vacated as of %v", ch, err, before)
	}
	late := s.Now
	s.Record.HeartbeatAt = s.Now.Add(time.Second) // renewed again since
	if ch, err := rule.Lapse(s, 1, late, before); err != nil || !ch.Empty() {
		t.Errorf("after another renewal: got %+v, %v; want nothing", ch, err)
	}
	if ch, err := rule.Lapse(s, 2, s.Record.HeartbeatAt, before); err != nil || !ch.Empty() {
		t.Errorf("with another token: got %+v, %v; want nothing", ch, err)
	}
}

func TestALeaderThatAcquiresAgainTellsOfALongerLeaseOnly(t *testing.T) {
	for asks, want := range map[time.Duration]time.Duration{10 * time.Second: 30 * time.Second, 30 * time.Second: 30 * time.Second, time.Minute: time.Minute} {
		s, events := playEvents(t, held(t, time.Second), 0, func(s rule.Snapshot) (rule.Change, error) {
			return rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: hash('a'), LeaseDuration: asks})
		})
		if s.Record.LeaseDuration != want || (len(events) == 1) != (want == time.Minute) {
			t.Errorf("for %v it gets %v, and %+v is told", asks, s.Record.LeaseDuration, events)
		}
	}
}

func TestTheLastTokenIsNeverFollowedByAnother(t *testing.T) {
	s := held(t, time.Hour)
	s.Record.Token, s.Record.Revision = leadership.MaxToken, 1<<60
	_, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: "bob", KeyHash: hash('b')})
	assert.ErrorIs(t, err, leadership.RecordCorrupt)
	s.Now = noon
	if ch, err := approve("op", leadership.MaxToken, 0, true)(s); !errors.Is(err, leadership.RecordCorrupt) || !ch.Empty() {
		t.Errorf("a new epoch: %+v, %v; want %s", ch.Events, err, leadership.RecordCorrupt)
	}
}

func TestVerifyRefusesWhatCannotBe(t *testing.T) {
	for name, spoil := range map[string]func(*rule.Snapshot, *rule.Newest){
		"a revision behind the history":  func(s *rule.Snapshot, _ *rule.Newest) { s.Record.Revision = 0 },
		"a revision before the history":  func(_ *rule.Snapshot, n *rule.Newest) { n.Revision = 0 },
		"a token behind the history":     func(_ *rule.Snapshot, n *rule.Newest) { n.Token = 2 },
		"a token above its revision":     func(s *rule.Snapshot, n *rule.Newest) { s.Record.Token, n.Token = 9, 9 },
		"a negative token":               func(s *rule.Snapshot, n *rule.Newest) { s.Record.Token, n.Token = -1, -1 },
		"no key hash":                    func(s *rule.Snapshot, _ *rule.Newest) { s.Record.KeyHash = leadership.KeyHash{} },
		"no lease duration":              func(s *rule.Snapshot, _ *rule.Newest) { s.Record.LeaseDuration = 0 },
		"an endless lease":               func(s *rule.Snapshot, _ *rule.Newest) { s.Record.LeaseDuration = 1 << 60 },
		"a heartbeat in the future":      func(s *rule.Snapshot, _ *rule.Newest) { s.Record.HeartbeatAt = s.Now.Add(time.Hour) },
		"no heartbeat":                   func(s *rule.Snapshot, _ *rule.Newest) { s.Record.HeartbeatAt = time.Time{} },
		"a leader with no possible name": func(s *rule.Snapshot, _ *rule.Newest) { s.Record.LeaderID = "a b" },
		"a latest end and no reason":     func(s *rule.Snapshot, _ *rule.Newest) { s.Record.EndsBy = s.Now },
		"a reason and no latest end":     func(s *rule.Snapshot, _ *rule.Newest) { s.Record.EndsBecause = leadership.EndsStuck },
		"a leader of a deleted election": func(s *rule.Snapshot, _ *rule.Newest) { s.Record.Deleted = true },
		"parts of a lease and no leader": func(s *rule.Snapshot, _ *rule.Newest) { s.Record.LeaderID = "" },
		"an impossible lock":             func(s *rule.Snapshot, _ *rule.Newest) { s.Record.LockFor = -1 },
		"an impossible configuration":    func(s *rule.Snapshot, _ *rule.Newest) { s.Record.Policy.LockDelay = 1 },
		"a name that is no election's":   func(s *rule.Snapshot, _ *rule.Newest) { s.Record.Election = "No" },
		"an end that is still to come":   func(s *rule.Snapshot, _ *rule.Newest) { s.Record.EndedAt = s.Now.Add(time.Hour) },
		"history of an election unseen":  func(s *rule.Snapshot, _ *rule.Newest) { s.Record = rule.Record{Election: "jobs"} },
	} {
		s, newest := held(t, time.Second), rule.Newest{Revision: 1, Token: 1}
		require.NoError(t, rule.Verify(s, newest), "the whole record")
		spoil(&s, &newest)
		assert.ErrorIs(t, rule.Verify(s, newest), leadership.RecordCorrupt, name)
	}
}

func TestNoWordOfTheKeyIsPrinted(t *testing.T) {
	k := leadership.NewKey()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		assert.Equal(t, "[key]", fmt.Sprintf(verb, k), verb)
		if got := fmt.Sprintf(verb, leadership.Grant{Key: k}); cmp.Diff(got, fmt.Sprintf(verb, leadership.Grant{Key: leadership.NewKey()})) != "" {
			t.Errorf("%s of a grant tells the key", verb)
		}
	}
	if _, err := k.MarshalJSON(); err == nil {
		t.Error("a key was encoded")
	}
	if parsed, err := leadership.ParseKey(k.Text()); err != nil || parsed != k {
		t.Errorf("the key's text does not give the key back: %v", err)
	}
}

func TestAKeyHasOneSpelling(t *testing.T) {
	whole := leadership.Key{}.Text()
	for _, text := range []string{"", "x", whole[:42], whole + "A", whole + "=", whole[:42] + "B", whole[:42] + "+", " " + whole[1:], whole[:42] + "\n"} {
		if _, err := leadership.ParseKey(text); err == nil {
			t.Errorf("%q was taken for a key", text)
		}
	}
}

func TestALeaseThatEndedInAnyWayButByItsReleaseIsFollowedAGuardLater(t *testing.T) {
	bob := rule.AcquireCommand{CandidateID: "bob", KeyHash: hash('b')}
	for name, end := range map[string]decision{
		"deleted by force": applies(leadership.Delete{Force: true}),
		"renewed too late": func(s rule.Snapshot) (rule.Change, error) {
			return rule.Lapse(s, 1, s.Record.HeartbeatAt, s.Record.LeaseEnd())
		},
		"released too late": func(s rule.Snapshot) (rule.Change, error) {
			s.Now = s.Record.LeaseEnd()
			return rule.Apply(s, leadership.Release{LeaseRequest: rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1}.Request()})
		},
	} {
		s := held(t, 10*time.Second)
		promised := s.Record.LeaseEnd()
		ch, err := end(s)
		if err != nil || ch.Record.LeaderID != "" {
			t.Fatalf("%s: got %+v, %v", name, ch, err)
		}
		s = apply(s, ch)
		s.Record.Deleted = false
		s.Now = promised.Add(guard - time.Microsecond)
		_, err = rule.Acquire(s, bob)
		assert.ErrorIs(t, err, leadership.LeaseHeld, "%s: within the guard", name)
		s.Now = promised.Add(guard)
		if ch, err := rule.Acquire(s, bob); err != nil || new(apply(s, ch)).Lease().CreatedAt != noon.Unix() {
			t.Errorf("%s: after the guard: %+v, %v", name, ch.Record, err)
		}
	}
}

func TestADeletedElectionIsRestoredByTheGrantOrNotAtAll(t *testing.T) {
	s := held(t, time.Second)
	ch, err := rule.Apply(s, leadership.Delete{Force: true})
	require.NoError(t, err)
	s = apply(s, ch)
	for _, c := range []struct {
		at      time.Duration
		restore leadership.Revision
		code    leadership.Code
	}{
		{30*time.Second + guard, 0, leadership.ElectionDeleted},
		{30*time.Second + guard, 1, leadership.RevisionMismatch},
		{30*time.Second + guard - 1, 2, leadership.LeaseHeld},
		{30*time.Second + guard, 2, ""},
	} {
		s.Now = noon.Add(c.at)
		ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: "bob", KeyHash: hash('b'), Restore: c.restore})
		if refused, ok := errors.AsType[*leadership.Error](err); ok && (refused.Code != c.code || !refused.Lease.Deleted) || ok != (c.code != "") {
			t.Errorf("at %v, from revision %d: %v, want %q of a deleted election", c.at, c.restore, err, c.code)
		}
		if r := ch.Record; err == nil && (r.Deleted || r.LeaderID != "bob" || r.Token != 2 || r.Revision != 4 || len(ch.Events) != 2) {
			t.Errorf("restored: %+v with the events %v", r, ch.Events)
		}
	}
}
