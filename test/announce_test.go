package test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
	"regent/test/machine"
	"regent/test/process"
)

// While clients make changes, the servers under them are killed at every point between a commit and
// the mark that it was announced, and at random moments. In the end a subscriber of the topic has
// heard of every change, in order, and of nothing else.
//
// The short form leaves out one server on each cloud store: a server with a local store dies at
// every point, and on the cloud stores two servers take over from each other.
func TestEveryChangeIsAnnouncedWhateverIsKilled(t *testing.T) {
	machine.Share(t)
	for _, c := range []struct {
		name    string
		in      func(testing.TB) place
		servers int
		changes int
		rounds  int
		long    bool // not in the short form
	}{
		{"file", inFile, 1, machine.Size(400, 800), machine.Size(1, 2), false},
		{"firestore", inFirestore, 1, 400, 1, true},
		{"firestore, two servers", inFirestore, 2, machine.Size(150, 300), 1, false},
		{"spanner", inSpanner, 1, 300, 1, true},
		{"spanner, two servers", inSpanner, 2, machine.Size(100, 200), 1, false},
	} {
		if c.long && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			killServers(t, c.in(t), c.servers, c.changes, lives(c.rounds))
		})
	}
}

// life says how one server dies.
type life struct {
	point  string // where it is killed; "" at a random moment
	hit    int    // at the how manieth time
	behind bool   // something was left behind before, and the clients leave most of it alone
	tick   bool   // it is asked to look after that at once
	burst  int    // so many changes of one election were left behind before
}

// lives returns the deaths of so many rounds: every failpoint, at several counts.
func lives(rounds int) (all []life) {
	for round := range rounds {
		few, more := 1+round, 7+5*round
		all = append(all,
			life{point: "outbox:committed", hit: few},
			life{point: "outbox:published", hit: few},
			life{point: "outbox:left", hit: 1, behind: true},
			life{point: "outbox:committed", hit: more},
			life{point: "outbox:marked", hit: few},
			life{},
			life{point: "outbox:left-marked", hit: more, behind: true},
			life{point: "outbox:published", hit: more},
			life{point: "outbox:left-published", hit: few, behind: true, tick: true},
			life{},
			life{point: "outbox:mid-batch", hit: few, burst: 100*few + 10},
			life{point: "outbox:left-published", hit: more, behind: true, tick: true},
			life{point: "outbox:left-marked", hit: few, behind: true, tick: true},
		)
	}
	return all
}

// killServers lets agents make changes while servers live and die, so many at a time.
func killServers(t *testing.T, in place, servers, changes int, deaths []life) {
	ctx := within(t, 5*time.Minute)
	on := newTopic(t)
	m := &killRun{t: t, silent: in, in: in.announcing(on), steps: make(chan struct{}), share: changes / len(deaths), killed: make(map[string]int)}
	m.active.Store(elections)
	m.due.Store(int64(changes))
	on.consume(t, func(e leadership.Event) { m.recorder.Deliver("subscriber", e) })
	working, stop := context.WithCancel(ctx)
	var agents sync.WaitGroup
	for i := range 4 {
		a := newChanger(i, m)
		agents.Go(func() { a.work(working) })
	}
	m.run(ctx, servers, deaths)
	last := m.in.serve(t)
	m.enter(last)
	m.spend(last, int(m.due.Load()), 0)
	stop()
	agents.Wait()
	m.close(ctx, last)
	for _, l := range deaths {
		if servers == 1 && l.point != "" && m.killed[l.point] == 0 {
			t.Errorf("no process was killed at %s", l.point)
		}
	}
}

// killRun is a test under way.
type killRun struct {
	t          *testing.T
	in, silent place // with and without the topic
	recorder   checker.Recorder
	steps      chan struct{} // that the agents may take: each is a change, most often
	share      int           // of them in one life
	due        atomic.Int64  // in all, that were not taken yet
	active     atomic.Int64  // elections, the first so many, that the agents make changes in

	mu     sync.Mutex // guards all below
	alive  []*server
	killed map[string]int // by where
}

// run lets servers live one after the other, so many at a time.
func (m *killRun) run(ctx context.Context, servers int, deaths []life) {
	queue := make(chan life, len(deaths))
	for _, l := range deaths {
		queue <- l
	}
	close(queue)
	var slots sync.WaitGroup
	for range servers {
		slots.Go(func() {
			for l := range queue {
				m.live(ctx, l)
			}
		})
	}
	slots.Wait()
}

