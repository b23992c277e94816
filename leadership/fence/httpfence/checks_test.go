package httpfence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
	"regent/leadership/service"
)

var (
	_ httpfence.Checker = (*httpfence.Checks)(nil)
	_ httpfence.Marks   = (*httpfence.Memory)(nil)
	_ httpfence.Regent  = (*service.Service)(nil)
	_ httpfence.Regent  = (*client.Client)(nil)
	_ httpfence.Leader  = (*client.Lease)(nil)
)

// fixture is Checks with a Regent that has one answer for each token.
type fixture struct {
	*httpfence.Checks
	t     *testing.T
	start time.Time

	mu    sync.Mutex
	ahead time.Duration // how far the clock was moved
	takes time.Duration // to answer, after it has looked
	lease leadership.Lease
	err   error
	asked int
	calls int // under way

	readOnly, notReady atomic.Bool
}

// withFixture runs the test in a bubble. Leader 33 has a lease of an hour.
func withFixture(t *testing.T, c httpfence.ChecksConfig, test func(t *testing.T, w *fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &fixture{t: t, start: time.Now(), lease: held(33, time.Hour)}
		c.Regent, c.Now = w, w.now
		var err error
		if w.Checks, err = httpfence.NewChecks(c); err != nil {
			t.Fatal(err)
		}
		test(t, w)
		if w.Wait(); w.calls > 0 {
			t.Errorf("Wait has returned, and %d calls are under way", w.calls)
		}
	})
}

func held(token leadership.Token, left time.Duration) leadership.Lease {
	return leadership.Lease{Election: election, State: leadership.Held, LeaderID: "ann", Token: token, ExpiresIn: left}
}

func vacant(token leadership.Token) leadership.Lease {
	return leadership.Lease{Election: election, State: leadership.Vacant, Token: token}
}

func (w *fixture) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.start) + w.ahead
}

func (w *fixture) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *fixture) leads(l leadership.Lease) { w.set(func() { w.lease, w.err = l, nil }) }
func (w *fixture) fails(err error)          { w.set(func() { w.err = err }) }

// CheckToken looks, waits, and answers.
func (w *fixture) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	w.mu.Lock()
	w.asked++
	w.calls++
	takes, l, err := w.takes, w.lease, w.err
	w.mu.Unlock()
	defer w.set(func() { w.calls-- })
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return leadership.Lease{}, ctx.Err()
	}
	switch {
	case err != nil:
		return leadership.Lease{}, err
	case r.Election != election:
		return leadership.Lease{}, &leadership.Error{Code: leadership.NotFound}
	case r.Token != l.Token || l.State != leadership.Held:
		return leadership.Lease{}, &leadership.Error{Code: leadership.TokenStale, Lease: &l, Detail: "Regent says so"}
	case r.Write && w.readOnly.Load():
		return leadership.Lease{}, &leadership.Error{Code: leadership.ReadOnly, Lease: &l, Detail: "1 of 3 members is present", RetryAfter: time.Second}
	case r.Write && w.notReady.Load():
		return leadership.Lease{}, &leadership.Error{Code: leadership.NotReady, Lease: &l, Detail: "it has not said that it serves"}
	}
	return l, nil
}

func (w *fixture) check(token leadership.Token) error { return w.Check(w.t.Context(), mark(token)) }

func (w *fixture) background(token leadership.Token) <-chan error {
	verdict := make(chan error, 1)
	go func() { verdict <- w.check(token) }()
	synctest.Wait()
	return verdict
}

func (w *fixture) wantIn(err error) {
	w.t.Helper()
	assert.NoError(w.t, err, "not let in")
}

// wantStale requires a refusal with this newest token; 0 for none.
func (w *fixture) wantStale(err error, newest leadership.Token) {
	w.t.Helper()
	refusal := wantRefusal(w.t, err, leadership.TokenStale)
	if refusal.Lease == nil && newest != 0 || refusal.Lease != nil && refusal.Lease.Token != newest {
		w.t.Errorf("the refusal has %v, want token %d", refusal.Lease, newest)
	}
}

func (w *fixture) wantUnknown(err error) {
	w.t.Helper()
	assert.ErrorIs(w.t, err, leadership.StoreUnavailable)
}

func (w *fixture) wantAsked(want int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked != want {
		w.t.Errorf("Regent was asked %d times, want %d", w.asked, want)
	}
}

