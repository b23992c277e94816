package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// What follows is bbolt's file format, version 2, as far as it takes to see that a file is whole. Numbers are in the machine's byte order.
//
// A page begins with a header: its number (8 bytes), its kind (2), how many elements it has (2), and over how many further pages it goes (4).
// The first two pages are meta pages, of which the one with the higher transaction counts. An element has 16 bytes and says where its key
// lies, counted from the element itself.
const (
	headerSize  = 16
	elementSize = 16

	kindBranch = 0x01
	kindLeaf   = 0x02

	isBucket   = 0x01 // an element's flag: its value is a bucket
	bucketSize = 16   // of a bucket before what lies within the leaf itself, if its root is 0

	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	metaPageSize = headerSize + 8
	metaRoot     = headerSize + 16
	metaPages    = headerSize + 40 // how many pages are in use
	metaTx       = headerSize + 48
	metaChecksum = headerSize + 56 // FNV-1a, 64 bits, of the meta before it
	metaEnd      = metaChecksum + 8

	smallestPage = 1024
	largestPage  = 1 << 20
)

// checkPages expects both meta pages whole, the file to be as long as they say, and every page in use to be where it should be, once, with
// its keys in order. bbolt itself would not notice, or would end the process.
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
	return w.visit(binary.NativeEndian.Uint64(newest[metaRoot:]))
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

// visit checks a page and all below it.
func (w *pageWalk) visit(id uint64) error {
	page, err := w.read(id)
	if err != nil {
		return err
	}
	if err := w.elements(page, w.leafElement); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// read reads a page with those that it goes over, and marks them as seen.
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

// mark takes n pages from the one with that number on.
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

// elements checks the elements of a page, or of what stands for one within a leaf; those of a leaf by the given function, which returns an
// element's key.
func (w *pageWalk) elements(page []byte, leafElement func([]byte) ([]byte, error)) error {
	if len(page) < headerSize {
		return errors.New("it is too short")
	}
	kind := binary.NativeEndian.Uint16(page[8:])
	if kind != kindBranch && kind != kindLeaf {
		return fmt.Errorf("it is of kind %d, neither branch nor leaf", kind)
	}
	var last []byte
	for i := range int(binary.NativeEndian.Uint16(page[10:])) {
		at := headerSize + i*elementSize
		if at+elementSize > len(page) {
			return errors.New("it has more elements than it holds")
		}
		check := w.branchElement
		if kind == kindLeaf {
			check = leafElement
		}
		key, err := check(page[at:])
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return errors.New("its keys are out of order")
		}
		last = key
	}
	return nil
}

// branchElement checks an element of a branch, and the page that it leads to, and returns its key.
func (w *pageWalk) branchElement(element []byte) ([]byte, error) {
	key, _, err := cut(element, binary.NativeEndian.Uint32(element), binary.NativeEndian.Uint32(element[4:]), 0)
	if err != nil {
		return nil, err
	}
	return key, w.visit(binary.NativeEndian.Uint64(element[8:]))
}

// leafElement checks an element of a leaf, and the bucket that it may be, and returns its key.
func (w *pageWalk) leafElement(element []byte) ([]byte, error) {
	key, value, err := cutLeaf(element)
	if err != nil || binary.NativeEndian.Uint32(element)&isBucket == 0 {
		return key, err
	}
	if len(value) < bucketSize {
		return nil, errors.New("it has a bucket that is too short")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return key, w.visit(root)
	}
	return key, w.elements(value[bucketSize:], innerElement)
}

// innerElement checks an element of a bucket that lies within a leaf. Such a bucket is small, and has no other in it.
func innerElement(element []byte) ([]byte, error) {
	if binary.NativeEndian.Uint32(element)&isBucket != 0 {
		return nil, errors.New("it has a bucket where there can be none")
	}
	key, _, err := cutLeaf(element)
	return key, err
}

func cutLeaf(element []byte) (key, value []byte, err error) {
	return cut(element, binary.NativeEndian.Uint32(element[4:]), binary.NativeEndian.Uint32(element[8:]), binary.NativeEndian.Uint32(element[12:]))
}

// cut takes an element's key, and the value behind it, out of the rest of its page.
func cut(rest []byte, at, keySize, valueSize uint32) (key, value []byte, err error) {
	begin, middle := uint64(at), uint64(at)+uint64(keySize)
	end := middle + uint64(valueSize)
	if end > uint64(len(rest)) {
		return nil, nil, errors.New("it has an element that lies outside of it")
	}
	return rest[begin:middle], rest[middle:end], nil
}
