package instance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// counted is a journal that counts the calls, and fails while it is told to.
type counted struct {
	service.Journal
	looks, reads atomic.Int64
	fail         atomic.Pointer[error]
}

func (c *counted) failing(err error) {
	if err == nil {
		c.fail.Store(nil)
	} else {
		c.fail.Store(&err)
	}
}

func (c *counted) broken() error {
	if err := c.fail.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *counted) Amend(ctx context.Context, id rule.LogID, decide func(rule.Log) (rule.LogChange, error)) (rule.Log, error) {
	if err := c.broken(); err != nil {
		return rule.Log{}, err
	}
	return c.Journal.Amend(ctx, id, decide)
}

func (c *counted) Look(ctx context.Context, id rule.LogID) (rule.Log, error) {
	c.looks.Add(1)
	if err := c.broken(); err != nil {
		return rule.Log{}, err
	}
	return c.Journal.Look(ctx, id)
}

func (c *counted) Segments(ctx context.Context, id rule.LogID, after leadership.Index, limit int) ([]rule.Segment, error) {
	c.reads.Add(1)
	if err := c.broken(); err != nil {
		return nil, err
	}
	return c.Journal.Segments(ctx, id, after, limit)
}

// wants fails the test unless so many looks and reads were counted since it was called last.
func (c *counted) wants(t *testing.T, looks, reads int64, when string) {
	t.Helper()
	synctest.Wait()
	if l, r := c.looks.Swap(0), c.reads.Swap(0); l != looks || r != reads {
		t.Errorf("%s: %d looks and %d reads, want %d and %d", when, l, r, looks, reads)
	}
}

// books is some instances on one store with journals.
type books struct {
	*fleet
	leader leadership.Grant
	index  leadership.Index
}

func withJournals(t *testing.T, test func(*books)) {
	inFleet(t, func(f *fleet) { test(&books{fleet: f}) })
}

// start starts an instance; end stops it.
func (b *books) start(name string) (i *instance.Instance, c *counted, end func()) {
	b.Helper()
	c = &counted{Journal: b.store}
	s := b.startWith(name, c)
	return s.Instance, c, s.stop
}

// leads makes ann lead.
func (b *books) leads(i *instance.Instance) {
	b.Helper()
	var err error
	if b.leader, err = i.Acquire(b.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: time.Hour}); err != nil {
		b.Fatal(err)
	}
}

func (b *books) holder() leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: "jobs", CandidateID: b.leader.LeaderID, Key: b.leader.Key, Token: b.leader.Token}
}

// appends adds n entries through the instance, each with its index.
func (b *books) appends(i *instance.Instance, n int) {
	b.Helper()
	r := leadership.AppendRequest{LeaseRequest: b.holder(), After: b.index}
	for k := range n {
		r.Entries = append(r.Entries, leadership.Entry{Data: json.RawMessage(fmt.Sprint(int(b.index) + k + 1))})
	}
	h, err := i.AppendJournal(context.Background(), r)
	require.NoError(b, err)
	b.index = h.Index
}

func (b *books) snapshot(i *instance.Instance, upTo leadership.Index) {
	b.Helper()
	_, err := i.SnapshotJournal(context.Background(), leadership.SnapshotRequest{LeaseRequest: b.holder(), UpTo: upTo, Data: json.RawMessage(`{}`)})
	require.NoError(b, err)
}

// follower reads a feed until it ends.
type follower struct {
	feed *instance.JournalFeed
	mu   sync.Mutex // guards all below
	at   leadership.Index
	err  error
	last time.Time // when the last entry came
	done chan struct{}
}

