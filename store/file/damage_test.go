package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/store/file"
)

const (
	sector = 512
	step   = 1 << 20
)

// refused expects a folder to be refused by name, in one line, by Check and by Open.
func (u *used) refused(path, damage, why string) {
	u.t.Helper()
	_, err := file.Check(path)
	s, openErr := file.Open(path, u.config)
	if openErr == nil {
		s.Close()
	}
	for _, err := range []error{err, openErr} {
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			u.t.Errorf("%s: got %v, want an error that names %s and says %q", damage, err, path, why)
		}
	}
}

// folderOf makes a folder with the files, and returns its path.
func folderOf(t testing.TB, files map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made")
	require.NoError(t, os.Mkdir(path, 0o700))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), content, 0o600))
	}
	return path
}

// rewrite changes a file of a folder.
func rewrite(t testing.TB, path, name string, change func([]byte) []byte) {
	t.Helper()
	name = filepath.Join(path, name)
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, change(content), 0o600))
}

func read(t testing.TB, path, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path, name))
	require.NoError(t, err)
	return content
}

// checkpointed is a used folder with a snapshot and a log that goes on after it.
func checkpointed(t testing.TB) *used {
	t.Helper()
	u := newUsed(t, 3000)
	for range 1000 {
		u.live(1)
		require.NoError(t, u.Checkpointed())
		if _, err := os.Stat(filepath.Join(u.path, "snapshot-0000000002")); err == nil {
			u.Close()
			u.config.Checkpoint = 1 << 30 // no other
			u.open(u.path)
			u.live(20)
			return u
		}
	}
	t.Fatal("there is no checkpoint")
	return nil
}

func TestEveryChangedByteIsNoticed(t *testing.T) {
	t.Parallel()
	u := checkpointed(t)
	end := int(u.LogEnd())
	killed := copied(t, u.path)
	u.Close()
	stride := 1
	if testing.Short() {
		stride = 5
	}
	for name, used := range map[string]int{"state": 48, "log-0000000002": end, "snapshot-0000000002": len(read(t, killed, "snapshot-0000000002"))} {
		f, err := os.OpenFile(filepath.Join(killed, name), os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		content := read(t, killed, name)
		for at := 0; at < used; at += stride {
			for _, change := range []byte{content[at] ^ 1<<(at%8), 0, 0xff} {
				if change == content[at] {
					continue
				}
				if _, err := f.WriteAt([]byte{change}, int64(at)); err != nil {
					t.Fatal(err)
				}
				if r, err := file.Check(killed); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%s, byte %d is %x in place of %x: got %+v, %v", name, at, change, content[at], r, err)
				}
				f.WriteAt(content[at:at+1], int64(at))
			}
		}
	}
	if _, err := file.Check(killed); err != nil {
		t.Errorf("when all is as it was: %v", err)
	}
}

// TestAZeroedSectorIsNoticed unless it is in the last commit, where it looks as a power cut leaves
// it.
func TestAZeroedSectorIsNoticed(t *testing.T) {
	t.Parallel()
	u := checkpointed(t)
	last := int(u.LogEnd())
	u.live(30)
	killed := copied(t, u.path)
	u.Close()
	for name, used := range map[string]int{"log-0000000002": last, "snapshot-0000000002": len(read(t, killed, "snapshot-0000000002"))} {
		for at := 0; at < used; at += sector {
			path := copied(t, killed)
			rewrite(t, path, name, func(b []byte) []byte { clear(b[at:min(at+sector, len(b))]); return b })
			u.refused(path, "a zeroed sector", name)
		}
	}
}

// lastCommit makes a folder whose last commit has several sectors. It returns the folder as a kill
// leaves it, the place of the commit in the log, and the content of the store before it.
func lastCommit(t testing.TB, many int) (u *used, killed string, from, to int, before string) {
	t.Helper()
	u = newUsed(t, 1<<30)
	u.live(20 + many)
	before, from = dump(t, u.Store), int(u.LogEnd())
	text := `{"x":"` + strings.Repeat("y", 4000) + `"}`
	_, err := u.service.Acquire(t.Context(), leadership.AcquireRequest{Election: "large", CandidateID: "ann", Metadata: []byte(text)})
	require.NoError(t, err)
	return u, copied(t, u.path), from, int(u.LogEnd()), before
}

