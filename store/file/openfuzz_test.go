package file_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"regent/leadership"
	"regent/store/file"
)

// FuzzOpen changes eight bytes of a file that was in use. Whatever they were, the file is refused
// by name or says what it said before.
func FuzzOpen(f *testing.F) {
	whole := inUse(used(f))
	for at := uint(2 * pageSize); at < uint(len(whole)); at += pageSize {
		for _, in := range []uint{0, 8, 16, 24, 32, pageSize - 8} { // the header, the first elements, and what they have for keys and values
			f.Add(at+in, uint64(1)<<(in+in/8%8))
		}
	}
	path := filepath.Join(f.TempDir(), "regent.db")
	f.Fuzz(func(t *testing.T, at uint, change uint64) {
		content := slices.Clone(whole)
		at %= uint(len(content) - 8)
		binary.NativeEndian.PutUint64(content[at:], binary.NativeEndian.Uint64(content[at:])^change)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := file.Open(path, file.Config{})
		if err != nil {
			if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
			return
		}
		defer s.Close()
		all, err := s.List(t.Context(), "", "", 100)
		waiting, unread := s.Unannounced(t.Context(), "", 100)
		if err != nil || unread != nil || len(all.Snapshots) != 40 || len(all.Untrusted) != 0 || len(waiting) != 40 {
			t.Fatalf("got %d elections and %d events, %v, %v; want 40 of each", len(all.Snapshots), len(waiting), err, unread)
		}
		for i, snap := range all.Snapshots {
			if r := snap.Record; r.Election != electionOf(i) || r.Token != 1 || r.LeaderID != leadership.CandidateID("ann") {
				t.Errorf("got %+v", r)
			}
		}
	})
}
