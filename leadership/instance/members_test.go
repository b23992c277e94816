package instance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/store/storetest"
)

// memberBus carries sheets between instances in one process.
type memberBus struct {
	mu   sync.Mutex // guards all below
	cut  map[*memberLine]bool
	ears map[*memberLine]memberEar
	said int // messages
}

type memberEar struct {
	hear func([]byte)
	live func(bool)
}

// memberLine is how one instance reaches the bus.
type memberLine struct{ *memberBus }

func (l *memberLine) Publish(_ context.Context, message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut[l] {
		return errCut
	}
	l.said++
	for to, e := range l.ears {
		if !l.cut[to] {
			e.hear(message)
		}
	}
	return nil
}

func (l *memberLine) Run(ctx context.Context, hear func([]byte), live func(bool)) error {
	l.mu.Lock()
	l.ears[l] = memberEar{hear, live}
	live(!l.cut[l])
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ears, l)
	return nil
}

func (l *memberLine) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[l] = cut
	l.ears[l].live(!cut)
}

// took is how many messages were sent since it was called last.
func (b *memberBus) took() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.said = 0 }()
	return b.said
}

// fleet is some instances on one store, which tell each other of events and of members.
type fleet struct {
	*testing.T
	events  *bus
	members *memberBus
	store   *memory.Store
	reads   storetest.Counter
	log     strings.Builder
}

type server struct {
	*instance.Instance
	line *memberLine
	asks storetest.Counter // of the store by this instance
	kill func()            // it dies, and says nothing
	stop func()
}

func inFleet(t *testing.T, test func(*fleet)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{
			T: t, events: &bus{ears: make(map[*ear]struct{})}, store: memory.New(memory.Config{}),
			members: &memberBus{cut: make(map[*memberLine]bool), ears: make(map[*memberLine]memberEar)},
		}
		test(f)
	})
}

func (f *fleet) start(name string) *server {
	f.Helper()
	return f.startWith(name, nil)
}

// startWith starts an instance with that journal; nil for none.
func (f *fleet) startWith(name string, journal service.Journal) *server {
	f.Helper()
	begin := time.Now()
	s := &server{line: &memberLine{f.members}}
	var err error
	s.Instance, err = instance.New(instance.Config{
		Store: &storetest.Fake{Store: f.store.Open(), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			return f.reads.Count(ctx, c, func(ctx context.Context) error { return s.asks.Count(ctx, c, next) })
		}}, Journal: journal, Name: name, Bus: f.events, Members: s.line,
		Now: func() time.Duration { return time.Since(begin) }, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	require.NoError(f, err)
	s.stop = runs(f.T, s.Instance)
	s.kill = func() {
		s.line.setCut(true)
		s.stop()
	}
	synctest.Wait()
	return s
}

func (f *fleet) configure(b leadership.BallotPolicy) {
	f.Helper()
	s := f.start("operator")
	defer s.stop()
	_, err := s.Do(f.Context(), leadership.Configure{Election: "jobs", Config: leadership.Config{Ballot: b}})
	require.NoError(f, err)
}

func (f *fleet) lead(s *server, id leadership.CandidateID) leadership.Grant {
	f.Helper()
	g, err := s.Acquire(f.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: id, LeaseDuration: time.Hour, Wait: 10 * time.Second})
	require.NoError(f, err)
	return g
}

func (f *fleet) join(s *server, id leadership.CandidateID, seen leadership.Token) leadership.Reading {
	f.Helper()
	r, err := s.Join(f.Context(), leadership.JoinRequest{Election: "jobs", CandidateID: id, Role: leadership.RoleFollower, TTL: time.Minute, SeenToken: seen})
	require.NoError(f, err)
	return r
}

func (f *fleet) nodes(s *server) (all []string, m leadership.Members) {
	f.Helper()
	m, err := s.Members(f.Context(), "jobs")
	require.NoError(f, err)
	for _, n := range m.Members {
		all = append(all, fmt.Sprintf("%s %s %d", n.ID, n.Role, n.SeenToken))
	}
	return all, m
}

// becomes waits, at most so long, until the instance has just these members.
func (f *fleet) becomes(s *server, within time.Duration, want ...string) {
	f.Helper()
	var diff string
	for end := time.Now().Add(within); !time.Now().After(end); time.Sleep(100 * time.Millisecond) {
		got, _ := f.nodes(s)
		if diff = cmp.Diff(want, got); diff == "" {
			return
		}
	}
	f.Fatalf("within %v the members do not become (-want +got):\n%s", within, diff)
}