// TestACommitThatAPowerCutLeftInPartIsCutOff writes each part of the last commit's sectors that
// could be left, and then goes on.
func TestACommitThatAPowerCutLeftInPartIsCutOff(t *testing.T) {
	t.Parallel()
	for _, many := range []int{0, 1, 2} { // the commit begins elsewhere in its sector
		u, killed, from, to, before := lastCommit(t, many)
		var bounds []int
		for at := from; at < to; at = (at/sector + 1) * sector {
			bounds = append(bounds, at)
		}
		n := len(bounds)
		bounds = append(bounds, to)
		for part := range 1<<n - 1 { // all but the whole
			if n > 4 && part&(part+1) != 0 && ^part&(^part+1)&(1<<n-1) != 0 && part%7 != 0 && part%37 != 1 {
				continue // not a beginning, nor one of those that stand for the others
			}
			path := copied(t, killed)
			rewrite(t, path, "log-0000000001", func(b []byte) []byte {
				for i := range n {
					if part>>i&1 == 0 {
						clear(b[bounds[i]:bounds[i+1]])
					}
				}
				return b
			})
			r, err := file.Check(path)
			if err != nil || part != 0 && r.Torn == 0 {
				t.Fatalf("sectors %b of %d are there: got %+v, %v", part, n, r, err)
			}
			u.Close()
			u.open(path)
			if got := dump(t, u.Store); got != before {
				t.Fatalf("sectors %b of %d are there: got\n%s\nwant\n%s", part, n, got, before)
			}
			u.live(5)
			want := dump(t, u.Store)
			if got := u.reopened(copied(t, path)); got != want {
				t.Fatalf("sectors %b of %d, and then more: got\n%s\nwant\n%s", part, n, got, want)
			}
		}
	}
}

func TestALastCommitThatIsDamagedAndNotTornIsRefused(t *testing.T) {
	t.Parallel()
	u, killed, from, to, _ := lastCommit(t, 0)
	u.Close()
	for damage, change := range map[string]func([]byte){
		"a bit of its head is flipped":             func(b []byte) { b[from+2] ^= 1 },
		"a bit of its length is flipped":           func(b []byte) { b[from+3] ^= 1 << 5 },
		"a bit of it is flipped":                   func(b []byte) { b[from+100] ^= 1 },
		"its last byte is missing":                 func(b []byte) { clear(b[to-32 : to]) },
		"its head is zeroed, not its sector":       func(b []byte) { clear(b[from : from+16]) },
		"something follows it":                     func(b []byte) { b[to+5000] = 1; b[from+100] ^= 1 },
		"a sector is zeroed and something follows": func(b []byte) { b[to+5000] = 1; clear(b[from/sector*sector+2*sector:][:sector]) },
		"the commit before is gone":                func(b []byte) { clear(b[48:from]) },
	} {
		path := copied(t, killed)
		rewrite(t, path, "log-0000000001", func(b []byte) []byte { change(b); return b })
		u.refused(path, damage, "log-0000000001")
	}
	path := copied(t, killed)
	rewrite(t, path, "log-0000000001", func(b []byte) []byte { b[to+5000] = 1; return b })
	if r, err := file.Check(path); err != nil || r.Torn == 0 { // a later commit, of which this is all that is left
		t.Errorf("a byte behind the last commit: got %+v, %v", r, err)
	}
}

