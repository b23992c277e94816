package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/failpoint"
)

// When and how far an Outbox looks.
const (
	interval     = 15 * time.Second // from look to look, a quarter more or less
	minPause     = time.Second      // after a sweep that has failed
	sweepTimeout = 10 * time.Second // of one sweep in keepSweeping
	age          = 10 * time.Second // since an event was first seen: no live announcer takes longer
	tickAge      = 2 * time.Second  // the same for Sweep, which a caller waits for
	lookSize     = 500              // events in a look
	maxLook      = 5000             // events in the look that follows a full one
)

// keepSweeping looks into the outbox until ctx ends, first at once, then after each interval or
// when events that it saw have reached their age. It sweeps soon after this process has left events
// in the outbox, and waits longer and longer, up to the interval, while that fails. The intervals
// are counted from look to look, so that the events of others are found in time however long the
// topic takes to fail.
func (o *Outbox) keepSweeping(ctx, late context.Context) {
	delay := backoff.Backoff{Min: time.Second, Max: interval}
	for {
		select {
		case <-o.left.wake:
		default:
		}
		began := o.clock()
		waiting, err := o.sweepBriefly(ctx, late)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait := delay.Next()
			o.log.Warn("outbox: not all events are announced", "cause", err, "retryIn", wait)
			o.pause(ctx, max(wait-(o.clock()-began), minPause))
		case waiting:
			delay.Reset()
			o.rest(ctx, o.seen.last()+age+rand.N(age/4), &delay)
		default:
			delay.Reset()
			o.rest(ctx, began+backoff.Jitter(interval), &delay)
		}
	}
}

// rest waits until the clock shows that time, or only for delay once this process has left events
// in the outbox.
func (o *Outbox) rest(ctx context.Context, until time.Duration, delay *backoff.Backoff) {
	select {
	case <-time.After(until - o.clock()):
	case <-ctx.Done():
	case <-o.left.wake:
		o.pause(ctx, min(delay.Next(), max(until-o.clock(), minPause)))
	}
}

// pause waits for d, or until the topic may be reachable again.
func (o *Outbox) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-o.again:
	}
}

// sweepBriefly is sweep, limited to sweepTimeout. It then finds out whether the topic can be
// reached again.
func (o *Outbox) sweepBriefly(ctx, late context.Context) (waiting bool, err error) {
	brief, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if _, waiting, err = o.sweep(brief, late, age); err != nil {
		return waiting, err
	}
	return waiting, o.tryTopic(ctx, late)
}

// tryTopic publishes an event again that this process could not publish, if the topic has not
// accepted anything since. By then another instance may have announced that event, and there may be
// nothing else to publish for a long time. Order allows it: it was allowed when it failed.
func (o *Outbox) tryTopic(ctx, late context.Context) error {
	e, cause := o.reach.lost()
	if cause == nil || !o.queue.claim(e.Election) {
		return nil
	}
	defer o.queue.done(e.Election)
	if _, err := o.clear(ctx, late, e.Election); err != nil { // it also publishes the events that claim has dropped
		o.left.add(e.Election, err)
		return err
	}
	if _, cause = o.reach.lost(); cause == nil {
		return nil
	}
	_, err := o.publish(ctx, []leadership.Event{e})
	return err
}

// Sweep announces and marks the events left in the outbox, and returns how many; an error says that
// these were not all. If it finds events that another process may be announcing, it looks again
// after 2 s. It is for a process that was asleep, and works whether or not Run runs.
func (o *Outbox) Sweep(ctx context.Context) (announced int, err error) {
	late, cancel := lingering(ctx)
	defer cancel()
	for slept := false; ; {
		n, waiting, err := o.sweep(ctx, late, tickAge)
		announced += n
		if err != nil || !waiting || n == 0 && slept {
			return announced, err
		}
		if n == 0 {
			slept = true
			if err := backoff.Sleep(ctx, tickAge); err != nil {
				return announced, err
			}
		}
	}
}

// sweep looks into the outbox once, and announces and marks the events left there: of elections
// that this process has left, and of those with an event that was first seen age ago. waiting
// reports that the outbox has other events. Marking may go on until late ends.
func (o *Outbox) sweep(ctx, late context.Context, age time.Duration) (announced int, waiting bool, err error) {
	page, err := o.look(ctx)
	if err != nil {
		o.left.swept(err)
		return 0, false, err
	}
	now := o.clock()
	due, news, waiting := o.seen.sight(page, now, age)
	o.seen.blame(now, func(e leadership.Election) bool { return o.left.has(e) || o.queue.has(e) })
	o.found(news...)
	o.left.join(due)
	if len(due) > 0 {
		failpoint.Hit("outbox:left")
	}
	announced, err = o.clearAll(ctx, late, due)
	o.left.swept(err)
	return announced, waiting || len(page) >= maxLook, err
}

// look reads the outbox, and more of it if the first page is full. While the topic is out of reach
// it reads the new events instead of more, because nothing can be announced.
func (o *Outbox) look(ctx context.Context) ([]leadership.Event, error) {
	page, err := o.read(ctx, "", lookSize)
	if err != nil || len(page) < lookSize {
		return page, err
	}
	if _, cause := o.reach.lost(); cause == nil {
		o.seen.readTo(time.Time{})
	} else if news, ok := o.news(ctx); ok {
		return append(page, news...), nil
	}
	return o.read(ctx, "", maxLook)
}

