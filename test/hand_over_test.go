package test

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/client"
	"regent/test/checker"
	"regent/test/machine"
)

// The steps of a hand-over. After each of them, one of the parties is killed.
var handOverSteps = []string{"named", "ready", "drained", "yielded", "taken over"}

// succession is one hand-over: ann leads, bob is to succeed it, and cy waits in line.
type succession struct {
	t        *testing.T
	server   func() *client.Client // of the server that runs now
	election leadership.Election
	ann, bob leadership.LeaseRequest
	lease    time.Duration // of each, and how long after its beginning the hand-over ends
	guard    time.Duration // of the store
	recorder recorder
	began    time.Duration // by this machine's clock, before ann was granted
	late     error         // a step that came after the end that was set, because the machine is busy
}

// recorder takes down the calls.
type recorder struct {
	mu    sync.Mutex
	calls []checker.Call
}

// do makes a call, and again while its outcome is unknown or there is no server. It reports what
// came of it.
func (s *succession) do(c checker.Call, who leadership.LeaseRequest, do func(context.Context, *client.Client) (leadership.Lease, error)) (leadership.Lease, error) {
	s.t.Helper()
	ctx := within(s.t, patience)
	c.Caller, c.Election, c.Candidate, c.Key = string(who.CandidateID), s.election, who.CandidateID, who.Key.Hash()
	for {
		try := c
		try.Request, try.Asked = cryptorand.Text(), boottime.Now()
		l, err := do(leadership.WithRequestID(ctx, try.Request), s.server())
		try.Answered = boottime.Now()
		var refusal *leadership.Error
		switch {
		case err == nil:
			try.Answer = &l
		case errors.As(err, &refusal):
			try.Code, try.Answer, try.Because = refusal.Code, refusal.Lease, refusal.Reason
		default:
			try.Code, try.Answered = leadership.OutcomeUnknown, checker.Forever
		}
		s.recorder.mu.Lock()
		s.recorder.calls = append(s.recorder.calls, try)
		s.recorder.mu.Unlock()
		if err == nil || refusal != nil && refusal.Code != leadership.OutcomeUnknown && refusal.Code != leadership.StoreUnavailable && refusal.Code != "DRAINING" {
			return l, err
		}
		if ctx.Err() != nil {
			s.t.Errorf("%v: %v", c, err)
			return l, err
		}
		<-time.After(20 * time.Millisecond)
	}
}

// handOverLease is of a term that is left to end by itself, and long enough for the steps before.
const handOverLease = 10 * time.Second

func (s *succession) acquire(who *leadership.LeaseRequest, wait time.Duration) error {
	r := leadership.AcquireRequest{Election: s.election, CandidateID: who.CandidateID, Key: &who.Key, LeaseDuration: s.lease, Wait: wait}
	l, err := s.do(checker.Call{Verb: checker.Acquire, Lease: r.LeaseDuration, Waited: wait}, *who, func(ctx context.Context, c *client.Client) (leadership.Lease, error) {
		g, err := c.Acquire(ctx, r)
		return g.Lease, err
	})
	who.Token = l.Token
	return err
}

func (s *succession) renew() error {
	_, err := s.do(checker.Call{Verb: checker.Renew, Token: s.ann.Token}, s.ann, func(ctx context.Context, c *client.Client) (leadership.Lease, error) { return c.Renew(ctx, s.ann) })
	return err
}

// step takes the step of that number.
func (s *succession) step(n int) error {
	var err error
	switch n {
	case 0:
		_, err = s.do(checker.Call{Verb: checker.HandOver, Token: s.ann.Token, To: s.bob.CandidateID, Within: s.lease}, s.ann, func(ctx context.Context, c *client.Client) (leadership.Lease, error) {
			return c.HandOver(ctx, leadership.HandOverRequest{LeaseRequest: s.ann, To: s.bob.CandidateID, Within: s.lease})
		})
	case 1:
		_, err = s.do(checker.Call{Verb: checker.Ready, Token: s.ann.Token}, s.bob, func(ctx context.Context, c *client.Client) (leadership.Lease, error) {
			return c.SayReady(ctx, leadership.LeaseRequest{Election: s.election, CandidateID: s.bob.CandidateID, Key: s.bob.Key, Token: s.ann.Token})
		})
	case 2:
		err = s.renew()
	case 3:
		_, err = s.do(checker.Call{Verb: checker.Yield, Token: s.ann.Token}, s.ann, func(ctx context.Context, c *client.Client) (leadership.Lease, error) { return c.Yield(ctx, s.ann) })
	case 4:
		err = s.acquire(&s.bob, 0)
	}
	return err
}

