package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"regent/leadership"
)

// elections is how many elections the callers contend for.
const elections = 8

// caller is one candidate, which makes one call after the other.
type caller struct {
	*writer
	id     leadership.CandidateID
	random *rand.Rand
	held   map[leadership.Election]lease
	calls  int
}

// lease is what a candidate believes that it holds.
type lease struct {
	key   string // the id of the call that drew it
	token leadership.Token
}

func (c *caller) work() error {
	for range c.script.Calls {
		c.calls++
		if c.Callers == 1 { // the run is compared with one in which no call fails
			c.clock.align()
		}
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *caller) callID() string { return fmt.Sprintf("%d-%s-%d", c.Start, c.id, c.calls) }

// step makes one call, or lets time pass.
func (c *caller) step() error {
	e := leadership.Election(fmt.Sprintf("election-%d", c.random.IntN(elections)))
	_, leads := c.held[e]
	switch p := c.random.IntN(100); {
	case p < 30:
		return c.acquire(e)
	case p < 45:
		return c.renewAll()
	case p < 70 && leads && p%2 == 0:
		return c.release(e)
	case p < 70 && leads:
		return c.renew(e)
	case p < 73:
		return c.configure(e)
	case p < 78:
		return c.journal()
	case p < 82:
		return c.remove(e)
	case p < 86:
		return c.expire(e)
	case p < 94:
		return c.mark()
	case p < 98:
		c.clock.jump(time.Duration(c.random.IntN(20)) * time.Second)
	default:
		c.clock.jump(history + time.Duration(c.random.IntN(60))*time.Second)
	}
	return c.say(line{ID: c.callID()}) // prints the clock's reading
}

// acquire asks for a lease, or for other terms of the lease that the caller has.
func (c *caller) acquire(e leadership.Election) error {
	l, leads := c.held[e]
	if !leads {
		l.key = c.callID()
	}
	key := keyOf(l.key)
	answers, err := c.ask(line{ID: c.callID(), Key: l.key}, func(ctx context.Context) ([]leadership.Lease, error) {
		g, err := c.service.Acquire(ctx, leadership.AcquireRequest{
			Election: e, CandidateID: c.id, Key: &key,
			LeaseDuration: time.Duration(1+c.random.IntN(60)) * time.Second,
			Metadata:      fmt.Appendf(nil, `{"call":%q,"room":%q}`, c.callID(), strings.Repeat("x", c.random.IntN(400))),
		})
		return one(g.Lease, err)
	})
	delete(c.held, e)
	if len(answers) == 1 {
		c.held[e] = lease{l.key, answers[0].Token}
	}
	return err
}

func (c *caller) request(e leadership.Election) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: c.id, Key: keyOf(c.held[e].key), Token: c.held[e].token}
}

func (c *caller) renew(e leadership.Election) error {
	_, err := c.ask(line{ID: c.callID()}, func(ctx context.Context) ([]leadership.Lease, error) {
		return one(c.service.Renew(ctx, c.request(e)))
	})
	return err
}

// renewAll renews all leases in one batch, and forgets those that are lost.
func (c *caller) renewAll() error {
	var batch []leadership.LeaseRequest
	for i := range elections {
		if e := leadership.Election(fmt.Sprintf("election-%d", i)); c.held[e].token > 0 {
			batch = append(batch, c.request(e))
		}
	}
	if len(batch) == 0 {
		return nil
	}
	_, err := c.ask(line{ID: c.callID()}, func(ctx context.Context) (leases []leadership.Lease, err error) {
		results, err := c.service.BatchRenew(ctx, batch)
		for i, r := range results {
			if r.Err == nil {
				leases = append(leases, r.Lease)
				continue
			}
			err = r.Err
			delete(c.held, batch[i].Election)
		}
		return leases, err
	})
	return err
}

func (c *caller) release(e leadership.Election) error {
	_, err := c.ask(line{ID: c.callID()}, func(ctx context.Context) ([]leadership.Lease, error) {
		return one(c.service.Do(ctx, leadership.Release{LeaseRequest: c.request(e)}))
	})
	delete(c.held, e)
	return err
}

// configure sets a lock delay that no other call sets, so that it always changes something.
func (c *caller) configure(e leadership.Election) error {
	delay := time.Duration(c.random.IntN(10))*time.Second + time.Duration(c.calls)*time.Millisecond
	_, err := c.ask(line{ID: c.callID()}, func(ctx context.Context) ([]leadership.Lease, error) {
		return one(c.service.Do(ctx, leadership.Configure{Election: e, Config: leadership.Config{LeaseDuration: 20 * time.Second, LockDelay: delay}}))
	})
	return err
}

func (c *caller) remove(e leadership.Election) error {
	_, err := c.ask(line{ID: c.callID()}, func(ctx context.Context) ([]leadership.Lease, error) {
		return one(c.service.Do(ctx, leadership.Delete{Election: e, Force: true}))
	})
	return err
}

func (c *caller) expire(e leadership.Election) error {
	_, err := c.ask(line{ID: c.callID()}, func(ctx context.Context) ([]leadership.Lease, error) {
		return one(c.service.Expire(ctx, e))
	})
	return err
}

// mark marks some of the unannounced events.
func (c *caller) mark() error {
	events, err := c.store.Unannounced(context.Background(), "", 1+c.random.IntN(20))
	if err != nil || len(events) == 0 {
		return nil // the next call reports a broken store
	}
	l := line{ID: c.callID()}
	for _, e := range events {
		l.Marks = append(l.Marks, e.ID())
	}
	_, err = c.ask(l, func(ctx context.Context) ([]leadership.Lease, error) { return nil, c.store.MarkAnnounced(ctx, l.Marks) })
	return err
}

// fill acquires elections with much metadata.
func (w *writer) fill() (err error) {
	errs := make(chan error, w.Fill)
	for i := range w.Fill {
		fill := func() { errs <- w.fillOne(i) }
		if w.Callers == 1 {
			fill()
		} else {
			go fill()
		}
	}
	for range w.Fill {
		err = errors.Join(err, <-errs)
	}
	return err
}

func (w *writer) fillOne(i int) error {
	random := rand.New(rand.NewPCG(w.Seed, uint64(i)))
	first := fmt.Sprintf("%d-fill-%d-0", w.Start, i)
	key := keyOf(first)
	for n := range max(w.Times, 1) {
		id := fmt.Sprintf("%d-fill-%d-%d", w.Start, i, n)
		_, err := w.ask(line{ID: id, Key: first}, func(ctx context.Context) ([]leadership.Lease, error) {
			g, err := w.service.Acquire(ctx, leadership.AcquireRequest{
				Election: leadership.Election(fmt.Sprintf("fill-%d", i)), CandidateID: "filler", Key: &key,
				Metadata: fmt.Appendf(nil, `{"n":%d,"room":%q}`, n, strings.Repeat("x", 1000+random.IntN(3000))),
			})
			return one(g.Lease, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
