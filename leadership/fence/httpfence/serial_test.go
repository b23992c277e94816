package httpfence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
)

// serialService is a Serial gate around a handler that reports its start and can be told how to
// end.
type serialService struct {
	http.Handler
	began chan leadership.Token
	ends  chan struct{}
	cause chan error // why the context of a handler ended
}

func newSerialService(t *testing.T, c httpfence.Config) *serialService {
	t.Helper()
	c.Election, c.Serial = election, true
	if c.Marks == nil {
		c.Marks = new(httpfence.Memory)
	}
	g, err := httpfence.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &serialService{began: make(chan leadership.Token, 9), ends: make(chan struct{}), cause: make(chan error, 9)}
	s.Handler = g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m, _ := httpfence.FromContext(r.Context())
		s.began <- m.Token
		<-s.ends
		s.cause <- context.Cause(r.Context())
	}))
	return s
}

// begin sends a request, and returns the channel of its reply.
func (s *serialService) begin(r *http.Request) <-chan *http.Response {
	reply := make(chan *http.Response, 1)
	go func() { reply <- send(s, r) }()
	synctest.Wait()
	return reply
}

func (s *serialService) wantBegun(t *testing.T, want ...leadership.Token) {
	t.Helper()
	synctest.Wait()
	for _, token := range want {
		select {
		case got := <-s.began:
			if got != token {
				t.Errorf("a request with token %d began, want %d", got, token)
			}
		default:
			t.Errorf("no request began, want one with token %d", token)
		}
	}
	if n := len(s.began); n > 0 {
		t.Errorf("%d more requests began", n)
	}
}

func TestLaterLeaderWaitsForAnEarlierOneThatIsThenRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSerialService(t, httpfence.Config{})
		first, second := s.begin(command(33)), s.begin(command(33))
		s.wantBegun(t, 33, 33)
		later := s.begin(command(34))
		s.wantBegun(t)
		late := s.begin(command(33))
		wantStatus(t, <-late, http.StatusConflict)
		s.ends <- struct{}{}
		s.wantBegun(t)
		s.ends <- struct{}{}
		wantStatus(t, <-first, http.StatusOK)
		wantStatus(t, <-second, http.StatusOK)
		for range 2 {
			wantRefusal(t, <-s.cause, leadership.TokenStale)
		}
		s.wantBegun(t, 34)
		beside := s.begin(command(34))
		s.wantBegun(t, 34)
		close(s.ends)
		wantStatus(t, <-later, http.StatusOK)
		wantStatus(t, <-beside, http.StatusOK)
		for range 2 {
			if err := <-s.cause; err != nil {
				t.Errorf("the context of the later leader's request has ended: %v", err)
			}
		}
		wantStatus(t, <-s.begin(command(33)), http.StatusConflict)
	})
}

func TestLatestOfSeveralWaitingLeadersIsNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSerialService(t, httpfence.Config{})
		s.begin(command(33))
		middle, last := s.begin(command(34)), s.begin(command(35))
		s.wantBegun(t, 33)
		close(s.ends)
		wantStatus(t, <-middle, http.StatusConflict)
		wantStatus(t, <-last, http.StatusOK)
		s.wantBegun(t, 35)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSerialService(t, httpfence.Config{})
		first := s.begin(command(33))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantStatus(t, <-s.begin(command(34).WithContext(ctx)), http.StatusServiceUnavailable)
		close(s.ends)
		wantStatus(t, <-first, http.StatusOK)
		s.wantBegun(t, 33)
		wantStatus(t, <-s.begin(command(33)), http.StatusOK) // 34 was not admitted
	})
}

// switching is a check that can be made to refuse.
type switching struct{ refuse atomic.Bool }

func (s *switching) Check(context.Context, fence.Mark) error {
	if s.refuse.Load() {
		return leadership.TokenStale
	}
	return nil
}

func TestRequestIsCheckedAgainAfterItsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		check := new(switching)
		s := newSerialService(t, httpfence.Config{Check: check})
		first := s.begin(command(33))
		later := s.begin(command(34))
		check.refuse.Store(true)
		close(s.ends)
		wantStatus(t, <-first, http.StatusOK)
		wantStatus(t, <-later, http.StatusConflict)
		s.wantBegun(t, 33)
	})
}

func TestPanickingHandlerUnblocksTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := httpfence.New(httpfence.Config{Election: election, Marks: new(httpfence.Memory), Serial: true})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { recover() }()
			send(g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })), command(33))
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantStatus(t, send(g.Wrap(http.NotFoundHandler()), command(34).WithContext(ctx)), http.StatusNotFound)
	})
}

func TestRefusedRequestUnblocksTheNext(t *testing.T) {
	t.Parallel()
	g, err := httpfence.New(httpfence.Config{Election: election, Marks: failing{leadership.StoreUnavailable}, Serial: true})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, send(g.Wrap(http.NotFoundHandler()), command(33)), http.StatusServiceUnavailable)
	if n := g.Remembered(); n != 0 {
		t.Errorf("%d resources are remembered without requests", n)
	}
}

// overlapDetector fails the test if the requests of two leaders are handled at once, or out of
// order.
type overlapDetector struct {
	t       *testing.T
	mu      sync.Mutex // guards the fields below
	inside  map[leadership.Token]int
	highest leadership.Token
	handled int
}

func (l *overlapDetector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	m, _ := httpfence.FromContext(r.Context())
	l.enter(m.Token)
	time.Sleep(rand.N(time.Millisecond)) // lets others run in between
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside[m.Token]--; l.inside[m.Token] == 0 {
		delete(l.inside, m.Token)
	}
}

func (l *overlapDetector) enter(token leadership.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside[token]++
	l.handled++
	if len(l.inside) > 1 {
		l.t.Errorf("the requests of %d leaders are handled at once: %v", len(l.inside), l.inside)
	}
	if token < l.highest {
		l.t.Errorf("a request of leader %d is handled after one of leader %d", token, l.highest)
	}
	l.highest = max(l.highest, token)
}

// slow are Marks that take their time.
type slow struct{ httpfence.Memory }

func (s *slow) Raise(ctx context.Context, resource string, w fence.Mark) error {
	time.Sleep(rand.N(time.Millisecond))
	defer time.Sleep(rand.N(time.Millisecond))
	return s.Memory.Raise(ctx, resource, w)
}

func TestTheRequestsOfTwoLeadersAreNeverHandledAtOnce(t *testing.T) {
	t.Parallel()
	const leaders, requests = 20, 50
	synctest.Test(t, func(t *testing.T) {
		g, err := httpfence.New(httpfence.Config{Election: election, Marks: new(slow), Serial: true})
		if err != nil {
			t.Fatal(err)
		}
		l := &overlapDetector{t: t, inside: map[leadership.Token]int{}}
		h := g.Wrap(l)
		var all sync.WaitGroup
		for token := range leadership.Token(leaders) {
			for range requests {
				all.Go(func() {
					time.Sleep(time.Duration(token)*time.Millisecond + rand.N(5*time.Millisecond))
					reply := send(h, command(token+1))
					if err := httpfence.Refusal(reply); err != nil && !errors.Is(err, leadership.TokenStale) {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if n := g.Remembered(); n != 0 {
			t.Errorf("%d resources are remembered without requests", n)
		}
		if l.highest != leaders || l.handled < leaders {
			t.Errorf("%d requests were handled, up to leader %d: that is no trial", l.handled, l.highest)
		}
	})
}
