package instance

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/members"
	"regent/leadership/instance/internal/view"
)

// MemberBus carries sheets of members between instances. A *pubsub.Messages is one. Messages may be
// lost, repeated, and overtake each other.
type MemberBus interface {
	// Publish sends a message to all instances, perhaps including this one.
	Publish(ctx context.Context, message []byte) error
	// Run passes messages to hear until ctx ends, and reports by live whether it hears all of them.
	Run(ctx context.Context, hear func(message []byte), live func(bool)) error
}

const (
	// hurry is the least time between two sheets that are sent early, because of an append to a
	// journal or a proposal.
	hurry = 100 * time.Millisecond
	// glance is how often the registry is told the time, and how long changes are collected before
	// they are sent to the other instances.
	glance = time.Second
	// linesEvery is how often all lines are read, because places in them expire without a notice.
	linesEvery = 5 * time.Second
	// wholeEvery is how often whole sheets are sent.
	wholeEvery = 15 * time.Second
	// answered is how long after an instance has begun to hear it should know the members of the
	// others.
	answered = 2 * time.Second
	// failing is how long nothing is sent after a failure.
	failing = 5 * time.Second
	// byeTimeout bounds the last sheet.
	byeTimeout = time.Second
)

// run drives the registry until ctx ends.
func (r *roll) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	if r.bus != nil {
		all.Go(func() { r.send(ctx) })
	}
	for backoff.Sleep(ctx, glance) == nil {
		r.tick()
	}
}

// hurry blocks for a glance, or less if changes are to be sent without delay. It reports false once
// ctx has ended.
func (r *roll) hurry(ctx context.Context) bool {
	least := time.After(hurry)
	select {
	case <-time.After(glance):
		return true
	case <-r.soon:
	case <-ctx.Done():
		return false
	}
	select {
	case <-least:
		return true
	case <-ctx.Done():
		return false
	}
}

// tick tells the registry the time and the lines that have changed.
func (r *roll) tick() {
	version := r.lines.Version()
	read := false
	var stood []leadership.Election
	r.do(func(reg *members.Registry, now time.Duration) {
		if read = r.version != version || now-r.linesAt >= linesEvery; read {
			r.version, r.linesAt = version, now
			stood = reg.Lines()
			clear(r.seen)
		}
	})
	if read {
		for _, e := range append(stood, r.lines.Elections()...) {
			r.stand(e)
		}
	}
	r.do(func(reg *members.Registry, now time.Duration) { reg.Tick(now) })
	r.mu.Lock()
	news := slices.Collect(maps.Keys(r.news))
	clear(r.news)
	r.mu.Unlock()
	for _, e := range news {
		r.hub.MembersChanged(e)
	}
}

// setLive sets whether sheets are heard.
func (r *roll) setLive(live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live, r.liveAt = live, r.now()
	r.whole, r.ask, r.paused = live, live, 0
}

// hear handles a message of the topic.
func (r *roll) hear(message []byte) {
	var heard members.Heard
	var err error
	complain := false
	r.do(func(reg *members.Registry, now time.Duration) {
		heard, err = reg.Hear(message, now)
		r.whole = r.whole || heard.Ask
		complain = err != nil && r.isNews(now)
	})
	if complain {
		r.log.LogAttrs(context.Background(), slog.LevelWarn, "a message of the topic of members is no sheet, or too much", slog.Any("cause", err))
	}
	for _, j := range heard.Journals {
		r.hub.Appended(j.Election, j.Index)
	}
	for _, p := range heard.Proposals {
		r.hub.MembersChanged(p.Election)
		if r.asked != nil {
			r.asked(p.Election, p.Changes)
		}
	}
	if len(heard.Renewed) > 0 {
		renewals := make([]view.Renewal, len(heard.Renewed))
		for n, l := range heard.Renewed {
			renewals[n] = view.Renewal{Election: l.Election, Token: l.Token, Left: l.Left}
		}
		r.hub.RenewedElsewhere(renewals...)
	}
}

// isNews reports whether a message that is no sheet is to be logged: none was within the last
// minute. Call with mu held.
func (r *roll) isNews(now time.Duration) bool {
	if r.logged && now < r.loggedAt+time.Minute {
		return false
	}
	r.logged, r.loggedAt = true, now
	return true
}

// send sends sheets until ctx ends, and then the last one.
func (r *roll) send(ctx context.Context) {
	var s sending
	for r.hurry(ctx) {
		for _, sheet := range r.sheets(&s) {
			if err := r.bus.Publish(ctx, sheet); err != nil {
				r.failed(ctx, &s, err)
				break
			}
			s.sent, s.failed = true, false
		}
	}
	if !s.sent {
		return
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), byeTimeout)
	defer cancel()
	var bye []byte
	r.do(func(reg *members.Registry, _ time.Duration) { bye = reg.Bye() })
	if err := r.bus.Publish(late, bye); err != nil {
		r.log.LogAttrs(late, slog.LevelInfo, "the other instances are not told that this one ends; they forget its members after a while", slog.Any("cause", err))
	}
}

// sending is the state of the goroutine that sends sheets.
type sending struct {
	whole  time.Duration                         // when the next whole sheet is due
	beat   time.Duration                         // when renewed leases are told next
	told   map[leadership.Election]time.Duration // when each renewed lease is told next
	failed bool                                  // the last sheet could not be sent, and that was logged
	sent   bool                                  // a sheet was sent before
}

// sheets returns the sheets that are due.
func (r *roll) sheets(s *sending) (due [][]byte) {
	now := r.now()
	r.mu.Lock()
	paused, isWhole, ask := now < r.paused, r.whole || now >= s.whole, r.ask
	if !paused {
		r.whole, r.ask = false, false
	}
	r.mu.Unlock()
	if paused {
		return nil
	}
	var renewed []members.Renewed
	if isWhole || now >= s.beat {
		renewed = r.renewed(s, isWhole, now)
	}
	r.do(func(reg *members.Registry, now time.Duration) {
		if isWhole {
			due, s.whole = reg.WholeSheets(ask, renewed, now), now+wholeEvery
		} else {
			due = reg.ChangedSheets(renewed, now)
		}
	})
	return due
}

// renewed returns the leases renewed here that are to be told now: each every half of its duration,
// so that the other instances hear of it before the end that they know, and all with a whole sheet.
func (r *roll) renewed(s *sending, isWhole bool, now time.Duration) (due []members.Renewed) {
	told := make(map[leadership.Election]time.Duration)
	s.beat = now + wholeEvery
	for _, l := range r.hub.RenewedHere() {
		at := s.told[l.Election]
		if isWhole || now >= at {
			due = append(due, members.Renewed{Election: l.Election, Token: l.Token, Left: l.Left})
			at = now + max(l.Duration/2, glance)
		}
		told[l.Election] = at
		s.beat = min(s.beat, at)
	}
	s.told = told
	return due
}

// failed notes that a sheet could not be sent, so that a whole one is sent later.
func (r *roll) failed(ctx context.Context, s *sending, err error) {
	r.mu.Lock()
	r.whole, r.ask, r.paused = true, true, r.now()+failing
	r.mu.Unlock()
	if !s.failed && ctx.Err() == nil {
		s.failed = true
		r.log.LogAttrs(ctx, slog.LevelWarn, "other instances are not told of the members of this one; it goes on trying", slog.Any("cause", err))
	}
}
