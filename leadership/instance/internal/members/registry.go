package members

import (
	"fmt"
	"maps"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

const (
	// Linger is how long a member counts after its stream has ended. A member that has left the
	// line, or whose instance or term has ended, no longer counts, but watchers are told only if it
	// has not come back in this time.
	Linger = 5 * time.Second
	// Stale is how long the members of another instance count after it was last heard of.
	Stale = 40 * time.Second
	// remembered is how long the registry remembers when a member has gone: the longest grace time
	// of a quorum.
	remembered = leadership.MaxGrace

	maxAbsent = 2 * leadership.MaxMembers // remembered members that have gone lately, and that no quorum counts
	maxShare  = leadership.MaxMembers / 2 // members that one principal, or one election, may have here
)

// Registry is one instance's knowledge of the members of all elections.
type Registry struct {
	name      string // of this instance in its sheets; "" if there are none
	view      View
	began     time.Duration
	elections map[leadership.Election]*election
	own       map[*node]struct{} // members at this instance in any way
	absent    map[*node]struct{} // members that have gone lately
	members   int                // how many have joined or follow a stream here
	owned     map[string]int     // how many of these each principal has
	standing  int                // how many stand in line here
	touched   map[leadership.Election]bool
	cutAt     time.Duration // when the logs are cut next
	outgoing  outgoing
	incoming  incoming
}

// View calls do with the view of the elections, which is locked until do returns.
type View func(do func(v *view.View, now time.Duration))

// New returns a registry that begins now. name distinguishes its sheets from those of all other
// processes; if it is empty, the registry makes no sheets. Each of its elections is held in the
// view.
func New(name string, known View, now time.Duration) *Registry {
	return &Registry{
		name:      name,
		view:      known,
		began:     now,
		elections: make(map[leadership.Election]*election),
		own:       make(map[*node]struct{}),
		absent:    make(map[*node]struct{}),
		owned:     make(map[string]int),
		touched:   make(map[leadership.Election]bool),
		outgoing:  newOutgoing(),
		incoming:  incoming{peers: make(map[string]*peer)},
	}
}

// election is one election that has members, had some lately, or is watched.
type election struct {
	name    leadership.Election
	nodes   map[leadership.CandidateID]*node
	present int // how many of the nodes are members now
	kept    int // how many have joined or follow a stream here
	line    map[*node]struct{}
	known   *view.Election // use it only within View, and only to read
	noticed term
	since   time.Duration // when that was noticed

	watchers int
	writing  leadership.MemberChange   // whether the leader may write, as last told to the watchers
	log      []leadership.MemberChange // while there are watchers
	first    uint64                    // the number of log[0]
	recent   uint64                    // the number of the first since the log was cut
}

// term is the leader, "" for none, and its token.
type term struct {
	leader leadership.CandidateID
	token  leadership.Token
}

// node is a candidate that is a member of an election, or was lately.
type node struct {
	election *election
	id       leadership.CandidateID
	owner    string // the principal that made it join or follow here; "" if unknown

	joined joined
	stream stream
	reader reader
	place  place
	leads  bool
	copies map[*peer]*copied // from the sheets of others

	shown  leadership.Role             // its present role; "" if it is absent
	was    leadership.Role             // its role before it went; "" if it never went
	saw    leadership.Token            // the token that it followed when it went
	goneAt time.Duration               // when it went
	why    leadership.MemberChangeType // how it went
	tellAt time.Duration               // when watchers are told that; 0 if they were, or need not be
	sent   record                      // as in the last sheet; the zero record if it was not in that
}

// joined is a membership that a member keeps by joining again.
type joined struct {
	role         leadership.Role // "" for none
	seen         leadership.Token
	note         string
	heard, until time.Duration
}

// stream counts the open streams of a member.
type stream struct {
	open   int
	seen   leadership.Token
	closed time.Duration // when the last one was closed; with none open the member counts for Linger
	counts bool
}

// reader is the progress of a member in the journal of the election. It counts while the member has
// joined or follows a stream.
type reader struct {
	follows bool
	applied leadership.Index
}

// reading is how long a member that reads a journal page by page counts after a page, unless it has
// joined for longer.
const reading = 30 * time.Second

// place is a member's place in line.
type place struct {
	role     leadership.Role // "" for none
	position int
}

// Stander is a candidate or a witness that stands in line at this instance.
type Stander struct {
	CandidateID leadership.CandidateID
	Role        leadership.Role
	Position    int
}

func (r *Registry) election(name leadership.Election) *election {
	e, ok := r.elections[name]
	if !ok {
		e = &election{name: name, nodes: make(map[leadership.CandidateID]*node), line: make(map[*node]struct{})}
		r.view(func(v *view.View, _ time.Duration) { e.known = v.Hold(name) })
		r.elections[name] = e
	}
	return e
}

func (r *Registry) node(name leadership.Election, id leadership.CandidateID) *node {
	e := r.election(name)
	n, ok := e.nodes[id]
	if !ok {
		n = &node{election: e, id: id}
		e.nodes[id] = n
	}
	return n
}

// find returns the node, or nil.
func (r *Registry) find(name leadership.Election, id leadership.CandidateID) *node {
	if e, ok := r.elections[name]; ok {
		return e.nodes[id]
	}
	return nil
}

// kept reports whether the member has joined or follows a stream here.
func (n *node) kept() bool { return n.joined.role != "" || n.stream.counts }

// isOwn reports whether the member is at this instance in a way that its sheets tell.
func (n *node) isOwn() bool { return n.kept() || n.place.role != "" }

// As calls join, which makes a member join or follow here, for a principal ("" if unknown). It
// refuses the member if the principal or the election already has its share of members.
func (r *Registry) As(principal string, name leadership.Election, id leadership.CandidateID, join func() error) error {
	if n := r.find(name, id); n == nil || !n.kept() {
		refuse := func(what string) error {
			return &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf(
				"%q cannot join election %q: this instance remembers %d members %s, and no more; let others leave, or ask at another instance", id, name, maxShare, what)}
		}
		switch e := r.elections[name]; {
		case principal != "" && r.owned[principal] >= maxShare:
			return refuse("of " + principal)
		case e != nil && e.kept >= maxShare:
			return refuse("of one election")
		}
	}
	if err := join(); err != nil {
		return err
	}
	if n := r.node(name, id); principal != "" && n.owner == "" {
		n.owner = principal
		r.owned[principal]++
	}
	return nil
}

