package instance

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/members"
)

// roll drives the registry of members: it locks it, tells it of lines, terms and the time,
// exchanges its sheets with other instances, and wakes callers that wait for its changes.
type roll struct {
	bus   MemberBus // nil for none
	hub   *hub.Hub
	lines *line.Queue
	now   func() time.Duration
	log   *slog.Logger
	alone bool
	soon  chan struct{} // of one: changes are to be sent without delay
	// asked is called when another instance tells of a change of an election's proposals; nil: none
	asked func(e leadership.Election, changes int64)

	mu       sync.Mutex // guards all below; no other mutex is taken while it is held, but the hub's
	registry *members.Registry
	news     map[leadership.Election]struct{} // whose watches are to be told at the next tick
	waits    map[leadership.Election]*wait
	seen     map[leadership.Election]int // the version of the lines when present last read them
	version  int                         // of the lines, when they were last read
	linesAt  time.Duration               // when the lines were last read
	live     bool                        // sheets are heard
	liveAt   time.Duration               // since when sheets are heard
	whole    bool                        // a whole sheet is to be sent
	ask      bool                        // the others are to be asked for their whole sheets
	paused   time.Duration               // nothing is sent until then, after a failure
	logged   bool                        // a message that was no sheet was logged
	loggedAt time.Duration               // when that was logged last
}

// wait wakes callers that wait for changes of an election's members.
type wait struct {
	waiters int
	changed chan struct{} // closed at the next change
}

func newRoll(c Config, h *hub.Hub, lines *line.Queue, log *slog.Logger) *roll {
	name := ""
	if c.Members != nil {
		name = rand.Text()
	}
	return &roll{
		bus: c.Members, hub: h, lines: lines, now: c.Now, log: log, alone: c.Alone,
		registry: members.New(name, h.View, c.Now()),
		news:     make(map[leadership.Election]struct{}),
		waits:    make(map[leadership.Election]*wait),
		seen:     make(map[leadership.Election]int),
		soon:     make(chan struct{}, 1),
	}
}

// do calls f with the registry and the time, and then wakes callers that wait for f's changes.
func (r *roll) do(f func(reg *members.Registry, now time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.registry, r.now())
	for e, news := range r.registry.Touched() {
		if w, ok := r.waits[e]; ok {
			close(w.changed)
			w.changed = make(chan struct{})
		}
		if news {
			r.news[e] = struct{}{}
		}
	}
}

func (r *roll) join(principal string, j leadership.JoinRequest) (err error) {
	r.do(func(reg *members.Registry, now time.Duration) {
		err = reg.As(principal, j.Election, j.CandidateID, func() error { return reg.Join(j, now) })
		reg.Notice(now, j.Election)
	})
	return err
}

func (r *roll) leave(l leadership.LeaveRequest) {
	r.do(func(reg *members.Registry, now time.Duration) { reg.Leave(l.Election, l.CandidateID, now) })
}

// members returns the members of an election that was read age ago.
func (r *roll) members(l leadership.Lease, age time.Duration) (all []leadership.Member, status members.Status) {
	r.look(l.Election)
	r.do(func(reg *members.Registry, now time.Duration) {
		all = reg.Members(l, age, now)
		status = reg.Status(l, all, age, now)
	})
	return all, status
}

// appended tells the other instances the journal's index after an append at this instance.
func (r *roll) appended(e leadership.Election, i leadership.Index) {
	r.do(func(reg *members.Registry, _ time.Duration) { reg.Appended(e, i) })
	r.hurryUp()
}

// proposed tells the others of a change of an election's proposals at this instance and, if one is
// open, the leader that watches here.
func (r *roll) proposed(e leadership.Election, p members.Proposals) {
	r.do(func(reg *members.Registry, _ time.Duration) { reg.Proposed(e, p) })
	r.hub.MembersChanged(e)
	r.hurryUp()
}

// hurryUp has changes sent to the other instances without delay.
func (r *roll) hurryUp() {
	if r.bus != nil {
		backoff.Signal(r.soon)
	}
}

// applied notes the progress of a follower that reads a journal page by page.
func (r *roll) applied(principal string, q leadership.JournalRequest) (err error) {
	r.do(func(reg *members.Registry, now time.Duration) {
		err = reg.As(principal, q.Election, q.Member, func() error { return reg.Applied(q.Election, q.Member, q.Applied, now) })
	})
	return err
}

// follow makes the reader of a stream of a journal a follower, until left is called.
func (r *roll) follow(principal string, q leadership.JournalRequest) (left func(), err error) {
	r.do(func(reg *members.Registry, now time.Duration) {
		if err = reg.As(principal, q.Election, q.Member, func() error { return reg.Open(q.Election, q.Member, 0, now) }); err == nil {
			err = reg.Applied(q.Election, q.Member, q.Applied, now)
		}
	})
	return func() {
		r.do(func(reg *members.Registry, now time.Duration) { reg.Close(q.Election, q.Member, now) })
	}, err
}

// journal returns the index of a journal's last entry, as far as it is known.
func (r *roll) journal(e leadership.Election) (i leadership.Index) {
	r.do(func(reg *members.Registry, _ time.Duration) { i = reg.JournalIndex(e) })
	return i
}

// lag returns the largest lag of a member at this instance, in entries of its journal.
func (r *roll) lag() (i leadership.Index) {
	r.do(func(reg *members.Registry, _ time.Duration) { i = reg.Lag() })
	return i
}

