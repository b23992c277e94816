package crash

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// three returns three writes to one file, with other entries between them.
func three(between ...entry) []entry {
	log := []entry{{Kind: named, File: 7, Folder: 1, Name: "log-0000000001"}, {Kind: synced, File: 1, Began: 1}}
	for i, b := range []string{"a", "b", "c"} {
		log = append(log, entry{Kind: wrote, File: 7, Offset: int64(i) * sector, Data: bytes.Repeat([]byte(b), sector)})
		if i < len(between) {
			between[i].Began = len(log)
			log = append(log, between[i])
		}
	}
	return log
}

// holdings is which of a, b and c are in the image.
func holdings(log []entry, c cut) string {
	d := newDiskModel()
	d.advance(log, len(log))
	v := d.image(c)
	return string(slices.Compact(bytes.Trim(v.file(7).data, "\x00")))
}

func TestOnlyUnsyncedWritesAreLost(t *testing.T) {
	log := three(entry{Kind: synced, File: 7})
	for mask, want := range map[uint64]string{0: "abc", 1: "a\x00c", 2: "ab", 3: "a"} {
		if got := holdings(log, cut{Drop: mask}); got != want {
			t.Errorf("without those of mask %b: %q is left, want %q", mask, got, want)
		}
	}
}

func TestFailedSyncStaysInDoubtAfterALaterSync(t *testing.T) {
	log := three(entry{Kind: synced, File: 7, Failed: true}, entry{Kind: synced, File: 7})
	if got := holdings(log, cut{Drop: 1}); got != "bc" {
		t.Errorf("%q is left, want b and c", got)
	}
	if got := holdings(log, cut{Drop: 3}); got != "b" {
		t.Errorf("%q is left, want b", got)
	}
}

func TestSyncSettlesOnlyEarlierWrites(t *testing.T) {
	log := three(entry{}, entry{Kind: synced, File: 7})
	log = slices.DeleteFunc(log, func(e entry) bool { return e.Kind == 0 })
	log[len(log)-2].Began = 3 // when a was there, and b was not
	if got := holdings(log, cut{Drop: 3}); got != "a" {
		t.Errorf("%q is left, want a", got)
	}
}

func TestAnswerAfterFailureIsCaught(t *testing.T) {
	var log []entry
	for _, l := range []line{
		{ID: "1", Told: true},
		{ID: "2", Told: true, Code: "OUTCOME_UNKNOWN"},
		{ID: "3", Told: true, Code: "STORE_UNAVAILABLE"},
	} {
		text, err := l.encode()
		require.NoError(t, err)
		log = append(log, entry{Kind: said, Data: text})
	}
	if failed, err := silentAfterFailure(log); !failed || err != nil {
		t.Errorf("got %v, %v; want a failure that is kept to", failed, err)
	}
	if _, err := silentAfterFailure(append(log, log[0])); err == nil || !strings.Contains(err.Error(), "after 2 had failed") {
		t.Errorf("got %v", err)
	}
}

// names is which names the image has.
func names(log []entry, c cut) string {
	d := newDiskModel()
	d.advance(log, len(log))
	return strings.Join(d.image(c).sorted(), " ")
}

func TestANameIsDurableOnceItsFolderIs(t *testing.T) {
	log := []entry{
		{Kind: named, File: 7, Folder: 1, Name: "log.new"},
		{Kind: wrote, File: 7, Data: []byte("a")},
		{Kind: synced, File: 7, Began: 2},
	}
	if got := names(log, cut{Drop: 1}); got != "" {
		t.Errorf("its data are durable, and its name is not: got %q", got)
	}
	log = append(log, entry{Kind: renamed, File: 7, Folder: 1, Name: "log.new", To: "log"})
	for mask, want := range map[uint64]string{0: "log", 1: "log", 2: "log.new", 3: ""} {
		if got := names(log, cut{Drop: mask}); got != want {
			t.Errorf("without those of mask %b: got %q, want %q", mask, got, want)
		}
	}
	log = append(log, entry{Kind: synced, File: 1, Began: 4}, entry{Kind: unnamed, File: 7, Folder: 1, Name: "log"})
	for mask, want := range map[uint64]string{0: "", 1: "log"} {
		if got := names(log, cut{Drop: mask}); got != want {
			t.Errorf("when it is removed, without those of mask %b: got %q, want %q", mask, got, want)
		}
	}
}

func TestASyncOfOneFileSettlesNoOther(t *testing.T) {
	log := three(entry{Kind: synced, File: 8}, entry{Kind: synced, File: 1})
	if got := holdings(log, cut{Drop: 7}); got != "" {
		t.Errorf("%q is left, want nothing", got)
	}
	log = three(entry{Kind: wrote, File: 8, Data: []byte("d")}, entry{Kind: synced, File: 8})
	d := newDiskModel()
	d.advance(log, len(log))
	if v := d.image(cut{Drop: 7}); string(v.file(8).data) != "d" || v.file(7).used() > 0 {
		t.Errorf("got %q and %d bytes, want d alone", v.file(8).data, v.file(7).used())
	}
}

func TestATornWriteLacksSectorsOfTheDiskAndNotOfItsOwn(t *testing.T) {
	log := three()
	last := &log[len(log)-1]
	last.Offset, last.Data = 2*sector+100, bytes.Repeat([]byte("c"), 2*sector)
	d := newDiskModel()
	d.advance(log, len(log))
	if got := d.tears(0); !slices.Equal(got, []int{sector - 100, 2*sector - 100}) {
		t.Errorf("it is torn at %v", got)
	}
	got := d.image(cut{Holes: 2}).file(7).data[2*sector:]
	if c := []byte("c"); bytes.Count(got[:sector], c) != sector-100 || bytes.Count(got[sector:2*sector], c) != 0 || bytes.Count(got[2*sector:], c) != 100 {
		t.Errorf("got %q; want its second sector to be missing", got)
	}
}