// Each step of a hand-over, and after it the leader, the successor or the server is killed, or the
// server in the middle of the next one: there are never two leaders; what was left undone ends at
// the end that was set, and then the line goes on; a hand-over that is completed has no gap, and no
// watcher sees one.
func TestAHandOverThatIsCutAtAnyStepMakesNoSecondLeader(t *testing.T) {
	machine.Share(t)
	for _, c := range []struct {
		name  string
		in    func(testing.TB) place
		guard time.Duration
	}{{"file", inFile, 0}, {"firestore", inFirestore, 50 * time.Millisecond}, {"spanner", inSpanner, 50 * time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := c.in(t)
			var mu sync.Mutex
			server := in.serve(t)
			now := func() *client.Client { mu.Lock(); defer mu.Unlock(); return server.client }
			cut := func(t *testing.T, after time.Duration) {
				<-time.After(after)
				mu.Lock()
				defer mu.Unlock()
				server.kill()
				server = in.serve(t)
			}
			var all sync.WaitGroup
			var late machine.Excuses
			for n, step := range handOverSteps {
				for _, victim := range []string{"no party", "leader", "successor"} {
					all.Go(func() {
						late.Redo(func(again int) error {
							s := newSuccession(t, now, fmt.Sprintf("%s-%d-%s-%d", c.name, n, victim[:2], again), handOverLease, c.guard)
							s.run(fmt.Sprintf("%s; then %s is killed", step, victim), n, victim)
							return s.late
						})
					})
				}
			}
			all.Wait()
			random := rand.New(rand.NewPCG(17, 6))
			for n, step := range handOverSteps[1:] {
				for k := range machine.Size(1, 8) {
					late.Redo(func(again int) error {
						s := newSuccession(t, now, fmt.Sprintf("%s-%d-server-%d-%d", c.name, n, k, again), time.Minute, c.guard)
						for before := range n + 1 {
							s.must(s.step(before))
						}
						done := make(chan error)
						go func() { done <- s.step(n + 1) }()
						cut(t, time.Duration(random.IntN(8))*time.Millisecond)
						err := <-done
						for later := n + 2; later < len(handOverSteps) && err == nil; later++ {
							err = s.step(later)
						}
						s.must(err)
						s.finish(fmt.Sprintf("%s, and the server is killed meanwhile: %v", step, err))
						return s.late
					})
				}
			}
			late.Check(t)
		})
	}
}

func newSuccession(t *testing.T, server func() *client.Client, name string, lease, guard time.Duration) *succession {
	s := &succession{t: t, server: server, election: leadership.Election(name), lease: lease, guard: guard, began: boottime.Now()}
	s.ann = leadership.LeaseRequest{Election: s.election, CandidateID: "ann", Key: leadership.NewKey()}
	s.bob = leadership.LeaseRequest{Election: s.election, CandidateID: "bob", Key: leadership.NewKey()}
	s.must(s.acquire(&s.ann, 0))
	return s
}

// must expects that a step is done, unless it came when the lease could be over.
func (s *succession) must(err error) {
	switch {
	case err == nil:
	case boottime.Now()-s.began >= s.lease:
		s.late = fmt.Errorf("%s: %w", s.election, err)
	default:
		s.t.Errorf("%s: %v", s.election, err)
	}
}

// run takes the steps up to one, kills the victim, and lets the others go on.
func (s *succession) run(what string, upTo int, victim string) {
	for n := range upTo + 1 {
		s.must(s.step(n))
	}
	for n := upTo + 1; n < len(handOverSteps); n++ {
		byBob := n == 1 || n == 4
		if victim == "leader" && !byBob || victim == "successor" && byBob {
			break // it waits for one that is gone
		}
		s.must(s.step(n))
	}
	s.finish(what)
}

