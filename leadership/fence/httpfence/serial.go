package httpfence

import (
	"context"
	"sync"

	"regent/leadership"
	"regent/leadership/fence"
)

// serializer keeps the requests of two leaders of one resource apart. It remembers a resource only
// while it has requests: a lower token that arrives later is refused by the Marks.
type serializer struct {
	mu        sync.Mutex
	resources map[string]*queue // by resource; guarded by mu, with its contents
}

type queue struct {
	users  int              // requests being handled or waiting
	mark   fence.Mark       // the highest mark among them
	token  leadership.Token // token of the requests being handled
	active int              // number of requests being handled
	end    func(cause error)
	ctx    context.Context // of the requests being handled; ends when a later leader waits
	idle   chan struct{}   // closed when the last of them is done
}

// enter blocks until no request of an earlier leader is being handled. Errors: those of Mark.Admit
// if a later leader has come meanwhile; StoreUnavailable if ctx ends first. The returned context
// ends with ctx, or when a later leader comes; leave must be called.
func (t *serializer) enter(ctx context.Context, resource string, w fence.Mark) (entered context.Context, leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.join(resource)
	for {
		if err := q.raise(w); err != nil {
			t.quit(resource, q)
			return nil, nil, err
		}
		if q.active == 0 || q.token == w.Token {
			break
		}
		if err := t.wait(ctx, q.idle); err != nil {
			t.quit(resource, q)
			return nil, nil, err
		}
	}
	entered, cancel := q.begin(ctx, w.Token)
	return entered, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		q.done()
		t.quit(resource, q)
	}, nil
}

func (t *serializer) join(resource string) *queue {
	if t.resources == nil {
		t.resources = map[string]*queue{}
	}
	q, ok := t.resources[resource]
	if !ok {
		q = new(queue)
		t.resources[resource] = q
	}
	q.users++
	return q
}

func (t *serializer) quit(resource string, q *queue) {
	if q.users--; q.users == 0 {
		delete(t.resources, resource)
	}
}

// wait releases mu while it waits.
func (t *serializer) wait(ctx context.Context, idle <-chan struct{}) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return unknown("an earlier leader's request is still being handled: %w", context.Cause(ctx))
	}
}

// raise makes w the mark, unless a later leader has come. It ends the contexts of an earlier
// leader's requests.
func (q *queue) raise(w fence.Mark) error {
	m, err := q.mark.Admit(w)
	if err != nil {
		return err
	}
	q.mark = m
	if q.active > 0 && q.token < w.Token {
		_, overtaken := m.Admit(fence.Mark{Election: w.Election, Token: q.token})
		q.end(overtaken)
	}
	return nil
}

// begin begins a request. Its context is ctx, but ends together with the contexts of all requests
// of its leader.
func (q *queue) begin(ctx context.Context, token leadership.Token) (context.Context, context.CancelFunc) {
	if q.active == 0 {
		q.token, q.idle = token, make(chan struct{})
		q.ctx, q.end = context.WithCancelCause(context.Background())
	}
	q.active++
	entered, cancel := context.WithCancelCause(ctx)
	all := q.ctx
	stop := context.AfterFunc(all, func() { cancel(context.Cause(all)) })
	return entered, func() { stop(); cancel(nil) }
}

func (q *queue) done() {
	if q.active--; q.active == 0 {
		q.end(nil)
		close(q.idle)
	}
}
