package crash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
)

// pageSize is that of the store's file on the machines that this runs on.
const pageSize = 4096

// The kinds of damage.
const (
	flipped = "flipped" // a bit
	zeroed  = "zeroed"  // a page
	// a page has an earlier content: a write was lost that was said to be durable
	outdated  = "outdated"
	truncated = "truncated" // the file ends too early
)

// sorts has flipped bits more often than the others.
var sorts = []string{flipped, outdated, flipped, zeroed, flipped, truncated}

// damage is what a bad disk does to a file.
type damage struct {
	Sort   string
	Page   uint64 // among the pages that it can happen to
	Random uint64 // which bit, which earlier content, which length
}

func (d damage) String() string {
	return fmt.Sprintf("%s, page %d, random %d", d.Sort, d.Page, d.Random)
}

// apply damages the file. past are the entries that have made it.
func (d damage) apply(file *content, id uint64, past []entry) {
	random := rand.New(rand.NewPCG(d.Random, 4))
	pages := uint64(len(file.data) / pageSize)
	if pages == 0 {
		return
	}
	page := file.data[d.Page%pages*pageSize:][:pageSize]
	switch d.Sort {
	case flipped:
		bit := random.IntN(spots(page, random) * 8)
		page[bit/8] ^= 1 << (bit % 8)
	case zeroed:
		clear(page)
	case outdated:
		d.outdate(file, id, past, random)
	case truncated:
		file.resize(random.Int64N(int64(len(file.data))))
	}
}

// spots is how many bytes of a page to choose from: half of the time those of its header and first
// elements, where most can go wrong.
func spots(page []byte, random *rand.Rand) int {
	if random.IntN(2) == 0 {
		return pageSize
	}
	elements := int(binary.NativeEndian.Uint16(page[10:]))
	return min(16+16*elements, pageSize)
}

// outdate gives a page that was written more than once one of its earlier contents. The two meta
// pages are left out: an earlier one makes the file a whole earlier one, which nothing in a file
// can tell.
func (d damage) outdate(file *content, id uint64, past []entry, random *rand.Rand) {
	versions := make(map[int64][][]byte)
	for _, e := range past {
		if e.Kind == wrote && e.File == id && len(e.Data) == pageSize {
			versions[e.Offset] = append(versions[e.Offset], e.Data)
		}
	}
	var pages []int64
	for at, v := range versions {
		if len(v) > 1 && at >= 2*pageSize && at+pageSize <= int64(len(file.data)) {
			pages = append(pages, at)
		}
	}
	if len(pages) == 0 {
		return
	}
	slices.Sort(pages)
	at := pages[d.Page%uint64(len(pages))]
	v := versions[at]
	if old := v[random.IntN(len(v)-1)]; !bytes.Equal(old, file.data[at:at+pageSize]) {
		copy(file.data[at:], old)
	}
}