func (b *books) follows(i *instance.Instance, after leadership.Index, member leadership.CandidateID) *follower {
	b.Helper()
	feed, err := i.FollowJournal(b.Context(), leadership.JournalRequest{Election: "jobs", After: after, Member: member, Applied: map[bool]leadership.Index{true: after}[member != ""]})
	require.NoError(b, err)
	r := &follower{feed: feed, at: after, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(func() {
		cancel()
		<-r.done
	})
	go func() {
		defer close(r.done)
		defer feed.Close()
		for r.read(ctx, b.T) {
		}
	}()
	return r
}

// read reads a page, and reports whether the feed goes on.
func (r *follower) read(ctx context.Context, t *testing.T) bool {
	page, err := r.feed.Next(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range page.Entries {
		if e.Index != r.at+1 || string(e.Data) != fmt.Sprint(e.Index) {
			t.Errorf("after index %d came %d with %s", r.at, e.Index, e.Data)
		}
		r.at, r.last = e.Index, time.Now()
	}
	r.err = err
	return err == nil
}

func (r *follower) now() (leadership.Index, error) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.err
}

func (b *books) wantsAt(r *follower, want leadership.Index, when string) {
	b.Helper()
	if at, err := r.now(); at != want || err != nil {
		b.Errorf("%s: the follower is at index %d (%v), want %d", when, at, err, want)
	}
}

func TestFollowersShareALookNowAndThenAndOneReadOfNewEntries(t *testing.T) {
	const followers = 200
	withJournals(t, func(b *books) {
		i, c, _ := b.start("a")
		b.leads(i)
		b.appends(i, 10)
		c.wants(b.T, 0, 0, "without followers")
		var all []*follower
		for range followers {
			all = append(all, b.follows(i, 10, ""))
		}
		c.wants(b.T, 1, 1, "when the first follower has come")
		time.Sleep(3*time.Minute + time.Millisecond)
		if n := c.looks.Swap(0); n < 5 || n > 12 {
			b.Errorf("%d looks in three minutes without news, want one in 16 s to 31 s", n)
		}
		before := time.Now()
		b.appends(i, 3)
		time.Sleep(50 * time.Millisecond)
		c.wants(b.T, 1, 1, "for an append here")
		for _, r := range all {
			b.wantsAt(r, 13, "after an append")
			if took := r.last.Sub(before); took > 50*time.Millisecond {
				b.Fatalf("an append here came after %v", took)
			}
		}
		for _, r := range all {
			r.feed.Close()
		}
		c.wants(b.T, 0, 0, "")
		time.Sleep(5 * time.Second)
		c.wants(b.T, 0, 0, "when the followers have gone")
		if feeds, _ := i.JournalStats(); feeds != 0 {
			b.Errorf("%d feeds are counted, want none", feeds)
		}
	})
}

func TestFollowersHearOfAppendsAtAnotherInstance(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		r := b.follows(other, 0, "")
		time.Sleep(3*time.Second + 300*time.Millisecond)
		for range 20 {
			before := time.Now()
			b.appends(i, 2)
			time.Sleep(250 * time.Millisecond)
			b.wantsAt(r, b.index, "after an append elsewhere")
			if took := r.last.Sub(before); took > 150*time.Millisecond {
				b.Errorf("it came after %v", took)
			}
		}
		cutAll(b.members)
		before := time.Now()
		b.appends(i, 2)
		time.Sleep(32 * time.Second)
		b.wantsAt(r, b.index, "after an append that is not told of")
		if took := r.last.Sub(before); took > 31100*time.Millisecond {
			b.Errorf("it came after %v", took)
		}
		b.members.mu.Lock()
		for _, e := range b.members.ears {
			e.live(false)
		}
		b.members.mu.Unlock()
		before = time.Now()
		b.appends(i, 2)
		time.Sleep(1200 * time.Millisecond)
		b.wantsAt(r, b.index, "after an append while other instances are not heard")
		if took := r.last.Sub(before); took > 1100*time.Millisecond {
			b.Errorf("while other instances are not heard it came after %v", took)
		}
	})
}

// cutAll lets no message of members arrive any more.
func cutAll(b *memberBus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.ears {
		b.cut[l] = true
	}
}

func TestASlowFollowerGetsEveryEntryFromTheStore(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		b.leads(i)
		b.appends(i, 1)
		feed, err := i.FollowJournal(b.Context(), leadership.JournalRequest{Election: "jobs", After: 1})
		require.NoError(b, err)
		defer feed.Close()
		fast := b.follows(i, 1, "")
		for range 10 {
			b.appends(i, leadership.MaxEntries)
			time.Sleep(100 * time.Millisecond)
		}
		b.wantsAt(fast, b.index, "a fast follower")
		slow := &follower{feed: feed, at: 1}
		for slow.at < b.index {
			if !slow.read(b.Context(), b.T) {
				b.Fatal(slow.err)
			}
		}
	})
}

