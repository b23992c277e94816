package members

import (
	"cmp"
	"fmt"
	"time"

	"regent/leadership"
)

const (
	maxPeers  = 256
	maxCopies = 2 * leadership.MaxMembers  // of one instance
	maxAll    = 10 * leadership.MaxMembers // of all instances together
	// moved is by how much later a member must have joined at another instance for this one to
	// forget it. It is longer than a sheet takes, for otherwise both instances could forget it.
	moved = 3 * time.Second
)

// incoming is the state received in the sheets of the other instances.
type incoming struct {
	peers  map[string]*peer
	copies int // of all of them
}

// peer is another instance.
type peer struct {
	heard time.Duration
	seq   int64 // of the newest sheet that was heard
	gone  bool  // it has sent bye
	whole struct {
		first, of int64
		got       map[int64]struct{}
	}
	copies map[*node]*copied
	terms  map[*election]leadership.Token // the tokens that it knows, of elections with members in its line
}

// copied is a member at another instance.
type copied struct {
	record
	peer *peer
	seq  int64 // of the newest sheet that names the member
}

// ended returns how the member has gone if its instance, which goes on, no longer names it: it
// vanished if a join was not repeated in time; it left if a stream has ended or it left the line.
func (c *copied) ended() leadership.MemberChangeType {
	if c.joined {
		return leadership.MemberVanished
	}
	return leadership.MemberLeft
}

// Heard is the content of a sheet other than members.
type Heard struct {
	Ask       bool // the sender asks for a whole sheet
	Renewed   []Renewed
	Journals  []Journal
	Proposals []Asked
}

// Journal is an index that the journal of an election has at least reached.
type Journal struct {
	Election leadership.Election
	Index    leadership.Index
}

// Asked is the state of an election's proposals.
type Asked struct {
	Election leadership.Election
	Proposals
}

// errTooMany refuses the sheet of an instance beyond maxPeers.
var errTooMany = fmt.Errorf("it comes from one instance more than the %d that are remembered", maxPeers)

// Hear handles a sheet. The error says why it is invalid, or that a part of it is not remembered.
// Hear ignores old sheets, and those of this instance.
func (r *Registry) Hear(data []byte, now time.Duration) (Heard, error) {
	s, err := decode(data)
	if err != nil || s.From == r.name {
		return Heard{}, err
	}
	p, ok := r.incoming.peers[s.From]
	if !ok {
		if len(r.incoming.peers) >= maxPeers {
			return Heard{}, errTooMany
		}
		p = &peer{copies: make(map[*node]*copied), terms: make(map[*election]leadership.Token)}
		r.incoming.peers[s.From] = p
	}
	if p.gone || !p.next(s) {
		return Heard{}, nil
	}
	p.heard = now
	if s.Bye {
		p.gone = true
		r.forgetAll(p, now, Linger) // its callers mostly come back through another instance
		return Heard{}, nil
	}
	heard := Heard{Ask: s.Ask}
	for _, l := range s.Renewed {
		heard.Renewed = append(heard.Renewed, Renewed{l.Election, l.Token, time.Duration(l.LeftMS) * time.Millisecond})
	}
	for _, part := range s.Elections {
		if head := part.head(); head > 0 {
			heard.Journals = append(heard.Journals, Journal{part.Election, head})
		}
		if part.Asked != nil {
			heard.Proposals = append(heard.Proposals, Asked{part.Election, *part.Asked})
			r.tellLeader(part.Election, *part.Asked)
		}
		err = cmp.Or(err, r.take(p, s, part, now))
	}
	if p.complete() {
		r.sweep(p, now)
	}
	return heard, err
}

// head returns the index that the journal has at least reached, by an append or a follower.
func (p part) head() leadership.Index {
	head := p.Journal
	for _, m := range p.Members {
		head = max(head, m.Applied)
	}
	return head
}

