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
	s.store(&b)
	return b.all
}

func (s *state) unpackStore(n uint32) { s.store(&packer{all: n, reads: true}) }

// store moves the store's part.
func (s *state) store(b *packer) {
	number(b, &s.age, ageBits)
	number(b, &s.lock, ageBits)
	number(b, &s.owed, ageBits)
	b.flag(&s.former)
	b.flag(&s.late)
	b.flag(&s.deleted)
	b.flag(&s.cut)
	b.flag(&s.renewed)
	b.flag(&s.released)
	b.flag(&s.releasing)
	number(b, &s.cap, capBits)
	b.flag(&s.drained)
	b.flag(&s.paused)
}

func (c *candidate) pack(leader bool) uint32 {
	var b packer
	c.move(&b, &leader)
	return b.all
}

func (c *candidate) unpack(n uint32) (leader bool) {
	c.move(&packer{all: n, reads: true}, &leader)
	return leader
}

func (c *candidate) move(b *packer, leader *bool) {
	b.flag(leader)
	number(b, &c.phase, phaseBits)
	number(b, &c.until, ageBits)
	number(b, &c.call, callBits)
	number(b, &c.place, placeBits)
	number(b, &c.age, ageBits)
	number(b, &c.waited, waitedBits)
	number(b, &c.left, ageBits)
	b.flag(&c.behind)
	b.flag(&c.asked)
	b.flag(&c.askedFormerly)
	b.flag(&c.excused)
	b.flag(&c.stale)
}

// packer has numbers side by side. It takes them in or, if it reads, gives them out again in the
// same order.
type packer struct {
	all   uint32
	at    uint8
	reads bool
}

func number[T ~uint8](b *packer, n *T, width uint8) {
	switch {
	case b.reads:
		*n = T(b.all >> b.at & (1<<width - 1))
	case *n>>width != 0:
		panic("belief: the model's times are too long for a packed state")
	default:
		b.all |= uint32(*n) << b.at
	}
	b.at += width
}

func (b *packer) flag(is *bool) {
	if b.reads {
		*is = b.all>>b.at&1 == 1
	} else if *is {
		b.all |= 1 << b.at
	}
	b.at++
}
