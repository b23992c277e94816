package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// cut is what a crash does to what was not durable. The zero cut does nothing: the process was
// killed, and everything reaches the disk.
type cut struct {
	// Drop is a mask of the open entries that are lost, in their order; beyond 64 none are.
	Drop uint64
	// Tear, if not 0, is how many bytes of the last open write that is not dropped reach the disk.
	Tear int
	// Backwards lets the open entries reach the disk in reverse order.
	Backwards bool
}

func (c cut) String() string {
	text := fmt.Sprintf("without those of mask %b that were not durable", c.Drop)
	if c.Tear > 0 {
		text += fmt.Sprintf(", the last of the others torn after %d bytes", c.Tear)
	}
	if c.Backwards {
		text += ", in the reverse order"
	}
	return text
}

// image is the folder as a crash at this moment leaves it.
func (d *diskModel) image(c cut) fileSet {
	v := d.settled.clone()
	entries, last := d.survivors(c)
	if c.Tear > 0 && last >= 0 {
		entries[last].Data = entries[last].Data[:min(c.Tear, len(entries[last].Data))]
	}
	if c.Backwards {
		slices.Reverse(entries)
	}
	for _, e := range entries {
		v.apply(e)
	}
	return v
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

// few is how many open entries have all their subsets tried.
const few = 4

// cuts returns the power cuts to try at this moment: all subsets of the open entries if they are
// few, else some; the last write torn at each sector; and some of both at once, in another order.
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
			cuts = append(cuts, cut{Drop: random.Uint64() & random.Uint64(), Backwards: random.IntN(2) == 0})
		}
	}
	for _, mask := range []uint64{0, random.Uint64()} {
		for at := sector; at < d.lastOpen(mask); at += sector {
			cuts = append(cuts, cut{Drop: mask, Tear: at, Backwards: random.IntN(4) == 0})
		}
	}
	return cuts
}

// lastOpen is the length of the last open write that is not dropped.
func (d *diskModel) lastOpen(drop uint64) int {
	entries, last := d.survivors(cut{Drop: drop})
	if last < 0 {
		return 0
	}
	return len(entries[last].Data)
}