func TestMembersOfOneInstanceAreSeenAtTheOtherWithinTwoSeconds(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		g := f.lead(a, "lea")
		if r := f.join(a, "fay", g.Token); r.LeaderID != "lea" || r.Token != g.Token {
			f.Errorf("the join says that %s leads under %d", r.LeaderID, r.Token)
		}
		line, leave := context.WithCancel(f.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Acquire(line, leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: new(leadership.NewKey()), Wait: time.Minute})
		}()
		for _, s := range []*server{a, b} {
			f.becomes(s, 2*time.Second+time.Second/10, "ann candidate 1", "fay follower 1", "lea leader 1")
		}
		time.Sleep(time.Second)
		if _, m := f.nodes(b); m.Status != leadership.MembersHealthy || m.Participation != 1 || !m.Complete || m.LeaderID != "lea" || m.Token != 1 {
			f.Errorf("the cluster is %+v", m)
		}
		leave()
		<-done
		if err := b.Leave(f.Context(), leadership.LeaveRequest{Election: "jobs", CandidateID: "fay"}); err != nil { // it had joined at the other
			f.Error(err)
		}
		for _, s := range []*server{a, b} {
			f.becomes(s, 13*time.Second, "lea leader 1") // a place in line is kept for 5 s
		}
	})
}

func TestMembersCostTheStoreNothing(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		g := f.lead(a, "lea")
		f.join(a, "fay", g.Token)
		f.join(b, "gus", g.Token)
		f.reads.Take()
		for range 50 {
			f.join(a, "fay", g.Token)
			time.Sleep(time.Second / 10)
		}
		if n := f.reads.Take(); n["Get"] > 1 || n["Update"]+n["Renew"]+n["Events"] > 0 {
			f.Errorf("50 joins in 5 s took %v, and cached reads one", n)
		}
		f.members.took()
		time.Sleep(50 * time.Second)
		if n := f.reads.Take(); n["Get"]+n["Update"]+n["Renew"]+n["Events"] > 0 {
			f.Errorf("sheets took %v", n)
		}
		if n := f.members.took(); n > 8 {
			f.Errorf("%d sheets were sent in 50 s, in which nothing has changed; each instance sends one in 15 s", n)
		}
		time.Sleep(time.Minute)
		a.Do(f.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "lea", Key: g.Key, Token: g.Token}})
		f.members.took()
		time.Sleep(10 * time.Minute)
		if n := f.members.took(); n > 0 {
			f.Errorf("without members and leases %d sheets were sent", n)
		}
	})
}

func TestMembersOfAnUnknownElectionAreRefused(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		_, err := a.Join(f.Context(), leadership.JoinRequest{Election: "jobs", CandidateID: "fay", Role: leadership.RoleWorker, TTL: time.Minute})
		assert.ErrorIs(f, err, leadership.NotFound, "join")
		_, err = a.Members(f.Context(), "jobs")
		assert.ErrorIs(f, err, leadership.NotFound, "members")
		f.lead(a, "lea")
		if got, _ := f.nodes(a); len(got) != 1 {
			f.Errorf("the members are %q; the refused one is not among them", got)
		}
	})
}

func TestTheMembersOfADeadInstanceAreForgottenAndOfOneThatEndsAtOnce(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b, c := f.start("a"), f.start("b"), f.start("c")
		g := f.lead(a, "lea")
		f.join(b, "fay", g.Token)
		f.join(c, "gus", g.Token)
		f.becomes(a, 3*time.Second, "fay follower 1", "gus follower 1", "lea leader 1")
		c.stop()
		f.becomes(a, 0, "fay follower 1", "lea leader 1")
		b.kill()
		time.Sleep(35 * time.Second)
		f.becomes(a, 0, "fay follower 1", "lea leader 1")
		f.becomes(a, 10*time.Second, "lea leader 1")
	})
}

