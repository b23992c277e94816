package instance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"regent/leadership"
)

// Census reads all selected elections, page by page, each as it was at some moment after the census
// began. It leaves out deleted elections, and those whose record cannot be trusted or needs a newer
// program. Without a prefix, elections with a leader come first. The others come in the order of
// their names, but starting anywhere: a census joins another one where that reads, so that together
// they read the store once. An election that changes may come twice. A Census belongs to one
// goroutine, and must be closed.
type Census struct {
	which leadership.Selection
	pages *censusPages
	next  pageKey
	came  int                                         // the number of the last page that was begun before the census
	led   map[leadership.Election]leadership.Revision // elections already returned among those with a leader
	start leadership.Election                         // where the part in the order of names began
	round bool                                        // that part has passed the last name, and continues from the first
	over  bool
	leave func()

	answered func(ctx context.Context, records int) // tells the gates how many records a page has; may be nil
}

// Census begins a census. It reads nothing yet; Next does.
func (i *Instance) Census(ctx context.Context, which leadership.Selection) (*Census, error) {
	if err := which.Validate(); err != nil {
		return nil, err
	}
	prefix := which.Begin()
	c := &Census{which: which, pages: &i.census, next: pageKey{prefix: prefix, held: prefix == ""}, led: map[leadership.Election]leadership.Revision{}}
	c.came, c.leave = c.pages.enter()
	if !c.next.held {
		c.follow()
	}
	return c, nil
}

// Close ends the census. Idempotent.
func (c *Census) Close() { c.leave() }

// All reads all elections whose names begin with the prefix, as a Census does, in the order of
// their names. With an error it returns the elections read so far.
func (i *Instance) All(ctx context.Context, prefix string) (all []leadership.Lease, err error) {
	c, err := i.Census(ctx, leadership.Selection{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	latest := map[leadership.Election]leadership.Lease{}
	for more := true; more && err == nil; {
		var page []leadership.Lease
		page, more, err = c.Next(ctx)
		for _, l := range page {
			latest[l.Election] = l
		}
	}
	byName := func(a, b leadership.Lease) int { return cmp.Compare(a.Election, b.Election) }
	return slices.SortedFunc(maps.Values(latest), byName), err
}

// Next reads the next page, which may be empty and must not be changed, and reports whether more
// may follow. After an error it may be called again to continue. Errors: the store's;
// StoreUnavailable if ctx ended; the cause of Drain.
func (c *Census) Next(ctx context.Context) (leases []leadership.Lease, more bool, err error) {
	if err := c.pages.drained(); err != nil || c.over {
		return nil, !c.over, err
	}
	page, err := c.pages.read(ctx, c.next, c.came)
	if err != nil {
		return nil, true, err
	}
	if c.answered != nil {
		c.answered(ctx, len(page.Leases))
	}
	if c.next.held {
		for _, l := range page.Leases {
			c.led[l.Election] = l.Revision
		}
		if c.next.after = page.Next; page.Next == "" {
			c.next.held = false
			c.follow()
		}
		return page.Leases, true, nil
	}
	for _, l := range page.Leases {
		if revision, led := c.led[l.Election]; !(led && l.Revision == revision) && !(c.round && l.Election > c.start) && c.which.Has(l.Election) {
			leases = append(leases, l)
		}
	}
	c.next.after = page.Next
	c.over = c.start == "" && page.Next == "" || c.round && (page.Next == "" || page.Next >= c.start)
	c.round = c.round || page.Next == ""
	return leases, !c.over, nil
}

// follow starts the part in the order of names where another census reads.
func (c *Census) follow() {
	c.start = c.pages.front(c.next.prefix)
	c.next.after = c.start
}

// censusPages holds the pages read last, shared by all censuses.
type censusPages struct {
	list    func(ctx context.Context, prefix string, held bool, after leadership.Election) (leadership.Page, error)
	drained func() error

	mu    sync.Mutex // guards all below
	open  int        // how many censuses are open
	last  int        // the number of the page that was begun last
	pages []*censusPage
}

// keptPages is how many pages are kept for a census that is slower than another.
const keptPages = 4

type pageKey struct {
	prefix string
	held   bool // of the elections that have a leader
	after  leadership.Election
}

type censusPage struct {
	pageKey
	number int
	turn   chan struct{} // of one: held by the caller that reads the page, or checks whether it is read
	read   bool
	page   leadership.Page
}

func (p *censusPages) enter() (came int, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	return p.last, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open--; p.open == 0 {
			p.pages = nil
		}
	})
}

// front returns the name after which the page that was begun last lies, or "".
func (p *censusPages) front(prefix string) leadership.Election {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range slices.Backward(p.pages) {
		if page.prefix == prefix && !page.held {
			return page.after
		}
	}
	return ""
}

// read returns a page whose number is above came: that was begun after the census. If the caller
// that reads it fails, the next caller reads it.
func (p *censusPages) read(ctx context.Context, key pageKey, came int) (leadership.Page, error) {
	page := p.find(key, came)
	select {
	case page.turn <- struct{}{}:
		defer func() { <-page.turn }()
	case <-ctx.Done():
		return leadership.Page{}, fmt.Errorf("census: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
	var err error
	if !page.read {
		page.page, err = p.list(ctx, key.prefix, key.held, key.after)
		page.read = err == nil
	}
	return page.page, err
}

func (p *censusPages) find(key pageKey, came int) *censusPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range p.pages {
		if page.pageKey == key && page.number > came {
			return page
		}
	}
	p.last++
	page := &censusPage{pageKey: key, number: p.last, turn: make(chan struct{}, 1)}
	p.pages = append(slices.Clone(p.pages[max(0, len(p.pages)+1-keptPages):]), page)
	return page
}