// news returns the events committed since its last call; ok is false if they cannot be determined.
func (o *Outbox) news(ctx context.Context) (events []leadership.Event, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if after := o.seen.readTo(time.Time{}); !after.IsZero() {
		if recent, err := o.store.Since(ctx, after, maxLook); err == nil {
			o.seen.readTo(recent.Now)
			return recent.Events, true
		}
	}
	if snap, err := o.store.Get(ctx, "NOW"); err == nil { // no election has the name, and one never seen has a time too
		o.seen.readTo(snap.Now)
	}
	return nil, false
}

// read reads the outbox of one election, or with "" of all. An event that cannot be decoded is
// logged and treated as the end: neither it nor later events of its election are announced.
func (o *Outbox) read(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	events, err := o.store.Unannounced(ctx, e, limit)
	if errors.Is(err, leadership.RecordCorrupt) {
		o.log.Error("outbox: an event cannot be read: it is not announced, nor what follows it", "cause", err)
		return nil, nil
	}
	return events, err
}

// clearAll clears several elections at a time, in random order, so that instances which sweep at
// the same time share the work. An election that fails holds up no other, but if all fail it gives
// up.
func (o *Outbox) clearAll(ctx, late context.Context, due map[leadership.Election]struct{}) (announced int, err error) {
	var mu sync.Mutex // guards announced, cleared and err
	cleared := 0
	hopeless := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return err != nil && cleared == 0
	}
	var clearing sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for e := range due {
		slots <- struct{}{}
		if hopeless() {
			break
		}
		clearing.Go(func() {
			defer func() { <-slots }()
			n, failed := o.claimAndClear(ctx, late, e)
			mu.Lock()
			defer mu.Unlock()
			announced += n
			if failed != nil {
				err = failed
			} else {
				cleared++
			}
		})
	}
	clearing.Wait()
	return announced, err
}

// claimAndClear clears an election, unless the announcer is publishing it. After a failure the
// election is left behind.
func (o *Outbox) claimAndClear(ctx, late context.Context, e leadership.Election) (announced int, err error) {
	if !o.queue.claim(e) {
		return 0, nil
	}
	defer o.queue.done(e)
	o.left.remove(e) // before the read, which misses events left in the outbox after it
	if announced, err = o.clear(ctx, late, e); err != nil {
		o.left.add(e, err)
	}
	return announced, err
}

// clear publishes and marks all events of an election in the outbox; the caller must have claimed
// the election. It returns how many events are marked, and an error unless these are all. It does
// not publish events that were already acknowledged to this process; it only marks them.
func (o *Outbox) clear(ctx, late context.Context, e leadership.Election) (announced int, err error) {
	for {
		all, err := o.front(ctx, e)
		if err != nil || len(all) == 0 {
			return announced, err
		}
		page := run(all)
		news := o.known.unsent(page)
		acked, err := o.publish(ctx, news)
		if acked > 0 {
			failpoint.Hit("outbox:left-published")
		}
		if out := page[:len(page)-len(news)+acked]; len(out) > 0 {
			if failed := o.mark(late, ids(out)); failed != nil {
				return announced, errors.Join(err, failed)
			}
			announced += len(out)
			failpoint.Hit("outbox:left-marked")
		}
		if err != nil || len(all) < maxPublish && len(page) == len(all) {
			return announced, err
		}
		failpoint.Hit("outbox:mid-batch")
	}
}

// front reads the first events of an election in the outbox. If they begin after the next event
// that is due, it reads once more, because the events between may have been committed during the
// read.
func (o *Outbox) front(ctx context.Context, e leadership.Election) (page []leadership.Event, err error) {
	for range 2 {
		page, err = o.read(ctx, e, maxPublish)
		if out := o.known.out(e); err != nil || len(page) == 0 || out == 0 || page[0].Revision <= out+1 {
			break
		}
	}
	return page, err
}

// sightings remembers when each event of the last look was first seen in the outbox.
type sightings struct {
	mu     sync.Mutex // guards all below
	since  map[leadership.EventID]time.Duration
	at     time.Duration // when the last look had ended
	all    time.Time     // the store's time up to which all events were read; zero: unknown
	others [2]bool       // whether the last two looks found events that other instances had left
}

// last returns when the last look had ended.
func (s *sightings) last() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// readTo sets the store's time up to which all events were read, and returns the previous one.
func (s *sightings) readTo(all time.Time) (before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.all = s.all, all
	return before
}

// blame notes whether the last look found events that other instances had left; own reports whether
// this instance has left an election's events, or is about to publish them.
func (s *sightings) blame(now time.Duration, own func(leadership.Election) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := false
	for id, first := range s.since {
		others = others || now-first >= age && !own(id.Election)
	}
	s.others = [2]bool{others, s.others[0] && len(s.since) > 0}
}

// sight compares a look with the previous one. It returns the elections with an event that was
// first seen at least age ago, and the events that were not seen before. waiting reports that the
// look has other elections.
func (s *sightings) sight(
	page []leadership.Event, now, age time.Duration,
) (due map[leadership.Election]struct{}, news []leadership.Event, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due = make(map[leadership.Election]struct{})
	since := make(map[leadership.EventID]time.Duration, len(page))
	for _, e := range page {
		first, ok := s.since[e.ID()]
		if !ok {
			first = now
			news = append(news, e)
		}
		since[e.ID()] = first
		if now-first >= age {
			due[e.Election] = struct{}{}
		}
	}
	s.since, s.at = since, now
	return due, news, slices.ContainsFunc(page, func(e leadership.Event) bool {
		_, ok := due[e.Election]
		return !ok
	})
}
