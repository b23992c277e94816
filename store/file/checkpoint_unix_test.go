//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/store/file"
)

// TestCommitsGoOnWhileACheckpointIsMade lets the snapshot's file be a pipe, that is not read.
func TestCommitsGoOnWhileACheckpointIsMade(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 3000)
	pipe := filepath.Join(u.path, "snapshot-0000000002.new")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for u.Log() == 1 {
		u.live(1)
	}
	u.live(200) // more than is worth the next checkpoint
	if n := u.Log(); n != 2 {
		t.Errorf("there are %d logs, want 2: the first checkpoint is not done", n)
	}
	want := dump(t, u.Store)
	killed := copied(t, u.path, filepath.Base(pipe))
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // now it is read, and then it cannot be synced
	require.NoError(t, err)
	defer f.Close()
	for u.Checkpointed() != nil { // until it is tried again
		u.live(1)
	}
	after := dump(t, u.Store)
	if got := u.reopened(copied(t, u.path)); got != after {
		t.Errorf("afterwards: got\n%s\nwant\n%s", got, after)
	}
	if got := u.reopened(killed); got != want {
		t.Errorf("killed meanwhile: got\n%s\nwant\n%s", got, want)
	}
}

func TestTwoMayCheckAFolderAtOnce(t *testing.T) {
	u := newUsed(t, 1<<30)
	u.Close()
	folder, err := os.Open(u.path)
	if err == nil {
		defer folder.Close()
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_SH)
	}
	if _, err2 := file.Check(u.path); err != nil || err2 != nil {
		t.Error(err, err2)
	}
}

// Open leaves no file open when it refuses the folder, and Close leaves none.
func TestNoFileStaysOpen(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(files)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes files
	u := newUsed(t, 1)
	u.Close()
	damaged := copied(t, u.path)
	rewrite(t, damaged, "state", func(b []byte) []byte { return b[:9] })
	for what, call := range map[string]func(){
		"checkpoints": func() {
			u.open(u.path)
			if u.live(5); u.Checkpointed() != nil || u.Close() != nil {
				t.Error("it has failed")
			}
		},
		"damage": func() { u.refused(damaged, "the state is short", "state") },
	} {
		before := open()
		for range 3 {
			call()
		}
		if n := open() - before; n >= 3 {
			t.Errorf("%s: %d more files are open", what, n)
		}
	}
}
