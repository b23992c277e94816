package clients_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"regent/emulators/need"
	"regent/test/clients"
	proc "regent/test/process"
)

// clockTrials have clocks that are wrong.
var clockTrials = []trial{
	{name: "the times of day in replies jump", run: func(s *scene) {
		dates := inTurns("1999-12-31T23:59:59Z", "2100-01-01T00:00:00Z")
		s.gate.edit(func(_ *exchange, reply map[string]any, header http.Header) {
			date := dates()
			for _, name := range []string{"acquiredAt", "lastHeartbeat", "leaseExpiration", "readAt"} {
				if _, ok := reply[name]; ok {
					reply[name] = date
				}
			}
			at, _ := time.Parse(time.RFC3339, date)
			header.Set("Date", at.Format(http.TimeFormat))
		})
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.renews(4)
		d.goesOn()
		d.stops()
	}},
	{name: "the wall clock is set back and forth", lease: 15 * time.Second, needs: []ability{cLibrary}, run: func(s *scene) {
		s.setClocks()
		s.gate.hurry(often)
		d := s.start(clients.Options{})
		d.leads(1)
		s.renews(4)
		s.line.CutOff()
		d.loses(clients.Deadline)
		s.line.Heal()
		d.ends()
		s.vacant(1)
	}},
	{name: "the server's clock is 0.1 % fast: an hour's lease ends 3.6 s early", lease: time.Hour, fast: 0.001, needs: []ability{remaining}, run: func(s *scene) {
		d := s.start(clients.Options{})
		d.leads(1)
		d.goesOn()
		d.stops()
	}},
}

// setClocks has the driver's wall clock jump by two hours, there and back, each millisecond:
// by a library that stands before the C library.
func (s *scene) setClocks() {
	s.Helper()
	need.Programs(s.T, "cc")
	s.setup = append(s.setup, "LD_PRELOAD="+s.wallClock())
	check := exec.Command("date", "+%s")
	check.Env = proc.Environ(s.setup...)
	out, err := check.Output()
	s.need(err)
	at, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	s.need(err)
	if off := time.Since(time.Unix(at, 0)).Abs(); off < 30*time.Minute {
		s.Fatalf("the wall clock is off by %v only", off)
	}
}

// wallClock builds a library for LD_PRELOAD.
func (s *scene) wallClock() string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "wallclock.so")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", path, s.file("drivers/wallclock.c")).CombinedOutput(); err != nil {
		s.Fatalf("cc: %v: %s", err, out)
	}
	return path
}

// inTurns returns one after the other.
func inTurns(all ...string) func() string {
	next := make(chan string, len(all))
	for _, one := range all {
		next <- one
	}
	return func() string {
		one := <-next
		next <- one
		return one
	}
}