// refuseWrite returns ReadOnly while the election has lost its quorum.
func (r *roll) refuseWrite(l leadership.Lease) error {
	q := l.Config.Ballot.Quorum
	if q.Needed() == 0 {
		return nil
	}
	_, status := r.members(l, 0)
	if !status.ReadOnly {
		return nil
	}
	return &leadership.Error{Code: leadership.ReadOnly, Lease: &l, Detail: fmt.Sprintf(
		"election %q is read-only: it needs %d of the %d members of its electorate present, and has %d, as far as this instance knows; do not write until enough of them are back",
		l.Election, q.Needed(), q.Size(), status.Present)}
}

// acknowledgement returns which members follow the token and have applied the journal; stale
// reports whether a later token is known.
func (r *roll) acknowledgement(q leadership.AcknowledgementRequest, l leadership.Lease) (a leadership.Acknowledgement, stale bool) {
	r.look(q.Election)
	a = leadership.Acknowledgement{Election: q.Election, Token: q.Token, JournalIndex: q.JournalIndex, Need: q.Need, Complete: r.complete()}
	r.do(func(reg *members.Registry, now time.Duration) {
		for _, m := range reg.Members(l, 0, now) {
			switch {
			case m.ID == l.LeaderID:
			case m.SeenToken >= q.Token && m.Applied >= q.JournalIndex:
				a.Follow = append(a.Follow, m.ID)
			default:
				a.Missing = append(a.Missing, m.ID)
			}
		}
		stale = q.Token > 0 && reg.Token(q.Election) > q.Token
	})
	a.Done = len(a.Follow) >= q.Need
	return a, stale
}

// until blocks until done returns true; it calls done after each change of the election's members.
// Errors: ctx's, and the cause of Drain.
func (r *roll) until(ctx context.Context, e leadership.Election, done func() bool) error {
	r.mu.Lock()
	w, ok := r.waits[e]
	if !ok {
		w = &wait{changed: make(chan struct{})}
		r.waits[e] = w
	}
	w.waiters++
	r.registry.Watch(e) // so that its terms are noticed
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.registry.Unwatch(e)
		if w.waiters--; w.waiters == 0 {
			delete(r.waits, e)
		}
	}()
	for {
		r.mu.Lock()
		changed := w.changed
		r.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.hub.Done():
			return r.hub.Cause()
		}
	}
}

// present reports whether the candidate is a member. It first reads the line if that has changed.
// It is called once for each member of an electorate.
func (r *roll) present(e leadership.Election, id leadership.CandidateID) (here bool) {
	version := r.lines.Version()
	r.mu.Lock()
	seen, ok := r.seen[e]
	r.mu.Unlock()
	if !ok || seen != version {
		r.stand(e)
		r.mu.Lock()
		r.seen[e] = version
		r.mu.Unlock()
	}
	r.do(func(reg *members.Registry, now time.Duration) { here = reg.Present(e, id, now) })
	return here
}

// stats is MemberStats of the instance.
func (r *roll) stats() (byRole map[leadership.Role]int64, readOnly int64, lowest float64) {
	var s members.Stats
	r.do(func(reg *members.Registry, now time.Duration) { s = reg.Stats(now) })
	return s.Own, s.ReadOnly, s.Lowest
}

// complete reports whether the members of all instances should be known: sheets are heard, and have
// been for long enough that the others, which were asked for theirs, can have answered.
func (r *roll) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alone || r.live && r.now() >= r.liveAt+answered
}

// deaf reports whether sheets should be heard, but are not.
func (r *roll) deaf() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bus != nil && !r.live
}

// hears reports whether sheets are heard.
func (r *roll) hears() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bus != nil && r.live
}

// company is the hub.Members of one watch: it passes changes of members to the watch, and the state
// of the watch to the registry.
type company struct {
	*roll
	request leadership.WatchRequest
	next    uint64                    // number of the next change
	first   []leadership.MemberChange // whether the leader may write, told first
}

// accompany returns the company of a watch. It refuses a member for which there is no room.
func (r *roll) accompany(principal string, request leadership.WatchRequest, seen leadership.Token) (c *company, err error) {
	c = &company{roll: r, request: request}
	r.do(func(reg *members.Registry, now time.Duration) {
		if request.Member != "" {
			err = reg.As(principal, request.Election, request.Member, func() error { return reg.Open(request.Election, request.Member, seen, now) })
		}
		if err == nil {
			reg.Watch(request.Election)
			reg.Notice(now, request.Election) // so that the leader is a member from the start
			c.first = reg.Writing(request.Election, now)
			_, c.next = reg.Changes(request.Election, members.Newest)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *company) Sent(t leadership.Token) {
	if c.request.Member != "" {
		c.do(func(reg *members.Registry, now time.Duration) { reg.Seen(c.request.Election, c.request.Member, t, now) })
	}
}

func (c *company) Changes() (changes []leadership.MemberChange) {
	c.do(func(reg *members.Registry, _ time.Duration) {
		changes, c.next = reg.Changes(c.request.Election, c.next)
	})
	if c.first != nil {
		changes, c.first = slices.Concat(c.first, changes), nil
	}
	return changes
}

func (c *company) Close() {
	c.do(func(reg *members.Registry, now time.Duration) {
		if c.request.Member != "" {
			reg.Close(c.request.Election, c.request.Member, now)
		}
		reg.Unwatch(c.request.Election)
	})
}

// look tells the registry of the line of an election, and of its term.
func (r *roll) look(e leadership.Election) {
	r.stand(e)
	r.do(func(reg *members.Registry, now time.Duration) { reg.Notice(now, e) })
}

func (r *roll) stand(e leadership.Election) {
	var standing []members.Stander
	for _, s := range r.lines.Standing(e) {
		standing = append(standing, members.Stander{CandidateID: s.CandidateID, Role: s.Role, Position: s.Position})
	}
	r.do(func(reg *members.Registry, now time.Duration) { reg.Stand(e, standing, now) })
}