// Join makes a member until its ttl has passed, or refuses it if there is no room.
func (r *Registry) Join(j leadership.JoinRequest, now time.Duration) error {
	if n := r.find(j.Election, j.CandidateID); (n == nil || !n.kept()) && r.members >= leadership.MaxMembers {
		return leadership.RefuseMember(j)
	}
	n := r.node(j.Election, j.CandidateID)
	kept := n.kept()
	n.joined = joined{role: j.Role, seen: j.SeenToken, note: j.Note, heard: now, until: now + j.TTL}
	r.count(n, kept)
	r.settle(n, now, "", 0)
	return nil
}

// Leave ends a membership that Join began, here and, by the next sheet, at the other instances.
// Idempotent.
func (r *Registry) Leave(name leadership.Election, id leadership.CandidateID, now time.Duration) {
	if r.name != "" {
		r.outgoing.leave(name, id, now)
	}
	if n := r.find(name, id); n != nil {
		r.leave(n, now, now)
	}
}

// leave ends the memberships at all instances that were last renewed by the time before.
func (r *Registry) leave(n *node, before, now time.Duration) {
	for _, c := range n.copies {
		if c.joined && c.heard <= before {
			r.forget(n, c)
		}
	}
	if n.joined.heard <= before {
		r.part(n)
	}
	r.settle(n, now, leadership.MemberLeft, 0)
}