const busy = 5 // elections in which the agents make changes while there is something left behind in the others

// live starts a server, and lets it die.
func (m *killRun) live(ctx context.Context, l life) {
	if l.behind || l.burst > 0 {
		m.leaveBehind(ctx, l.burst)
	}
	if l.behind {
		m.active.Store(busy)
		defer m.active.Store(elections)
	}
	env, patience := m.in.env, time.Duration(rand.IntN(100))*time.Millisecond
	if l.point != "" {
		env, patience = append(env[:len(env):len(env)], fmt.Sprintf("REGENT_FAILPOINT=%s:%d", l.point, l.hit)), 8*time.Second
	}
	if l.behind && !l.tick {
		patience = 16 * time.Second // a sweep of its own waits for 10 s and more
	}
	s := start(m.t, invoke(m.t, process.Mortal, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, m.in.args...)...))
	m.enter(s)
	defer m.leave(s)
	var aside sync.WaitGroup // calls that the server's death ends at the latest
	defer aside.Wait()
	if l.tick {
		aside.Go(func() { tick(ctx, s) })
	}
	if l.burst > 0 {
		aside.Go(func() { configure(ctx, s, quiet, 5*time.Minute) }) // one more change of that election
	}
	m.spend(s, m.share, patience)
	m.bury(l, s)
}

