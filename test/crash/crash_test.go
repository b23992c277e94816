package crash

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
)

var (
	images    = flag.Int("images", 120, "how many crashes are tried")
	corrupted = flag.Int("corrupted", 100, "how many damaged folders are tried")
	seed      = flag.Uint64("seed", 1, "chooses the trials")
)

func TestMain(m *testing.M) {
	if code, played := playWriter(os.Args); played {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestStoreSurvives(t *testing.T) {
	r, err := Run(t.Context(), Config{Seed: *seed, Images: *images, Corrupted: *corrupted})
	skipUntraced(t, err)
	require.NoError(t, err)
	t.Logf("%+v", r)
	t.Logf("looked at: %d images, %d damaged folders, %d refused by name, %d failing calls", r.Images, r.Corrupted, r.Refused, r.Trials)
	if r.Images != *images || r.Corrupted != *corrupted || r.Refused == 0 || r.Snapshots < 2 || r.Kinds["torn, whole"] == 0 || r.Kinds["fault, stopped"] == 0 {
		t.Errorf("too little was tried: %+v", r)
	}
}

func skipUntraced(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errNoTrace) {
		need.Lacks(t, err.Error())
	}
}

// recorded is a log.
func recorded(t *testing.T) []entry {
	t.Helper()
	dir, err := folder()
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	files := filepath.Join(dir, folderName)
	require.NoError(t, os.Mkdir(files, 0o700))
	log, err := record(t.Context(), files, script{Seed: *seed, Callers: 4, Calls: 8})
	skipUntraced(t, err)
	require.NoError(t, err)
	return log
}

// checked is what 150 crashes of the log show.
func checked(t *testing.T, log []entry) error {
	t.Helper()
	dir, err := folder()
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	r, err := newRecording(log, nil, dir)
	require.NoError(t, err)
	plans := crashes(log, *seed, 150)
	_, err = checkAll(t.Context(), len(plans), func() check { return r.checks(plans) })
	return err
}

func TestMissingSyncIsCaught(t *testing.T) {
	log := recorded(t)
	for i := range log {
		if log[i].Kind == synced {
			log[i] = entry{Kind: used}
		}
	}
	err := checked(t, log)
	if err == nil || !strings.Contains(err.Error(), "after entry") {
		t.Errorf("got %v", err)
	}
}

func TestAnswerBeforeSyncIsCaught(t *testing.T) {
	log := recorded(t)
	if err := checked(t, log); err != nil {
		t.Fatalf("the store itself: %v", err)
	}
	err := checked(t, early(t, log))
	if err == nil || !strings.Contains(err.Error(), "after entry") {
		t.Errorf("got %v", err)
	}
}

// early lets every answer come before the last sync that it waited for.
func early(t *testing.T, log []entry) (moved []entry) {
	t.Helper()
	before := make(map[int][]entry) // answers, by the sync that they are to come before
	place := make([]int, len(log))  // where in moved everything is that was done before
	gone := make(map[int]bool)
	for answer, ask := range answers(t, log) {
		for i := answer; i > ask; i-- {
			if log[i].Kind == synced {
				before[i], gone[answer] = append(before[i], log[answer]), true
				break
			}
		}
	}
	for i, e := range log {
		place[i] = len(moved)
		e.Began = place[e.Began]
		moved = append(moved, before[i]...)
		if !gone[i] {
			moved = append(moved, e)
		}
	}
	return moved
}

// answers returns where calls are answered, and where they were made.
func answers(t *testing.T, log []entry) map[int]int {
	t.Helper()
	asked, answered := make(map[string]int), make(map[int]int)
	for i, e := range log {
		if e.Kind != said {
			continue
		}
		l, err := decode(e.Data)
		switch {
		case err != nil:
			t.Fatal(err)
		case l.Told:
			answered[i] = asked[l.ID]
		default:
			asked[l.ID] = i
		}
	}
	return answered
}