func TestAWriteIsRefusedWhileTheElectionIsReadOnly(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{Write: true}, func(t *testing.T, w *fixture) {
		h := gate(t, httpfence.Config{Check: w.Checks})
		wantStatus(t, send(h, command(33)), http.StatusOK)
		w.readOnly.Store(true)
		wantStatus(t, send(h, command(33)), http.StatusOK) // the answer is believed for MaxAge
		time.Sleep(httpfence.DefaultMaxAge)
		for range 2 {
			reply := send(h, command(33))
			wantStatus(t, reply, http.StatusConflict)
			refusal := wantRefusal(t, httpfence.Refusal(reply), leadership.ReadOnly)
			if got := reply.Header.Get("Retry-After"); got != "1" || refusal.RetryAfter != time.Second || refusal.Lease.Token != 33 {
				t.Errorf("Retry-After %q, and the refusal is %+v", got, refusal)
			}
		}
		w.wantStale(w.check(32), 33)
		w.wantAsked(3) // that it is read-only is not remembered, and the token is
		w.readOnly.Store(false)
		wantStatus(t, send(h, command(33)), http.StatusOK)
	})
}

func TestANewLeaderThatMustNotWriteYetMakesTheFormerOneStaleAtOnce(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{Write: true}, func(t *testing.T, w *fixture) {
		h := gate(t, httpfence.Config{Check: w.Checks})
		wantStatus(t, send(h, command(33)), http.StatusOK)
		w.leads(held(34, time.Hour))
		w.notReady.Store(true)
		reply := send(h, command(34))
		wantStatus(t, reply, http.StatusConflict)
		wantRefusal(t, httpfence.Refusal(reply), leadership.NotReady)
		w.wantStale(w.check(33), 34)
		w.notReady.Store(false)
		wantStatus(t, send(h, command(34)), http.StatusOK)
		w.wantAsked(3) // that it is not ready is not remembered, and the token is
	})
}

func TestAnswerIsReusedWithinMaxAge(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		time.Sleep(httpfence.DefaultMaxAge - 1)
		w.wantIn(w.check(33))
		w.wantAsked(1)
		time.Sleep(time.Nanosecond)
		w.wantIn(w.check(33))
		w.wantAsked(2)
	})
}

func TestTokenIsNotBelievedWhenItsLeaseMayBeOver(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.leads(held(33, time.Second))
		w.wantIn(w.check(33))
		time.Sleep(999*time.Millisecond - 1) // a clock may be slow by a thousandth
		w.wantIn(w.check(33))
		w.wantAsked(1)
		w.leads(vacant(33))
		time.Sleep(time.Nanosecond)
		w.wantStale(w.check(33), 33)
		w.wantAsked(2)
	})
}

func TestAnswerAfterTheEndOfItsLeaseIsNotBelieved(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.leads(held(33, time.Second))
		w.takes = 999 * time.Millisecond
		w.wantUnknown(w.check(33))
	})
}

func TestTheTimeOfASuspensionCounts(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		w.set(func() { w.ahead = time.Hour })
		w.wantIn(w.check(33))
		w.wantAsked(2)
	})
}

func TestATokenThatWasOvertakenIsStaleForEver(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantStale(w.check(32), 33)
		w.wantAsked(1)
		time.Sleep(24 * time.Hour)
		w.fails(errors.ErrUnsupported)
		for token := range leadership.Token(32) {
			w.wantStale(w.check(token+1), 33)
		}
		w.wantAsked(1)
		w.wantUnknown(w.check(33))
	})
}

func TestATokenThatWasNeverGrantedMayBeGrantedNext(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantStale(w.check(34), 33)
		w.leads(held(34, time.Hour))
		w.wantIn(w.check(34))
		w.wantAsked(2)
	})
}

func TestALeaseThatSeemsToBeOverMayBeRenewedAfterAll(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		w.Saw(vacant(33))
		w.leads(vacant(33))
		w.wantStale(w.check(33), 33)
		w.leads(held(33, time.Hour))
		w.wantIn(w.check(33))
		w.wantAsked(3)
	})
}

func TestAnElectionThatRegentDoesNotKnowHasNoLeader(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(t *testing.T, w *fixture) {
		other := fence.Mark{Election: "cleaner", Token: 1}
		wantRefusal(t, w.Check(t.Context(), other), leadership.TokenStale)
		w.fails(leadership.ElectionDeleted)
		w.wantStale(w.check(33), 0)
		assert.Zero(t, w.Remembered(), "elections are remembered of which nothing is known")
	})
}

