package faults

import (
	"context"
	"net/http"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
)

// quiet ends all contending agents, and waits until no election has a leader and all watchers that
// are to hear of it have heard everything, or for long enough: the check then reports what is
// missing.
func (s *session) quiet(ctx context.Context) {
	for _, t := range s.groups {
		t.quiet()
	}
	var ending sync.WaitGroup
	for _, w := range s.wrappers {
		ending.Go(func() {
			if w.Mode == "" {
				s.mustEnd(w.Name, w.now())
			} else {
				w.now().kill()
			}
		})
	}
	ending.Wait()
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for n := 0; ctx.Err() == nil; n++ {
		if n%5 == 0 {
			s.tick(ctx, s.servers[n%len(s.servers)])
		}
		before, err := s.history(ctx)
		if err == nil && vacant(before) && len(s.unaware()) == 0 && checker.EV(s.notes.recording(before)).Err() == nil {
			sleep(ctx, 2*settleStep)
			if after, err := s.history(ctx); err == nil && len(after) == len(before) {
				return
			}
		}
		sleep(ctx, settleStep)
	}
}

const (
	settleTimeout = 15 * time.Second
	settleStep    = 100 * time.Millisecond
)

// tick asks a server to record ends and announce events that are due.
func (s *session) tick(ctx context.Context, v *server) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.address+wire.PathTick, nil)
	if err != nil {
		return
	}
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
	}
}

// history reads the events of all elections from a server.
func (s *session) history(ctx context.Context) (all []leadership.Event, err error) {
	for _, e := range s.elections() {
		events, err := allEvents(func(after leadership.Revision) ([]leadership.Event, error) {
			return s.servers[0].client.Events(ctx, leadership.EventsRequest{Election: e, After: after, Limit: leadership.MaxPageSize})
		})
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	return all, nil
}

// vacant reports whether the record has no leader.
func vacant(history []leadership.Event) bool {
	last := map[leadership.Election]leadership.CandidateID{}
	for _, e := range history {
		last[e.Election] = e.LeaderID
	}
	for _, leader := range last {
		if leader != "" {
			return false
		}
	}
	return true
}

// leave ends all processes in order.
func (s *session) leave() {
	for _, t := range s.groups {
		t.mu.Lock()
		t.process.expected.Store(true)
		t.word.Close()
		t.mu.Unlock()
	}
	for _, t := range s.groups {
		select {
		case <-t.now().gone:
		case <-time.After(endTimeout):
			s.notes.fail("%s does not end", t.Name)
		}
	}
	for _, v := range s.servers {
		s.endServer(v)
	}
	for _, name := range s.unaware() {
		s.notes.fail("%s was never told how things are", name)
	}
}
