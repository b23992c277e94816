package belief

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Ballot is a model of how candidates bid, with the real rules Acquire, Withdraw, Renew, Release
// and Expire. Time passes in ticks of one clock. Between two ticks anything happens in any order:
//
//   - A candidate comes, and stands in the line of its instance. Its instance asks the store for
//     it, any number of times or never, and hears the answer or not.
//   - It goes, or dies: then no instance asks for it. Its bid, or its challenge, stays. Its
//     instance withdraws it, at any time or never.
//   - A leader renews, and hears the answer or not; or it releases, and goes.
//   - The store records the end of a lease.
//
// A leader believes in its lease up to the end that the last answer showed it. What clocks and late
// messages do to that is in Model. The states are finite for the same reason as there: rules know
// only differences of times, and each has a value from which on it makes no difference.
type Ballot struct {
	Name       string
	Tick       time.Duration
	Lease      time.Duration // whole ticks
	Policy     leadership.BallotPolicy
	Candidates []Bidder
}

// Bidder is a candidate of a Ballot: ann, bob and cy, in this order.
type Bidder struct {
	Instance int
	leadership.Candidacy
}

// The properties of a Ballot, beside NeverTwo, NoneAfterEnd, OneLeaseATime and PromiseKept.
const (
	InTurn         Property = "no candidate is granted before its turn, which comes after those of all better bids that count"
	NoWitness      Property = "no witness leads"
	NoneGone       Property = "no candidate is granted that has gone"
	QuorumHeard    Property = "no candidate is granted without enough different members"
	BetterPreempts Property = "no leader has to hand over but to a better candidate, and after its minimum term"
	ChallengeGoes  Property = "a challenge that was withdrawn leaves no end behind"
	RecordHolds    Property = "the record agrees with itself"
)

// QuickBallots is searched with every test.
func QuickBallots() []Ballot {
	priority := leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: second}
	quorum := priority
	quorum.Quorum = leadership.QuorumPolicy{Electorate: "ann bob cy"}
	preempt := priority
	preempt.Preempt, preempt.MinTerm = true, 2*second
	outside := priority
	outside.Quorum = leadership.QuorumPolicy{Electorate: "bob cy eve"}
	both := preempt
	both.Quorum = quorum.Quorum
	one, two := leadership.Candidacy{Priority: 1}, leadership.Candidacy{Priority: 2}
	witness := leadership.Candidacy{Role: leadership.RoleWitness, Priority: 9}
	return []Ballot{
		{"two bid", second, 2 * second, priority, []Bidder{{0, one}, {1, two}}},
		{"three bid, two of them are equal", second, second, priority, []Bidder{{0, one}, {1, two}, {1, two}}},
		{"a quorum with a witness", second, second, quorum, []Bidder{{0, one}, {1, two}, {1, witness}}},
		{"a quorum, and a candidate outside of it", second, second, outside, []Bidder{{0, one}, {0, two}, {1, two}}},
		{"preemption with a quorum", second, 2 * second, both, []Bidder{{0, one}, {1, two}, {1, witness}}},
		{"preemption", second, 3 * second, preempt, []Bidder{{0, one}, {1, two}}},
		{"preemption among three", second, 2 * second, preempt, []Bidder{{0, one}, {1, two}, {1, two}}},
	}
}

// ballotState is the store, and what becomes of the candidates. Instants are absolute; two states
// are one if their keys are equal.
type ballotState struct {
	now    time.Time
	record rule.Record
	since  time.Time            // the first bid of the present ballot that counts; zero if there is none
	heard  []leadership.Bid     // what counts, as the model knows it
	until  map[string]time.Time // that each candidate believes in; none in the map if it does not
	here   map[string]bool      // it stands in line, or leads
	leads  map[string]bool      // it was told that it leads
}

// Search visits all that can be reached, or stops where a property does not hold. It returns how
// many steps were grants, and how many challenges, as well.
func (m *Ballot) Search() (r Result, grants, preempted int) {
	begin := ballotState{now: now, record: m.begin(), until: map[string]time.Time{}, here: map[string]bool{}, leads: map[string]bool{}}
	_, r = explore(begin, m.key, func(s ballotState, visit func(ballotState, string, Property)) {
		m.next(s, func(step string, to ballotState, broken Property) {
			if to.record.Token > s.record.Token {
				grants++
			}
			if to.record.Standing.Challenger != "" && s.record.Standing.Challenger == "" {
				preempted++
			}
			visit(to, step, cmp.Or(broken, m.broken(to)))
		})
	})
	return r, grants, preempted
}

