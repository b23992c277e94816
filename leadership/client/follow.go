package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// JournalItem is one item of a journal: a Snapshot or an Entry.
type JournalItem struct {
	// Snapshot replaces all entries up to its UpTo, including those that were yielded before:
	// discard the state built from them. After the store was restored from a backup the snapshot is
	// yielded again; if the journal has none, UpTo is 0 and there is no data: start from nothing.
	Snapshot *leadership.JournalSnapshot `json:"snapshot,omitzero"`
	Entry    *leadership.Entry           `json:"entry,omitzero"`
}

// Index returns the index of the entry, or of the last entry that the snapshot replaces.
func (i JournalItem) Index() leadership.Index {
	if i.Snapshot != nil {
		return i.Snapshot.UpTo
	}
	return i.Entry.Index
}

// Follow yields the entries of an election's journal after an index, 0 for all, and then each one
// as it is appended: once, in order and without a gap, whichever instance serves it. It reconnects
// and resumes as Watch does. If the leader has replaced the next entries with a snapshot, it yields
// that first and continues after it. It reads no faster than the loop. A journal without entries
// yields nothing until it has some.
//
// Unless the caller leaves the loop, the last iteration has an error and no item: ctx's, or a
// permanent one, such as leadership.InvalidArgument, wire.PermissionDenied, and
// leadership.IndexMismatch if the journal has not reached the index after, so that it is not the
// journal that the caller read before. If the store was ever restored from a backup, a loop that
// begins after another index than 0 gets the snapshot first.
func (c *Client) Follow(ctx context.Context, election leadership.Election, after leadership.Index) iter.Seq2[JournalItem, error] {
	return c.FollowAs(ctx, election, after, "")
}

// FollowAs is Follow for a member of the election: it reports to the server, at most once a second,
// the last item that the loop has finished. Members shows how far the member lags behind, and
// AwaitAcknowledgement can wait for it. The reported index never goes back while the member is
// known: a member that has lost its state and starts anew must take another id.
func (c *Client) FollowAs(ctx context.Context, election leadership.Election, after leadership.Index, member leadership.CandidateID) iter.Seq2[JournalItem, error] {
	return func(yield func(JournalItem, error) bool) {
		f := &journalReader{client: c, election: election, member: member, last: after, yield: yield}
		if err := f.follow(ctx); err != errLeft {
			yield(JournalItem{}, err)
		}
	}
}

// journalReader passes the items of a journal on to the loop. Only tell runs on another goroutine.
//
// It learns the journal's generation from each page. An error with another generation means that
// the store was restored: then it begins anew.
type journalReader struct {
	client   *Client
	election leadership.Election
	member   leadership.CandidateID
	yield    func(JournalItem, error) bool

	last    leadership.Index // of the items that were passed on
	applied atomic.Int64     // index of the last item that the loop has finished
	// of the journal that the items are from
	generation atomic.Int64
	missing    leadership.Index // the last entry that a stream left out
	backoff    backoff
}

// follow returns a permanent error, errLeft, or ctx's error. It never returns nil.
func (f *journalReader) follow(ctx context.Context) error {
	if err := f.request(0).Validate(); err != nil {
		return err
	}
	f.applied.Store(int64(f.last))
	telling, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	if f.member != "" {
		beside.Go(func() { f.tell(telling) }) // the loop may work on the first page for long
	}
	if err := f.retry(ctx, f.begin); err != nil {
		return err
	}
	return f.retry(ctx, f.listen)
}

// retry calls read until it returns nil or a permanent error. If a snapshot has replaced the next
// entries, it passes that on.
func (f *journalReader) retry(ctx context.Context, read func(context.Context) error) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("client: follow: %w", ctx.Err())
		}
		began := time.Now()
		err := read(ctx)
		if errors.Is(err, leadership.HistoryCompacted) {
			refusal, _ := errors.AsType[*leadership.Error](err)
			if err = f.catchUp(ctx, refusal.Generation); err == nil {
				continue
			}
		}
		last, permanent := errors.AsType[permanentError](err)
		switch {
		case err == nil, err == errLeft:
			return err
		case ctx.Err() != nil:
			continue
		case permanent:
			return last.error
		case !passes(err):
			return err
		case time.Since(began) > maxPause:
			f.backoff = backoff{}
		}
		sleep(ctx, f.backoff.after(err))
	}
}

// passes reports whether a read or stream that ended with err should be tried again.
func passes(err error) bool {
	var ended streamEnded
	var reply *ReplyError
	return errors.As(err, &ended) || errors.As(err, &reply) && reply.Status < 300 || transient(err)
}

func (f *journalReader) request(limit int) leadership.JournalRequest {
	r := leadership.JournalRequest{Election: f.election, After: f.last, Generation: leadership.Token(f.generation.Load()), Limit: limit, Member: f.member}
	if f.member != "" {
		r.Applied = leadership.Index(f.applied.Load())
	}
	return r
}

// begin reads the first page, to check that the journal has reached the index.
func (f *journalReader) begin(ctx context.Context) error {
	page, err := f.read(ctx, 0)
	switch {
	case err != nil:
		return err
	case page.Index < f.last:
		return permanentError{&leadership.Error{Code: leadership.IndexMismatch, Index: page.Index, Detail: fmt.Sprintf(
			"the journal of election %q is at index %d, and %d was asked for; it is another one: begin again from 0", f.election, page.Index, f.last)}}
	}
	return f.takeAll(page.Entries)
}

