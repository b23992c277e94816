package main

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/client"
	"regent/test/clients"
)

const (
	tickEvery  = 20 * time.Millisecond
	afterwards = 10 // ticks once the lease is over
)

// campaign leads once, or until it is told to end.
func (d *driver) campaign() {
	for {
		write(clients.Event{Event: clients.Asking, At: now()})
		lost, token := false, leadership.Token(0)
		err := d.lead(func(ctx context.Context, l *client.Lease) error {
			d.leads(l)
			lost = d.body(ctx, l)
			token = l.Token()
			d.leads(nil)
			return nil
		})
		switch {
		case lost:
		case err != nil:
			d.fail("lead", err)
		default:
			write(clients.Event{Event: clients.Released, At: now(), Token: int64(token)})
		}
		if !lost || !d.options.Again || d.ended() {
			return
		}
	}
}

func (d *driver) lead(body func(context.Context, *client.Lease) error) error {
	if !d.options.Try {
		return d.client.Run(d.ctx, d.election, body)
	}
	l, err := d.client.TryAcquire(d.ctx, d.election)
	if err != nil {
		return err
	}
	err = body(l.Context(), l)
	return errors.Join(err, l.Resign(context.WithoutCancel(d.ctx)))
}

// body ticks until it is told to end, or the lease is over. It reports whether the lease was lost.
func (d *driver) body(ctx context.Context, l *client.Lease) (lost bool) {
	write(clients.Event{Event: clients.Leading, At: now(), Token: int64(l.Token())})
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for left := afterwards; left > 0; {
		valid := tick(l)
		switch {
		case d.ended() && ctx.Err() != nil, d.isStopped():
			return lost
		case lost:
			left--
		case !valid:
			<-ctx.Done()
			lost = true
			write(clients.Event{Event: clients.Lost, At: now(), Token: int64(l.Token()), Code: lossOf(context.Cause(ctx)), Detail: context.Cause(ctx).Error()})
		}
		<-ticker.C
	}
	return lost
}

// tick asks the lease, after it has read the clock.
func tick(l *client.Lease) bool {
	e := clients.Event{Event: clients.Tick, At: now(), Token: int64(l.Token()), Valid: new(l.Valid())}
	e.RemainingMs = new(float64(l.Remaining().Milliseconds()))
	write(e)
	return *e.Valid
}

func now() int64 { return int64(boottime.Now()) }

// ended reports whether the call in progress was cancelled.
func (d *driver) ended() bool { return d.ctx.Err() != nil }

func (d *driver) isStopped() bool {
	select {
	case <-d.stopped:
		return true
	default:
		return false
	}
}

func (d *driver) leads(l *client.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lease = l
}

func (d *driver) leading() *client.Lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lease
}

// fail writes that a call has failed.
func (d *driver) fail(call string, err error) {
	code := codeOf(err)
	if d.ctx != nil && d.ended() {
		code = clients.Cancelled
	}
	write(clients.Event{Event: clients.Failed, Call: call, Code: code, Detail: err.Error()})
}

func codeOf(err error) string {
	if code, ok := errors.AsType[leadership.Code](err); ok {
		return string(code)
	}
	return clients.Other
}

// lossOf returns the code for the cause of a lost lease.
func lossOf(cause error) string {
	if errors.Is(cause, client.ErrExpired) {
		return clients.Deadline
	}
	return codeOf(cause)
}
