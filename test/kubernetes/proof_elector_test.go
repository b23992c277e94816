package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"regent/leadership"
	"regent/test/checker"
)

// timing is how an elector is configured. With timeout + retry + renew < lease no reply lets it
// believe longer than its lease lasts: it waits for retry after a renewal, and tries for renew.
type timing struct{ lease, renew, retry, timeout time.Duration }

// timings are some that are safe. The first is client-go's default, with a shorter timeout than its
// 5 s.
var timings = []timing{
	{15 * time.Second, 10 * time.Second, 2 * time.Second, 2 * time.Second},
	{6 * time.Second, 3 * time.Second, time.Second, time.Second},
	{30 * time.Second, 20 * time.Second, 5 * time.Second, 4 * time.Second},
}

// elector is a program that elects its leader by client-go, and works while it leads.
type elector struct {
	*fleet
	*chance
	name string
	link *link
	// careful says that it stops its work before client-go releases the lease.
	careful bool

	mu       sync.Mutex // guards all below
	identity string
	answer   leadership.Token // in the last answer that came
	token    leadership.Token // of its lease
	working  bool
	since    time.Duration // of its work
	beliefs  []checker.Belief
	asleep   time.Time // until then it is paused
	dead     bool      // its process has ended
	kill     func()    // ends what still runs of it
	number   int       // of processes so far
	terms    int
}

// newElector returns an elector that does not take part yet.
func newElector(f *fleet, c *chance, name string) *elector {
	e := &elector{fleet: f, chance: c, name: name, identity: name + "_0", careful: true}
	e.link = &link{fleet: f, chance: c, elector: e, weather: calm}
	return e
}

// tokenOf is the fencing token of a Lease, which must be its transitions and one.
func tokenOf(l *coordination.Lease) (leadership.Token, error) {
	n, err := strconv.ParseInt(l.Annotations["regent/fencing-token"], 10, 64)
	if err != nil || l.Spec.LeaseTransitions == nil || n > 0 && n != int64(*l.Spec.LeaseTransitions)+1 {
		return 0, fmt.Errorf("the fencing token is %q, and the Lease has the transitions %v", l.Annotations["regent/fencing-token"], l.Spec.LeaseTransitions)
	}
	return leadership.Token(n), nil
}

// running marks the contexts of an election that goes on. client-go releases without it.
type running struct{}

// lock is client-go's lock, with a wall clock that is wrong. It notices when client-go begins to
// release, before the context of the leader ends.
type lock struct {
	*resourcelock.LeaseLock
	elector *elector
	wrong   time.Duration
	created bool // and not read since
}

func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if ctx.Value(running{}) == nil && l.elector.careful {
		l.elector.stop()
	}
	record, raw, err := l.LeaseLock.Get(ctx)
	l.created = l.created && err != nil
	return record, raw, err
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.created = true
	return l.told(r, l.LeaseLock.Create(ctx, l.shifted(r)))
}

func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.told(r, l.LeaseLock.Update(ctx, l.shifted(r)))
}

func (l *lock) shifted(r resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	r.RenewTime, r.AcquireTime = metav1.NewTime(r.RenewTime.Add(l.wrong)), metav1.NewTime(r.AcquireTime.Add(l.wrong))
	return r
}

// told keeps the token of a lease that was granted or renewed. client-go counts the transitions
// itself, and must come to the same, but for a Lease that it has created: one that had been deleted
// goes on with its transitions, as client-go does not know until it reads the Lease.
func (l *lock) told(r resourcelock.LeaderElectionRecord, err error) error {
	if err != nil || r.HolderIdentity == "" {
		return err
	}
	l.elector.mu.Lock()
	defer l.elector.mu.Unlock()
	l.elector.token = l.elector.answer
	if n := leadership.Token(r.LeaderTransitions) + 1; n != l.elector.token && !l.created {
		l.elector.Errorf("%s counts %d transitions, and the server has told it the token %d", r.HolderIdentity, r.LeaderTransitions, l.elector.token)
	}
	return nil
}