func (m *Ballot) begin() rule.Record {
	s := rule.Snapshot{Record: rule.Record{Election: "reports"}, Now: now}
	config := leadership.Config{LeaseDuration: m.Lease, Ballot: m.Policy}
	ch, err := rule.Apply(s, leadership.Configure{Config: config})
	if err != nil {
		panic(err)
	}
	return ch.Committed(now)
}

func (s ballotState) snapshot() rule.Snapshot {
	return rule.Snapshot{Record: s.record, Now: s.now}
}

// clone is a state that may be changed.
func (s ballotState) clone() ballotState {
	s.until, s.here, s.leads = maps.Clone(s.until), maps.Clone(s.here), maps.Clone(s.leads)
	s.heard = slices.Clone(s.heard)
	return s
}

// next calls visit with every step that can happen, and the state after it.
func (m *Ballot) next(s ballotState, visit func(string, ballotState, Property)) {
	tick := s.clone()
	tick.now = s.now.Add(m.Tick)
	visit(fmt.Sprintf("%v pass", m.Tick), tick, "")
	if ch, _ := rule.Expire(s.snapshot()); !ch.Empty() {
		after := s.clone()
		after.write(ch)
		visit("the store records the end of the lease", after, "")
	}
	for i := range m.Candidates {
		id := name(int8(i))
		if !s.here[string(id)] {
			after := s.clone()
			after.here[string(id)] = true
			visit(fmt.Sprintf("%s comes", id), after, "")
			m.withdraw(s, id, visit)
			continue
		}
		gone := s.clone()
		gone.goes(id)
		visit(fmt.Sprintf("%s goes", id), gone, "")
		if s.leads[string(id)] {
			m.leader(s, i, visit)
		} else {
			m.ask(s, i, visit)
		}
	}
}

func (s *ballotState) goes(id leadership.CandidateID) {
	delete(s.here, string(id))
	delete(s.leads, string(id))
	delete(s.until, string(id))
}

// write commits a change.
func (s *ballotState) write(ch rule.Change) {
	before := s.record
	s.record = ch.Committed(s.now)
	if s.record.LeaderID != "" || before.LeaderID != "" {
		s.heard, s.since = nil, time.Time{}
	}
}

// ask lets the candidate's instance ask for it.
func (m *Ballot) ask(s ballotState, who int, visit func(string, ballotState, Property)) {
	id := name(int8(who))
	cmd := rule.AcquireCommand{CandidateID: id, KeyHash: key(int8(who), false), Candidacy: m.Candidates[who].Candidacy}
	cmd.Present = rule.Presence{}
	for _, member := range m.Policy.Quorum.Electorate.List() {
		cmd.Present[leadership.CandidateID(member)] = false
	}
	for n, other := range m.Candidates {
		member := name(int8(n))
		cmd.Present[member] = other.Instance == m.Candidates[who].Instance && s.here[string(member)]
	}
	ch, err := rule.Acquire(s.snapshot(), cmd)
	if err != nil || ch.Empty() {
		return
	}
	after := s.clone()
	after.write(ch)
	granted := after.record.Token > s.record.Token
	broken := Property("")
	switch {
	case granted:
		broken = m.misgranted(s, cmd, after.record.LeaderID)
	case after.record.Standing.Challenger != "" && s.record.Standing.Challenger == "":
		broken = m.mispreempted(s, who)
	case after.record.LeaderID == "":
		after.hears(m, s.bid(m, cmd))
	}
	snap := s.snapshot()
	if end := s.record.LeaseEnd(); snap.Live() && after.record.LeaderID == s.record.LeaderID && after.record.LeaseEnd().Before(end) {
		broken = cmp.Or(broken, PromiseKept)
	}
	lost := after.clone()
	visit(fmt.Sprintf("the store is asked for %s%s, and it does not hear the answer", id, m.words(s, after)), lost, broken)
	if after.record.LeaderID == id {
		after.leads[string(id)], after.until[string(id)] = true, after.record.LeaseEnd()
		visit(fmt.Sprintf("the store is asked for %s%s", id, m.words(s, after)), after, broken)
	}
}

