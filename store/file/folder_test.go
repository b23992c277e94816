package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/file"
)

// used is a folder in which something goes on.
type used struct {
	t       testing.TB
	path    string
	config  file.Config
	uptime  time.Duration
	random  *rand.Rand
	service *service.Service
	*file.Store
}

// elections are those of a used folder.
var elections = []leadership.Election{"a", "a.b", "b", "c", "d"}

func newUsed(t testing.TB, checkpoint int64) *used {
	t.Helper()
	u := &used{t: t, path: filepath.Join(t.TempDir(), "leases"), uptime: time.Hour, random: rand.New(rand.NewPCG(1, 2))}
	clock := file.Clock{BootID: "boot", SinceBoot: func() time.Duration { return u.uptime }}
	u.config = file.Config{Clock: clock, History: rule.MinHistory, Checkpoint: checkpoint}
	u.open(u.path)
	t.Cleanup(func() { u.Close() })
	return u
}

// open opens the folder, or a copy of it.
func (u *used) open(path string) {
	u.t.Helper()
	s, err := file.Open(path, u.config)
	require.NoError(u.t, err)
	u.Store, u.service, u.path = s, service.New(s), path
}

// live makes so many calls of all kinds.
func (u *used) live(calls int) {
	u.t.Helper()
	for range calls {
		u.uptime += time.Duration(u.random.Int64N(int64(time.Minute)))
		e := elections[u.random.IntN(len(elections))]
		name := []string{"ann", "bob"}[u.random.IntN(2)]
		var key leadership.Key
		copy(key[:], name)
		lease := leadership.LeaseRequest{Election: e, CandidateID: leadership.CandidateID(name), Key: key}
		if l, err := u.service.Get(u.t.Context(), e); err == nil {
			lease.Token = l.Token
		}
		ctx := leadership.WithRequestID(u.t.Context(), fmt.Sprintf("%032x", u.random.Uint64()))
		switch u.random.IntN(8) { // a refused call changes nothing
		case 0, 1:
			metadata := fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("y", u.random.IntN(1000)))
			u.service.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: lease.CandidateID, Key: &key, LeaseDuration: 5 * time.Minute, Metadata: metadata})
		case 2:
			u.service.Do(ctx, leadership.Release{LeaseRequest: lease})
		case 3:
			u.service.Renew(ctx, lease)
		case 4:
			config := leadership.Config{LockDelay: time.Duration(u.random.IntN(9)) * time.Second, LeaseDuration: time.Minute}
			u.service.Do(ctx, leadership.Configure{Election: e, Config: config})
		case 5:
			waiting, err := u.Unannounced(ctx, "", 20)
			require.NoError(u.t, err)
			var ids []leadership.EventID
			for _, w := range waiting {
				if u.random.IntN(3) > 0 {
					ids = append(ids, w.ID())
				}
			}
			require.NoError(u.t, u.MarkAnnounced(ctx, ids))
		case 6:
			u.amend(rule.LogID{Election: e, Kind: rule.LogCheckpoint})
		case 7:
			u.amend(rule.LogID{Election: e, Kind: rule.LogJournal})
		}
	}
}

// amend changes a log: mostly it adds a segment, and now and then it puts a snapshot and trims.
func (u *used) amend(id rule.LogID) {
	u.t.Helper()
	before, err := u.Segments(u.t.Context(), id, 0, 1000)
	require.NoError(u.t, err)
	var end leadership.Index
	if n := len(before); n > 0 {
		end = before[n-1].Last
	}
	data := fmt.Sprintf(`[{"x":%q}]`, strings.Repeat("z", u.random.IntN(60)))
	ch := rule.LogChange{Text: fmt.Sprintf(`{"n":%d}`, u.random.IntN(100)), Body: data[u.random.IntN(2)*len(data):]}
	ch.Add = append(ch.Add, rule.Segment{First: end + 1, Last: end + leadership.Index(1+u.random.IntN(3)), Data: data})
	if u.random.IntN(4) == 0 && end > 0 {
		ch.Add = append(ch.Add, rule.Segment{Last: end, Data: data})
	}
	if _, err := u.Amend(u.t.Context(), id, func(rule.Log) (rule.LogChange, error) { return ch, nil }); err != nil {
		u.t.Fatal(err)
	}
	if len(ch.Add) > 1 {
		require.NoError(u.t, u.Trim(u.t.Context(), id, end))
	}
}

