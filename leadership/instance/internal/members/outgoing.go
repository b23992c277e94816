package members

import (
	"encoding/json"
	"time"

	"regent/leadership"
)

// outgoing collects the content of the next sheet of changes.
type outgoing struct {
	seq   int64
	nodes map[*node]struct{}     // members that may have changed
	terms map[*election]struct{} // elections whose token has changed, while members stand in line
	left  map[leadership.Election]map[leadership.CandidateID]time.Duration
	count int // of left

	journals  map[leadership.Election]leadership.Index // journals that have grown by appends at this instance
	proposals map[leadership.Election]Proposals        // proposals that have changed by calls at this instance
}

func newOutgoing() outgoing {
	return outgoing{
		nodes: make(map[*node]struct{}), terms: make(map[*election]struct{}),
		left:      make(map[leadership.Election]map[leadership.CandidateID]time.Duration),
		journals:  make(map[leadership.Election]leadership.Index),
		proposals: make(map[leadership.Election]Proposals),
	}
}

// changed notes a member that may have changed.
func (o *outgoing) changed(r *Registry, n *node) {
	if r.name != "" && (n.isOwn() || n.sent.role != "") {
		o.nodes[n] = struct{}{}
	}
}

// leave notes a member that has left. If too many leave at once, the others forget some of them
// only when their ttl has passed.
func (o *outgoing) leave(name leadership.Election, id leadership.CandidateID, now time.Duration) {
	if o.count >= leadership.MaxMembers {
		return
	}
	if o.left[name] == nil {
		o.left[name] = make(map[leadership.CandidateID]time.Duration)
	}
	o.left[name][id] = now
	o.count++
}

// Renewed is a lease that an instance has renewed lately.
type Renewed struct {
	Election leadership.Election
	Token    leadership.Token
	Left     time.Duration
}

// ChangedSheets returns sheets of the changes since the last ones and of the leases that were
// renewed here; none if there are neither.
func (r *Registry) ChangedSheets(renewed []Renewed, now time.Duration) [][]byte {
	var b builder
	b.changes(r, now)
	b.logs(r)
	b.renewed(renewed)
	return r.number(b.pieces, false)
}

// WholeSheets returns sheets of all members of this instance, and of the leases that were renewed
// here. With ask, the others are asked to send theirs, too. Without ask, it returns none if there
// is nothing to tell.
func (r *Registry) WholeSheets(ask bool, renewed []Renewed, now time.Duration) [][]byte {
	var b builder
	b.left(r, now)
	for n := range r.own {
		b.member(n, now)
	}
	for n := range r.outgoing.nodes {
		n.sent = n.comparable(now) // zero if it has gone: the whole sheet does not name it
	}
	r.outgoing.nodes, r.outgoing.terms = newOutgoing().nodes, newOutgoing().terms
	b.logs(r)
	b.renewed(renewed)
	if ask && len(b.pieces) == 0 {
		b.pieces = []sheet{{}}
	}
	if ask {
		b.pieces[0].Ask = true
	}
	return r.number(b.pieces, true)
}

// Bye returns the last sheet.
func (r *Registry) Bye() []byte { return r.number([]sheet{{Bye: true}}, false)[0] }

// Changed reports whether ChangedSheets has changes of members to tell.
func (r *Registry) Changed() bool {
	return len(r.outgoing.nodes)+len(r.outgoing.terms)+len(r.outgoing.journals)+len(r.outgoing.proposals)+r.outgoing.count > 0
}

// number numbers the sheets, and encodes them.
func (r *Registry) number(pieces []sheet, isWhole bool) (encoded [][]byte) {
	first := r.outgoing.seq + 1
	for _, s := range pieces {
		r.outgoing.seq++
		s.Version, s.From, s.Seq = sheetVersion, r.name, r.outgoing.seq
		if isWhole {
			s.Whole = &whole{first, int64(len(pieces))}
		}
		data, err := json.Marshal(s)
		if err != nil {
			panic(err) // it has only texts and numbers
		}
		encoded = append(encoded, data)
	}
	return encoded
}

// comparable returns the record of a member at this instance as a sheet tells it, without the
// times, which always change; zero if it is not here.
func (n *node) comparable(now time.Duration) record {
	var all record
	n.local(&all, now)
	all.heard, all.noted, all.position = 0, 0, 0
	return all
}

// builder collects the content of sheets, in pieces of a bounded size.
type builder struct {
	pieces []sheet
	parts  map[leadership.Election]int // in the last piece
	size   int
}

// room makes room for size bytes in the last piece.
func (b *builder) room(size int) *sheet {
	if len(b.pieces) == 0 || b.size+size > maxPiece {
		b.pieces = append(b.pieces, sheet{})
		b.parts, b.size = make(map[leadership.Election]int), 0
	}
	b.size += size
	return &b.pieces[len(b.pieces)-1]
}

// part returns the part for an election, with room for size bytes.
func (b *builder) part(e leadership.Election, size int) *part {
	s := b.room(size)
	i, ok := b.parts[e]
	if !ok {
		b.size += perPart + len(e)
		i = len(s.Elections)
		b.parts[e] = i
		s.Elections = append(s.Elections, part{Election: e})
	}
	return &s.Elections[i]
}

func (b *builder) member(n *node, now time.Duration) {
	var all record
	n.local(&all, now)
	m := entry{ID: n.id, Role: all.role, Seen: all.seen, AgoMS: ago(now - all.heard), Position: all.position, Note: all.note, Joined: all.joined, InLine: all.inLine, Follows: all.follows, Applied: all.applied}
	p := b.part(n.election.name, m.size())
	p.Members = append(p.Members, m)
	if len(n.election.line) > 0 {
		p.Token = n.election.noticed.token
	}
	n.sent = n.comparable(now)
}

func (b *builder) changes(r *Registry, now time.Duration) {
	b.left(r, now)
	for n := range r.outgoing.nodes {
		switch is := n.comparable(now); {
		case is == n.sent:
		case is.role == "":
			p := b.part(n.election.name, departed{ID: n.id}.size())
			p.Gone = append(p.Gone, n.id)
			n.sent = is
		default:
			b.member(n, now)
		}
	}
	for e := range r.outgoing.terms {
		b.part(e.name, 0).Token = e.noticed.token
	}
	clear(r.outgoing.nodes)
	clear(r.outgoing.terms)
}

func (b *builder) logs(r *Registry) {
	for e, i := range r.outgoing.journals {
		b.part(e, 0).Journal = i
	}
	for e, p := range r.outgoing.proposals {
		b.part(e, perEntry).Asked = &p
	}
	clear(r.outgoing.journals)
	clear(r.outgoing.proposals)
}

func (b *builder) left(r *Registry, now time.Duration) {
	for e, ids := range r.outgoing.left {
		for id, at := range ids {
			d := departed{id, ago(now - at)}
			p := b.part(e, d.size())
			p.Left = append(p.Left, d)
		}
	}
	clear(r.outgoing.left)
	r.outgoing.count = 0
}

func (b *builder) renewed(all []Renewed) {
	for _, l := range all {
		w := lease{l.Election, l.Token, max(l.Left.Milliseconds(), 0)}
		s := b.room(w.size())
		s.Renewed = append(s.Renewed, w)
	}
}