// live runs one process after the other until ctx ends. While leaving lasts, they lead for a while
// only.
func (e *elector) live(ctx, leaving context.Context) {
	for ctx.Err() == nil {
		e.mu.Lock()
		e.dead, e.number = false, e.number+1
		e.identity = fmt.Sprintf("%s_%d", e.name, e.number)
		e.mu.Unlock()
		e.process(ctx, leaving, e.link, pick(e.chance, timings), e.of(0.5), pick(e.chance, []time.Duration{0, time.Hour, -time.Hour, 50 * 365 * 24 * time.Hour}))
		sleep(ctx, e.upTo(10*time.Second))
	}
}

// process takes part in the election, term by term, until it crashes or ctx ends.
func (e *elector) process(ctx, leaving context.Context, over http.RoundTripper, is timing, release bool, wrong time.Duration) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1", Transport: over, Timeout: is.timeout})
	if err != nil {
		e.Error(err)
		return
	}
	for !e.isDead() && ctx.Err() == nil {
		term, cancel := context.WithCancel(klog.NewContext(context.WithValue(ctx, running{}, true), logr.Discard()))
		l := &lock{elector: e, wrong: wrong, LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "jobs"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.identity},
			// All are one caller. Without the label, an elector that was paused would release its
			// successor's lease: client-go reads the Lease anew before it releases it, and names no
			// holder.
			Labels: map[string]string{"regent/process": e.identity},
		}}
		e.mu.Lock()
		e.kill = cancel
		e.mu.Unlock()
		go e.leave(term, leaving, cancel)
		leaderelection.RunOrDie(term, leaderelection.LeaderElectionConfig{
			Lock: l, LeaseDuration: is.lease, RenewDeadline: is.renew, RetryPeriod: is.retry, ReleaseOnCancel: release,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: e.lead, OnStoppedLeading: func() {}},
		})
		cancel()
		e.stop()
	}
}

// leave ends the program's wish to lead after a while: it stops its work, and then says so.
func (e *elector) leave(ctx, leaving context.Context, cancel func()) {
	if sleep(ctx, e.about(5*time.Minute)) && leaving.Err() == nil {
		e.stop()
		cancel()
	}
}

// lead is the work of a leader.
func (e *elector) lead(ctx context.Context) {
	e.mu.Lock()
	if ctx.Err() == nil && !e.dead {
		e.terms++
		e.working, e.since = true, e.now()
	}
	e.mu.Unlock()
	<-ctx.Done()
	e.stop()
}

// stop ends the work, if there is any.
func (e *elector) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.working {
		return
	}
	e.working = false
	if until := e.now(); time.Now().After(e.asleep) { // in a pause it does not work
		e.beliefs = append(e.beliefs, checker.Belief{Who: e.identity, Election: election, Token: e.token, From: e.since, Until: until})
	}
}

// pause lets nothing of the process run for that time.
func (e *elector) pause(ctx context.Context, d time.Duration) {
	e.mu.Lock()
	if e.working {
		e.beliefs = append(e.beliefs, checker.Belief{Who: e.identity, Election: election, Token: e.token, From: e.since, Until: e.now()})
	}
	e.asleep = time.Now().Add(d)
	e.mu.Unlock()
	sleep(ctx, d+time.Nanosecond) // by then its timers have fired
	e.mu.Lock()
	e.since = e.now()
	e.mu.Unlock()
}

// awake returns when the process is not paused. It is false if the process has ended.
func (e *elector) awake() bool {
	e.mu.Lock()
	until := e.asleep
	e.mu.Unlock()
	time.Sleep(time.Until(until))
	return !e.isDead()
}

func (e *elector) isDead() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dead
}

// hear keeps the token of an answer.
func (e *elector) hear(t leadership.Token) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = t
}

// crash ends the process: it sends nothing more.
func (e *elector) crash() {
	e.mu.Lock()
	e.dead = true
	kill := e.kill
	e.mu.Unlock()
	e.stop()
	if kill != nil {
		kill()
	}
}

// sleep waits, and is false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