// finish lets cy wait until it leads, after the term of bob if there is one, and checks what has
// happened, late or not.
func (s *succession) finish(what string) {
	if s.bob.Token > 0 {
		_, err := s.do(checker.Call{Verb: checker.Release, Token: s.bob.Token}, s.bob, func(ctx context.Context, c *client.Client) (leadership.Lease, error) { return c.Release(ctx, s.bob) })
		s.must(err)
	}
	cy := leadership.LeaseRequest{Election: s.election, CandidateID: "cy", Key: leadership.NewKey()}
	err := s.acquire(&cy, leadership.MaxWait)
	for range 2 {
		if err != nil {
			err = s.acquire(&cy, leadership.MaxWait)
		}
	}
	if err != nil {
		s.t.Errorf("%s: no successor leads within three waits: %v", what, err)
	}
	events, err := s.server().Events(within(s.t, patience), leadership.EventsRequest{Election: s.election, Limit: leadership.MaxPageSize})
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
		return
	}
	r := checker.Recording{History: events, Calls: s.recorder.calls}
	const lag = time.Second // between the stamp of an emulator's commit and the commit
	for name, report := range map[string]checker.Report{
		"ME1": checker.ME1(r, s.guard), "FT": checker.FT(r), "Told": checker.Told(r), "Linear": checker.LinearBack(r, s.guard, lag),
	} {
		if err := report.Err(); err != nil {
			s.t.Errorf("%s: %s: %v", what, name, err)
		}
	}
	i := slices.IndexFunc(events, func(e leadership.Event) bool { return e.Type == leadership.EventHandingOver })
	end := slices.IndexFunc(events, func(e leadership.Event) bool {
		return e.Type == leadership.EventReleased || e.Type == leadership.EventExpired
	})
	if s.late == nil && (i < 0 || end < i) {
		s.t.Errorf("%s: no term was handed over, or it never ended: %+v", what, events)
	}
}

// A hand-over that is completed is one instant: a hundred watchers, and readers of the store, see
// one leader and then the next, and never a vacancy.
func TestAHandOverShowsNoVacancyToAHundredWatchers(t *testing.T) {
	machine.Share(t)
	server := inFile(t).serve(t)
	s := newSuccession(t, func() *client.Client { return server.client }, "watched", leadership.MaxWithin, 0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watching, connected sync.WaitGroup
	for range 100 {
		connected.Add(1)
		watching.Go(func() {
			var known leadership.Revision
			var once sync.Once
			r := client.WatchRequest{Election: s.election, Connection: func(error) { once.Do(connected.Done) }}
			for n, err := range server.client.Watch(ctx, r) {
				switch e := n.Event; {
				case err != nil && ctx.Err() == nil:
					t.Error(err)
				case err != nil:
				case n.Lease != nil:
					known = n.Lease.Revision
				case e != nil && e.Revision != known+1:
					t.Errorf("after revision %d comes %d", known, e.Revision)
				case e != nil:
					if known = e.Revision; e.Type == leadership.EventAcquired && e.LeaderID == "bob" {
						return
					}
				}
			}
		})
	}
	connected.Wait()
	reading := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-reading:
					return
				default:
				}
				if l, err := server.client.Get(ctx, s.election); err != nil || l.State != leadership.Held {
					t.Errorf("a reader saw %s of %q: %v", l.State, l.LeaderID, err)
					return
				}
			}
		})
	}
	for n := range handOverSteps {
		s.must(s.step(n))
	}
	watching.Wait()
	close(reading)
	readers.Wait()
	events := verifyHistory(t.Context(), t, server, s.election)
	at := slices.IndexFunc(events, func(e leadership.Event) bool { return e.Type == leadership.EventReleased })
	if at < 0 || len(events) < at+2 || events[at+1].Type != leadership.EventAcquired || !events[at].At.Equal(events[at+1].At) {
		t.Errorf("the end of one term and the begin of the next are not one instant: %+v", events)
	}
}