func TestAFollowThatATrimHasPassedGoesOnAfterTheSnapshot(t *testing.T) {
	withJournals(t, func(b *books) {
		i, c, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(other)
		b.appends(other, 2)
		passed := b.follows(i, 2, "")
		c.failing(leadership.StoreUnavailable)
		b.appends(other, 8)
		b.snapshot(other, 10)
		time.Sleep(3 * time.Second)
		c.failing(nil)
		time.Sleep(2 * time.Second)
		at, err := passed.now()
		if refusal, _ := errors.AsType[*leadership.Error](err); at != 2 || refusal == nil || refusal.Code != leadership.HistoryCompacted || refusal.Index != 10 {
			b.Fatalf("a follower that was passed is at %d: %v", at, err)
		}
		next := b.follows(i, 10, "")
		b.appends(other, 3)
		time.Sleep(2 * time.Second)
		b.wantsAt(next, 13, "after the snapshot")
		if n := c.looks.Load() + c.reads.Load(); n > 20 {
			b.Errorf("the store was asked %d times", n)
		}
	})
}

func TestFollowersWaitForAStoreThatCannotBeReached(t *testing.T) {
	withJournals(t, func(b *books) {
		i, c, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		r := b.follows(i, 0, "")
		c.failing(leadership.StoreUnavailable)
		time.Sleep(10 * time.Second)
		b.appends(other, 3)
		time.Sleep(10 * time.Second)
		b.wantsAt(r, 0, "while the store cannot be reached")
		if n := c.looks.Load() + c.reads.Load(); n > 25 {
			b.Errorf("the store was asked %d times in 20 s, want about once a second", n)
		}
		c.failing(nil)
		time.Sleep(2 * time.Second)
		b.wantsAt(r, 3, "after that")
		c.failing(&leadership.Error{Code: leadership.RecordCorrupt, Detail: "it is damaged"})
		time.Sleep(32 * time.Second)
		_, err := r.now()
		assert.ErrorIs(b, err, leadership.RecordCorrupt, "of a damaged journal")
	})
}

func TestDrainEndsTheStreamsOfJournals(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, end := b.start("a")
		b.leads(i)
		r := b.follows(i, 0, "")
		cause := errors.New("the instance moves")
		i.Drain(b.Context(), cause)
		_, err := r.now()
		assert.ErrorIs(b, err, cause, "a follower")
		_, err = i.FollowJournal(b.Context(), leadership.JournalRequest{Election: "jobs"})
		assert.ErrorIs(b, err, cause, "one that comes later")
		end()
	})
}

// Whatever is appended, trimmed, drained and broken, a follower that goes on at another instance
// gets every index once, in order, and without a gap.
func TestFollowersGetEveryIndexOnceWhateverHappens(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			withJournals(t, func(b *books) {
				random := rand.New(rand.NewPCG(seed, 18))
				writer, _, _ := b.start("writer")
				b.leads(writer)
				i, c, end := b.start("a")
				var all []*follower
				for range 5 {
					all = append(all, b.follows(i, 0, ""))
				}
				for n := range 200 {
					switch random.IntN(12) {
					case 0:
						all = append(all, b.follows(i, b.index, ""))
					case 1:
						if b.index > 0 {
							time.Sleep(3 * time.Second)
							b.snapshot(writer, 1+leadership.Index(random.Int64N(int64(b.index))))
						}
					case 2:
						c.failing(leadership.StoreUnavailable)
						time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
						c.failing(nil)
					case 3: // all go on elsewhere
						time.Sleep(2 * time.Second)
						end()
						i, c, end = b.start(fmt.Sprint("next-", n))
						for k, r := range all {
							at, err := r.now()
							require.Error(b, err, "a stream goes on though its instance has ended")
							all[k] = b.follows(i, at, "")
						}
					default:
						b.appends(writer, 1+random.IntN(100))
						time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
					}
				}
				time.Sleep(3 * time.Second)
				for _, r := range all {
					b.wantsAt(r, b.index, "at the end")
				}
			})
		})
	}
}

