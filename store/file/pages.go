package file

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// This file knows bbolt's file format, version 2, as far as is needed to check that a file is
// whole. Numbers are in the machine's byte order.
//
// A page begins with a header: its number (8 bytes), its kind (2), how many elements it has (2),
// and over how many further pages it goes (4). The first two pages are meta pages, of which the one
// with the higher transaction counts. An element has 16 bytes and says where its key lies, counted
// from the element itself.
const (
	headerSize  = 16
	elementSize = 16

	kindBranch   = 0x01
	kindLeaf     = 0x02
	kindFreelist = 0x10

	noFreelist   = 1<<64 - 1 // in place of its page
	longFreelist = 1<<16 - 1 // in place of how many there are, which then stands before them

	isBucket   = 0x01 // an element's flag: its value is a bucket
	bucketSize = 16   // of a bucket before what lies within the leaf itself, if its root is 0

	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	metaPageSize = headerSize + 8
	metaRoot     = headerSize + 16
	metaFreelist = headerSize + 32
	metaPages    = headerSize + 40 // how many pages are in use
	metaTx       = headerSize + 48
	metaChecksum = headerSize + 56 // FNV-1a, 64 bits, of the meta before it
	metaEnd      = metaChecksum + 8

	smallestPage = 1024
	largestPage  = 1 << 20
)

// checkPages returns an error unless both meta pages are whole, the file is as long as they say,
// and every page in use is there, once, with its keys in order and between those of the branch
// above. bbolt's own check will not do: it panics in a goroutine of its own, which ends the
// process.
func checkPages(f io.ReaderAt, size int64) error {
	first, err := readMeta(f, 0)
	if err != nil {
		return err
	}
	page := int64(binary.NativeEndian.Uint32(first[metaPageSize:]))
	if page < smallestPage || page > largestPage {
		return fmt.Errorf("its pages have %d bytes", page)
	}
	second, err := readMeta(f, page)
	if err != nil {
		return err
	}
	newest := first
	if binary.NativeEndian.Uint64(second[metaTx:]) > binary.NativeEndian.Uint64(first[metaTx:]) {
		newest = second
	}
	pages := binary.NativeEndian.Uint64(newest[metaPages:])
	if pages > uint64(size/page) {
		return fmt.Errorf("it has %d bytes, and %d pages of %d bytes are in use", size, pages, page)
	}
	w := &pageWalk{file: f, pageSize: page, seen: make([]bool, pages)}
	return w.all(binary.NativeEndian.Uint64(newest[metaRoot:]), binary.NativeEndian.Uint64(newest[metaFreelist:]))
}

func readMeta(f io.ReaderAt, at int64) ([]byte, error) {
	meta := make([]byte, metaEnd)
	if _, err := f.ReadAt(meta, at); err != nil {
		return nil, fmt.Errorf("its meta page at byte %d: %w", at, err)
	}
	sum := fnv.New64a()
	sum.Write(meta[headerSize:metaChecksum])
	switch {
	case binary.NativeEndian.Uint32(meta[headerSize:]) != metaMagic, binary.NativeEndian.Uint32(meta[headerSize+4:]) != metaVersion:
		return nil, fmt.Errorf("there is no meta page at byte %d", at)
	case binary.NativeEndian.Uint64(meta[metaChecksum:]) != sum.Sum64():
		return nil, fmt.Errorf("its meta page at byte %d has a wrong checksum, so that its last commit may be missing", at)
	}
	return meta, nil
}

// pageWalk goes through the pages in use, from the root.
type pageWalk struct {
	file     io.ReaderAt
	pageSize int64
	seen     []bool // by a page's number
}

// all checks every page in use, and that none of them is listed as free.
func (w *pageWalk) all(root, freelist uint64) error {
	if err := w.mark(0, 2); err != nil { // the meta pages
		return err
	}
	if err := (&tree{pageWalk: w, leaf: w.bucket}).visit(root, span{}, 1); err != nil {
		return err
	}
	return w.free(freelist)
}

// free checks the list of free pages, which a file has until it is first written to.
func (w *pageWalk) free(id uint64) error {
	if id == noFreelist {
		return nil
	}
	page, err := w.read(id)
	if err != nil {
		return err
	}
	if kind := binary.NativeEndian.Uint16(page[8:]); kind != kindFreelist {
		return fmt.Errorf("page %d is of kind %d, and no list of free pages", id, kind)
	}
	n, list := uint64(binary.NativeEndian.Uint16(page[10:])), page[headerSize:]
	if n == longFreelist {
		n, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if n > uint64(len(list)/8) {
		return fmt.Errorf("page %d lists more free pages than it holds", id)
	}
	for i := range n {
		if err := w.mark(binary.NativeEndian.Uint64(list[8*i:]), 1); err != nil {
			return err
		}
	}
	return nil
}

// read reads a page with its further pages, and marks them as seen.
func (w *pageWalk) read(id uint64) ([]byte, error) {
	header := make([]byte, headerSize)
	if err := w.mark(id, 1); err != nil {
		return nil, err
	}
	if _, err := w.file.ReadAt(header, int64(id)*w.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if number := binary.NativeEndian.Uint64(header); number != id {
		return nil, fmt.Errorf("page %d says that it is page %d", id, number)
	}
	over := uint64(binary.NativeEndian.Uint32(header[12:]))
	if err := w.mark(id+1, over); err != nil {
		return nil, err
	}
	page := make([]byte, int64(1+over)*w.pageSize)
	if _, err := w.file.ReadAt(page, int64(id)*w.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return page, nil
}

// mark marks n pages as seen, from the one with that number on.
func (w *pageWalk) mark(from, n uint64) error {
	if from+n > uint64(len(w.seen)) || from+n < from {
		return fmt.Errorf("page %d is beyond its end", from+n-1)
	}
	for id := from; id < from+n; id++ {
		if w.seen[id] {
			return fmt.Errorf("page %d is used twice", id)
		}
		w.seen[id] = true
	}
	return nil
}
