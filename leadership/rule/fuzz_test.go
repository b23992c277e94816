package rule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// term is one lease as an observer sees it: from its grant to its end, in store time.
type term struct {
	token      leadership.Token
	start, end time.Time
}

// FuzzRules plays any sequence of commands and holds it to what must always be true: ME-1 (the
// terms of two tokens do not overlap), FT (tokens strictly rise), contiguous revisions, one
// beginning and one end for each term, and a record that verifies after each step. Three bytes are
// a command: what, who, and how much time passes first. The clocks of the store's servers differ by
// less than the guard.
func FuzzRules(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 10, 2, 0, 31, 0, 1, 1, 3, 1, 0})
	f.Add([]byte{5, 2, 0, 0, 0, 0, 4, 0, 200, 0, 1, 0, 6, 1, 0, 5, 0, 0, 0, 1, 30})
	f.Add([]byte{0, 0, 0, 7, 0, 255, 0, 0, 255, 1, 0, 9, 1, 0, 9, 6, 3, 1, 5, 3, 1, 0, 2, 250})
	f.Add([]byte{5, 12, 0, 0, 0, 0, 0, 17, 0, 0, 35, 1, 0, 35, 4, 0, 49, 1, 9, 1, 1, 0, 49, 1, 9, 1, 0}) // bids, a challenge, and both withdrawn
	f.Add([]byte{5, 117, 0, 0, 224, 0, 0, 1, 1, 0, 1, 9, 0, 2, 0, 0, 2, 4, 8, 3, 0})                     // a quorum with a witness
	f.Fuzz(func(t *testing.T, program []byte) {
		for m := newMachine(t); len(program) >= 3; program = program[3:] {
			m.step(program[0], program[1], program[2])
		}
	})
}

// TestTheRulesHoldOnRandomWalks is FuzzRules without a fuzzer: the same walks each time, in which
// mostly a few candidates ask and renew, each soon after the one before.
func TestTheRulesHoldOnRandomWalks(t *testing.T) {
	const walks, steps = 100, 200
	terms, walked, retired, bids := 0, 0, 0, 0
	for seed := range uint64(walks) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 0))
			mostly := func(few int) byte { return byte(chance.IntN([]int{few, few, few, 256}[chance.IntN(4)])) }
			m := newMachine(t)
			for range steps {
				what := mostly(3)
				switch chance.IntN(40) { // of all that is seldom this takes two in a row
				case 0:
					what = 5 // configure
				case 1, 2:
					what = 8 // retire
				}
				m.step(what, mostly(4), mostly(40))
				if m.snap.Record.Standing.Bids != "" {
					bids++
				}
			}
			terms, walked, retired = terms+len(m.terms), walked+steps, retired+m.retired
		})
	}
	if terms < walked/20 {
		t.Errorf("there were %d leases in %d steps: too few to say so", terms, walked)
	}
	if bids < walked/1000 {
		t.Errorf("a ballot was open after %d of %d steps: too few to say so", bids, walked)
	}
	if retired < walked/1000 {
		t.Errorf("%d elections were retired in %d steps: too few to say so", retired, walked)
	}
}

// machine is an election, what has happened to it, and what its present term is.
type machine struct {
	*testing.T
	snap   rule.Snapshot
	clock  time.Time // of the server that is ahead
	newest rule.Newest
	terms  []term
	// vacant is the end of the last lease or, if that was later, when the election was created or
	// brought back.
	vacant  time.Time
	retired int
}

func newMachine(t *testing.T) *machine {
	return &machine{T: t, snap: rule.Snapshot{Record: rule.Record{Election: "jobs"}, Now: noon, Guard: guard}, clock: noon}
}