func TestAFollowerSaysHowFarItHasAppliedTheJournal(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		b.appends(i, 10)
		b.follows(other, 4, "bob")
		page, err := i.ReadJournal(b.Context(), leadership.JournalRequest{Election: "jobs", After: 7, Member: "cy", Applied: 7})
		if err != nil || len(page.Entries) != 3 {
			b.Fatal(page, err)
		}
		time.Sleep(3 * time.Second)
		for _, at := range []*instance.Instance{i, other} {
			m, err := at.Members(b.Context(), "jobs")
			require.NoError(b, err)
			got := map[leadership.CandidateID][2]leadership.Index{}
			for _, one := range m.Members {
				got[one.ID] = [2]leadership.Index{one.Applied, one.Lag}
			}
			want := map[leadership.CandidateID][2]leadership.Index{"ann": {0, 0}, "bob": {4, 6}, "cy": {7, 3}}
			if fmt.Sprint(got) != fmt.Sprint(want) || m.Journal != 10 {
				b.Errorf("the members are %v at index %d, want %v", got, m.Journal, want)
			}
		}
		if _, lag := other.JournalStats(); lag != 6 {
			b.Errorf("the members lag by %d, want 6", lag)
		}
		_, err = other.ReadJournal(b.Context(), leadership.JournalRequest{Election: "jobs", After: 10, Member: "bob", Applied: 10})
		require.NoError(b, err)
		if _, lag := other.JournalStats(); lag != 0 {
			b.Errorf("the members lag by %d, want 0", lag)
		}
		time.Sleep(40 * time.Second)
		m, err := i.Members(b.Context(), "jobs")
		if err != nil || len(m.Members) != 2 {
			b.Errorf("%+v, %v: one that reads no more is forgotten, and one with a stream is not", m.Members, err)
		}
	})
}

func TestAReaderThatKnowsMoreThanTheJournalHasIsTold(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		b.leads(i)
		b.appends(i, 10)
		for _, others := range []string{"alone", "beside another stream"} {
			for name, r := range map[string]leadership.JournalRequest{
				"it has read more":         {Election: "jobs", After: 12},
				"it says it applied more":  {Election: "jobs", After: 10, Member: "bob", Applied: 12},
				"so, from the beginning":   {Election: "jobs", Member: "bob", Applied: 12},
				"far beyond what there is": {Election: "jobs", After: 1 << 40, Member: "bob", Applied: 1 << 40},
			} {
				_, err := i.ReadJournal(b.Context(), r)
				assert.ErrorIs(b, err, leadership.IndexMismatch, "%s, a page, %s", others, name)
				feed, err := i.FollowJournal(b.Context(), r)
				assert.ErrorIs(b, err, leadership.IndexMismatch, "%s, a stream, %s", others, name)
				if err == nil {
					feed.Close()
				}
			}
			b.follows(i, 10, "")
		}
		if m, err := i.Members(b.Context(), "jobs"); err != nil || m.Journal > 10 || len(m.Members) != 1 {
			b.Errorf("the members are %+v at index %d, %v; want the leader alone, and at most 10", m.Members, m.Journal, err)
		}
	})
}

func TestAnAcknowledgementMayBeOfAnIndexOfTheJournal(t *testing.T) {
	withJournals(t, func(b *books) {
		i, _, _ := b.start("a")
		other, _, _ := b.start("b")
		b.leads(i)
		b.appends(i, 10)
		applied := func(at *instance.Instance, id leadership.CandidateID, index leadership.Index) {
			_, err := at.ReadJournal(context.Background(), leadership.JournalRequest{Election: "jobs", After: index, Member: id, Applied: index})
			assert.NoError(b, err)
		}
		applied(i, "bob", 10)
		applied(other, "cy", 9)
		ask := func(token leadership.Token, wait time.Duration) leadership.Acknowledgement {
			a, err := i.AwaitAcknowledgement(b.Context(), leadership.AcknowledgementRequest{Election: "jobs", Token: token, JournalIndex: 10, Need: 2, Wait: wait})
			require.NoError(b, err)
			return a
		}
		if a := ask(0, 5*time.Second); a.Done || fmt.Sprint(a.Follow) != "[bob]" || fmt.Sprint(a.Missing) != "[cy]" {
			b.Errorf("before all have applied it: %+v", a)
		}
		time.AfterFunc(5*time.Second, func() { applied(other, "cy", 10) })
		before := time.Now()
		if a := ask(0, time.Minute); !a.Done || len(a.Follow) != 2 || a.JournalIndex != 10 {
			b.Errorf("after that: %+v", a)
		}
		if took := time.Since(before); took > 7*time.Second {
			b.Errorf("it was said after %v", took)
		}
		if a := ask(b.leader.Token, 0); a.Done || len(a.Missing) != 2 {
			b.Errorf("of members that do not follow the token: %+v", a)
		}
	})
}
