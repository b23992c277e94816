package members

import (
	"cmp"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// record is the state of a member, as one instance or all together know it.
type record struct {
	role     leadership.Role
	seen     leadership.Token
	heard    time.Duration
	position int
	note     string
	noted    time.Duration // when the note was heard
	joined   bool          // the member keeps its membership by joining again
	inLine   bool          // the member stands in line, and follows the token that its instance knows
	reader                 // its progress in the journal
}

var ranks = map[leadership.Role]int{
	leadership.RoleLeader: 5, leadership.RoleCandidate: 4, leadership.RoleWitness: 3, leadership.RoleWorker: 2, leadership.RoleFollower: 1,
}

// add merges another record of the same member: by another instance, or for another way of being a
// member.
func (a *record) add(b record) {
	if ranks[b.role] > ranks[a.role] {
		a.role = b.role
	}
	if b.note != "" && (a.note == "" || b.noted > a.noted) {
		a.note, a.noted = b.note, b.noted
	}
	if b.position > 0 && (a.position == 0 || b.position < a.position) {
		a.position = b.position
	}
	a.seen, a.heard = max(a.seen, b.seen), max(a.heard, b.heard)
	a.joined, a.inLine = a.joined || b.joined, a.inLine || b.inLine
	a.follows, a.applied = a.follows || b.follows, max(a.applied, b.applied)
}

// local merges into all every way in which the node is a member here; a connected member is heard
// of now. It leaves out the token that a member follows because it stands in line.
func (n *node) local(all *record, now time.Duration) {
	if j := n.joined; j.role != "" {
		all.add(record{role: j.role, seen: j.seen, heard: j.heard, note: j.note, noted: j.heard, joined: true})
	}
	if s := n.stream; s.counts {
		heard := now
		if s.open == 0 {
			heard = s.closed
		}
		all.add(record{role: leadership.RoleFollower, seen: s.seen, heard: heard})
	}
	if n.kept() {
		all.add(record{reader: n.reader})
	}
	if p := n.place; p.role != "" {
		all.add(record{role: p.role, heard: now, position: p.position, inLine: true})
	}
}

// gather merges into all everything that is known of the member, here and from other instances.
func (n *node) gather(all *record, now time.Duration) {
	n.local(all, now)
	if n.place.role != "" {
		all.seen = max(all.seen, n.election.noticed.token)
	}
	for p, c := range n.copies {
		known := c.record
		if known.inLine {
			known.seen = max(known.seen, p.terms[n.election])
		}
		all.add(known)
	}
	if n.leads {
		all.add(record{role: leadership.RoleLeader, seen: n.election.noticed.token})
	}
}

// member returns the record of the member, without counting that it leads; ok is false if it is
// absent.
func (n *node) member(now time.Duration) (m record, ok bool) {
	leads := n.leads
	n.leads = false
	n.gather(&m, now)
	n.leads = leads
	return m, m.role != ""
}

// Members returns the members of an election in the order of their ids, each once. l is the
// election as the store described it age ago; its leader is one of the members.
func (r *Registry) Members(l leadership.Lease, age, now time.Duration) []leadership.Member {
	known := make(map[leadership.CandidateID]record)
	if e, ok := r.elections[l.Election]; ok {
		for id, n := range e.nodes {
			if m, ok := n.member(now); ok {
				known[id] = m
			}
		}
	}
	if l.LeaderID != "" {
		m := known[l.LeaderID]
		m.add(record{role: leadership.RoleLeader, seen: l.Token, heard: now - age - l.ReadAt.Sub(l.LastHeartbeat)})
		known[l.LeaderID] = m
	}
	journal := r.JournalIndex(l.Election)
	all := make([]leadership.Member, 0, len(known))
	for id, m := range known {
		one := leadership.Member{
			ID: id, Role: m.role, SeenToken: m.seen, HeardAgo: max(now-m.heard, 0), Position: m.position, Note: m.note, Applied: m.applied,
		}
		if m.follows {
			one.Lag = max(journal-m.applied, 0)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b leadership.Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Present reports whether the candidate is a member of the election now.
func (r *Registry) Present(name leadership.Election, id leadership.CandidateID, now time.Duration) bool {
	r.Notice(now, name)
	n := r.find(name, id)
	return n != nil && n.shown != ""
}

// Status sums up the members of an election with respect to its leader and its quorum.
type Status struct {
	Present       int  // of the electorate
	ReadOnly      bool // the quorum was lost for longer than the grace time, while the election had its leader
	Participation float64
	Diverged      bool // a member follows another token than the leader's
}

// Status sums up the members of an election that the store described age ago.
func (r *Registry) Status(l leadership.Lease, members []leadership.Member, age, now time.Duration) Status {
	s := Status{Participation: 1}
	follow := 0
	for _, m := range members {
		switch {
		case m.ID == l.LeaderID || m.SeenToken == l.Token:
			follow++
		case m.SeenToken != 0 && l.LeaderID != "":
			s.Diverged = true
		}
	}
	if len(members) > 0 {
		s.Participation = float64(follow) / float64(len(members))
	}
	q := l.Config.Ballot.Quorum
	if q.Needed() == 0 {
		return s
	}
	present, lost := r.quorum(l.Election, q, l.LeaderID, now)
	s.Present, s.Participation = present, float64(present)/float64(q.Size())
	s.ReadOnly = readOnly(l, lost, age)
	return s
}

// readOnly reports whether the leader must not write: the quorum is lost for longer than the grace
// time, and the election has had its leader for as long.
func readOnly(l leadership.Lease, lost, age time.Duration) bool {
	return l.LeaderID != "" && min(lost, age+l.ReadAt.Sub(l.AcquiredAt)) > l.Config.Ballot.Quorum.Grace
}

// quorum returns how many of the electorate are present, the leader among them, and for how long
// fewer than the policy needs have been; 0 if enough are. A member that was never heard of counts
// as absent since the registry began.
func (r *Registry) quorum(name leadership.Election, q leadership.QuorumPolicy, leader leadership.CandidateID, now time.Duration) (present int, lost time.Duration) {
	var absent []time.Duration
	for _, member := range q.Electorate.List() {
		id := leadership.CandidateID(member)
		n := r.find(name, id)
		switch {
		case id == leader || n != nil && n.shown != "":
			present++
			absent = append(absent, 0)
		case n != nil:
			absent = append(absent, now-n.goneAt)
		default:
			absent = append(absent, now-r.began)
		}
	}
	if present >= q.Needed() {
		return present, 0
	}
	slices.Sort(absent)
	return present, absent[q.Needed()-1] // before that, enough were present
}

// Stats has the numbers of members for metrics.
type Stats struct {
	Own      map[leadership.Role]int64 // members that are at this instance
	ReadOnly int64                     // elections
	Lowest   float64                   // participation of an election; 1 if there is none
}

// Stats sums up all elections that have members.
func (r *Registry) Stats(now time.Duration) Stats {
	all := Stats{Own: make(map[leadership.Role]int64), Lowest: 1}
	for n := range r.own {
		all.Own[n.shown]++
	}
	for _, known := range r.leases() {
		l, age := known.Lease, now-known.Asked
		s := r.Status(l, r.Members(l, age, now), age, now)
		if all.Lowest = min(all.Lowest, s.Participation); s.ReadOnly {
			all.ReadOnly++
		}
	}
	return all
}

// leases returns the leases of elections with members.
func (r *Registry) leases() (all []view.Lease) {
	r.view(func(*view.View, time.Duration) {
		for _, e := range r.elections {
			if l := e.lease(); l != nil {
				all = append(all, *l)
			}
		}
	})
	return all
}

// lease returns the store's last answer about the election, but with the present leader, acquired
// when that was noticed; nil if there is no answer, or the election has no members. Call it within
// View.
func (e *election) lease() *view.Lease {
	last := e.known.Last()
	if e.present == 0 || last == nil || last.Absent != nil {
		return nil
	}
	l := *last
	if leader, token := e.known.Term(); token != l.Token || leader == "" {
		l.Token, l.LeaderID, l.AcquiredAt, l.Asked = token, leader, l.ReadAt, e.since
	}
	return &l
}