func (m *Ballot) words(before, after ballotState) string {
	switch {
	case after.record.Token > before.record.Token:
		return fmt.Sprintf(": %s is granted", after.record.LeaderID)
	case after.record.Standing.Challenger != "" && before.record.Standing.Challenger == "":
		return ": the leader has to hand over"
	case after.record.LeaderID != "":
		return ", which leads already"
	}
	return ": it has bid"
}

// leader is what a leader may do.
func (m *Ballot) leader(s ballotState, who int, visit func(string, ballotState, Property)) {
	id := name(int8(who))
	if !s.until[string(id)].After(s.now) {
		after := s.clone()
		after.goes(id)
		visit(fmt.Sprintf("the deadline of %s has come", id), after, "")
		return
	}
	c := rule.Renewal{Election: s.record.Election, CandidateID: id, KeyHash: key(int8(who), false), Token: s.record.Token}
	if ch, err := rule.Renew(s.snapshot(), c); err == nil {
		after := s.clone()
		after.write(ch)
		visit(fmt.Sprintf("%s renews, and does not hear the answer", id), after.clone(), "")
		after.until[string(id)] = after.record.LeaseEnd()
		visit(fmt.Sprintf("%s renews", id), after, "")
	}
	if ch, err := rule.Apply(s.snapshot(), (leadership.Release{LeaseRequest: c.Request()})); err == nil && !ch.Empty() {
		after := s.clone()
		after.goes(id)
		after.write(ch)
		visit(fmt.Sprintf("%s releases", id), after, "")
	}
}

// withdraw lets an instance withdraw a candidate that has gone.
func (m *Ballot) withdraw(s ballotState, id leadership.CandidateID, visit func(string, ballotState, Property)) {
	ch, err := rule.Apply(s.snapshot(), leadership.Withdraw{CandidateID: id})
	if err != nil || ch.Empty() {
		return
	}
	challenged := s.record.Standing.Challenger == id
	after := s.clone()
	after.write(ch)
	after.heard = slices.DeleteFunc(after.heard, func(b leadership.Bid) bool { return b.CandidateID == id })
	if len(after.heard) == 0 {
		after.since = time.Time{}
	}
	broken := Property("")
	if challenged && !after.record.EndsBy.IsZero() {
		broken = ChallengeGoes
	}
	visit(fmt.Sprintf("%s is withdrawn", id), after, broken)
}

// bid is what the candidate's call bids.
func (s ballotState) bid(m *Ballot, cmd rule.AcquireCommand) leadership.Bid {
	b := rule.NewBid(cmd.Candidacy, cmd.CandidateID, m.Policy, s.now)
	b.At = s.now
	for i, member := range m.Policy.Quorum.Electorate.List() {
		if leadership.CandidateID(member) == cmd.CandidateID || cmd.Present[leadership.CandidateID(member)] {
			b.Present |= 1 << i
		}
	}
	return b
}

// counting are the bids that count now, as the model knows it.
func (s ballotState) counting(m *Ballot) []leadership.Bid {
	return slices.DeleteFunc(slices.Clone(s.heard), func(b leadership.Bid) bool { return s.now.Sub(b.At) > m.kept() })
}

// kept is for how long a bid counts.
func (m *Ballot) kept() time.Duration { return m.Policy.Window + 4*second }

// hears notes a bid, if the store has written it.
func (s *ballotState) hears(m *Ballot, b leadership.Bid) {
	if !slices.ContainsFunc(bidsOf(s.record), func(w leadership.Bid) bool { return w.CandidateID == b.CandidateID && w.At.Equal(b.At) }) {
		return
	}
	counting := s.counting(m)
	if len(counting) == 0 {
		s.since = s.now
	}
	s.heard = append(slices.DeleteFunc(counting, func(old leadership.Bid) bool { return old.CandidateID == b.CandidateID }), b)
	slices.SortFunc(s.heard, func(a, b leadership.Bid) int { return cmp.Compare(a.CandidateID, b.CandidateID) })
}