func TestAnInstanceThatHearsNoSheetsSaysSo(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		f.lead(a, "lea")
		f.join(b, "fay", 1)
		complete := func(what string, want bool) {
			f.Helper()
			_, m := f.nodes(a)
			if deaf := strings.Contains(a.Degraded(), "members"); m.Complete != want || deaf == want {
				f.Errorf("%s: complete is %v, and it is degraded by %q", what, m.Complete, a.Degraded())
			}
		}
		time.Sleep(3 * time.Second)
		complete("at first", true)
		a.line.setCut(true)
		complete("cut off", false)
		f.join(b, "gus", 1)
		time.Sleep(time.Minute)
		f.becomes(a, 0, "lea leader 1")
		a.line.setCut(false)
		f.join(b, "gus", 1)
		f.becomes(a, 2*time.Second+time.Second/10, "gus follower 1", "lea leader 1") // it asks for a whole sheet
		time.Sleep(3 * time.Second)
		complete("connected again", true)
	})
}

func TestJunkOnTheTopicOfMembersIsIgnoredAndLoggedOnce(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a := f.start("a")
		f.lead(a, "lea")
		foreign := &memberLine{f.members}
		for n := range 100 {
			foreign.Publish(f.Context(), fmt.Appendf(nil, "junk %d", n))
		}
		a.stop()
		if got := strings.Count(f.log.String(), "level=WARN"); got != 1 {
			f.Errorf("it is logged %d times:\n%s", got, &f.log)
		}
	})
}

func TestWritersAreRefusedWhileTheQuorumIsLost(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.configure(leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "n3")}})
		a, b := f.start("a"), f.start("b")
		f.join(b, "n2", 0)
		time.Sleep(2 * time.Second)
		g := f.lead(a, "n1")
		check := func(what string, want error, status leadership.MembersStatus) {
			f.Helper()
			r := leadership.TokenCheck{Election: "jobs", Token: g.Token, Write: true}
			_, err := a.CheckToken(f.Context(), r)
			if results, _ := a.BatchCheckTokens(f.Context(), []leadership.TokenCheck{r}); !errors.Is(results[0].Err, want) {
				f.Errorf("%s: a batch says %v, want %v", what, results[0].Err, want)
			}
			_, m := f.nodes(a)
			if !errors.Is(err, want) || m.ReadOnly != (want != nil) || m.Status != status {
				f.Errorf("%s: %v, %+v; want %v and %s", what, err, m, want, status)
			}
			if r.Write = false; want != nil {
				_, err := a.CheckToken(f.Context(), r)
				assert.NoError(f, err, "%s: to read", what)
			}
		}
		f.join(b, "n2", g.Token)
		time.Sleep(30 * time.Second)
		check("two of three are present", nil, leadership.MembersHealthy)
		b.Leave(f.Context(), leadership.LeaveRequest{Election: "jobs", CandidateID: "n2"})
		time.Sleep(5 * time.Second)
		check("one has just gone", nil, leadership.MembersNoQuorum)
		time.Sleep(10 * time.Second)
		check("for longer than the grace time", leadership.ReadOnly, leadership.MembersNoQuorum)
		f.join(b, "n3", g.Token)
		time.Sleep(2 * time.Second)
		check("another has come", nil, leadership.MembersHealthy)
		if _, _, lowest := a.MemberStats(); lowest != 2.0/3 {
			f.Errorf("the lowest participation is %v", lowest)
		}
		a.line.setCut(true)
		time.Sleep(time.Minute)
		check("in a minority that hears of no others", leadership.ReadOnly, leadership.MembersNoQuorum)
		if _, readOnly, _ := a.MemberStats(); readOnly != 1 {
			f.Errorf("%d elections are read-only", readOnly)
		}
		a.line.setCut(false)
		f.join(b, "n3", g.Token)
		time.Sleep(3 * time.Second)
		check("connected again", nil, leadership.MembersHealthy)
	})
}