func (m *machine) step(what, who, wait byte) {
	m.clock = m.clock.Add(time.Duration(wait) * 250 * time.Millisecond)
	m.snap.Now = m.clock.Add(-time.Duration(who>>3) * guard / 64) // read at a server that is behind
	switch what % 10 {
	case 6:
		m.renewSlowly(who)
		return
	case 8:
		m.clock = m.clock.Add(time.Duration(who%4) * 30 * time.Minute) // else nothing is ever due
		m.snap.Now = m.clock
	}
	ch, _, err := rule.Codec{}.Decide(m.snap, rule.Carried{}, func(rule.Snapshot) (rule.Change, error) { return m.decide(what, who) })
	if err != nil {
		var e *leadership.Error
		if !errors.As(err, &e) || e.Detail == "" || e.Code == leadership.RecordCorrupt {
			m.Fatalf("command %d: %v", what, err)
		}
		return
	}
	m.observe(ch)
	m.snap.Now = m.clock // committed at the server that is ahead
	m.snap = apply(m.snap, ch)
	m.extend()
	require.NoError(m, rule.Verify(m.snap, m.newest))
}

func (m *machine) decide(what, who byte) (rule.Change, error) {
	id := leadership.CandidateID('a' + rune(who%3))
	key := hash(who % 5) // some candidates come with more than one key
	token := m.snap.Record.Token
	if who >= 128 {
		token--
	}
	lease := rule.Renewal{Election: "jobs", CandidateID: id, KeyHash: key, Token: token}
	switch what % 10 {
	case 0:
		return rule.Acquire(m.snap, acquisition(id, key, who))
	case 1:
		ch, err := rule.Renew(m.snap, lease)
		return m.owned(lease, ch), err
	case 2:
		ch, err := rule.Apply(m.snap, leadership.Release{LeaseRequest: lease.Request()})
		return m.owned(lease, ch), err
	case 3:
		if who >= 64 {
			return unlocked(m.snap)
		}
		return rule.Expire(m.snap)
	case 4:
		return rule.Apply(m.snap, leadership.Delete{Force: who%2 == 0})
	case 7:
		return limited(m.snap, time.Duration(who%16)*time.Second)
	case 8:
		return m.retire()
	case 9:
		return rule.Apply(m.snap, leadership.Withdraw{CandidateID: id})
	}
	return rule.Apply(m.snap, leadership.Configure{Config: leadership.Config{
		LockDelay: time.Duration(who%3) * 20 * time.Second, RetireAfter: time.Duration(who/3%3) * time.Hour, Ballot: balloting(who / 9),
	}})
}

// owned holds a change of a lease that lasts to this: its caller has its key and its token.
func (m *machine) owned(c rule.Renewal, ch rule.Change) rule.Change {
	if r := m.snap.Record; m.snap.Live() && !ch.Empty() && (c.CandidateID != r.LeaderID || c.KeyHash != r.KeyHash || c.Token != r.Token) {
		m.Fatalf("%+v changes the lease of %+v", c, r)
	}
	return ch
}

// acquisition is the call of a candidate that says something of itself, and seldom is a witness.
func acquisition(id leadership.CandidateID, key leadership.KeyHash, who byte) rule.AcquireCommand {
	c := rule.AcquireCommand{CandidateID: id, KeyHash: key, LeaseDuration: time.Duration(who%4) * 10 * time.Second, Secret: "0123456789abcdef"}
	c.Priority, c.Load, c.Waited = int64(who>>4), int64(who>>5), time.Duration(who>>6)*time.Second
	if who >= 224 {
		c.Role = leadership.RoleWitness
	}
	if who%7 == 6 {
		c.Withdraw = "b"
	}
	return c
}

// balloting is one of some policies; 0 is none.
func balloting(n byte) leadership.BallotPolicy {
	all := leadership.Strategies()
	p := leadership.BallotPolicy{Strategy: all[int(n)%len(all)]}
	ranked := p.Strategy == leadership.StrategyPriority || p.Strategy == leadership.StrategyCapability || p.Strategy == leadership.StrategyLeastLoaded
	p.Preempt = ranked && n%2 == 1
	if n >= 12 {
		p.Quorum.Electorate = leadership.NewNames("a", "b", "c")
	}
	if n >= 24 {
		p.Window = 20 * time.Second
	}
	return p
}

