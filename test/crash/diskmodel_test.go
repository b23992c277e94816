package crash

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
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

// One caller lets time pass and has not printed it yet when the commit of another is decided.
func TestAnImageIsOpenedAfterItsCommitsAlsoWhenAJumpIsPrintedLate(t *testing.T) {
	since := func(d time.Duration) int64 { return int64(beginning(0) + d) }
	at := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	var log []entry
	for _, l := range []line{
		{ID: "1", Reading: since(0)},
		{ID: "2", Reading: since(time.Minute)}, // what passed
		{
			ID: "1", Told: true, Reading: since(time.Minute + 2*time.Microsecond),
			Leases: []leadership.Lease{{Election: "e", State: leadership.Vacant, Revision: 1, ReadAt: at}},
			Events: []leadership.Event{{Election: "e", Type: leadership.EventConfigured, Revision: 1, At: at, RequestID: "1"}},
		},
	} {
		text, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, entry{Kind: said, Data: text})
	}
	truth, err := truthOf(log, nil)
	if err != nil || len(truth.commits) != 1 {
		t.Fatalf("%d commits, %v", len(truth.commits), err)
	}
	for p, want := range map[plan]bool{{At: 1, Seen: 1}: true, {At: 0, Seen: 0}: false} {
		if opened := truth.anchor.Add(truth.clock(p)); want != opened.After(at) {
			t.Errorf("after %d entries it is opened at %v, and its commit is of %v", p.At, opened, at)
		}
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

func TestZerosThatAreNotDurableLeaveTheFileShorter(t *testing.T) {
	log := append(three(), entry{Kind: synced, File: 7, Began: 5}, entry{Kind: wrote, File: 7, Offset: 3 * sector, Data: make([]byte, sector)})
	d := newDiskModel()
	d.advance(log, len(log))
	if with, without := d.image(cut{}).file(7).size, d.image(cut{Drop: 1}).file(7).size; with != 4*sector || without != 3*sector {
		t.Errorf("%d bytes with and %d without them, want %d and %d", with, without, 4*sector, 3*sector)
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

// worn is a folder with two logs, and the log of the one that made it.
func worn() (v fileSet, past []entry) {
	log := func(id uint64, name string) []entry {
		return []entry{
			{Kind: named, File: id, Folder: 1, Name: name},
			{Kind: wrote, File: id, On: name, Data: bytes.Repeat([]byte("h"), 2*pageSize)},
			{Kind: wrote, File: id, On: name, Offset: 2 * pageSize, Data: []byte("commit 1")},
			{Kind: wrote, File: id, On: name, Offset: 3 * pageSize, Data: []byte("commit 2")},
		}
	}
	past = slices.Concat(log(7, "log-0000000001"), log(8, "log-0000000002"))
	d := newDiskModel()
	d.advance(past, len(past))
	return d.image(cut{}), past
}

// The last write to the newest log stays whole, and only it, unless the store was closed.
func TestDamageSparesTheLastCommitOfAStoreThatWasNotClosed(t *testing.T) {
	lost := make(map[string]int) // how often damage took a write away, by what it was
	for _, sort := range []string{zeroed, outdated, older} {
		for random := range uint64(200) {
			for _, closed := range []bool{false, true} {
				v, past := worn()
				damage{Sort: sort, File: random, Random: random, Closed: closed}.apply(v, past)
				for name, id := range v.names {
					for _, commit := range []string{"commit 1", "commit 2"} {
						if !bytes.Contains(v.file(id).data, []byte(commit)) {
							lost[strings.Join([]string{sort, name, commit, map[bool]string{true: "closed"}[closed]}, " ")]++
						}
					}
				}
			}
		}
	}
	for _, sort := range []string{zeroed, outdated, older} {
		for _, end := range []string{"", "closed"} {
			for _, name := range []string{"log-0000000001", "log-0000000002"} {
				key := sort + " " + name + " commit 2 " + end
				if spared := end == "" && name == "log-0000000002"; spared != (lost[key] == 0) {
					t.Errorf("%s: lost %d times", key, lost[key])
				}
			}
		}
	}
}

// An interrupted commit lacks its first sector. A commit that ends within the last 16 bytes of a
// sector is followed by one that begins with the next sector.
func TestInterruptedCommitLacksItsFirstSector(t *testing.T) {
	for used := 1; used <= 2*sector; used++ {
		begin := (used + 15) &^ 15
		at := int(secondSector(used))
		if lacks := at - begin; at%sector != 0 || lacks < 1 || lacks > sector {
			t.Errorf("after %d bytes the next commit begins at %d, and its second sector at %d", used, begin, at)
		}
	}
}