// A watch is told whether the leader may write: at its beginning, and within a second of a change,
// for which the store is not asked.
func TestAWatchTellsWhetherTheLeaderMayWrite(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.configure(leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "n3")}})
		a, b := f.start("a"), f.start("b")
		f.join(b, "n2", 0)
		time.Sleep(2 * time.Second)
		g := f.lead(a, "n1")
		watch := func(s *server) (next func(within time.Duration) string) {
			_, w, err := s.Watch(f.Context(), leadership.WatchRequest{Election: "jobs"})
			require.NoError(f, err)
			f.Cleanup(w.Close)
			return func(within time.Duration) string {
				f.Helper()
				ctx, cancel := context.WithTimeout(f.Context(), within)
				defer cancel()
				for ctx.Err() == nil {
					news, _ := w.Listen(ctx)
					for _, m := range news.Members {
						if m.Change == leadership.MemberReadOnly || m.Change == leadership.MemberWritable {
							return fmt.Sprintf("%s %s %s %d", m.ID, m.Role, m.Change, m.SeenToken)
						}
					}
				}
				return ""
			}
		}
		said := func(what string, next func(time.Duration) string, within time.Duration, want string) {
			f.Helper()
			assert.Equal(f, want, next(within), "%s: within %v it is told", what, within)
		}
		may, mustNot := fmt.Sprintf("n1 leader writable %d", g.Token), fmt.Sprintf("n1 leader readOnly %d", g.Token)
		time.Sleep(time.Second) // the other instance has heard of the leader
		first := watch(b)       // the leader renews at the other instance
		said("two of three are present", first, time.Second, may)
		b.asks.Take()
		b.Leave(f.Context(), leadership.LeaveRequest{Election: "jobs", CandidateID: "n2"})
		said("one has gone", first, 10*time.Second, "")
		said("for longer than the grace time", first, 1200*time.Millisecond, mustNot)
		said("it goes on", first, 30*time.Second, "")
		if asked := b.asks.Take(); asked["Get"]+asked["Events"] > 0 {
			f.Errorf("the store was asked meanwhile: %v", asked)
		}
		f.join(b, "n3", g.Token)
		said("another has come", first, 1200*time.Millisecond, may)
		b.Leave(f.Context(), leadership.LeaveRequest{Election: "jobs", CandidateID: "n3"})
		said("it goes again", first, 12*time.Second, mustNot)
		time.Sleep(3 * time.Second) // the other instance has heard of it later
		said("a watch that begins then", watch(a), time.Second, mustNot)
	})
}

func TestAGrantNeedsTheQuorumThatTheInstanceHearsOf(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.configure(leadership.BallotPolicy{Quorum: leadership.QuorumPolicy{Electorate: leadership.NewNames("n1", "n2", "n3")}})
		a, b := f.start("a"), f.start("b")
		ask := leadership.AcquireRequest{Election: "jobs", CandidateID: "n1", Key: new(leadership.NewKey()), Wait: 5 * time.Second}
		_, err := a.Acquire(f.Context(), ask)
		var refusal *leadership.Error
		if !errors.As(err, &refusal) || refusal.Reason != leadership.ReasonQuorum {
			f.Errorf("alone: %v, want the reason %s", err, leadership.ReasonQuorum)
		}
		f.join(b, "n2", 0)
		time.Sleep(2 * time.Second)
		_, err = a.Acquire(f.Context(), ask)
		assert.NoError(f, err, "with a member at another instance")
	})
}

func TestAcknowledgementsAreAwaitedWithoutTheStore(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		g := f.lead(a, "lea")
		f.join(a, "fay", 0)
		f.join(b, "gus", 0)
		time.Sleep(3 * time.Second)
		await := func(need int, wait time.Duration) (leadership.Acknowledgement, error) {
			return a.AwaitAcknowledgement(f.Context(), leadership.AcknowledgementRequest{Election: "jobs", Token: g.Token, Need: need, Wait: wait})
		}
		got, err := await(1, 0)
		if err != nil || got.Done || len(got.Follow) != 0 || !cmp.Equal(got.Missing, []leadership.CandidateID{"fay", "gus"}) || !got.Complete {
			f.Errorf("none follows yet: %+v, %v", got, err)
		}
		f.reads.Take()
		began := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			f.join(a, "fay", g.Token)
			time.Sleep(10 * time.Second)
			f.join(b, "gus", g.Token)
		}()
		got, err = await(2, time.Minute)
		if took := time.Since(began); err != nil || !got.Done || len(got.Follow) != 2 || len(got.Missing) != 0 || took < 20*time.Second || took > 23*time.Second {
			f.Errorf("after %v: %+v, %v", took, got, err)
		}
		if n := f.reads.Take(); n["Get"] > 3 || n["Update"] > 0 {
			f.Errorf("that took %v; the joins read twice", n)
		}
		began = time.Now()
		if got, err := await(3, 10*time.Second); err != nil || got.Done || time.Since(began) != 10*time.Second {
			f.Errorf("there are two: %+v, %v", got, err)
		}
	})
}

