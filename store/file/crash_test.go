package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// ends are the places in the log after each of so many commits.
func (u *used) ends(commits int) (at []int) {
	u.t.Helper()
	for range commits {
		r := ask("ann")
		r.Election = leadership.Election(fmt.Sprintf("e%x", u.random.Uint64()))
		if _, err := u.service.Acquire(u.t.Context(), r); err != nil {
			u.t.Fatal(err)
		}
		at = append(at, int(u.LogEnd()))
	}
	return at
}

// A copy of a log can lack a block of it, with all that follows in its place.
func TestALogWithoutACommitInItsMiddleIsRefused(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	at := u.ends(3)
	killed := copied(t, u.path)
	u.Close()
	rewrite(t, killed, "log-0000000001", func(b []byte) []byte {
		return append(append(bytes.Clone(b[:at[0]]), b[at[1]:]...), make([]byte, at[1]-at[0])...)
	})
	u.refused(killed, "the second commit is cut out", "log-0000000001")
}

// The next log says which commit the log before ends with, also when it has no commit of its own.
func TestALogThatEndsBeforeTheNextWasMadeIsRefused(t *testing.T) {
	t.Parallel()
	const log1, log2 = "log-0000000001", "log-0000000002"
	u := newUsed(t, 3000)
	kept := filepath.Join(t.TempDir(), log1)
	require.NoError(t, os.Link(filepath.Join(u.path, log1), kept))
	var at []int
	for len(at) < 100 {
		at = append(at, u.ends(1)...)
		require.NoError(t, u.Checkpointed())
		if _, err := os.Stat(filepath.Join(u.path, log2)); err == nil {
			break
		}
	}
	killed := copied(t, u.path)
	u.Close()
	ended, err := os.ReadFile(kept)
	if err != nil || len(at) < 3 {
		t.Fatalf("after %d commits: %v", len(at), err)
	}
	clear(ended[at[len(at)-2]:]) // the last place is in the next log already
	require.NoError(t, errors.Join(os.Remove(filepath.Join(killed, "snapshot-0000000002")), os.WriteFile(filepath.Join(killed, log1), ended, 0o600)))
	u.refused(killed, "the log lacks its last commit", log1)
}

// The second of two calls that share a commit decides on what the first has changed.
func TestACallSeesTheOneBeforeItInTheSameCommit(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	release := u.Hold()
	answers := make(chan error, 3)
	for i, candidate := range []string{"ann", "bob", "cas"} {
		go func() { _, err := u.service.Acquire(u.t.Context(), ask(candidate)); answers <- err }()
		queued(t, u.Store, i+1)
	}
	release()
	granted := 0
	for range 3 {
		switch err := <-answers; {
		case err == nil:
			granted++
		case !errors.Is(err, leadership.LeaseHeld):
			t.Error(err)
		}
	}
	if granted != 1 {
		t.Errorf("%d candidates lead one election, want one", granted)
	}
}

func TestALogGrowsDurablyBeforeACommitIsWrittenThere(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	u.Close()
	rewrite(t, u.path, "log-0000000001", func(b []byte) []byte { return append(b, make([]byte, 50_000)...) }) // a power cut
	u.open(u.path)
	var calls []string
	u.Watch(func(call string) error { calls = append(calls, call); return nil })
	r, key := ask("ann"), leadership.NewKey()
	r.Key = &key
	for end := 0; end < step; end = int(u.LogEnd()) {
		r.Metadata = fmt.Appendf(nil, `{"at":%d,"x":%q}`, end, strings.Repeat("x", 4000))
		calls = nil
		if _, err := u.service.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"write", "sync", "write", "sync"}; !slices.Equal(calls, want) {
		t.Errorf("the commit that did not fit: got %v, want %v", calls, want)
	}
}

// A snapshot that is cut off between two of its frames has nothing but whole ones.
func TestASnapshotWithoutItsLastFramesIsRefused(t *testing.T) {
	t.Parallel()
	const snapshot = "snapshot-0000000002"
	u := newUsed(t, step+step/2)
	r := ask("ann")
	r.Metadata = fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 4000))
	for n := 0; ; n++ {
		r.Election = leadership.Election(fmt.Sprint("e", n))
		if _, err := u.service.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(u.path, "log-0000000002")); err == nil {
			break
		}
	}
	require.NoError(t, u.Checkpointed())
	want, killed := dump(t, u.Store), copied(t, u.path)
	u.Close()
	if got := u.reopened(copied(t, killed)); got != want {
		t.Error("with all frames: it is not as it was")
	}
	rewrite(t, killed, snapshot, func(b []byte) []byte {
		const head, tail = 16, 5
		end := 48 + head + int(binary.BigEndian.Uint32(b[48:])) + tail
		if end = (end + 15) / 16 * 16; end >= len(b) || end < step {
			t.Fatalf("the first frame ends at %d of %d bytes", end, len(b))
		}
		return b[:end]
	})
	u.refused(killed, "the snapshot has its first frame alone", snapshot)
}
