//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
