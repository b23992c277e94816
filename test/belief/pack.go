package belief

// packed is a state in few bytes: the store's part, and then each candidate's. States that differ
// only in the names of candidates with like clocks are packed alike: the store's part does not name
// the leader (the leader's part does), and candidates with like clocks are sorted by their numbers.
type packed [1 + most]uint32

func (m *Model) pack(s *state) (p packed) {
	var b packer
	s.store(&b)
	p[0] = b.all
	for i := range m.Clocks {
		b, leads := packer{}, s.leader == int8(i+1)
		s.candidates[i].move(&b, &leads)
		n, at := b.all, i+1
		for ; at > 1 && m.Clocks[at-1] == m.Clocks[at-2] && p[at-1] > n; at-- {
			p[at] = p[at-1]
		}
		p[at] = n
	}
	return p
}

func (p packed) unpack() (s state) {
	s.store(&packer{all: p[0], reads: true})
	for i := range s.candidates {
		var leads bool
		s.candidates[i].move(&packer{all: p[i+1], reads: true}, &leads)
		if leads {
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

// move moves a candidate, and whether it is the leader.
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