// spend lets the agents take some steps while the server lives, and then more of them, slowly, for
// up to patience.
func (m *killRun) spend(s *server, steps int, patience time.Duration) {
	const pace = 4 * time.Millisecond
	for range steps {
		m.step(s)
		<-time.After(pace)
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && m.step(s); {
		<-time.After(10 * pace)
	}
}

// step lets an agent take a step. It reports whether the server lives.
func (m *killRun) step(s *server) bool {
	select {
	case m.steps <- struct{}{}:
		m.due.Add(-1)
		return true
	case <-s.gone:
		return false
	}
}

// bury counts a death. A server that has outlived its failpoint is killed.
func (m *killRun) bury(l life, s *server) {
	cause := l.point
	select {
	case <-s.gone:
	default:
		cause = "random moment"
		if l.point != "" {
			m.t.Logf("%s is not hit %d times; the server is killed otherwise", l.point, l.hit)
		}
		s.kill()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed[cause]++
}

// quiet is an election that no agent contends for.
const quiet leadership.Election = "quiet"

// leaveBehind makes changes that no server announces: in each election, or many in one.
func (m *killRun) leaveBehind(ctx context.Context, burst int) {
	s := m.silent.serve(m.t)
	defer s.kill()
	for i := range max(elections, burst) {
		e := electionName(i)
		if burst > 0 {
			e = quiet
		}
		if err := configure(ctx, s, e, time.Duration(1+rand.IntN(3_600_000))*time.Millisecond); err != nil {
			m.t.Errorf("configure %s: %v", e, err)
			return
		}
	}
}

func configure(ctx context.Context, s *server, e leadership.Election, lockDelay time.Duration) error {
	_, err := s.client.Configure(ctx, leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{
		Config: leadership.Config{LockDelay: lockDelay},
	}})
	return err
}

// tick asks the server to record ends and announce events that are due.
func tick(ctx context.Context, s *server) error {
	return post(ctx, s.URL+wire.PathTick, nil, new(wire.Tick))
}

func (m *killRun) enter(s *server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive = append(m.alive, s)
}

func (m *killRun) leave(s *server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive = slices.DeleteFunc(m.alive, func(other *server) bool { return other == s })
}

// any waits for a server that lives, and returns one; nil if ctx ends.
func (m *killRun) any(ctx context.Context) *server {
	for ctx.Err() == nil {
		m.mu.Lock()
		n := len(m.alive)
		var s *server
		if n > 0 {
			s = m.alive[rand.IntN(n)]
		}
		m.mu.Unlock()
		if s != nil {
			return s
		}
		<-time.After(time.Millisecond)
	}
	return nil
}

// close has the server announce the remaining events, and compares the events that the subscriber
// heard with the history.
func (m *killRun) close(ctx context.Context, s *server) {
	if err := tick(ctx, s); err != nil {
		m.t.Errorf("the last tick: %v", err)
	}
	recording, report := awaitAnnounced(ctx, m.t, s, &m.recorder)
	if err := report.Err(); err != nil {
		m.t.Errorf("%v\n%s", err, keep(m.t, recording))
	}
	kills := 0
	var places []string
	for _, where := range slices.Sorted(maps.Keys(m.killed)) {
		kills += m.killed[where]
		places = append(places, fmt.Sprintf("%s %d", where, m.killed[where]))
	}
	m.t.Logf("%d changes, %d kills (%s), %d duplicates", len(recording.History), kills, strings.Join(places, ", "), report.Duplicates)
}

// wholeHistory reads the events of all elections.
func wholeHistory(ctx context.Context, t testing.TB, s *server) (events []leadership.Event) {
	t.Helper()
	page, err := s.client.List(ctx, leadership.ListRequest{Limit: leadership.MaxPageSize})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Leases {
		events = append(events, verifyHistory(ctx, t, s, l.Election)...)
	}
	return events
}

// keep saves the recording of a failure to a file that stays, and returns its path.
func keep(t testing.TB, r checker.Recording) string {
	t.Helper()
	dir := t.ArtifactDir()
	if flag.Lookup("test.artifacts").Value.String() != "true" { // it goes with the test
		var err error
		if dir, err = os.MkdirTemp("", "regent-recording-*"); err != nil {
			return err.Error()
		}
	}
	f, err := os.Create(filepath.Join(dir, "recording.jsonl"))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("what happened is in %s (%v)", f.Name(), errors.Join(r.Write(f), f.Close()))
}

// changer is an agent that makes changes. A call that is not answered is repeated, at any server,
// until it is.
type changer struct {
	id    leadership.CandidateID
	key   leadership.Key
	run   *killRun
	rand  *rand.Rand
	terms map[leadership.Election]leadership.Token // those that it leads
}

func newChanger(i int, at *killRun) *changer {
	random := rand.New(rand.NewPCG(uint64(i), 7))
	return &changer{id: candidate(i), key: leadership.NewKey(), run: at, rand: random, terms: make(map[leadership.Election]leadership.Token)}
}

// work takes the steps that are allowed until ctx ends.
func (a *changer) work(ctx context.Context) {
	for {
		select {
		case <-a.run.steps:
		case <-ctx.Done():
			return
		}
		e := electionName(a.rand.IntN(int(a.run.active.Load())))
		lockDelay := time.Duration(a.rand.IntN(1000)) * time.Millisecond // nothing is locked, for all is released
		switch mine, token := a.term(); {
		case token > 0 && a.rand.IntN(2) == 0:
			a.release(ctx, mine, token)
		case a.rand.IntN(5) == 0:
			a.call(ctx, func(s *server) error { return configure(ctx, s, e, lockDelay) })
		default:
			a.acquire(ctx, e)
		}
	}
}

// term is an election that the agent leads and may make changes in; its token is 0 if there is
// none.
func (a *changer) term() (leadership.Election, leadership.Token) {
	for i := range int(a.run.active.Load()) {
		if token, ok := a.terms[electionName(i)]; ok {
			return electionName(i), token
		}
	}
	return "", 0
}

func (a *changer) acquire(ctx context.Context, e leadership.Election) {
	err := a.call(ctx, func(s *server) error {
		g, err := s.client.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &a.key, LeaseDuration: time.Hour})
		if err == nil {
			a.terms[e] = g.Token
		}
		return err
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, leadership.LeaseHeld) {
		a.run.t.Errorf("%s asks for %s: %v", a.id, e, err)
	}
}

func (a *changer) release(ctx context.Context, e leadership.Election, token leadership.Token) {
	err := a.call(ctx, func(s *server) error {
		_, err := s.client.Release(ctx, leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: a.key, Token: token})
		return err
	})
	if err != nil && ctx.Err() == nil {
		a.run.t.Errorf("%s releases %s: %v", a.id, e, err)
	}
	delete(a.terms, e)
}

// call makes a call until it is answered.
func (a *changer) call(ctx context.Context, do func(*server) error) error {
	for {
		s := a.run.any(ctx)
		if s == nil {
			return ctx.Err()
		}
		if err := do(s); !gone(err) {
			return err
		}
		<-time.After(time.Millisecond)
	}
}
