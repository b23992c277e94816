package file_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"regent/leadership"
	"regent/store/file"
)

// A page at which bbolt would panic, perhaps in a goroutine that cannot be stopped, has to be
// refused before bbolt sees it.
func TestAPageThatBboltWouldDieOfIsRefusedBeforehand(t *testing.T) {
	t.Parallel()
	whole := inUse(used(t))
	for name, c := range map[string]struct {
		damage func(content []byte)
		why    string
	}{
		"a branch without elements":          {onOne(kindBranch, func(page []byte) { page[10], page[11] = 0, 0 }), "it is empty"},
		"a leaf without elements":            {below(0, func(page []byte) { page[10], page[11] = 0, 0 }), "it is empty"},
		"a key behind those of its page":     {below(0, func(page []byte) { lastKey(page)[0] = 0xff }), "a key that belongs on another page"},
		"a key before those of its page":     {below(1, func(page []byte) { firstKey(page)[0] = 0x01 }), "a key that belongs on another page"},
		"an element without a key":           {onOne(kindLeaf, func(page []byte) { binary.NativeEndian.PutUint32(page[16+8:], 0) }), "an element without a key"},
		"a branch that leads to itself":      {onOne(kindBranch, func(page []byte) { copy(page[16+8:][:8], page) }), "used twice"},
		"more elements than it holds":        {onOne(kindLeaf, func(page []byte) { page[11] = 0xff }), "more elements than it holds"},
		"a bucket in a bucket":               {below(0, func(page []byte) { page[16] = 1 }), "where there can be only values"},
		"a value among the buckets":          {onRoot(func(_ int, element, _ []byte) { element[0] = 0 }), "where there can be only buckets"},
		"a bucket within that has a number":  {inMeta(0, 9), "not a leaf, or has a number or further pages"},
		"a bucket within that is a branch":   {inMeta(8, kindBranch), "a bucket in it"},
		"a bucket within that goes on":       {inMeta(12, 1), "not a leaf, or has a number or further pages"},
		"a bucket within with a bucket":      {inMeta(16, 1), "where there can be only values"},
		"a bucket that is too short":         {onRoot(func(_ int, element, _ []byte) { element[12], element[13] = 8, 0 }), "too short"},
		"a bucket within that is too short":  {onRoot(shortMeta), "too short"},
		"a page that goes over another":      {goesOver, "used twice"},
		"a page that goes beyond the end":    {onOne(kindBranch, func(page []byte) { page[14] = 1 }), "beyond its end"},
		"a page that says that it is free":   {onOne(kindLeaf, func(page []byte) { page[8] = 0x10 }), "neither branch nor leaf"},
		"a branch that leads to a meta page": {onOne(kindBranch, func(page []byte) { binary.NativeEndian.PutUint64(page[16+8:], 1) }), "used twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := slices.Clone(whole)
			c.damage(content)
			err := file.CheckPages(bytes.NewReader(content), int64(len(content)))
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want something with %q", err, c.why)
			}
			path := written(t, content)
			if s, err := file.Open(path, file.Config{Clock: file.Clock{}}); err == nil {
				s.Close()
				t.Error("it was opened")
			} else if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}

const (
	kindBranch = 0x01
	kindLeaf   = 0x02
)

// page is one of a file's pages.
func page(content []byte, id uint64) []byte { return content[id*pageSize:][:pageSize] }

// inUse is the file without what it was made longer by, for later.
func inUse(content []byte) []byte {
	return slices.Clip(content[:binary.NativeEndian.Uint64(meta(content)[16+40:])*pageSize])
}

// meta is the newer meta page.
func meta(content []byte) []byte {
	first, second := page(content, 0), page(content, 1)
	if binary.NativeEndian.Uint64(second[16+48:]) > binary.NativeEndian.Uint64(first[16+48:]) {
		return second
	}
	return first
}

// roots calls visit for each bucket, with the element that it is in the root page, and what it has
// for a value.
func roots(content []byte, visit func(i int, element, value []byte)) {
	root := page(content, binary.NativeEndian.Uint64(meta(content)[16+16:]))
	for i := range int(binary.NativeEndian.Uint16(root[10:])) {
		element := root[16+16*i:]
		at := binary.NativeEndian.Uint32(element[4:]) + binary.NativeEndian.Uint32(element[8:])
		visit(i, element, element[at:][:binary.NativeEndian.Uint32(element[12:])])
	}
}

// onRoot damages the root page, at the element of the first bucket.
func onRoot(damage func(i int, element, value []byte)) func([]byte) {
	return func(content []byte) {
		roots(content, func(i int, element, value []byte) {
			if i == 0 {
				damage(i, element, value)
			}
		})
	}
}

// inMeta changes a byte of the bucket meta, which lies within the root page, behind the bucket's
// header.
func inMeta(at int, to byte) func([]byte) {
	return func(content []byte) {
		roots(content, func(_ int, _, value []byte) {
			if binary.NativeEndian.Uint64(value) == 0 {
				value[16+at] = to
			}
		})
	}
}

func shortMeta(_ int, element, value []byte) {
	binary.NativeEndian.PutUint64(value, 0)
	binary.NativeEndian.PutUint32(element[12:], 20)
}

// onOne damages the root page of a bucket, if it is of that kind. A leaf is one below the first
// branch.
func onOne(kind uint16, damage func(page []byte)) func([]byte) {
	if kind == kindLeaf {
		return below(0, damage)
	}
	return func(content []byte) { damage(branch(content)) }
}

// below damages the i-th leaf below the first branch.
func below(i int, damage func(page []byte)) func([]byte) {
	return func(content []byte) {
		damage(page(content, binary.NativeEndian.Uint64(branch(content)[16+16*i+8:])))
	}
}

func branch(content []byte) (found []byte) {
	roots(content, func(_ int, _, value []byte) {
		root := binary.NativeEndian.Uint64(value)
		if found == nil && root != 0 && binary.NativeEndian.Uint16(page(content, root)[8:]) == kindBranch {
			found = page(content, root)
		}
	})
	return found
}

func key(page []byte, i int) []byte {
	element := page[16+16*i:]
	return element[binary.NativeEndian.Uint32(element[4:]):][:binary.NativeEndian.Uint32(element[8:])]
}

func firstKey(page []byte) []byte { return key(page, 0) }

func lastKey(page []byte) []byte { return key(page, int(binary.NativeEndian.Uint16(page[10:]))-1) }

// goesOver lets the first page that is in use go over all behind it.
func goesOver(content []byte) {
	first := uint64(len(content) / pageSize)
	roots(content, func(_ int, _, value []byte) {
		if root := binary.NativeEndian.Uint64(value); root != 0 {
			first = min(first, root)
		}
	})
	binary.NativeEndian.PutUint32(page(content, first)[12:], uint32(len(content)/pageSize)-uint32(first)-1)
}

// A leaf that is less deep than the others of its bucket holds what it must, and nothing in it is
// wrong.
func TestATreeOfSeveralDepthsIsRefused(t *testing.T) {
	t.Parallel()
	content := inUse(used(t))
	spare := uint64(len(content) / pageSize)
	content = append(content, make([]byte, pageSize)...)
	top := branch(content)
	added := page(content, spare)
	binary.NativeEndian.PutUint64(added, spare)
	added[8], added[10] = kindBranch, 1
	first := key16(top)
	binary.NativeEndian.PutUint32(added[16:], 16)
	binary.NativeEndian.PutUint32(added[16+4:], uint32(len(first)))
	copy(added[16+8:][:8], top[16+8:][:8])
	copy(added[32:], first)
	binary.NativeEndian.PutUint64(top[16+8:], spare)
	grow(content, spare+1)
	err := file.CheckPages(bytes.NewReader(content), int64(len(content)))
	if err == nil || !strings.Contains(err.Error(), "as deep as") {
		t.Errorf("got %v", err)
	}
}

// key16 is the key of a branch's first element.
func key16(page []byte) []byte {
	element := page[16:]
	return element[binary.NativeEndian.Uint32(element):][:binary.NativeEndian.Uint32(element[4:])]
}

// grow lets the newer meta page say that so many pages are in use.
func grow(content []byte, pages uint64) {
	m := meta(content)
	binary.NativeEndian.PutUint64(m[16+40:], pages)
	sum := uint64(14695981039346656037)
	for _, b := range m[16 : 16+56] {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	binary.NativeEndian.PutUint64(m[16+56:], sum)
}

func TestAListOfFreePagesIsLookedAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "regent.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // so that pages become free
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("meta"))
			if err != nil {
				return err
			}
			return b.Put([]byte("key"), bytes.Repeat([]byte("value"), 1000))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	whole := read(t, path)
	for name, c := range map[string]struct {
		damage func(list []byte)
		why    string
	}{
		"as it is":                 {func([]byte) {}, ""},
		"a page in use":            {func(list []byte) { copy(list[16:24], meta(whole)[16+16:]) }, "used twice"},
		"the same page twice":      {func(list []byte) { copy(list[24:32], list[16:24]) }, "used twice"},
		"a page beyond the end":    {func(list []byte) { list[16+7] = 1 }, "beyond its end"},
		"more than the page holds": {func(list []byte) { list[11] = 0x7f }, "lists more free pages"},
		"far more than it holds":   {func(list []byte) { list[10], list[11] = 0xff, 0xff }, ""},
		"another kind of page":     {func(list []byte) { list[8] = kindLeaf }, "no list of free pages"},
	} {
		t.Run(name, func(t *testing.T) {
			content := slices.Clone(whole)
			list := page(content, binary.NativeEndian.Uint64(meta(content)[16+32:]))
			if n := binary.NativeEndian.Uint16(list[10:]); n < 2 {
				t.Fatalf("%d pages are free", n)
			}
			c.damage(list)
			err := file.CheckPages(bytes.NewReader(content), int64(len(content)))
			if c.why == "" && err != nil && name == "as it is" || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
				t.Errorf("got %v, want something with %q", err, c.why)
			}
		})
	}
}

func TestANameWithoutARecordIsListedAsUntrusted(t *testing.T) {
	t.Parallel()
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	err := s.Meddle(func(tx *bbolt.Tx) error {
		_, err := tx.Bucket([]byte("leadership")).CreateBucket([]byte("phantom"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.List(t.Context(), "", "", 10)
	if err != nil || len(l.Snapshots) != 1 || !slices.Equal(l.Untrusted, []leadership.Election{"phantom"}) {
		t.Errorf("got %+v, %v; want jobs, and phantom as untrusted", l, err)
	}
}
