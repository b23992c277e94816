package crash

import (
	"bytes"
	"slices"
	"strings"
	"testing"
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

func TestTornWriteEndsAtASector(t *testing.T) {
	log := three()
	log[len(log)-1].Data = bytes.Repeat([]byte("c"), 3*sector)
	d := newDiskModel()
	d.advance(log, len(log))
	if got := len(d.image(cut{Tear: sector}).file(7).data); got != 3*sector {
		t.Errorf("the file has %d bytes, want those of a, of b, and a third of c", got)
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
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, entry{Kind: said, Data: text})
	}
	if failed, err := silentAfterFailure(log); !failed || err != nil {
		t.Errorf("got %v, %v; want a failure that is kept to", failed, err)
	}
	if _, err := silentAfterFailure(append(log, log[0])); err == nil || !strings.Contains(err.Error(), "after 2 had failed") {
		t.Errorf("got %v", err)
	}
}

func TestJoinShiftsWhenCallsBegan(t *testing.T) {
	first, second := three(entry{Kind: synced, File: 7}), three(entry{Kind: synced, File: 8})
	for i, e := range join(first, second)[len(first):] {
		if want := len(first) + second[i].Began; e.Began != want {
			t.Errorf("entry %d began when there were %d, want %d", i, e.Began, want)
		}
	}
}
