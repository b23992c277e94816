package crash

import (
	"bytes"
	"maps"
	"os"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// content is what a file holds: data, and zeroes from there to its size.
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

// put makes a file of it.
func (c content) put(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(c.data); err != nil {
		return err
	}
	return f.Truncate(c.size)
}

// volume is a folder with files.
type volume struct {
	names map[string]uint64
	files map[uint64]*content
}

func newVolume() volume {
	return volume{names: make(map[string]uint64), files: make(map[uint64]*content)}
}

func (v volume) clone() volume {
	c := volume{names: maps.Clone(v.names), files: make(map[uint64]*content, len(v.files))}
	for id, file := range v.files {
		c.files[id] = new(file.clone())
	}
	return c
}

func (v volume) apply(e entry) {
	switch e.Kind {
	case wrote:
		v.file(e.File).write(e.Offset, e.Data)
	case resized:
		v.file(e.File).resize(e.Size)
	case named:
		v.names[e.Name] = e.File
	case renamed:
		v.names[e.To] = v.names[e.Name]
		delete(v.names, e.Name)
	case unnamed:
		delete(v.names, e.Name)
	}
}

func (v volume) file(id uint64) *content {
	if v.files[id] == nil {
		v.files[id] = new(content)
	}
	return v.files[id]
}

// fate is what is known of an entry that is not settled.
type fate uint8

const (
	open     fate = iota // nobody has asked for it to be durable, or has had an answer
	sure                 // it is durable; something before it is not
	doubtful             // to make it durable has failed: it may be lost, whatever is said of later ones
)

type pending struct {
	entry
	index int
	fate  fate
}

// disk is what a log says of a folder at one moment: what is durable, and what a power cut may still undo.
type disk struct {
	settled volume
	pending []pending
	next    int // the index of the next entry
}

func newDisk() *disk { return &disk{settled: newVolume()} }

// advance carries out the entries before the given index.
func (d *disk) advance(log []entry, until int) {
	for ; d.next < until; d.next++ {
		switch e := log[d.next]; e.Kind {
		case said:
		case synced:
			d.sync(e)
		default:
			d.pending = append(d.pending, pending{entry: e, index: d.next})
		}
	}
}

// sync settles what was done to the file before the call began.
func (d *disk) sync(e entry) {
	for i := range d.pending {
		p := &d.pending[i]
		if p.fate != open || p.index >= e.Began || !p.settledBy(e.File) {
			continue
		}
		p.fate = sure
		if e.Failed {
			p.fate = doubtful
		}
	}
	for len(d.pending) > 0 && d.pending[0].fate == sure {
		d.settled.apply(d.pending[0].entry)
		d.pending = d.pending[1:]
	}
}

// open returns where among the pending entries those are that a power cut may undo.
func (d *disk) open() (at []int) {
	for i, p := range d.pending {
		if p.fate != sure {
			at = append(at, i)
		}
	}
	return at
}