func TestNewsInvalidatesMemory(t *testing.T) {
	t.Parallel()
	type event = leadership.Event
	for name, c := range map[string]struct {
		hear  func(*httpfence.Checks)
		in    bool
		asked int // in total
	}{
		"a later leader":          {func(c *httpfence.Checks) { c.Heard(event{Election: election, Token: 34, LeaderID: "bob"}) }, false, 1},
		"the end of its lease":    {func(c *httpfence.Checks) { c.Heard(event{Election: election, Token: 33, PreviousLeaderID: "ann"}) }, false, 1},
		"a later leader was seen": {func(c *httpfence.Checks) { c.Saw(held(34, time.Hour)) }, false, 1},
		"a later one had led":     {func(c *httpfence.Checks) { c.Saw(vacant(34)) }, false, 1},
		"it was seen vacant":      {func(c *httpfence.Checks) { c.Saw(vacant(33)) }, true, 2},
		"it was seen to lead":     {func(c *httpfence.Checks) { c.Saw(held(33, time.Hour)) }, true, 1},
		"its own beginning":       {func(c *httpfence.Checks) { c.Heard(event{Election: election, Token: 33, LeaderID: "ann"}) }, true, 1},
		"the end of one before":   {func(c *httpfence.Checks) { c.Heard(event{Election: election, Token: 32, PreviousLeaderID: "ann"}) }, true, 1},
		"a change of its terms":   {func(c *httpfence.Checks) { c.Heard(event{Election: election, Token: 33}) }, true, 1},
		"one before was seen":     {func(c *httpfence.Checks) { c.Saw(vacant(32)) }, true, 1},
		"another election":        {func(c *httpfence.Checks) { c.Heard(event{Election: "cleaner", Token: 34, LeaderID: "bob"}) }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, httpfence.ChecksConfig{}, func(t *testing.T, w *fixture) {
				w.wantIn(w.check(33))
				c.hear(w.Checks)
				if err := w.check(33); c.in {
					w.wantIn(err)
				} else {
					wantRefusal(t, err, leadership.TokenStale)
				}
				w.wantAsked(c.asked)
				assert.EqualValues(t, 1, w.Remembered(), "elections are remembered")
			})
		})
	}
}

func TestTheEndOfALeaseIsNotUndoneByOldNews(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		w.Heard(leadership.Event{Election: election, Token: 33, PreviousLeaderID: "ann"})
		w.Heard(leadership.Event{Election: election, Token: 33, LeaderID: "ann"})
		w.Saw(held(33, time.Hour))
		w.wantStale(w.check(33), 33)
		w.wantAsked(1)
	})
}

func TestNewsThatComesBeforeTheAnswerCounts(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.takes = time.Second
		verdict := w.background(33)
		w.Heard(leadership.Event{Election: election, Token: 34, LeaderID: "bob"})
		w.wantStale(<-verdict, 34)
		w.wantStale(w.check(33), 34)
		w.wantAsked(1)
		w.leads(vacant(34))
		w.wantStale(w.check(34), 34) // the answer for 33 does not count for 34
		w.wantAsked(2)
	})
}

func TestEndHeardBeforeTheAnswerCounts(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		time.Sleep(httpfence.DefaultMaxAge)
		w.takes = time.Second
		verdict := w.background(33)
		w.Heard(leadership.Event{Election: election, Token: 33, PreviousLeaderID: "ann"})
		w.wantStale(<-verdict, 33)
		w.wantStale(w.check(33), 33)
	})
}

func TestConcurrentChecksShareOneCall(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(t *testing.T, w *fixture) {
		w.takes = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- w.Check(ctx, mark(33)) }()
		synctest.Wait()
		var others []<-chan error
		for range 100 {
			others = append(others, w.background(33))
		}
		cancel()
		w.wantUnknown(<-gone)
		for _, verdict := range others {
			w.wantIn(<-verdict)
		}
		w.wantAsked(1)
		time.Sleep(httpfence.DefaultMaxAge)
		w.wantUnknown(w.Check(ctx, mark(33))) // its call goes on
	})
}

func TestRefusalFromBeforeTheCheckIsNotShared(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.takes = time.Second
		guess := w.background(34) // Regent has looked: it was never granted
		w.leads(held(34, time.Hour))
		one, other := w.background(34), w.background(34)
		w.wantStale(<-guess, 33)
		w.wantIn(<-one)
		w.wantIn(<-other)
		w.wantAsked(2)
	})
}

func TestUnsharedAnswerIsFollowedByOneMoreCall(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(_ *testing.T, w *fixture) {
		w.takes = time.Second
		var verdicts []<-chan error
		for range 100 {
			verdicts = append(verdicts, w.background(34))
		}
		for _, verdict := range verdicts {
			w.wantStale(<-verdict, 33)
		}
		w.wantAsked(2)
	})
}