// misgranted is a property that a grant breaks.
func (m *Ballot) misgranted(s ballotState, cmd rule.AcquireCommand, winner leadership.CandidateID) Property {
	var own leadership.Bid
	for i, c := range m.Candidates {
		if name(int8(i)) == winner {
			own = rule.NewBid(c.Candidacy, winner, m.Policy, s.now)
		}
	}
	counting := slices.DeleteFunc(s.counting(m), func(b leadership.Bid) bool { return b.CandidateID == winner })
	since, better := s.since, 0
	if len(s.counting(m)) == 0 {
		since = s.now
	}
	set := s.bid(m, cmd).Present
	for _, bid := range counting {
		set |= bid.Present
		if !bid.Witness && bid.Priority >= own.Priority && bid.Load <= own.Load && (bid.Priority > own.Priority || bid.Load < own.Load || bid.CandidateID < winner) {
			better++
		}
	}
	switch snap := s.snapshot(); {
	case snap.Live():
		return OneLeaseATime
	case own.Witness:
		return NoWitness
	case !s.here[string(winner)]:
		return NoneGone
	case s.now.Before(since.Add(m.Policy.Window + time.Duration(better)*rule.BidTurn)):
		return InTurn
	case ones(set) < m.Policy.Quorum.Needed():
		return QuorumHeard
	}
	return ""
}

// mispreempted is the property that a challenge breaks.
func (m *Ballot) mispreempted(s ballotState, who int) Property {
	for i, leader := range m.Candidates {
		if name(int8(i)) == s.record.LeaderID && m.Candidates[who].Priority > leader.Priority && !s.now.Before(s.record.AcquiredAt.Add(m.Policy.MinTerm)) {
			return ""
		}
	}
	return BetterPreempts
}

// broken is a property that does not hold in the state.
func (m *Ballot) broken(s ballotState) Property {
	believers := 0
	for id, until := range s.until {
		if !until.After(s.now) {
			continue
		}
		if believers++; string(s.record.LeaderID) != id || !s.now.Before(s.record.LeaseEnd()) {
			return NoneAfterEnd
		}
	}
	switch {
	case believers > 1:
		return NeverTwo
	case rule.VerifyAlone(s.snapshot()) != nil:
		return RecordHolds
	}
	return ""
}

// key is all that matters of a state.
func (m *Ballot) key(s ballotState) string {
	var b strings.Builder
	r := s.record
	age := func(t time.Time, most time.Duration) time.Duration {
		if t.IsZero() {
			return -1 << 40
		}
		return min(s.now.Sub(t), most)
	}
	fmt.Fprint(&b, r.LeaderID, r.Standing.Challenger, r.EndsBecause, r.Standing.Elected.CandidateID)
	if r.LeaderID != "" {
		fmt.Fprint(&b, " ", age(r.LeaseEnd(), 0), age(r.HeartbeatAt, m.Lease), age(r.AcquiredAt, m.Policy.MinTerm), age(r.EndsBy, 0))
	}
	turns := m.Policy.Window + time.Duration(len(m.Candidates))*rule.BidTurn
	// Turns may begin ever later while better bidders come and go. Those that begin later than two
	// turns from now are not told apart, or there would be no end of states.
	begins := func(opened time.Time) time.Duration {
		return max(age(opened, turns), -2*rule.BidTurn)
	}
	for i, bids := range [][]leadership.Bid{bidsOf(r), s.heard} {
		opened := []time.Time{r.Standing.Opened, s.since}[i]
		if i == 1 || i == 0 && m.Policy.Quorum.Electorate != "" { // void bids make no difference, which the smaller models find out
			bids = slices.DeleteFunc(slices.Clone(bids), func(bid leadership.Bid) bool { return s.now.Sub(bid.At) > m.kept() })
		}
		if len(bids) > 0 {
			fmt.Fprint(&b, " ", begins(opened))
		}
		for _, bid := range bids {
			fmt.Fprint(&b, " ", bid.CandidateID, bid.Present, age(bid.At, m.kept()+1))
		}
		b.WriteByte(';')
	}
	for i := range m.Candidates {
		id := string(name(int8(i)))
		fmt.Fprint(&b, " ", s.here[id], s.leads[id], age(s.until[id], 0))
	}
	return b.String()
}

// bidsOf are the bids of a record, as its stored form has them.
func bidsOf(r rule.Record) (bids []leadership.Bid) {
	if r.Standing.Bids != "" {
		if err := json.Unmarshal([]byte(r.Standing.Bids), &bids); err != nil {
			panic(err)
		}
	}
	return bids
}

// ones is how many members are in a set.
func ones(set uint32) (n int) {
	for ; set > 0; set &= set - 1 {
		n++
	}
	return n
}
