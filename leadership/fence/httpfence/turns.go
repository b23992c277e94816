package httpfence

import (
	"context"
	"sync"

	"regent/leadership"
	"regent/leadership/fence"
)

// turns keeps the requests of two leaders of one resource apart. It remembers a resource only while there are requests for it: a token
// that comes back later is for the Marks to refuse.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // by resource; guarded by mu, and so is what is in it
}

// turn is whose requests are being handled, and who comes next.
type turn struct {
	users int              // requests that are being handled, or wait
	mark  fence.Mark       // the highest of theirs so far
	whose leadership.Token // of those that are being handled
	inner int              // how many these are
	end   func(cause error)
	ctx   context.Context // of the requests that are being handled; ends when a later leader waits
	idle  chan struct{}   // closed when the last of them is done
}

// enter waits until no request of an earlier leader is being handled. Errors: those of Mark.Admit if a later leader has come meanwhile;
// StoreUnavailable if ctx ends first. The context that it returns ends with ctx, or when a later leader comes; leave must be called.
func (t *turns) enter(ctx context.Context, resource string, w fence.Mark) (entered context.Context, leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.join(resource)
	for {
		if err := u.raise(w); err != nil {
			t.quit(resource, u)
			return nil, nil, err
		}
		if u.inner == 0 || u.whose == w.Token {
			break
		}
		if err := t.wait(ctx, u.idle); err != nil {
			t.quit(resource, u)
			return nil, nil, err
		}
	}
	entered, cancel := u.begin(ctx, w.Token)
	return entered, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		u.done()
		t.quit(resource, u)
	}, nil
}

func (t *turns) join(resource string) *turn {
	if t.of == nil {
		t.of = map[string]*turn{}
	}
	u, ok := t.of[resource]
	if !ok {
		u = new(turn)
		t.of[resource] = u
	}
	u.users++
	return u
}

func (t *turns) quit(resource string, u *turn) {
	if u.users--; u.users == 0 {
		delete(t.of, resource)
	}
}

// wait waits without mu.
func (t *turns) wait(ctx context.Context, idle <-chan struct{}) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return unknown("an earlier leader's request is still being handled: %w", context.Cause(ctx))
	}
}

// raise makes w the mark, unless a later leader has come. It ends the contexts of an earlier one's requests.
func (u *turn) raise(w fence.Mark) error {
	m, err := u.mark.Admit(w)
	if err != nil {
		return err
	}
	u.mark = m
	if u.inner > 0 && u.whose < w.Token {
		_, overtaken := m.Admit(fence.Mark{Election: w.Election, Token: u.whose})
		u.end(overtaken)
	}
	return nil
}

// begin begins a request. Its context is ctx, but ends with those of all others of its leader.
func (u *turn) begin(ctx context.Context, token leadership.Token) (context.Context, context.CancelFunc) {
	if u.inner == 0 {
		u.whose, u.idle = token, make(chan struct{})
		u.ctx, u.end = context.WithCancelCause(context.Background())
	}
	u.inner++
	entered, cancel := context.WithCancelCause(ctx)
	all := u.ctx
	stop := context.AfterFunc(all, func() { cancel(context.Cause(all)) })
	return entered, func() { stop(); cancel(nil) }
}

// done ends a request.
func (u *turn) done() {
	if u.inner--; u.inner == 0 {
		u.end(nil)
		close(u.idle)
	}
}