// next reports whether a sheet is newer than all heard before, or a missing piece of a whole sheet.
func (p *peer) next(s sheet) bool {
	w := &p.whole
	switch {
	case s.Whole == nil:
		if s.Seq <= p.seq {
			return false
		}
	case s.Whole.First < w.first:
		return false
	default:
		if s.Whole.First > w.first {
			w.first, w.of, w.got = s.Whole.First, s.Whole.Of, make(map[int64]struct{})
		}
		if _, again := w.got[s.Seq]; again || w.got == nil {
			return false
		}
		w.got[s.Seq] = struct{}{}
	}
	p.seq = max(p.seq, s.Seq)
	return true
}

// complete reports whether all pieces of the whole sheet have come, once.
func (p *peer) complete() bool {
	w := &p.whole
	if w.got == nil || int64(len(w.got)) < w.of {
		return false
	}
	w.got = nil
	return true
}

// sweep forgets the members that the last whole sheet did not name.
func (r *Registry) sweep(p *peer, now time.Duration) {
	for n, c := range p.copies {
		if c.seq < p.whole.first {
			r.forget(n, c)
			r.settle(n, now, c.ended(), 0)
		}
	}
}

// take applies the part of a sheet about one election.
func (r *Registry) take(p *peer, s sheet, said part, now time.Duration) (err error) {
	for _, d := range said.Left {
		if n := r.find(said.Election, d.ID); n != nil {
			r.leave(n, since(d.AgoMS, now), now)
		}
	}
	for _, id := range said.Gone {
		if n := r.find(said.Election, id); n != nil && n.copies[p] != nil && n.copies[p].seq < s.Seq {
			c := n.copies[p]
			r.forget(n, c)
			r.settle(n, now, c.ended(), 0)
		}
	}
	if e, ok := r.elections[said.Election]; ok || len(said.Members) > 0 {
		if !ok {
			e = r.election(said.Election)
		}
		if said.Token > 0 && said.Token > p.terms[e] {
			p.terms[e] = said.Token
			r.touch(e)
		}
	}
	for _, m := range said.Members {
		err = cmp.Or(err, r.copy(p, s.Seq, said.Election, m, now))
	}
	if e, ok := r.elections[said.Election]; ok {
		r.tidy(e)
	}
	return err
}

// errFull says that the members of another instance are not remembered.
var errFull = fmt.Errorf("it has more members than the %d of one instance, or %d of all, that are remembered", maxCopies, maxAll)

// copy remembers a member at another instance.
func (r *Registry) copy(p *peer, seq int64, name leadership.Election, m entry, now time.Duration) error {
	if ranks[m.Role] == 0 || m.Role == leadership.RoleLeader {
		return nil // of a later version
	}
	n := r.node(name, m.ID)
	c := n.copies[p]
	switch {
	case c == nil && (len(p.copies) >= maxCopies || r.incoming.copies >= maxAll):
		if n.shown == "" && n.was == "" {
			r.drop(n)
		}
		return errFull
	case c == nil:
		c = &copied{peer: p}
		if n.copies == nil {
			n.copies = make(map[*peer]*copied)
		}
		n.copies[p], p.copies[n] = c, c
		r.incoming.copies++
	case c.seq > seq:
		return nil
	}
	heard := since(m.AgoMS, now)
	c.seq, c.record = seq, record{
		role: m.Role, seen: m.Seen, heard: heard, position: m.Position, note: m.Note, noted: heard, joined: m.Joined, inLine: m.InLine,
		reader: reader{m.Follows, m.Applied},
	}
	if m.Joined && n.joined.role != "" && n.joined.heard+moved < heard {
		r.part(n)
	}
	r.settle(n, now, "", 0)
	return nil
}

// forget forgets a member at another instance. The caller settles it.
func (r *Registry) forget(n *node, c *copied) {
	delete(n.copies, c.peer)
	delete(c.peer.copies, n)
	r.incoming.copies--
}

// forgetAll forgets all members at another instance.
func (r *Registry) forgetAll(p *peer, now, delay time.Duration) {
	for n, c := range p.copies {
		r.forget(n, c)
		r.settle(n, now, leadership.MemberVanished, delay)
	}
	clear(p.terms)
}

// tick forgets instances that were not heard of.
func (in *incoming) tick(r *Registry, now time.Duration) {
	for name, p := range in.peers {
		if now-p.heard >= Stale {
			r.forgetAll(p, now, 0)
			delete(in.peers, name)
		}
	}
}
