package belief

// packed is a state in few bytes: the store's part, and then each candidate's. States that differ
// only in the names of candidates with like clocks are packed alike: the store's part does not name
// the leader (the leader's part does), and candidates with like clocks are sorted by their numbers.
type packed [1 + most]uint32

func (m *Model) pack(s *state) (p packed) {
	p[0] = s.packStore()
	for i := range m.Clocks {
		n := s.candidates[i].pack(s.leader == int8(i+1))
		at := i + 1
		for ; at > 1 && m.Clocks[at-1] == m.Clocks[at-2] && p[at-1] > n; at-- {
			p[at] = p[at-1]
		}
		p[at] = n
	}
	return p
}

func (p packed) unpack() (s state) {
	s.unpackStore(p[0])
	for i := range s.candidates {
		if s.candidates[i].unpack(p[i+1]) {
			s.leader = int8(i + 1)
		}
	}
	return s
}

// The widths of numbers in bits.
const (
	ageBits    = 5 // for 2×15 s and one more
	phaseBits  = 2
	callBits   = 2
	placeBits  = 3
	waitedBits = 4
	capBits    = 4
)

func (s *state) packStore() uint32 {
	var b packer
	b.number(s.age, ageBits)
	b.number(s.lock, ageBits)
	b.number(s.owed, ageBits)
	b.flag(s.former)
	b.flag(s.late)
	b.flag(s.deleted)
	b.flag(s.cut)
	b.flag(s.renewed)
	b.flag(s.released)
	b.flag(s.releasing)
	b.number(s.cap, capBits)
	b.flag(s.drained)
	b.flag(s.paused)
	return b.bits
}

func (s *state) unpackStore(n uint32) {
	b := packer{bits: n}
	s.age = b.next(ageBits)
	s.lock = b.next(ageBits)
	s.owed = b.next(ageBits)
	s.former = b.next(1) == 1
	s.late = b.next(1) == 1
	s.deleted = b.next(1) == 1
	s.cut = b.next(1) == 1
	s.renewed = b.next(1) == 1
	s.released = b.next(1) == 1
	s.releasing = b.next(1) == 1
	s.cap = b.next(capBits)
	s.drained = b.next(1) == 1
	s.paused = b.next(1) == 1
}

func (c *candidate) pack(leader bool) uint32 {
	var b packer
	b.flag(leader)
	b.number(uint8(c.phase), phaseBits)
	b.number(c.until, ageBits)
	b.number(uint8(c.call), callBits)
	b.number(uint8(c.place), placeBits)
	b.number(c.age, ageBits)
	b.number(c.waited, waitedBits)
	b.number(c.left, ageBits)
	b.flag(c.behind)
	b.flag(c.asked)
	b.flag(c.askedFormerly)
	b.flag(c.excused)
	b.flag(c.stale)
	return b.bits
}

func (c *candidate) unpack(n uint32) (leader bool) {
	b := packer{bits: n}
	leader = b.next(1) == 1
	c.phase = phase(b.next(phaseBits))
	c.until = b.next(ageBits)
	c.call = verb(b.next(callBits))
	c.place = place(b.next(placeBits))
	c.age = b.next(ageBits)
	c.waited = b.next(waitedBits)
	c.left = b.next(ageBits)
	c.behind = b.next(1) == 1
	c.asked = b.next(1) == 1
	c.askedFormerly = b.next(1) == 1
	c.excused = b.next(1) == 1
	c.stale = b.next(1) == 1
	return leader
}

// packer puts numbers side by side, and takes them out again in the same order.
type packer struct {
	bits uint32
	at   uint8
}

func (b *packer) number(n uint8, width uint8) {
	if n>>width != 0 {
		panic("belief: the model's times are too long for a packed state")
	}
	b.bits |= uint32(n) << b.at
	b.at += width
}

func (b *packer) flag(is bool) {
	if is {
		b.bits |= 1 << b.at
	}
	b.at++
}

func (b *packer) next(width uint8) uint8 {
	n := b.bits >> b.at & (1<<width - 1)
	b.at += width
	return uint8(n)
}