func TestWithoutRegentOnlyBelievedTokensAreAdmitted(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(t *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		w.fails(&leadership.Error{Code: "PERMISSION_DENIED"})
		w.wantIn(w.check(33))
		w.wantUnknown(w.check(34))
		time.Sleep(httpfence.DefaultMaxAge)
		w.wantUnknown(w.check(33))
		w.leads(held(33, time.Hour))
		w.takes = time.Hour
		begun := time.Now()
		w.wantUnknown(w.check(33))
		if waited := time.Since(begun); waited != httpfence.DefaultMaxAge {
			t.Errorf("Regent was waited for for %v, want %v", waited, httpfence.DefaultMaxAge)
		}
		w.takes = 0
		w.wantIn(w.check(33))
	})
}

func TestAnswerAboutAnotherTokenIsNotBelieved(t *testing.T) {
	t.Parallel()
	other := held(33, time.Hour)
	other.Election = "cleaner"
	for name, l := range map[string]leadership.Lease{
		"another election": other, "another token": held(34, time.Hour), "vacant": vacant(33), "nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, httpfence.ChecksConfig{}, func(t *testing.T, w *fixture) {
				c, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: always{l}, Now: w.now})
				require.NoError(t, err)
				w.wantUnknown(c.Check(t.Context(), mark(33)))
				assert.Zero(t, c.Remembered(), "elections are remembered")
			})
		})
	}
}

// always has one answer.
type always struct{ lease leadership.Lease }

func (a always) CheckToken(context.Context, leadership.TokenCheck) (leadership.Lease, error) {
	return a.lease, nil
}

func TestInvalidTokenIsNotAskedAbout(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{}, func(t *testing.T, w *fixture) {
		for _, m := range []fence.Mark{{}, mark(0), mark(-1), mark(leadership.MaxToken + 1), {Election: "a b", Token: 1}} {
			wantRefusal(t, w.Check(t.Context(), m), leadership.InvalidArgument)
		}
		w.wantAsked(0)
	})
}

// anyElection leads every election, except those that do not exist.
type anyElection struct{}

func (anyElection) CheckToken(_ context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	if r.Election[0] == 'x' {
		return leadership.Lease{}, leadership.NotFound
	}
	return leadership.Lease{Election: r.Election, State: leadership.Held, Token: r.Token, ExpiresIn: time.Hour}, nil
}

func TestUnknownElectionsDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	const size = 10
	c, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: anyElection{}, Elections: size})
	require.NoError(t, err)
	for i := range 100 {
		for _, prefix := range []string{"a", "x"} {
			m := fence.Mark{Election: leadership.Election(fmt.Sprint(prefix, i)), Token: leadership.Token(i + 1)}
			if err := c.Check(t.Context(), m); (err == nil) != (prefix == "a") {
				t.Errorf("%v: %v", m, err)
			}
		}
		c.Heard(leadership.Event{Election: leadership.Election(fmt.Sprint("b", i)), Token: 1, LeaderID: "ann"})
	}
	if n := c.Remembered(); n != size {
		t.Errorf("%d elections are remembered, want %d", n, size)
	}
}

func TestConcurrentCallsAreLimited(t *testing.T) {
	withFixture(t, httpfence.ChecksConfig{Asks: 3}, func(_ *testing.T, w *fixture) {
		w.wantIn(w.check(33))
		w.takes = time.Second
		var verdicts []<-chan error
		for token := range leadership.Token(3) {
			verdicts = append(verdicts, w.background(34+token))
		}
		w.wantUnknown(w.check(37))
		w.wantIn(w.check(33))
		w.wantStale(w.check(32), 33)
		for _, verdict := range verdicts {
			w.wantStale(<-verdict, 33)
		}
		w.wantStale(w.check(37), 33)
		w.wantAsked(5)
	})
}

func TestInvalidChecksConfigIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []httpfence.ChecksConfig{
		{},
		{Regent: anyElection{}, MaxAge: -1},
		{Regent: anyElection{}, MaxAge: httpfence.MaxMaxAge + 1},
		{Regent: anyElection{}, Elections: -1},
		{Regent: anyElection{}, Asks: -1},
	} {
		if _, err := httpfence.NewChecks(c); err == nil {
			t.Errorf("made of %+v", c)
		}
	}
	_, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: anyElection{}})
	assert.NoError(t, err)
}
