package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// cut is what a crash does to what was not durable. The zero cut does nothing: the process was
// killed, and everything reaches the disk.
type cut struct {
	// Drop is a mask of the open entries that are lost, in their order; beyond 64 none are.
	Drop uint64
	// Tear, if not 0, is how many bytes of the last open write that is not dropped reach the disk.
	Tear int
	// Holes is a mask of the sectors of that write that do not reach the disk, again and again.
	Holes uint64
}

func (c cut) torn() bool { return c.Tear > 0 || c.Holes != 0 }

func (c cut) String() string {
	text := fmt.Sprintf("without those of mask %b that were not durable", c.Drop)
	if c.Tear > 0 {
		text += fmt.Sprintf(", the last of the others torn after %d bytes", c.Tear)
	}
	if c.Holes != 0 {
		text += fmt.Sprintf(", the last of the others without the sectors of mask %b", c.Holes)
	}
	return text
}

// image is the folder as a crash at this moment leaves it.
func (d *diskModel) image(c cut) fileSet {
	v := d.settled.clone()
	entries, last := d.survivors(c)
	if c.torn() && last >= 0 {
		entries = slices.Replace(entries, last, last+1, c.pieces(entries[last])...)
	}
	for _, e := range entries {
		v.apply(e)
	}
	return v
}

// pieces returns what reaches the disk of a write that is torn.
func (c cut) pieces(e entry) (pieces []entry) {
	if c.Tear > 0 {
		e.Data = e.Data[:min(c.Tear, len(e.Data))]
	}
	if c.Holes == 0 {
		return []entry{e}
	}
	for i, from := 0, 0; from < len(e.Data); i++ {
		to := min(from+sector-int(e.Offset+int64(from))%sector, len(e.Data))
		if c.Holes>>(i%64)&1 == 0 {
			piece := e
			piece.Offset, piece.Data = e.Offset+int64(from), e.Data[from:to]
			pieces = append(pieces, piece)
		}
		from = to
	}
	return pieces
}

// survivors returns the pending entries that are not lost, and the index of the last open write
// among them.
func (d *diskModel) survivors(c cut) (entries []entry, last int) {
	last = -1
	n := 0 // of open ones
	for _, p := range d.pending {
		if p.durability != sure {
			n++
			if c.Drop>>(n-1)&1 == 1 {
				continue
			}
			if p.Kind == wrote {
				last = len(entries)
			}
		}
		entries = append(entries, p.entry)
	}
	return entries, last
}

// situation says in short what a cut does: to the last two open entries, and to the write that is
// torn.
func (d *diskModel) situation(c cut) string {
	var parts []string
	open := d.open()
	for i := max(0, len(open)-2); i < len(open); i++ {
		p := d.pending[open[i]]
		part := fmt.Sprint(p.Kind, " ", strings.Map(withoutDigits, p.On))
		if len(p.Data) >= 1<<16 {
			part += " large"
		}
		if c.Drop>>i&1 == 1 {
			part += " lost"
		}
		parts = append(parts, part)
	}
	return fmt.Sprint(parts, c.torn())
}

func withoutDigits(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

// few is how many open entries have all their subsets tried.
const few = 4

// maxTears is how many sectors of a write it is torn at.
const maxTears = 16

// cuts returns the power cuts to try at this moment: all subsets of the open entries if they are
// few, else some; the last write torn at its sectors, and without some of them; and some of both at
// once. The order in which a disk writes makes no other images: at each moment it has some of them.
func (d *diskModel) cuts(random *rand.Rand) (cuts []cut) {
	n := len(d.open())
	if n == 0 {
		return nil
	}
	if n <= few {
		for mask := range uint64(1) << n {
			cuts = append(cuts, cut{Drop: mask})
		}
	} else {
		cuts = append(cuts, cut{Drop: 1<<min(n, 64) - 1})
		for range 1 << few {
			cuts = append(cuts, cut{Drop: random.Uint64() & random.Uint64()})
		}
	}
	for _, mask := range []uint64{0, random.Uint64()} {
		tears := d.tears(mask)
		random.Shuffle(len(tears), func(i, j int) { tears[i], tears[j] = tears[j], tears[i] })
		for i, at := range tears[:min(len(tears), maxTears)] {
			c := cut{Drop: mask, Tear: at}
			if i%2 == 1 {
				c.Tear, c.Holes = 0, random.Uint64()
			}
			cuts = append(cuts, c)
		}
	}
	return cuts
}

// tears returns after how many bytes the last open write that is not dropped can be torn.
func (d *diskModel) tears(drop uint64) (at []int) {
	entries, last := d.survivors(cut{Drop: drop})
	if last < 0 {
		return nil
	}
	e := entries[last]
	for n := sector - int(e.Offset%sector); n < len(e.Data); n += sector {
		at = append(at, n)
	}
	return at
}
