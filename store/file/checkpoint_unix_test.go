//go:build unix

package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"
	"testing/synctest"

	"regent/store/file"
)

// TestCommitsGoOnWhileACheckpointIsMade lets the snapshot's file be a pipe, that is not read.
func TestCommitsGoOnWhileACheckpointIsMade(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 3000)
	pipe := filepath.Join(u.path, "snapshot-0000000002.new")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Check(u.path); err != nil {
		t.Error(err)
	}
}

// What is opened is closed, in success and in failure.
func TestNoFileStaysOpen(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(files)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes files
	for name, call := range map[string]func(u *used){
		"a checkpoint": func(u *used) {
			u.config.Checkpoint = 1
			u.open(u.path)
			if u.Log(); u.Checkpointed() != nil {
				t.Error("there is no checkpoint")
			}
		},
		"a log that cannot be ended": func(u *used) {
			u.config.Checkpoint = 1
			u.open(u.path)
			u.Watch(func(string) error { return fs.ErrInvalid })
			<-u.Broken()
		},
		"a folder in use": func(u *used) {
			u.open(u.path)
			if _, err := file.Open(u.path, u.config); err == nil {
				t.Error("it was opened twice")
			}
		},
		"damage": func(u *used) {
			path := copied(t, u.path)
			rewrite(t, path, "state", func(b []byte) []byte { return b[:9] })
			u.refused(path, "the state is short", "state")
		},
	} {
		synctest.Test(t, func(t *testing.T) { // so that no time passes
			u := newUsed(t, 1<<30)
			u.Close()
			before := open()
			const times = 3
			for range times {
				call(u)
				u.Close()
			}
			if n := open() - before; n >= times {
				t.Errorf("%s: %d more files are open", name, n)
			}
		})
	}
}
