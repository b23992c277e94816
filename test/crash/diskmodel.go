package crash

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// content is what a file has: data, and zeroes from there to its size.
type content struct {
	data []byte
	size int64
}

func (c content) clone() content { return content{bytes.Clone(c.data), c.size} }

func (c *content) write(at int64, data []byte) {
	end := at + int64(len(data))
	if grow := end - int64(len(c.data)); grow > 0 {
		c.data = append(c.data, make([]byte, grow)...)
	}
	copy(c.data[at:], data)
	c.size = max(c.size, end)
}

func (c *content) resize(size int64) {
	c.size = size
	if size < int64(len(c.data)) {
		c.data = c.data[:size]
	}
}

// used is how many bytes it has up to the last one that is not zero.
func (c content) used() int { return len(bytes.TrimRight(c.data, "\x00")) }

func (c content) equal(other *content) bool {
	return c.size == other.size && bytes.Equal(c.data[:c.used()], other.data[:other.used()])
}

// put writes it to a new file.
func (c content) put(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(c.data[:c.used()]); err != nil {
		return err
	}
	return f.Truncate(c.size)
}

// fileSet is a folder with files.
type fileSet struct {
	names map[string]uint64
	files map[uint64]*content
}

func newFileSet() fileSet {
	return fileSet{names: make(map[string]uint64), files: make(map[uint64]*content)}
}

func (v fileSet) clone() fileSet {
	c := fileSet{names: maps.Clone(v.names), files: make(map[uint64]*content, len(v.files))}
	for id, file := range v.files {
		c.files[id] = new(file.clone())
	}
	return c
}

func (v fileSet) apply(e entry) {
	switch e.Kind {
	case wrote:
		v.file(e.File).write(e.Offset, e.Data)
	case resized:
		v.file(e.File).resize(e.Size)
	case named:
		if v.nameOf(e.File) == "" {
			delete(v.files, e.File) // the inode of a file that was removed
		}
		v.names[e.Name] = e.File
	case renamed:
		v.names[e.To] = e.File
		delete(v.names, e.Name)
	case unnamed:
		delete(v.names, e.Name)
	}
}

// sorted returns the names.
func (v fileSet) sorted() []string { return slices.Sorted(maps.Keys(v.names)) }

// nameOf returns a name of the file; "" if it has none.
func (v fileSet) nameOf(id uint64) string {
	for name, other := range v.names {
		if other == id {
			return name
		}
	}
	return ""
}

// put makes the folder.
func (v fileSet) put(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, id := range v.names {
		if err := v.file(id).put(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// readFolder reads a folder with files.
func readFolder(dir string) (v fileSet, err error) {
	v = newFileSet()
	list, err := os.ReadDir(dir)
	if err != nil {
		return v, err
	}
	for _, f := range list {
		path := filepath.Join(dir, f.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return v, err
		}
		id, err := inode(path)
		if err != nil {
			return v, err
		}
		v.names[f.Name()], v.files[id] = id, &content{data, int64(len(data))}
	}
	return v, nil
}

func (v fileSet) file(id uint64) *content {
	if v.files[id] == nil {
		v.files[id] = new(content)
	}
	return v.files[id]
}

// durability says what a power cut may do to an entry that is not settled.
type durability uint8

const (
	open durability = iota // no sync of it was asked for, or none has returned
	sure                   // it is durable; something before it is not
	// its sync has failed: it may be lost, whatever is said of later ones
	doubtful
)

type pending struct {
	entry
	index      int
	durability durability
}

// diskModel is the state of a folder at one moment, by its log: the durable part, and the writes
// that a power cut may undo.
type diskModel struct {
	settled fileSet
	pending []pending
	next    int // the index of the next entry
}

func newDiskModel() *diskModel { return &diskModel{settled: newFileSet()} }

// advance applies the entries before the index.
func (d *diskModel) advance(log []entry, until int) {
	for ; d.next < until; d.next++ {
		switch e := log[d.next]; e.Kind {
		case said, used:
		case synced:
			d.sync(e)
		default:
			d.pending = append(d.pending, pending{entry: e, index: d.next})
		}
	}
}

// sync settles what was done to the file before the call began.
func (d *diskModel) sync(e entry) {
	for i := range d.pending {
		p := &d.pending[i]
		if p.durability != open || p.index >= e.Began || !p.settledBy(e.File) {
			continue
		}
		p.durability = sure
		if e.Failed {
			p.durability = doubtful
		}
	}
	for len(d.pending) > 0 && d.pending[0].durability == sure {
		d.settled.apply(d.pending[0].entry)
		d.pending = d.pending[1:]
	}
}

// open returns the indexes of the pending entries that a power cut may undo.
func (d *diskModel) open() (at []int) {
	for i, p := range d.pending {
		if p.durability != sure {
			at = append(at, i)
		}
	}
	return at
}
