package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// tree is a walk through the pages of one bucket, or of the one that all buckets are in.
type tree struct {
	*pageWalk
	leaf  func(element) error // checks an element of a leaf
	depth int                 // of every leaf; 0 before there is one
}

// span is the keys that a page may have: from the first on, and before the second; nil stands for
// no limit.
type span struct{ from, to []byte }

func (s span) holds(key []byte) bool {
	return bytes.Compare(key, s.from) >= 0 && (s.to == nil || bytes.Compare(key, s.to) < 0)
}

// element is a part of a page.
type element struct {
	key   []byte
	page  uint64 // that an element of a branch leads to
	flags uint32 // of an element of a leaf
	value []byte // so, too
}

// visit checks a page and all below it. The root's depth is 1; it alone may be empty, and only if
// it is a leaf.
func (t *tree) visit(id uint64, keys span, depth int) error {
	page, err := t.read(id)
	if err != nil {
		return err
	}
	elements, err := cut(page, keys)
	switch {
	case err != nil:
	case len(elements) == 0 && (depth > 1 || isBranch(page)):
		err = errors.New("it is empty")
	case isBranch(page):
		err = t.below(elements, keys, depth)
	default:
		err = t.leaves(elements, depth)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// below checks the pages that the elements of a branch lead to: each has the keys from its
// element's to the next one's.
func (t *tree) below(elements []element, keys span, depth int) error {
	for i, e := range elements {
		to := keys.to
		if i+1 < len(elements) {
			to = elements[i+1].key
		}
		if err := t.visit(e.page, span{e.key, to}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) leaves(elements []element, depth int) error {
	if t.depth == 0 {
		t.depth = depth
	}
	if t.depth != depth {
		return errors.New("it is not as deep as another leaf")
	}
	for _, e := range elements {
		if err := t.leaf(e); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks an element that has to be a bucket, and all that is in it.
func (w *pageWalk) bucket(e element) error {
	switch {
	case e.flags != isBucket:
		return errors.New("it has a value where there can be only buckets")
	case len(e.value) < bucketSize:
		return errors.New("it has a bucket that is too short")
	}
	if root := binary.NativeEndian.Uint64(e.value); root != 0 {
		return (&tree{pageWalk: w, leaf: plain}).visit(root, span{}, 1)
	}
	return within(e.value[bucketSize:])
}

// within checks a bucket that lies within a leaf: it is a leaf itself, with neither number nor
// further pages.
func within(page []byte) error {
	elements, err := cut(page, span{})
	switch {
	case err != nil:
		return fmt.Errorf("a bucket in it: %w", err)
	case isBranch(page), binary.NativeEndian.Uint64(page) != 0, binary.NativeEndian.Uint32(page[12:]) != 0:
		return errors.New("a bucket in it is not a leaf, or has a number or further pages")
	}
	for _, e := range elements {
		if err := plain(e); err != nil {
			return err
		}
	}
	return nil
}

// plain checks an element of a bucket: Regent has no buckets in buckets.
func plain(e element) error {
	if e.flags != 0 {
		return fmt.Errorf("it has an element with the flags %#x where there can be only values", e.flags)
	}
	return nil
}

func isBranch(page []byte) bool { return binary.NativeEndian.Uint16(page[8:]) == kindBranch }

// cut returns the elements of a page, or of a bucket within a leaf, and checks that their keys are
// in order and within the span.
func cut(page []byte, keys span) ([]element, error) {
	if len(page) < headerSize {
		return nil, errors.New("it is too short")
	}
	if kind := binary.NativeEndian.Uint16(page[8:]); kind != kindBranch && kind != kindLeaf {
		return nil, fmt.Errorf("it is of kind %d, neither branch nor leaf", kind)
	}
	elements := make([]element, binary.NativeEndian.Uint16(page[10:]))
	if headerSize+len(elements)*elementSize > len(page) {
		return nil, errors.New("it has more elements than it holds")
	}
	var last []byte
	for i := range elements {
		e, err := cutOne(page[headerSize+i*elementSize:], isBranch(page))
		switch {
		case err != nil:
			return nil, err
		case len(e.key) == 0:
			return nil, errors.New("it has an element without a key")
		case bytes.Compare(last, e.key) >= 0:
			return nil, errors.New("its keys are out of order")
		case !keys.holds(e.key):
			return nil, errors.New("it has a key that belongs on another page")
		}
		elements[i], last = e, e.key
	}
	return elements, nil
}

// cutOne takes an element, its key, and the value behind that, out of the rest of its page.
func cutOne(rest []byte, branch bool) (e element, err error) {
	number := func(at int) uint32 { return binary.NativeEndian.Uint32(rest[at:]) }
	if branch {
		e.page = binary.NativeEndian.Uint64(rest[8:])
		e.key, _, err = place(rest, number(0), number(4), 0)
		return e, err
	}
	e.flags = number(0)
	e.key, e.value, err = place(rest, number(4), number(8), number(12))
	return e, err
}

func place(rest []byte, at, keySize, valueSize uint32) (key, value []byte, err error) {
	begin, middle := uint64(at), uint64(at)+uint64(keySize)
	end := middle + uint64(valueSize)
	if end > uint64(len(rest)) {
		return nil, nil, errors.New("it has an element that lies outside of it")
	}
	return rest[begin:middle], rest[middle:end], nil
}
