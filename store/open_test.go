package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

func TestASpecNamesAStore(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]target{
		"memory:":                                    {kind: inMemory},
		"file:leases":                                {kind: inFile, path: "leases"},
		"file:/a b/with:colon.db":                    {kind: inFile, path: "/a b/with:colon.db"},
		"firestore:my-project":                       {kind: inFirestore, project: "my-project"},
		"firestore:p/(default)":                      {kind: inFirestore, project: "p", database: "(default)"},
		"firestore:example.com:p/db":                 {kind: inFirestore, project: "example.com:p", database: "db"},
		"spanner:projects/p/instances/i/databases/d": {kind: inSpanner, database: "projects/p/instances/i/databases/d"},
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			got, err := parse(spec)
			require.NoError(t, err)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAWrongSpecIsRefusedWithARightOne(t *testing.T) {
	t.Parallel()
	const all = "memory:, file:PATH, firestore:PROJECT[/DATABASE] or spanner:projects/P/instances/I/databases/D"
	for _, c := range []struct{ spec, want string }{
		{"", all},
		{"leases", all},
		{"redis:localhost", all},
		{"memory:now", "memory:"},
		{"file: ", "file:PATH"},
		{"file:a\x00b", "file:PATH"},
		{"firestore:", "firestore:PROJECT[/DATABASE]"},
		{"firestore:p/", "firestore:PROJECT[/DATABASE]"},
		{"firestore:p/d/x", "firestore:PROJECT[/DATABASE]"},
		{"firestore:p q", "firestore:PROJECT[/DATABASE]"},
		{"spanner:p/i/d", "spanner:projects/P/instances/I/databases/D"},
		{"spanner:projects//instances/i/databases/d", "spanner:projects/P/instances/I/databases/D"},
		{"spanner:projects/p/instance/i/databases/d", "spanner:projects/P/instances/I/databases/D"},
		{"spanner:projects/p/instances/i/databases/d/x", "spanner:projects/P/instances/I/databases/D"},
	} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), c.spec, Config{})
			if s != nil || !errors.Is(err, leadership.InvalidArgument) {
				t.Fatalf("Open: %v, %v; want an error with the code %s", s, err, leadership.InvalidArgument)
			}
			if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
				t.Errorf("%q: want one line with %q", text, c.want)
			}
			if _, migrating := Migrate(t.Context(), c.spec); migrating == nil || migrating.Error() != err.Error() {
				t.Errorf("Migrate: %v; want what Open says: %v", migrating, err)
			}
		})
	}
}

func TestHistoryIsKeptForAnHourAtLeastInEveryStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	for _, spec := range []string{"memory:", "file:" + path, "firestore:p", "spanner:projects/p/instances/i/databases/d"} {
		for _, span := range []time.Duration{-time.Hour, time.Nanosecond, rule.MinHistory - 1} {
			s, err := Open(t.Context(), spec, Config{History: span})
			var refused *leadership.Error
			if s != nil || !errors.As(err, &refused) || refused.Code != leadership.InvalidArgument || refused.Field != "history" {
				t.Errorf("%s, history for %v: %v, %v; want that it is too short", spec, span, s, err)
			}
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat: %v; want no folder", err)
	}
}

func TestTheStoreOfASpecKeepsHistoryForAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"memory:", "file:" + filepath.Join(t.TempDir(), "leases")} {
		s, err := Open(t.Context(), spec, Config{History: 2 * rule.MinHistory})
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		defer s.Close()
		snap, err := s.Get(t.Context(), "e")
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		kept := rule.MinHistory
		if spec == "memory:" { // there is nothing from before the process
			kept = 5 * time.Second
		}
		for back, want := range map[time.Duration]error{kept: nil, 3 * rule.MinHistory: leadership.HistoryCompacted} {
			if _, err := s.Since(t.Context(), snap.Now.Add(-back), 1); !errors.Is(err, want) {
				t.Errorf("%s: what was %v ago: %v, want %v", spec, back, err, want)
			}
		}
	}
}

func TestAStoreThatCannotBeOpenedIsNil(t *testing.T) {
	t.Parallel()
	folder := t.TempDir() // of mode 0755
	s, err := Open(t.Context(), "file:"+folder, Config{})
	if s != nil || err == nil {
		t.Errorf("a folder that others can read: %v, %v; want nil and an error", s, err)
	}
}

func TestMigratingCreatesNoFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases")
	for _, spec := range []string{"memory:", "file:" + path, "firestore:p"} {
		done, err := Migrate(t.Context(), spec)
		if err != nil || !strings.HasPrefix(done, "nothing to do") {
			t.Errorf("%s: %q, %v; want that there is nothing to do", spec, done, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat: %v; want no folder", err)
	}
}
