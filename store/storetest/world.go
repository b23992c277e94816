package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
)

// Subject is what the protocol is tried on: a Service, or anything that stands for one.
type Subject = instance.Protocol

// jobs is the election of most cases.
const jobs leadership.Election = "jobs"

// slack is how much real time a case may take on a slow machine without being wrong: more than a
// case ever takes, and less than the leases that cases work with.
const slack = 20 * time.Second

// world is one case's elections, seen through two handles.
type world struct {
	testing.TB
	backing Backing
	a, b    Subject
	keys    map[string]leadership.Key
}

func (w *world) advance(d time.Duration) {
	w.Helper()
	w.backing.Advance(w, d)
}

// key returns the key of an incarnation, always the same for the same name.
func (w *world) key(name string) leadership.Key {
	if _, ok := w.keys[name]; !ok {
		w.keys[name] = leadership.NewKey()
	}
	return w.keys[name]
}

// ask is an acquire by the candidate of that name with its own key.
func (w *world) ask(candidate string) leadership.AcquireRequest {
	key := w.key(candidate)
	return leadership.AcquireRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: &key}
}

// acquire acquires through handle a and expects to lead.
func (w *world) acquire(candidate string) leadership.Lease {
	w.Helper()
	g, err := w.a.Acquire(w.Context(), w.ask(candidate))
	if err != nil {
		w.Fatalf("acquire by %s: %v", candidate, err)
	}
	return g.Lease
}

// of names the lease that the candidate of that name was granted with the token.
func (w *world) of(candidate string, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: jobs, CandidateID: leadership.CandidateID(candidate), Key: w.key(candidate), Token: token}
}

func (w *world) release(candidate string, token leadership.Token) leadership.Lease {
	w.Helper()
	l, err := w.a.Release(w.Context(), w.of(candidate, token))
	if err != nil {
		w.Fatalf("release by %s: %v", candidate, err)
	}
	return l
}

func (w *world) configure(c leadership.Config) leadership.Lease {
	w.Helper()
	l, err := w.a.Configure(w.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: leadership.ConfigureCommand{Config: c}})
	if err != nil {
		w.Fatalf("configure: %v", err)
	}
	return l
}

func (w *world) delete(force bool) {
	w.Helper()
	if _, err := w.a.Delete(w.Context(), leadership.DeleteRequest{Election: jobs, DeleteCommand: leadership.DeleteCommand{Force: force}}); err != nil {
		w.Fatalf("delete: %v", err)
	}
}

func (w *world) get() leadership.Lease {
	w.Helper()
	l, err := w.b.Get(w.Context(), jobs)
	if err != nil {
		w.Fatalf("get: %v", err)
	}
	return l
}

// refused expects an error with the code, and returns it if it is an *Error.
func (w *world) refused(err error, code leadership.Code) *leadership.Error {
	w.Helper()
	if !errors.Is(err, code) {
		w.Fatalf("got error %v, want one with code %s", err, code)
	}
	var e *leadership.Error
	errors.As(err, &e)
	return e
}

// refusedAcquire expects that the candidate cannot lead now.
func (w *world) refusedAcquire(candidate string, code leadership.Code) *leadership.Error {
	w.Helper()
	g, err := w.b.Acquire(w.Context(), w.ask(candidate))
	if err == nil {
		w.Fatalf("%s was granted token %d, want %s", candidate, g.Token, code)
	}
	return w.refused(err, code)
}

// leads expects that the candidate leads with the token.
func (w *world) leads(l leadership.Lease, candidate string, token leadership.Token) {
	w.Helper()
	if l.State != leadership.Held || string(l.LeaderID) != candidate || l.Token != token {
		w.Errorf("got %s, leader %q, token %d; want held by %q with token %d", l.State, l.LeaderID, l.Token, candidate, token)
	}
}

// vacant expects a vacant election whose last token is token.
func (w *world) vacant(l leadership.Lease, token leadership.Token) {
	w.Helper()
	if l.State != leadership.Vacant || l.LeaderID != "" || l.Token != token || l.ExpiresIn != 0 {
		w.Errorf("got %s, leader %q, token %d, %v left; want vacant after token %d", l.State, l.LeaderID, l.Token, l.ExpiresIn, token)
	}
}

// about expects a duration that may have shrunk by what the case took so far.
func (w *world) about(what string, got, want time.Duration) {
	w.Helper()
	if got > want || got < want-slack {
		w.Errorf("%s is %v, want %v or a little less", what, got, want)
	}
}

// history reads all events of the election as "revision type leader token", oldest first.
func (w *world) history() []string {
	w.Helper()
	events, err := w.b.Events(w.Context(), leadership.EventsRequest{Election: jobs})
	if err != nil {
		w.Fatalf("events: %v", err)
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
