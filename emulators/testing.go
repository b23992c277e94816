package emulators

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"regent/emulators/need"
)

// perProcess holds the emulators of this test process, each started at its first use. They are not
// stopped: they end with the process, and go test offers no moment after the last test of a
// package. The sets are kept so that the pipes that keep the emulators alive are not
// garbage-collected.
var perProcess = map[Kind]func() (*Set, error){
	KindFirestore: sync.OnceValues(func() (*Set, error) { return startOne(KindFirestore) }),
	KindSpanner:   sync.OnceValues(func() (*Set, error) { return startOne(KindSpanner) }),
	KindPubSub:    sync.OnceValues(func() (*Set, error) { return startOne(KindPubSub) }),
}

func startOne(kind Kind) (*Set, error) {
	return Start(context.Background(), Config{Which: []Kind{kind}})
}

// Firestore returns the host:port of a Firestore emulator that all tests of this process share. It
// blocks while the emulator starts, a few seconds at the first call. If none is available the test
// is skipped, or fails if REGENT_REQUIRE_EMULATORS is 1; if one is available but does not start,
// the test fails.
func Firestore(tb testing.TB) string {
	tb.Helper()
	return host(tb, KindFirestore)
}

// Spanner is like Firestore, for the Spanner emulator. It has no instance and no database until a
// test creates them.
func Spanner(tb testing.TB) string {
	tb.Helper()
	return host(tb, KindSpanner)
}

// PubSub is like Firestore, for the Pub/Sub emulator.
func PubSub(tb testing.TB) string {
	tb.Helper()
	return host(tb, KindPubSub)
}

func host(tb testing.TB, kind Kind) string {
	tb.Helper()
	set, err := perProcess[kind]()
	return hostOf(tb, kind, set, err)
}

func hostOf(tb testing.TB, kind Kind, set *Set, err error) string {
	tb.Helper()
	if err == nil {
		return set.Host(kind)
	}
	if !errors.Is(err, ErrUnavailable) {
		tb.Fatalf("%s emulator: %v", kind.Title(), err)
	}
	need.Lacks(tb, fmt.Sprintf("nothing was tested against the %s emulator: %v", kind.Title(), err))
	return ""
}

// Name returns a unique identifier: the beginning of the test's name and a random end. It is valid
// as a Google Cloud project, a Spanner instance or database and a Firestore database: 14 to 30 of
// a-z, 0-9 and -, beginning with a letter, ending with a letter or digit.
func Name(tb testing.TB) string {
	const longest, random = 30, 12
	words := strings.ToLower(strings.TrimPrefix(filepath.Base(tb.Name()), "Test"))
	words = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(words, "-")
	words = strings.TrimLeft(words, "-0123456789")
	words = strings.TrimRight(words[:min(len(words), longest-random-1)], "-")
	return cmp.Or(words, "t") + "-" + strings.ToLower(rand.Text()[:random])
}