func TestACommitInOneSectorIsNeverTorn(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	u.live(20)
	from, to := 0, sector
	for n := 0; from/sector != to/sector; n++ {
		from = int(u.LogEnd())
		if _, err := u.service.Do(t.Context(), leadership.Configure{Election: leadership.Election(fmt.Sprintf("new-%d", n))}); err != nil {
			t.Fatal(err)
		}
		to = int(u.LogEnd())
	}
	killed := copied(t, u.path)
	u.Close()
	for at := from + 16; at < from+30; at++ {
		path := copied(t, killed)
		rewrite(t, path, "log-0000000001", func(b []byte) []byte { clear(b[at : int(from/sector+1)*sector]); return b })
		u.refused(path, "cut off", "log-0000000001")
	}
}

func TestAfterACleanStopEveryLostTailIsNoticed(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	u.live(20)
	before := read(t, u.path, "log-0000000001")
	from := int(u.LogEnd())
	u.live(20)
	to := int(u.LogEnd())
	killed := copied(t, u.path)
	require.NoError(t, u.Close())
	for damage, change := range map[string]func([]byte) []byte{
		"the last commits are gone":        func(b []byte) []byte { clear(b[from:to]); return b },
		"it is an earlier version":         func([]byte) []byte { return before },
		"something follows":                func(b []byte) []byte { b[to+600] = 1; return b },
		"it has ended before":              func(b []byte) []byte { return b[:from] },
		"it is another store's":            func([]byte) []byte { return read(t, newUsed(t, 1<<30).path, "log-0000000001") },
		"a part of the last step is there": nil,
	} {
		path := copied(t, u.path)
		if change == nil { // which is no damage
			rewrite(t, path, "log-0000000001", func(b []byte) []byte { return append(b, make([]byte, 5000)...) })
			if _, err := file.Check(path); err != nil {
				t.Errorf("%s: %v", damage, err)
			}
			continue
		}
		rewrite(t, path, "log-0000000001", change)
		u.refused(path, damage, "log-0000000001")
	}
	path := copied(t, killed)
	rewrite(t, path, "state", func([]byte) []byte { return read(t, u.path, "state") })
	if _, err := file.Check(path); err != nil {
		t.Errorf("a kill after the state was written: %v", err)
	}
	u.open(u.path) // from now on commits may follow
	u.live(20)
	if _, err := file.Check(copied(t, u.path)); err != nil {
		t.Errorf("killed after it was opened again: %v", err)
	}
}

func TestAMissingOrForeignFileIsNoticed(t *testing.T) {
	t.Parallel()
	u := checkpointed(t)
	killed := copied(t, u.path)
	u.Close()
	other := checkpointed(t)
	refused := func(damage, why string, change func(path string) error) {
		t.Helper()
		path := copied(t, killed)
		require.NoError(t, change(path))
		u.refused(path, damage, why)
	}
	const log, snapshot = "log-0000000002", "snapshot-0000000002"
	for _, name := range []string{log, snapshot} {
		refused(name+" is gone", name+": it is missing", func(path string) error { return os.Remove(filepath.Join(path, name)) })
		refused(name+" is another store's", "it belongs to another store", func(path string) error {
			return os.WriteFile(filepath.Join(path, name), read(t, other.path, name), 0o600)
		})
		refused(name+" is half as long", name, func(path string) error {
			content := read(t, path, name)
			return os.WriteFile(filepath.Join(path, name), content[:len(content)/2], 0o600)
		})
		refused(name+" is a link", "it is not a regular file", func(path string) error {
			return errors.Join(os.Remove(filepath.Join(path, name)), os.Symlink(filepath.Join(killed, name), filepath.Join(path, name)))
		})
		refused(name+" has another number", "000000000", func(path string) error {
			return os.Rename(filepath.Join(path, name), filepath.Join(path, strings.Replace(name, "2", "3", 1)))
		})
	}
	refused("both are gone", "it is missing", func(path string) error {
		return errors.Join(os.Remove(filepath.Join(path, log)), os.Remove(filepath.Join(path, snapshot)))
	})
	refused("the state is gone", "state", func(path string) error { return os.Remove(filepath.Join(path, "state")) })
	for what, content := range map[string][]byte{"is empty": nil, "has zeros": make([]byte, 48), "has more": append(read(t, killed, "state"), 0)} {
		refused("the state "+what, "state", func(path string) error {
			return os.WriteFile(filepath.Join(path, "state"), content, 0o600)
		})
	}
}