func TestAnAcknowledgementOfATokenThatIsOverIsRefused(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		g := f.lead(a, "lea")
		request := leadership.AcknowledgementRequest{Election: "jobs", Token: g.Token, Need: 1, Wait: time.Minute}
		go func() {
			time.Sleep(5 * time.Second)
			b.Do(f.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "lea", Key: g.Key, Token: g.Token}})
			f.lead(b, "leo")
		}()
		began := time.Now()
		if _, err := a.AwaitAcknowledgement(f.Context(), request); !errors.Is(err, leadership.TokenStale) || time.Since(began) > 8*time.Second {
			f.Errorf("after %v: %v", time.Since(began), err)
		}
		request.Token = 7
		_, err := a.AwaitAcknowledgement(f.Context(), request)
		assert.ErrorIs(f, err, leadership.TokenStale, "of a token that was never granted")
	})
}

func TestAStreamKeepsItsReaderAMemberAndTellsOfTheOthers(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		g := f.lead(a, "lea")
		_, w, err := a.Watch(f.Context(), leadership.WatchRequest{Election: "jobs", Member: "fay"})
		require.NoError(f, err)
		f.becomes(b, 3*time.Second, "fay follower 1", "lea leader 1")
		var told []string
		listen := func(n int) {
			f.Helper()
			ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
			defer cancel()
			for len(told) < n {
				news, err := w.Listen(ctx)
				if err != nil {
					f.Fatalf("%v; told %q", err, told)
				}
				for _, m := range news.Members {
					told = append(told, fmt.Sprintf("%s %s %s", m.ID, m.Role, m.Change))
				}
				for _, e := range news.Events {
					told = append(told, string(e.Type))
				}
			}
		}
		f.join(b, "gus", 1)
		listen(1)
		b.Leave(f.Context(), leadership.LeaveRequest{Election: "jobs", CandidateID: "gus"})
		listen(2)
		f.join(b, "gus", 1)
		listen(3)
		b.Do(f.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "lea", Key: g.Key, Token: g.Token}})
		f.lead(b, "lea")
		listen(5)
		f.becomes(b, 3*time.Second, "fay follower 2", "gus follower 1", "lea leader 2")
		if _, m := f.nodes(b); m.Status != leadership.MembersDiverged {
			f.Errorf("one follows the former token, and the status is %s", m.Status)
		}
		b.kill()
		listen(6)
		want := []string{"gus follower joined", "gus follower left", "gus follower joined", "released", "acquired", "gus follower vanished"}
		assert.Empty(f, cmp.Diff(want, told), "told (-want +got)")
		w.Close()
		f.becomes(a, 10*time.Second, "lea leader 2")
		if _, _, err := a.Watch(f.Context(), leadership.WatchRequest{Election: "jobs", Member: "a b"}); !errors.Is(err, leadership.InvalidArgument) {
			f.Errorf("a member without a valid id: %v", err)
		}
	})
}

func TestAWaiterElsewhereNeedNotLookWhileSheetsTellOfRenewals(t *testing.T) {
	inFleet(t, func(f *fleet) {
		a, b := f.start("a"), f.start("b")
		g, err := a.Acquire(f.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "lea", LeaseDuration: 30 * time.Second})
		require.NoError(f, err)
		lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "lea", Key: g.Key, Token: g.Token}
		granted := make(chan time.Time, 1)
		go func() {
			ask := leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", Key: new(leadership.NewKey()), Wait: time.Minute}
			for {
				if _, err := b.Acquire(f.Context(), ask); !errors.Is(err, leadership.LeaseHeld) {
					granted <- time.Now()
					return
				}
			}
		}()
		renew := func(during time.Duration) {
			f.Helper()
			for begin := time.Now(); time.Since(begin) < during; {
				time.Sleep(10 * time.Second)
				_, err := a.Renew(f.Context(), lease)
				require.NoError(f, err)
			}
		}
		renew(40 * time.Second)
		b.asks.Take()
		renew(10 * time.Minute)
		if n := b.asks.Take(); n["Get"]+n["Update"] > 0 {
			f.Errorf("in 10 min with sheets the instance with the waiter has asked the store %v", n)
		}
		b.line.setCut(true) // it goes on as without sheets
		renew(10 * time.Minute)
		if n := b.asks.Take(); n["Get"]+n["Update"] < 10 {
			f.Errorf("in 10 min without sheets it has asked the store %v; the lease might have ended unseen", n)
		}
		b.line.setCut(false)
		renew(time.Minute)
		last := time.Now()
		a.kill() // with its leader
		if at := <-granted; at.Sub(last) < 30*time.Second || at.Sub(last) > 31*time.Second {
			f.Errorf("leader and instance died, and the next is granted %v after the last renewal; the lease lasts 30 s", at.Sub(last))
		}
	})
}
