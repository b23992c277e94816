package belief

import "math/bits"

// visited is the states that were come to, in the order in which they were. It has room for four
// thousand million.
type visited struct {
	all []visit
	// table finds them. The number of a state, from 1, stands in the place that its hash says or,
	// if others were there first, in the next one that was free. The table's size is a power of
	// two, and half of it is free at least.
	table []uint32
}

// visit is a state, and the number of one that is a step before it.
type visit struct {
	state packed
	from  uint32
}

// way leads to a state, which may be known.
type way struct {
	to    packed
	hash  uint64
	found uint32 // where the table says first
}

// add remembers the new states among those that the ways lead to from state from. Nearly all time
// is spent waiting for memory. Loops without dependencies between their rounds load what all ways
// need, so that the waits overlap.
func (v *visited) add(ways []way, from uint32) {
	for 2*(len(v.all)+len(ways)) > len(v.table) {
		v.grow()
	}
	mask := uint64(len(v.table) - 1)
	for i := range ways {
		w := &ways[i]
		w.hash = w.to.hash()
		w.found = v.table[w.hash&mask]
	}
	for i := range ways {
		w := &ways[i]
		if w.found != 0 && v.all[w.found-1].state == w.to {
			continue
		}
		if at := v.find(w.to, w.hash); v.table[at] == 0 {
			v.all = append(v.all, visit{w.to, from})
			v.table[at] = uint32(len(v.all))
		}
	}
}

// find is the place of the state in the table, or the free one where it belongs.
func (v *visited) find(s packed, hash uint64) uint64 {
	mask := uint64(len(v.table) - 1)
	at := hash & mask
	for v.table[at] != 0 && v.all[v.table[at]-1].state != s {
		at = (at + 1) & mask
	}
	return at
}

func (v *visited) grow() {
	v.table = make([]uint32, max(1<<10, 2*len(v.table)))
	mask := uint64(len(v.table) - 1)
	for i := range v.all {
		at := v.all[i].state.hash() & mask
		for v.table[at] != 0 {
			at = (at + 1) & mask
		}
		v.table[at] = uint32(i + 1)
	}
}

// hash spreads states over the table. Nothing but speed depends on it.
func (p packed) hash() uint64 {
	const a, b, c = 0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0x8cb92ba72f3d8dd7
	high, low := bits.Mul64(uint64(p[0])<<32|uint64(p[1])^a, uint64(p[2])<<32|uint64(p[3])^b)
	high, low = bits.Mul64(high^low^uint64(p[4]), c)
	return high ^ low
}
