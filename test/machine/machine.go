// Package machine shares a machine among tests that start many processes, whose leases need
// processor time.
//
// Such tests have two forms. The short one, with -short, is run by make test: fewer rounds, side by
// side, and without time limits except those of the promise itself, so that it passes on a busy
// machine. The long one measures, and is run by make prove.
package machine

import (
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// together is how many tests of the short form run side by side. They wait for processes far more
// than they compute.
const together = 8

// Main runs the tests of a package that wants the machine for itself: go test runs as many packages
// at a time as there are processors, and of these packages one after the other. It ends the
// process.
func Main(m *testing.M) {
	flag.Parse()
	n := 0
	if testing.Short() {
		n = together
	}
	MainTogether(m, n)
}

// MainTogether is Main for tests of which n run side by side in every form; 0 means as many as the
// flags say.
func MainTogether(m *testing.M, n int) {
	DefaultSignals()
	flag.Parse()
	if n > 0 {
		flag.Set("test.parallel", strconv.Itoa(n))
	}
	unlock := lock()
	code := m.Run()
	unlock()
	os.Exit(code)
}

// DefaultSignals lets the processes that this one starts begin with the default action of each
// signal. Under nohup, and in the background of a script, they would ignore some, as this process
// does; those that a process catches begin with their default action in its children.
func DefaultSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// lock blocks until no other process has the lock, and holds it until unlock is called or the
// process ends. If the lock cannot be created it does nothing.
func lock() (unlock func()) {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "regent-tests.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}
	}
	for syscall.Flock(int(file.Fd()), syscall.LOCK_EX) == syscall.EINTR {
	}
	return func() { file.Close() }
}

// Patience is the longest wait for an event that should take milliseconds, so that a test ends if
// the event never comes.
const Patience = 2 * time.Minute

// Eventually waits until done reports true, for Patience at most.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !done(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Size returns how much a test does: in its short form, or in its long one.
func Size[T any](short, long T) T {
	if testing.Short() {
		return short
	}
	return long
}

// Drawn returns the seed of -shuffle, by which a short form selects its part; 0 if there is none.
func Drawn() int {
	n, _ := strconv.Atoi(flag.Lookup("test.shuffle").Value.String())
	return n
}

// Draw returns one in so many of all things. As many draws as that, one after the other, return
// all.
func Draw[T any](all []T, share, draw int) (drawn []T) {
	for n := draw % share; n < len(all); n += share {
		drawn = append(drawn, all[n])
	}
	return drawn
}

// Share lets a test run beside others in its short form. In its long form it runs alone.
func Share(t *testing.T) {
	if testing.Short() {
		t.Parallel()
	}
}

// LongOnly skips a test in the short form, because another test replaces it or it would take a
// minute.
func LongOnly(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s; make prove runs it", why)
	}
}