// part ends the membership that a join here began.
func (r *Registry) part(n *node) {
	kept := n.kept()
	n.joined = joined{}
	r.count(n, kept)
}

// Open makes the reader of a stream a follower that has seen the token, or refuses it if there is
// no room. Close ends that.
func (r *Registry) Open(name leadership.Election, id leadership.CandidateID, seen leadership.Token, now time.Duration) error {
	if n := r.find(name, id); (n == nil || !n.kept()) && r.members >= leadership.MaxMembers {
		return leadership.RefuseMember(leadership.JoinRequest{Election: name, CandidateID: id})
	}
	n := r.node(name, id)
	kept := n.kept()
	n.stream.counts = true
	n.stream.open++
	n.stream.seen = max(n.stream.seen, seen)
	r.count(n, kept)
	r.settle(n, now, "", 0)
	return nil
}

// Seen notes that the reader of a stream was sent an event with the token.
func (r *Registry) Seen(name leadership.Election, id leadership.CandidateID, seen leadership.Token, now time.Duration) {
	if n := r.find(name, id); n != nil && seen > n.stream.seen {
		n.stream.seen = seen
		r.settle(n, now, "", 0)
	}
}

// Close notes that a stream has ended.
func (r *Registry) Close(name leadership.Election, id leadership.CandidateID, now time.Duration) {
	if n := r.find(name, id); n != nil {
		n.stream.open--
		n.stream.closed = now
	}
}

// Applied notes that a member follows the journal and has applied it up to an index. A candidate
// that is no member yet becomes a follower for a while, or is refused if there is no room.
func (r *Registry) Applied(name leadership.Election, id leadership.CandidateID, i leadership.Index, now time.Duration) error {
	n := r.find(name, id)
	switch {
	case n == nil || n.joined.role == "" && n.stream.open == 0:
		j := leadership.JoinRequest{Election: name, CandidateID: id, Role: leadership.RoleFollower, TTL: reading}
		if err := r.Join(j, now); err != nil {
			return err
		}
		n = r.node(name, id)
	case n.joined.role != "":
		n.joined.heard, n.joined.until = now, max(n.joined.until, now+reading)
	}
	n.reader = reader{true, max(n.reader.applied, i)}
	r.settle(n, now, "", 0)
	return nil
}

// Appended notes the journal's index after an append at this instance, for the next sheet.
func (r *Registry) Appended(name leadership.Election, i leadership.Index) {
	if o := &r.outgoing; r.name != "" && (len(o.journals) < leadership.MaxMembers || o.journals[name] > 0) {
		o.journals[name] = max(o.journals[name], i)
	}
}

// Proposed notes the state of an election's proposals after a call at this instance, for the next
// sheet.
func (r *Registry) Proposed(name leadership.Election, p Proposals) {
	r.tellLeader(name, p)
	if o := &r.outgoing; r.name != "" && (len(o.proposals) < leadership.MaxMembers || o.proposals[name].Changes > 0) {
		last := o.proposals[name]
		o.proposals[name] = Proposals{max(p.Changes, last.Changes), p.Open || last.Open}
	}
}

// tellLeader tells the leader of a watched election, if it is known, that there is a proposal.
func (r *Registry) tellLeader(name leadership.Election, p Proposals) {
	e := r.elections[name]
	if e == nil || !p.Open {
		return
	}
	var leader leadership.CandidateID
	var token leadership.Token
	r.view(func(*view.View, time.Duration) { leader, token = e.known.Term() })
	if leader != "" {
		r.write(e, leadership.MemberChange{ID: leader, Role: leadership.RoleLeader, Change: leadership.MemberAsked, SeenToken: token})
	}
}

