package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
)

// Subject is a Service, or anything that stands for one: the protocol cases run on it.
type Subject = instance.Protocol

// jobs is the election of most cases.
const jobs leadership.Election = "jobs"

// slack is how much real time a case may take on a slow machine without failing: more than a case
// ever takes, and less than the leases that cases work with.
const slack = 20 * time.Second

// pair is one case's elections, seen through two Subjects on one store.
type pair struct {
	testing.TB
	backing Backing
	a, b    Subject
	keys    map[string]leadership.Key
	began   time.Time
}

func (p *pair) advance(d time.Duration) {
	p.Helper()
	p.backing.Advance(p, d)
}

// key returns the key of an incarnation, always the same for the same name.
func (p *pair) key(name string) leadership.Key {
	if _, ok := p.keys[name]; !ok {
		p.keys[name] = leadership.NewKey()
	}
	return p.keys[name]
}

// ask is an acquire by the candidate of that name with its own key.
func (p *pair) ask(candidate string) leadership.AcquireRequest {
	key := p.key(candidate)
	return leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: &key}
}

// acquire acquires through handle a and expects to lead.
func (p *pair) acquire(candidate string) leadership.Lease {
	p.Helper()
	g, err := p.a.Acquire(p.Context(), p.ask(candidate))
	if err != nil {
		p.Fatalf("acquire by %s: %v", candidate, err)
	}
	return g.Lease
}

// of names the lease that the candidate of that name was granted with the token.
func (p *pair) of(candidate string, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: p.key(candidate), Token: token}
}

func (p *pair) release(candidate string, token leadership.Token) leadership.Lease {
	p.Helper()
	l, err := p.a.Do(p.Context(), leadership.Release{LeaseRequest: p.of(candidate, token)})
	if err != nil {
		p.Fatalf("release by %s: %v", candidate, err)
	}
	return l
}

func (p *pair) configure(c leadership.Config) leadership.Lease {
	p.Helper()
	l, err := p.a.Do(p.Context(), leadership.Configure{Election: jobs, Config: c})
	if err != nil {
		p.Fatalf("configure: %v", err)
	}
	return l
}

func (p *pair) delete(force bool) {
	p.Helper()
	if _, err := p.a.Do(p.Context(), leadership.Delete{Election: jobs, Force: force}); err != nil {
		p.Fatalf("delete: %v", err)
	}
}

func (p *pair) get() leadership.Lease {
	p.Helper()
	l, err := p.b.Get(p.Context(), jobs)
	if err != nil {
		p.Fatalf("get: %v", err)
	}
	return l
}

// refused expects an error with the code, and returns it if it is an *Error.
func (p *pair) refused(err error, code leadership.Code) *leadership.Error {
	p.Helper()
	if !errors.Is(err, code) {
		p.Fatalf("got error %v, want one with code %s", err, code)
	}
	var e *leadership.Error
	errors.As(err, &e)
	return e
}

// refusedAcquire expects that the candidate cannot lead now.
func (p *pair) refusedAcquire(candidate string, code leadership.Code) *leadership.Error {
	p.Helper()
	g, err := p.b.Acquire(p.Context(), p.ask(candidate))
	if err == nil {
		p.Fatalf("%s was granted token %d, want %s", candidate, g.Token, code)
	}
	return p.refused(err, code)
}

// leads expects that the candidate leads with the token.
func (p *pair) leads(l leadership.Lease, candidate string, token leadership.Token) {
	p.Helper()
	if l.State != leadership.Held || string(l.LeaderID) != candidate || l.Token != token {
		p.Errorf("got %s, leader %q, token %d; want held by %q with token %d", l.State, l.LeaderID, l.Token, candidate, token)
	}
}

// vacant expects a vacant election whose last token is token.
func (p *pair) vacant(l leadership.Lease, token leadership.Token) {
	p.Helper()
	if l.State != leadership.Vacant || l.LeaderID != "" || l.Token != token || l.ExpiresIn != 0 {
		p.Errorf("got %s, leader %q, token %d, %v left; want vacant after token %d", l.State, l.LeaderID, l.Token, l.ExpiresIn, token)
	}
}

// about expects a duration that may have shrunk by what the case took so far, and by a second of
// spread or guard.
func (p *pair) about(what string, got, want time.Duration) {
	p.Helper()
	if took := time.Since(p.began); got > want || got < want-took-1100*time.Millisecond {
		p.Errorf("%s is %v after %v, want %v or a little less", what, got, took, want)
	}
}

// history reads all events of the election as "revision type leader token", oldest first.
func (p *pair) history() []string {
	p.Helper()
	events, err := p.b.Events(p.Context(), leadership.EventsRequest{Election: jobs})
	if err != nil {
		p.Fatalf("events: %v", err)
	}
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = told(e)
	}
	return lines
}

func told(e leadership.Event) string {
	return fmt.Sprintf("%d %s leader=%s token=%d previous=%s", e.Revision, e.Type, e.LeaderID, e.Token, e.PreviousLeaderID)
}