// retire holds the rule Retire to what it promises: it deletes only what had no leader for so long,
// and changes nothing else.
func (m *machine) retire() (rule.Change, error) {
	ch, err := rule.Retire(m.snap)
	if err != nil || ch.Empty() {
		return ch, err
	}
	r := m.snap.Record
	if r.LeaderID != "" || r.Policy.RetireAfter == 0 || m.snap.Now.Sub(m.vacant) < r.Policy.RetireAfter {
		m.Fatalf("%+v is retired at %v, vacant since %v", r, m.snap.Now, m.vacant)
	}
	m.retired++
	want := r
	want.Deleted, want.Revision = true, r.Revision+1
	want.Standing.Opened, want.Standing.Delay, want.Standing.Bids = time.Time{}, 0, ""
	if ch.Record != want {
		m.Fatalf("retired it is %+v, want %+v", ch.Record, want)
	}
	return ch, nil
}

// unlocked ends the wait as an operator does that has read the refusal.
func unlocked(s rule.Snapshot) (rule.Change, error) {
	c := leadership.Unlock{Reason: "it hangs"}
	if ch, err := rule.Apply(s, c); err == nil {
		return ch, nil
	} else if c.Acknowledge = sentence(err); c.Acknowledge == "" {
		return ch, err
	}
	return rule.Apply(s, c)
}

// limited lets the lease end a while after the end that its leader was told, whatever is renewed.
func limited(s rule.Snapshot, later time.Duration) (rule.Change, error) {
	if !s.Live() {
		return rule.Change{}, nil
	}
	ch := rule.Change{Record: s.Record}
	r := &ch.Record
	r.EndsBy, r.EndsBecause = r.LeaseEnd().Add(later), leadership.EndsEvicted
	r.Revision++
	ch.Events = []leadership.Event{{
		Election: r.Election, Revision: r.Revision, Type: "limited", LeaderID: r.LeaderID, Token: r.Token,
	}}
	return ch, nil
}

// renewSlowly lets the present leader renew, and the commit take a while. What comes too late is
// taken back, as the Service does; its leader was never told of it.
func (m *machine) renewSlowly(slow byte) {
	r := m.snap.Record
	ch, err := rule.Renew(m.snap, rule.Renewal{Election: "jobs", CandidateID: r.LeaderID, KeyHash: r.KeyHash, Token: r.Token})
	if err != nil {
		return
	}
	m.clock = m.clock.Add(time.Duration(slow) * 250 * time.Millisecond)
	m.snap.Now = m.clock
	m.snap = apply(m.snap, ch)
	if m.snap.Now.Before(ch.Before) {
		m.extend()
		return
	}
	undo, err := rule.Lapse(m.snap, r.Token, m.snap.Record.HeartbeatAt, ch.Before)
	if err != nil || undo.Empty() {
		m.Fatalf("a heartbeat that came too late was not taken back: %v", err)
	}
	m.observe(undo)
	m.snap = apply(m.snap, undo)
}

// observe checks the events of a change against what came before.
func (m *machine) observe(ch rule.Change) {
	for _, e := range ch.Events {
		if e.Revision != m.newest.Revision+1 {
			m.Fatalf("revision %d follows %d", e.Revision, m.newest.Revision)
		}
		switch e.Type {
		case leadership.EventAcquired:
			m.begin(e)
		case leadership.EventConfigured, leadership.EventRecreated:
			if m.snap.Record.Revision == 0 || m.snap.Record.Deleted {
				m.vacant = m.snap.Now
			}
		case leadership.EventReleased, leadership.EventExpired:
			m.finish(e)
		case leadership.EventDeleted:
			if e.PreviousLeaderID != "" {
				m.finish(e)
			}
		case leadership.EventUnlocked:
			if e.PreviousLeaderID != "" {
				m.finish(e)
			} else if n := len(m.terms); n > 0 { // a wait after it
				m.terms[n-1].end = time.Time{}
			}
		}
		if e.Type != leadership.EventAcquired && e.Token != m.newest.Token {
			m.Fatalf("%s changes the token from %d to %d", e.Type, m.newest.Token, e.Token)
		}
		m.newest = rule.Newest{Revision: e.Revision, Token: e.Token}
	}
	if len(ch.Events) > 0 && ch.Record.Revision != m.newest.Revision {
		m.Fatalf("the record is at %d, its newest event at %d", ch.Record.Revision, m.newest.Revision)
	}
}