func (f *journalReader) read(ctx context.Context, limit int) (leadership.JournalPage, error) {
	page, err := f.client.ReadJournal(ctx, f.request(limit))
	if err == nil {
		f.generation.Store(int64(page.Generation))
	}
	return page, err
}

// readUpTo passes items on up to the index end.
func (f *journalReader) readUpTo(ctx context.Context, end leadership.Index) error {
	for f.last < end {
		err := f.retry(ctx, func(ctx context.Context) error {
			page, err := f.read(ctx, int(min(end-f.last, leadership.MaxPageSize)))
			if err == nil && len(page.Entries) == 0 {
				err = permanentError{misread("journal", false, fmt.Errorf("it has no entry after %d, and %d was written", f.last, end))}
			}
			if err != nil {
				return err
			}
			return f.takeAll(page.Entries)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *journalReader) takeAll(entries []leadership.Entry) error {
	for i := range entries {
		if err := f.take(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// take passes an entry on if it is the next one.
func (f *journalReader) take(e *leadership.Entry) error {
	switch next := f.last + 1; {
	case e.Index < next:
		return nil
	case e.Index > next && f.missing == next:
		return permanentError{misread("follow", false, fmt.Errorf("entry %d of the journal of election %q was left out twice", next, f.election))}
	case e.Index > next:
		f.missing = next
		return misread("follow", false, fmt.Errorf("entry %d of the journal of election %q was left out", next, f.election))
	}
	return f.emit(JournalItem{Entry: e})
}

func (f *journalReader) emit(i JournalItem) error {
	f.backoff = backoff{}
	f.last = i.Index()
	if !f.yield(i, nil) {
		return errLeft
	}
	f.applied.Store(int64(f.last))
	return nil
}

// catchUp passes on the snapshot, after which the journal continues.
func (f *journalReader) catchUp(ctx context.Context, generation leadership.Token) error {
	s, err := f.client.ReadSnapshot(ctx, f.election)
	restored := int64(generation) != f.generation.Load()
	switch {
	case restored && errors.Is(err, leadership.NotFound):
		s = leadership.JournalSnapshot{Election: f.election}
	case err != nil:
		return err
	case !restored && s.UpTo <= f.last:
		return misread("read snapshot", false, fmt.Errorf("it ends at %d, and entries after %d are said to be had as a snapshot only", s.UpTo, f.last))
	}
	f.generation.Store(int64(generation))
	return f.emit(JournalItem{Snapshot: &s})
}

// listen connects and passes entries on until the connection ends. It never returns nil.
func (f *journalReader) listen(ctx context.Context) error {
	s, err := f.client.open(ctx, f.stream())
	if err != nil {
		return err
	}
	defer s.close()
	for {
		m, err := s.next()
		if err == nil {
			err = f.receive(m)
		}
		if err != nil {
			return err
		}
	}
}

// stream returns the call for a stream of the entries that follow.
func (f *journalReader) stream() call {
	after := strconv.FormatInt(int64(f.last), 10)
	k := call{name: "follow", method: http.MethodGet, path: wire.Path(f.election, wire.JournalPath), query: url.Values{"after": {after}}}
	setNumber(k.query, "generation", f.generation.Load())
	setText(k.query, "member", string(f.member))
	if f.member != "" {
		setNumber(k.query, "applied", f.applied.Load())
	}
	k.header = map[string]string{"Accept": wire.StreamType, "Accept-Encoding": "identity"}
	return k
}

func (f *journalReader) receive(m message) error {
	switch m.name {
	case wire.StreamEntry:
		var e leadership.Entry
		if err := wire.Unmarshal(m.data, &e); err != nil {
			return badMessage(m, err)
		}
		if m.id != wire.EntryID(leadership.Token(f.generation.Load()), e.Index) {
			return badMessage(m, fmt.Errorf("it has index %d, but its id is %s", e.Index, wire.Quote(m.id)))
		}
		return f.take(&e)
	case wire.StreamEnd:
		var stop wire.StreamStop
		if err := wire.Unmarshal(m.data, &stop); err != nil {
			return badMessage(m, err)
		}
		return streamEnded{stop.Reason}
	}
	return nil // from a later version
}

const (
	// tellEvery is how often a follower may report its progress, and stayEvery how often it must to
	// stay a member.
	tellEvery = time.Second
	stayEvery = defaultTTL / 3
)

// tell reports the member's progress until ctx ends.
func (f *journalReader) tell(ctx context.Context) {
	told, since := leadership.Index(f.applied.Load()), time.Duration(0)
	for ; ctx.Err() == nil; since += tellEvery {
		applied := leadership.Index(f.applied.Load())
		if applied != told || since >= stayEvery {
			_, err := f.client.ReadJournal(ctx, leadership.JournalRequest{Election: f.election, After: applied, Generation: leadership.Token(f.generation.Load()), Limit: 1, Member: f.member, Applied: applied})
			if err == nil || errors.Is(err, leadership.HistoryCompacted) {
				told, since = applied, 0
			}
		}
		sleep(ctx, tellEvery)
	}
}