// JournalIndex returns the last known index of the journal of an election with members; 0 if
// unknown.
func (r *Registry) JournalIndex(name leadership.Election) (i leadership.Index) {
	if e, ok := r.elections[name]; ok {
		r.view(func(*view.View, time.Duration) { i = e.known.Head() })
	}
	return i
}

// Lag returns the largest lag of a member at this instance, in entries of its journal.
func (r *Registry) Lag() (most leadership.Index) {
	r.view(func(*view.View, time.Duration) {
		for n := range r.own {
			if n.reader.follows {
				most = max(most, n.election.known.Head()-n.reader.applied)
			}
		}
	})
	return most
}

// Stand sets which candidates and witnesses stand in the line for an election now.
func (r *Registry) Stand(name leadership.Election, line []Stander, now time.Duration) {
	if len(line) == 0 && r.elections[name] == nil {
		return
	}
	e := r.election(name)
	gone := maps.Clone(e.line)
	for _, s := range line {
		n := e.nodes[s.CandidateID]
		switch _, before := gone[n]; {
		case n != nil && n.place.role != "" && !before: // another incarnation stands before this one
			continue
		case n == nil || n.place.role == "":
			if r.standing >= leadership.MaxMembers {
				continue
			}
			n = r.node(name, s.CandidateID)
			e.line[n] = struct{}{}
			r.standing++
		}
		delete(gone, n)
		news := n.place.role != s.Role
		n.place = place{s.Role, s.Position}
		if news {
			r.settle(n, now, "", 0)
		}
	}
	for n := range gone {
		delete(e.line, n)
		n.place = place{}
		r.standing--
		r.settle(n, now, leadership.MemberLeft, Linger) // it may ask again, or lead
	}
	r.tidy(e)
}