// dump tells all that a store has.
func dump(t testing.TB, s *file.Store) string {
	t.Helper()
	var b strings.Builder
	var newest time.Time
	listing, err := s.List(t.Context(), "", "", 1000)
	if err != nil || listing.Next != "" || len(listing.Untrusted) > 0 {
		t.Fatalf("got %+v, %v", listing, err)
	}
	for _, snap := range listing.Snapshots {
		fmt.Fprintf(&b, "%+v\n", snap.Record)
		events, err := s.Events(t.Context(), snap.Record.Election, 0, 100_000)
		require.NoError(t, err)
		for _, e := range events {
			if fmt.Fprintf(&b, "  %+v\n", e); e.At.After(newest) {
				newest = e.At
			}
		}
	}
	held, err := s.Held(t.Context(), "", 1000)
	require.NoError(t, err)
	for _, snap := range held.Snapshots {
		fmt.Fprintln(&b, "held", snap.Record.Election)
	}
	waiting, err := s.Unannounced(t.Context(), "", 100_000)
	require.NoError(t, err)
	for _, e := range waiting {
		fmt.Fprintln(&b, "waits", e.ID())
	}
	ids, err := s.Logs(t.Context(), rule.LogID{}, 1000)
	require.NoError(t, err)
	for _, id := range ids {
		head, err := s.Look(t.Context(), id)
		snapshot, err2 := s.Snapshot(t.Context(), id)
		segments, err3 := s.Segments(t.Context(), id, 0, 1000)
		require.NoError(t, errors.Join(err, err2, err3))
		fmt.Fprintf(&b, "%+v %+v %+v\n", head, snapshot, segments)
	}
	recent, err := s.Between(newest.Add(-rule.MinHistory/2), newest)
	fmt.Fprintln(&b, recent, err)
	_, err = s.Between(newest.Add(-1000*time.Hour), newest)
	fmt.Fprintln(&b, err) // which says from when on the history is kept
	return b.String()
}

// copied is the folder as a kill at this moment leaves it, without the files named. No checkpoint
// may be under way but in those.
func copied(t testing.TB, path string, without ...string) string {
	t.Helper()
	list, err := os.ReadDir(path)
	require.NoError(t, err)
	files := make(map[string][]byte)
	for _, f := range list {
		if !slices.Contains(without, f.Name()) {
			files[f.Name()] = read(t, path, f.Name())
		}
	}
	return folderOf(t, files)
}

// reopened is what a folder has when it is opened anew.
func (u *used) reopened(path string) string {
	u.t.Helper()
	s, err := file.Open(path, u.config)
	require.NoError(u.t, err)
	defer s.Close()
	return dump(u.t, s)
}

func TestAFolderHasWhenItIsOpenedAgainWhatItHadBefore(t *testing.T) {
	t.Parallel()
	for _, checkpoint := range []int64{1 << 30, 20_000} {
		u := newUsed(t, checkpoint)
		for round := range 6 {
			u.live(400)
			require.NoError(t, u.Checkpointed())
			want := dump(t, u.Store)
			killed := u.reopened(copied(t, u.path))
			if killed != want {
				t.Fatalf("round %d, killed: got\n%s\nwant\n%s", round, killed, want)
			}
			require.NoError(t, u.Close())
			if closed := u.reopened(copied(t, u.path)); closed != want {
				t.Fatalf("round %d, closed: got\n%s\nwant\n%s", round, closed, want)
			}
			if round%2 == 0 {
				u.open(copied(t, u.path)) // it may be copied, and moved
			} else {
				u.open(u.path)
			}
			events, _, alive := u.Kept()
			if events != alive {
				t.Fatalf("%d events are kept in pages, and %d in elections", alive, events)
			}
		}
		if snapshots, _ := filepath.Glob(u.path + "/snapshot-*"); (len(snapshots) == 1) != (checkpoint < 1<<20) {
			t.Errorf("a checkpoint is due after %d bytes, and there are the snapshots %v", checkpoint, snapshots)
		}
	}
}

func TestCheckTellsWhatAFolderHasAndChangesNothing(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 20_000)
	u.live(300)
	if _, err := file.Check(u.path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("while it is served: got %v", err)
	}
	events, _, _ := u.Kept()
	last, err := u.Update(t.Context(), "a", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.Configure{Config: leadership.Config{LockDelay: time.Hour}})
	})
	require.NoError(t, err)
	events++
	if r, err := file.Check(copied(t, u.path)); err != nil || r.Closed {
		t.Errorf("killed: got %+v, %v", r, err)
	}
	u.Close()
	before := contents(t, u.path)
	r, err := file.Check(u.path)
	if err != nil || r.Elections != len(elections) || r.Events != events || r.Torn != 0 || !r.LastCommit.Equal(last.Now) || r.Commits == 0 || !r.Closed {
		t.Errorf("got %+v, %v; want %d elections and %d events", r, err, len(elections), events)
	}
	files, _ := filepath.Glob(u.path + "/*")
	for _, name := range files {
		r.Bytes -= int64(len(read(t, "", name)))
	}
	if after := contents(t, u.path); after != before || r.Bytes != 0 {
		t.Errorf("the folder was\n%s\nand is\n%s; it is said to have %d bytes more", before, after, r.Bytes)
	}
	if _, err := file.Check(u.path + "-not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: got %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	if _, err := file.Check(empty); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: got %v", err)
	}
}

// A server that is started again after its folder was moved makes a new store, whose tokens begin
// anew.
func TestANewStoreIsToldOfInTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	for _, isNew := range []bool{true, false} {
		var log bytes.Buffer
		s, err := file.Open(path, file.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		if told := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "new, empty store"); told != isNew {
			t.Errorf("new: %v, and the log says %q", isNew, log.String())
		}
	}
}

// contents tells the files of a folder, and when they were changed.
func contents(t testing.TB, path string) string {
	t.Helper()
	files, err := os.ReadDir(path)
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		fmt.Fprintln(&b, f.Name(), info.Size(), info.ModTime())
	}
	return b.String()
}