func (m *machine) begin(e leadership.Event) {
	if e.Token != m.newest.Token+1 {
		m.Fatalf("token %d follows %d", e.Token, m.newest.Token)
	}
	if n := len(m.terms); n > 0 && m.snap.Now.Before(m.terms[n-1].end) {
		m.Fatalf("token %d is granted at %v, and the term of %d ends at %v", e.Token, m.snap.Now, m.terms[n-1].token, m.terms[n-1].end)
	}
	m.terms = append(m.terms, term{token: e.Token, start: m.snap.Now})
}

// finish ends the present term. Its leader may believe in it until the end that it was promised, so
// a term that is cut short by an operator keeps that end.
func (m *machine) finish(e leadership.Event) {
	if len(m.terms) == 0 || m.terms[len(m.terms)-1].token != e.Token {
		m.Fatalf("%s ends the term of token %d, which is not the present one", e.Type, e.Token)
	}
	last := &m.terms[len(m.terms)-1]
	m.vacant = m.snap.Now
	if e.Type == leadership.EventExpired {
		m.vacant = last.end
	}
	switch e.Type {
	case leadership.EventReleased:
		last.end = time.Time{} // no agent can believe in it, whatever any clock says
	case leadership.EventUnlocked:
		last.end = time.Time{} // an agent may believe in it, and an operator has acknowledged that
	}
}

// extend moves the end of the present term with its heartbeats.
func (m *machine) extend() {
	if r := m.snap.Record; r.LeaderID != "" {
		last := &m.terms[len(m.terms)-1]
		if end := r.LeaseEnd(); end.Before(last.end) {
			m.Fatalf("the lease was to end at %v, and now ends at %v", last.end, end)
		}
		last.end = r.LeaseEnd()
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,{"b":1e30}]}`))
	f.Add([]byte(`{"a":{"a":{"a":{}}},"\u0000":-0}`))
	for _, plain := range plainMetadata {
		f.Add([]byte(plain))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := leadership.ParseMetadata(text)
		requireSameAsWithSpace(t, text)
		if err != nil {
			return
		}
		if len(m) > leadership.MaxMetadataBytes {
			t.Fatalf("%d bytes were taken", len(m))
		}
		if again, err := leadership.ParseMetadata([]byte(m)); err != nil || again != m {
			t.Fatalf("%s becomes %s, %v", m, again, err)
		}
	})
}

// plainMetadata is objects, or nearly, that are read without encoding/json.
var plainMetadata = []string{
	`{"a":"b"}`, `{"":""}`, `{"":"","a":""}`, `{"a":"b","c":"d e~!"}`, `{"c":"d","a":"b"}`, `{"a":"b","a":"b"}`, `{"a":"b",}`, `{"a":"b"`,
	`{xa":xb"}`, "{\"\n\":\"\n\"}", `{"\":"\"}`, `{"a":"b}`, `{"a":"\n"}`, "{\"a\":\"\n\"}", "{\"a\":\"\u2028\"}", "{\"a\":\"\x7f\"}", `{"a":"b"}}`, `{"a":"b"} `, `{"a":"<>&"}`, `{,"a":"b"}`, `{"a","b"}`, `{`, `{}`,
	`{"a":"` + strings.Repeat("x", 4088) + `"}`, `{"a":"` + strings.Repeat("x", 4089) + `"}`,
}

// requireSameAsWithSpace compares with the same text after a space, which encoding/json reads.
func requireSameAsWithSpace(t *testing.T, text []byte) {
	t.Helper()
	got, err := leadership.ParseMetadata(text)
	want, wantErr := leadership.ParseMetadata(append([]byte(" "), text...))
	if got != want || (err == nil) != (wantErr == nil) {
		t.Fatalf("%q becomes %q, %v; want %q, %v", text, got, err, want, wantErr)
	}
}

func TestPlainMetadataIsReadAsAnyOther(t *testing.T) {
	for _, text := range plainMetadata {
		requireSameAsWithSpace(t, []byte(text))
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(leadership.Key{1}.Text())
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := leadership.ParseKey(text); err == nil && k.Text() != text {
			t.Fatalf("%q and %q are the same key", text, k.Text())
		}
	})
}