// TestFilesOfTwoCopiesAreNoticed mixes the files of two stores that were one.
func TestFilesOfTwoCopiesAreNoticed(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	u.live(10)
	u.Close()
	other := copied(t, u.path)
	grow := func(path string, checkpoints uint64, more int) string {
		u.open(path)
		u.live(more)
		u.Close()
		u.config.Checkpoint = 3000
		u.open(path)
		for u.Log() < checkpoints+1 {
			u.live(1)
		}
		require.NoError(t, u.Checkpointed())
		u.live(1)
		killed := copied(t, path)
		u.Close()
		u.config.Checkpoint = 1 << 30
		return killed
	}
	a, b := grow(u.path, 1, 0), grow(other, 1, 300)
	for _, name := range []string{"log-0000000002", "snapshot-0000000002"} {
		path := copied(t, a)
		rewrite(t, path, name, func([]byte) []byte { return read(t, b, name) })
		u.refused(path, name+" of the other", "and what is before it ends with commit")
	}
}

func TestAFolderOfAnUnknownVersionIsRefusedByName(t *testing.T) {
	t.Parallel()
	u := checkpointed(t)
	u.Close()
	for _, name := range []string{"state", "log-0000000002", "snapshot-0000000002"} {
		path := copied(t, u.path)
		rewrite(t, path, name, func(b []byte) []byte { b[11] = 2; return b })
		u.refused(path, name+" is of version 2", "cannot be used: "+name+": its format has version 2, and this program reads 1: use the version of regent that wrote it, or a newer one")
	}
}

func TestALogGrowsByWholeStepsOfZeros(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	text := []byte(`{"x":"` + strings.Repeat("y", 4000) + `"}`)
	for i := range 700 {
		e := leadership.Election("e" + strings.Repeat("x", i%50))
		u.uptime += 2 * leadership.DefaultLeaseDuration
		if _, err := u.service.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", Metadata: text}); err != nil {
			t.Fatal(err)
		}
	}
	end := int(u.LogEnd())
	content := read(t, u.path, "log-0000000001")
	if len(content)%step != 0 || len(content) < 3*step || len(bytes.Trim(content[end:], "\x00")) > 0 {
		t.Errorf("it has %d bytes, and commits up to %d", len(content), end)
	}
	want := dump(t, u.Store)
	path := copied(t, u.path)
	rewrite(t, path, "log-0000000001", func(b []byte) []byte { return append(b, make([]byte, step/3)...) }) // a power cut
	if got := u.reopened(path); got != want {
		t.Errorf("with a part of a step: got\n%s\nwant\n%s", got, want)
	}
	path = copied(t, u.path)
	rewrite(t, path, "log-0000000001", func(b []byte) []byte { return b[:2*step+end%step/2] })
	u.refused(path, "within a step that has commits", "it has been cut off")
}