// Lines returns the elections in whose lines members stood at the last Stand.
func (r *Registry) Lines() (names []leadership.Election) {
	for name, e := range r.elections {
		if len(e.line) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Notice updates the members of elections to their present terms: the new leader becomes a member,
// the former one no longer leads, and members in line follow the new token.
func (r *Registry) Notice(now time.Duration, elections ...leadership.Election) {
	news := make(map[*election]term)
	r.view(func(*view.View, time.Duration) {
		for _, name := range elections {
			if e, ok := r.elections[name]; ok {
				if leader, token := e.known.Term(); token > 0 && e.noticed != (term{leader, token}) {
					news[e] = term{leader, token}
				}
			}
		}
	})
	for e, t := range news {
		former := e.nodes[e.noticed.leader]
		if e.noticed.token != t.token && len(e.line) > 0 {
			r.outgoing.terms[e] = struct{}{}
		}
		e.noticed, e.since = t, now
		r.touch(e)
		if t.leader != "" {
			n := r.node(e.name, t.leader)
			n.leads = true
			r.settle(n, now, "", 0)
		}
		if former != nil && former.id != t.leader {
			former.leads = false
			r.settle(former, now, leadership.MemberLeft, Linger) // it may stand in line again
		}
	}
}

// Token returns the last noticed token of an election; 0 if the election has no members.
func (r *Registry) Token(name leadership.Election) leadership.Token {
	if e, ok := r.elections[name]; ok {
		return e.noticed.token
	}
	return 0
}

// Tick notices the terms of elections with members or watches, and drops members, logs and absences
// that have timed out. Call it once a second.
func (r *Registry) Tick(now time.Duration) {
	var tracked []leadership.Election
	for name, e := range r.elections {
		if e.present > 0 || e.watchers > 0 {
			tracked = append(tracked, name)
		}
	}
	r.Notice(now, tracked...)
	for n := range r.own {
		kept := n.kept()
		why := leadership.MemberChangeType("")
		if n.joined.role != "" && now >= n.joined.until {
			n.joined, why = joined{}, leadership.MemberVanished
		}
		if n.stream.counts && n.stream.open == 0 && now >= n.stream.closed+Linger {
			n.stream, why = stream{}, leadership.MemberLeft
		}
		if why != "" {
			r.count(n, kept)
			r.settle(n, now, why, 0)
		}
	}
	r.incoming.tick(r, now)
	r.tellWriting(now)
	r.cutLogs(now)
	for n := range r.absent {
		if n.tellAt > 0 && now >= n.tellAt {
			r.tell(n)
		}
		if n.tellAt == 0 && now >= n.goneAt+remembered {
			r.drop(n)
		}
	}
}

// count updates the counts of members that have joined or follow a stream. kept is n.kept() before
// the change.
func (r *Registry) count(n *node, kept bool) {
	switch {
	case n.kept() && !kept:
		r.members++
		n.election.kept++
	case !n.kept() && kept:
		r.members--
		n.election.kept--
		if r.owned[n.owner]--; r.owned[n.owner] <= 0 {
			delete(r.owned, n.owner)
		}
		n.owner, n.reader = "", reader{}
	}
}

// role returns the first of the roles that the member has anywhere; "" if it is absent.
func (n *node) role() leadership.Role {
	var all record
	n.gather(&all, 0)
	return all.role
}

// settle updates the registry after a change of a member. If the member has gone, why says how, and
// watchers are told after the delay unless it has come back by then.
func (r *Registry) settle(n *node, now time.Duration, why leadership.MemberChangeType, delay time.Duration) {
	r.touch(n.election)
	if n.isOwn() {
		r.own[n] = struct{}{}
	} else {
		delete(r.own, n)
	}
	r.outgoing.changed(r, n)
	switch role := n.role(); {
	case role != "":
		r.arrive(n, role)
	case n.shown != "":
		n.election.present--
		n.was, n.shown = n.shown, ""
		n.goneAt, n.why, n.tellAt = now, why, now+delay
		r.absent[n] = struct{}{}
		if delay == 0 {
			r.tell(n)
		}
		if len(r.absent) > maxAbsent && n.tellAt == 0 && !r.counts(n) {
			r.drop(n)
		}
	case n.was == "": // it never was a member
		r.drop(n)
	case n.tellAt > 0 && why == leadership.MemberLeft && delay == 0:
		n.why = why
		r.tell(n)
	}
}

func (r *Registry) arrive(n *node, role leadership.Role) {
	var all record
	n.gather(&all, 0)
	n.saw = all.seen
	back := n.shown != "" || n.tellAt > 0
	if n.shown == "" {
		n.election.present++
		delete(r.absent, n)
	}
	n.shown, n.tellAt = role, 0
	if !back {
		r.write(n.election, leadership.MemberChange{ID: n.id, Role: role, Change: leadership.MemberJoined, SeenToken: n.saw})
	}
}

// counts reports whether a quorum counts the member; then the time at which it went is always
// remembered.
func (r *Registry) counts(n *node) (yes bool) {
	r.view(func(*view.View, time.Duration) {
		last := n.election.known.Last()
		yes = last != nil && last.Config.Ballot.Quorum.Electorate.Has(string(n.id))
	})
	return yes
}

// tell tells the watchers that a member has gone.
func (r *Registry) tell(n *node) {
	n.tellAt = 0
	r.write(n.election, leadership.MemberChange{ID: n.id, Role: n.was, Change: n.why, SeenToken: n.saw})
}

// drop forgets a node.
func (r *Registry) drop(n *node) {
	delete(r.absent, n)
	delete(n.election.nodes, n.id)
	r.tidy(n.election)
}

// tidy forgets an election that has neither members nor watchers.
func (r *Registry) tidy(e *election) {
	if len(e.nodes) > 0 || e.watchers > 0 {
		return
	}
	r.view(func(v *view.View, _ time.Duration) { v.Release(e.known) })
	delete(r.elections, e.name)
	delete(r.outgoing.terms, e)
	for _, p := range r.incoming.peers {
		delete(p.terms, e)
	}
}
