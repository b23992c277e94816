package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
)

// pageSize is how much a bad disk loses at once.
const pageSize = 4096

// The kinds of damage.
const (
	flipped = "flipped" // a bit of a file
	zeroed  = "zeroed"  // a page of a file
	// a file is without one of its writes, which was said to be durable
	outdated  = "outdated"
	older     = "older"     // a file is as it was at an earlier moment
	truncated = "truncated" // a file ends too early
	removed   = "removed"   // a file is missing
	swapped   = "swapped"   // two files have each other's name
)

// sorts has flipped bits more often than the others.
var sorts = []string{flipped, outdated, zeroed, flipped, older, truncated, flipped, outdated, removed, swapped}

// damage is what a bad disk does to one file of a folder.
type damage struct {
	Sort   string
	File   uint64 // among the names in the folder
	Random uint64 // which bit, which write, which length
	// Closed: the store had been closed when it happened. Otherwise the last write to the newest
	// log is not touched; see the package comment.
	Closed bool
}

func (d damage) String() string {
	return fmt.Sprintf("%s, file %d, random %d, closed %v", d.Sort, d.File, d.Random, d.Closed)
}

// apply damages a file. past are the entries that have made the folder.
func (d damage) apply(v fileSet, past []entry) {
	names := v.sorted()
	if len(names) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(d.Random, 4))
	name := names[d.File%uint64(len(names))]
	if log := newestLog(names); log != "" && d.Random%4 == 0 {
		name = log
	}
	id := v.names[name]
	file := v.file(id)
	spared := d.spared(v, past)
	switch d.Sort {
	case flipped:
		if spared.File != id {
			spared = entry{}
		}
		flip(file, random, spared)
	case zeroed:
		page := int64(0)
		if n := file.used(); n > 0 {
			page = int64(random.IntN((n+pageSize-1)/pageSize)) * pageSize
		}
		if page == 0 || !spared.within(id, page, page+pageSize) {
			clear(file.data[min(page, int64(len(file.data))):min(page+pageSize, int64(len(file.data)))])
		}
	case outdated:
		if at := writes(past, id); len(at) > 0 {
			// the last ones more often than the others
			lost := at[len(at)-1-min(random.IntN(len(at)), random.IntN(len(at)))]
			if !spared.is(past[lost]) {
				v.files[id] = made(past, id, func(i int) bool { return i != lost })
			}
		}
	case older:
		if at := writes(past, id); len(at) > 0 {
			until := at[random.IntN(len(at))]
			if id != spared.File {
				v.files[id] = made(past, id, func(i int) bool { return i < until })
			}
		}
	case truncated:
		size := random.Int64N(max(file.size, 1))
		if random.IntN(2) == 0 {
			size = random.Int64N(int64(file.used()) + 1)
		}
		// A log that ends with a step looks like one that has no more.
		const step = 1 << 20
		if id != spared.File || size%step >= sector || size >= int64(file.used()) {
			file.resize(size)
		}
	case removed:
		delete(v.names, name)
	case swapped:
		other := names[(d.File+1+random.Uint64N(max(uint64(len(names)), 2)-1))%uint64(len(names))]
		v.names[name], v.names[other] = v.names[other], v.names[name]
	}
}

// spared is the last write to the newest log, the zero entry if the store was closed. Without it
// the folder is what it was one commit before, and nothing in the folder can tell that.
func (d damage) spared(v fileSet, past []entry) (last entry) {
	if d.Closed {
		return last
	}
	log := v.names[newestLog(v.sorted())]
	for _, e := range past {
		if e.Kind == wrote && e.File == log && e.Offset > 0 && len(bytes.Trim(e.Data, "\x00")) > 0 {
			last = e
		}
	}
	return last
}

// newestLog is the last of the sorted names that is a log's; "" if none is.
func newestLog(names []string) (log string) {
	for _, name := range names {
		if isLog(name) {
			log = name
		}
	}
	return log
}

func isLog(name string) bool {
	return strings.HasPrefix(name, "log-") && !strings.HasSuffix(name, ".new")
}

// is reports whether both are the same write.
func (e entry) is(other entry) bool {
	return e.File == other.File && e.Offset == other.Offset && bytes.Equal(e.Data, other.Data)
}

// within reports whether a part of the write lies in that range of the file.
func (e entry) within(id uint64, from, to int64) bool {
	return e.File == id && e.Offset < to && from < e.Offset+int64(len(e.Data))
}

// flip changes a bit: most of the time one before the last byte that is not zero, and often one of
// the last write to the log.
func flip(file *content, random *rand.Rand, last entry) {
	n, at := len(file.data), int(last.Offset)
	if random.IntN(8) > 0 {
		n = file.used()
	}
	part := file.data[:n]
	if end := at + len(last.Data); 0 < at && end <= n && random.IntN(2) == 0 {
		part = part[at:end]
	}
	if len(part) > 0 {
		part[random.IntN(len(part))] ^= 1 << random.IntN(8)
	}
}

// writes returns which of the entries are writes to the file.
func writes(past []entry, id uint64) (at []int) {
	for i, e := range past {
		if e.Kind == wrote && e.File == id {
			at = append(at, i)
		}
	}
	return at
}

// made is the file as only some of the entries make it.
func made(past []entry, id uint64, include func(i int) bool) *content {
	v := newFileSet()
	for i, e := range past {
		if e.File == id && (e.Kind == wrote || e.Kind == resized) && include(i) {
			v.apply(e)
		}
	}
	return v.file(id)
}