// TestACheckpointMayBeInterruptedAnywhere puts together what a kill leaves at each step.
func TestACheckpointMayBeInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 3000)
	const log1, log2, snapshot2 = "log-0000000001", "log-0000000002", "snapshot-0000000002"
	kept := filepath.Join(t.TempDir(), log1)
	require.NoError(t, os.Link(filepath.Join(u.path, log1), kept))
	var before, old string // the folder before the last commit of log 1, and its content
	for {
		old, before = dump(t, u.Store), copied(t, u.path)
		u.live(1)
		require.NoError(t, u.Checkpointed())
		if _, err := os.Stat(filepath.Join(u.path, snapshot2)); err == nil {
			break
		}
	}
	ended, err := os.ReadFile(kept)
	require.NoError(t, err)
	empty := read(t, u.path, log2)
	now := dump(t, u.Store)
	u.live(10)
	after, later := copied(t, u.path), dump(t, u.Store)
	u.Close()
	end := len(bytes.TrimRight(ended, "\x00")) // of the frame that leads to log 2
	open := slices.Clone(ended)
	clear(open[end/16*16-16 : end])
	if end%16 < 8 {
		clear(open[end/16*16-32 : end])
	}
	snapshot := read(t, after, snapshot2)
	for name, c := range map[string]struct {
		files map[string][]byte
		want  string
		left  int // files, once it is open
	}{
		"the next log is being made":                {map[string][]byte{log1: open, log2 + ".new": empty[:1000]}, now, 2},
		"the next log is made":                      {map[string][]byte{log1: open, log2: empty}, now, 2},
		"the log has ended":                         {map[string][]byte{log1: ended, log2: empty}, now, 3},
		"a part of the snapshot is written":         {map[string][]byte{log1: ended, log2: empty, snapshot2 + ".new": snapshot[:200]}, now, 3},
		"commits were made meanwhile":               {map[string][]byte{log1: ended, log2: read(t, after, log2), snapshot2 + ".new": snapshot[:200]}, later, 3},
		"all of the snapshot is written":            {map[string][]byte{log1: ended, log2: read(t, after, log2), snapshot2 + ".new": snapshot}, later, 3},
		"the snapshot is there":                     {map[string][]byte{log1: ended, log2: read(t, after, log2), snapshot2: snapshot}, later, 3},
		"the log before is removed":                 {map[string][]byte{log2: read(t, after, log2), snapshot2: snapshot}, later, 3},
		"the commit before the checkpoint is there": {map[string][]byte{log1: read(t, before, log1)}, old, 2},
	} {
		c.files["state"] = read(t, before, "state")
		path := folderOf(t, c.files)
		u.open(path)
		if files, _ := filepath.Glob(path + "/*"); len(files) != c.left {
			t.Errorf("%s: opened, there are %v", name, files)
		}
		if got := dump(t, u.Store); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
		u.live(100) // and it goes on from there, over more checkpoints
		if err := u.Checkpointed(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := dump(t, u.Store)
		u.Close()
		if got := u.reopened(path); got != want {
			t.Errorf("%s, and then more: got\n%s\nwant\n%s", name, got, want)
		}
		files, _ := filepath.Glob(path + "/*")
		if len(files) != 3 {
			t.Errorf("%s: there are %v", name, files)
		}
	}
	more := slices.Clone(ended)
	more[end+600] = 1
	rows := map[string]map[string][]byte{
		"something follows the log's end":         {log1: more, log2: empty},
		"two logs are there to which none leads":  {log1: open, log2: empty, "log-0000000003": empty},
		"the next log is gone":                    {log1: ended},
		"the next log is gone after the snapshot": {log1: ended, snapshot2: snapshot},
		"the log does not lead to the next":       {log1: open, log2: read(t, after, log2)},
		"the snapshot ends too early":             {log2: read(t, after, log2), snapshot2: snapshot[:len(snapshot)-48]},
	}
	for cut := range 15 {
		rows[fmt.Sprintf("the snapshot lacks %d bytes", cut+1)] = map[string][]byte{log2: empty, snapshot2: snapshot[:len(snapshot)-cut-1]}
	}
	for name, files := range rows {
		u.refused(folderOf(t, files), name, "000000000")
	}
}

func TestOnlyAStoreWithoutACommitMayLackItsState(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	u.Close()
	for name, change := range map[string]func(b []byte){
		"":                   func(b []byte) { clear(b[48:]) },
		"a part of a commit": func(b []byte) { clear(b[48:]); b[2*sector] = 1 },
		"a commit":           func([]byte) {},
	} {
		path := folderOf(t, map[string][]byte{"log-0000000001": read(t, u.path, "log-0000000001")})
		rewrite(t, path, "log-0000000001", func(b []byte) []byte { change(b); return b })
		if name != "" {
			u.refused(path, "there is "+name, "state: it is missing")
		} else {
			u.open(path) // it was killed before the state was written
			u.Close()
		}
	}
}
