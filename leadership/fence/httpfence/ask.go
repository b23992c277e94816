package httpfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
)

// term has what is known of an election's newest leader. There is one for each election that is
// remembered or being asked about.
type term struct {
	token leadership.Token // the newest token known to have been granted; 0 for none
	ended bool             // its lease is recorded as ended, which is final
	until time.Duration    // until when (on Now) it is believed to lead
	asks  map[leadership.Token]*ask
}

// learn records news of a token; old news changes nothing. doubtful says that its lease may be
// over.
func (t *term) learn(token leadership.Token, doubtful, ended bool) {
	if token > t.token {
		t.token, t.ended, t.until = token, false, 0
	}
	if token == t.token {
		t.ended = t.ended || ended
		if doubtful {
			t.until = 0
		}
	}
}

// refuse returns why w will never lead again, or nil if that is not known.
func (t *term) refuse(w fence.Mark) error {
	var detail string
	switch {
	case w.Token < t.token:
		detail = fmt.Sprintf("token %d of election %q is stale: %d was granted; unless a renewal brings a newer token, stop acting as leader", w.Token, w.Election, t.token)
	case w.Token == t.token && t.ended:
		detail = fmt.Sprintf("the lease of fencing token %d of election %q has ended; stop acting as leader", w.Token, w.Election)
	default:
		return nil
	}
	return &leadership.Error{Code: leadership.TokenStale, Lease: &leadership.Lease{Election: w.Election, Token: t.token}, Detail: detail}
}

// ask is a call to Regent in progress, shared by all that wait for it.
type ask struct {
	mark  fence.Mark
	asked time.Duration // Now before the call
	done  chan struct{} // closed once the fields below are set

	until time.Duration // until when the token leads, if err is nil
	err   error
}

// join returns the call to wait for, and whether the caller started it. It returns no call if the
// remembered facts are enough: then err is the verdict.
func (c *Checks) join(ctx context.Context, w fence.Mark) (a *ask, own bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.terms[w.Election]
	if !ok {
		t = &term{asks: map[leadership.Token]*ask{}}
	}
	if err := t.refuse(w); err != nil {
		return nil, false, err
	}
	asked := c.config.Now()
	if w.Token == t.token && asked < t.until {
		return nil, false, nil
	}
	if a, ok := t.asks[w.Token]; ok {
		return a, false, nil
	}
	if c.asking >= c.config.Asks {
		return nil, false, unknown("%d calls to Regent are in progress, which is the limit", c.asking)
	}
	a = &ask{mark: w, asked: asked, done: make(chan struct{})}
	c.terms[w.Election], t.asks[w.Token] = t, a
	c.asking++
	c.asks.Go(func() { c.carryOut(context.WithoutCancel(ctx), a) })
	return a, true, nil
}

// carryOut calls Regent and wakes all that wait.
func (c *Checks) carryOut(ctx context.Context, a *ask) {
	ctx, cancel := context.WithTimeout(ctx, c.config.MaxAge)
	defer cancel()
	l, err := c.config.Regent.CheckToken(ctx, leadership.TokenCheck{Election: a.mark.Election, Token: a.mark.Token, Write: c.config.Write})
	seen, err := interpret(a.mark, l, err)
	c.record(a, seen, err)
	close(a.done)
}

// interpret returns what an answer says: the lease in it, if any, and an error if the token is not
// its leader's or nothing was learnt.
func interpret(w fence.Mark, l leadership.Lease, err error) (seen leadership.Lease, _ error) {
	switch {
	case err == nil && l.Election == w.Election && l.State == leadership.Held && l.Token == w.Token:
		return l, nil
	case err == nil:
		return seen, unknown("Regent's answer is not about token %d of election %q", w.Token, w.Election)
	case errors.Is(err, leadership.TokenStale), errors.Is(err, leadership.ReadOnly), errors.Is(err, leadership.NotReady):
		if e, ok := errors.AsType[*leadership.Error](err); ok && e.Lease != nil && e.Lease.Election == w.Election {
			seen = *e.Lease
		}
		return seen, err
	case errors.Is(err, leadership.NotFound), errors.Is(err, leadership.ElectionDeleted):
		return seen, &leadership.Error{Code: leadership.TokenStale, Detail: fmt.Sprintf(
			"election %q has no leader; stop acting as leader", w.Election)}
	}
	// The cause is not wrapped: its code is about the call to Regent, and would be taken for one
	// about the request.
	return seen, unknown("asking Regent about token %d of election %q: %v", w.Token, w.Election, err)
}

// unknown returns the error of a check that could not find out.
func unknown(format string, args ...any) error {
	return fmt.Errorf("httpfence: %w: "+format, append([]any{leadership.StoreUnavailable}, args...)...)
}

// record keeps the answer, unless newer facts arrived meanwhile.
func (c *Checks) record(a *ask, seen leadership.Lease, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
	t := c.terms[a.mark.Election] // terms with calls in progress are never evicted
	delete(t.asks, a.mark.Token)
	a.err = err
	t.learn(seen.Token, seen.State != leadership.Held, false)
	if err == nil {
		a.until = a.asked + min(c.config.MaxAge, seen.ExpiresIn-seen.ExpiresIn/1000) // on a clock that may be slow by a thousandth
		if t.refuse(a.mark) == nil {
			t.until = a.until
		}
	}
	c.evict(a.mark.Election, t)
}

// evict forgets an election without an answer, or any other one if there are too many.
func (c *Checks) evict(e leadership.Election, t *term) {
	if t.token == 0 && len(t.asks) == 0 {
		delete(c.terms, e)
	}
	if len(c.terms) <= c.config.Elections {
		return
	}
	for other, t := range c.terms {
		if len(t.asks) == 0 {
			delete(c.terms, other)
			return
		}
	}
}

// verdict returns what the answer means now. It is not final if another call may be answered
// differently.
func (c *Checks) verdict(a *ask) (err error, final bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.terms[a.mark.Election]; ok {
		if err := t.refuse(a.mark); err != nil {
			return err, true
		}
	}
	if a.err != nil {
		return a.err, !errors.Is(a.err, leadership.TokenStale)
	}
	if c.config.Now() >= a.until {
		return unknown("Regent's answer about token %d of election %q came too late", a.mark.Token, a.mark.Election), true
	}
	return nil, true
}
