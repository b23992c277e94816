package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// term is a lease of a caller.
type term struct {
	lease *client.Lease
	keep  time.Duration

	mu      sync.Mutex
	notices []notice          // since the caller's last call; guarded by mu
	end     client.NoticeKind // the last notice of the term's end; "" if it has none; guarded by mu
	early   bool              // a reading has reported the end before a renewal did; guarded by mu
	read    *ending           // by the last reading; nil before the first; guarded by mu
}

// ending says why and when a term ends. The time is no later than in the store.
type ending struct {
	because leadership.EndReason // "" if it has no end
	by      time.Time
}

// maxNotices is the most notices that are kept for the caller.
const maxNotices = 50

type notice struct {
	Kind         client.NoticeKind `json:"kind"`
	FencingToken leadership.Token  `json:"fencingToken"`
	LeftMs       int64             `json:"leftMs"`
}

func (t *term) note(n client.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch n.Kind {
	case client.NoticeNewEpoch, client.NoticeTripped: // not about the end
	case client.NoticeGoesOn:
		t.end, t.early = "", false
	default:
		again := t.early && n.Kind == t.end
		t.end, t.early = n.Kind, false
		if again {
			return
		}
	}
	t.add(n)
}

// add stores a notice for the caller. Call with mu held.
func (t *term) add(n client.Notice) {
	t.notices = append(t.notices, notice{n.Kind, n.Token, n.Left.Milliseconds()})
	t.notices = t.notices[max(len(t.notices)-maxNotices, 0):]
}

// see takes the end of the term from a reading that was requested at asked, because the next
// renewal may be hours away.
func (t *term) see(l leadership.Lease, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = &ending{l.EndsBecause, asked.Add(l.EndsIn)}
	n := client.Notice{Kind: client.NoticeGoesOn, Token: l.Token}
	switch l.EndsBecause {
	case leadership.EndsEvicted, leadership.EndsDrained, leadership.EndsHandOver, leadership.EndsMaxTerm:
		n.Kind, n.Left = client.NoticeKind(l.EndsBecause), max(time.Until(t.read.by), 0)
	case "":
	default: // there is a notice only when such an end is near, which the renewals tell
		return
	}
	switch {
	case n.Kind == client.NoticeGoesOn && !t.early, n.Kind == t.end: // the renewals tell it, or have told it
		return
	case n.Kind == client.NoticeGoesOn:
		t.end, t.early = "", false
	default:
		t.end, t.early = n.Kind, true
	}
	t.add(n)
}

// recall inserts earlier notices before those of this term.
func (t *term) recall(earlier []notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices = append(earlier, t.notices...)
}

// heard returns the notices since the last call, and removes them.
func (t *term) heard() []notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	heard := append([]notice{}, t.notices...)
	t.notices = nil
	return heard
}

func (t *term) standing() standing {
	l := t.lease
	left, ends := l.Remaining(), l.EndsBy()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read != nil {
		ends.Because, ends.Left = t.read.because, 0
		if t.read.because != "" {
			ends.Left = max(time.Until(t.read.by), 0)
		}
	}
	return standing{
		Leading: left > 0, Election: l.Election(), CandidateID: l.CandidateID(), FencingToken: l.Token(),
		LeadsForMs: left.Milliseconds(), EndsBecause: ends.Because, EndsInMs: ends.Left.Milliseconds(),
	}
}

func (t *term) led(handle string) leadOutput {
	return leadOutput{
		Handle: handle, standing: t.standing(), LeaseDuration: wire.Duration(t.lease.Duration()), Keep: wire.Duration(t.keep),
		Inherited: t.lease.Inherited(), InDoubt: t.lease.InDoubt(), Open: t.lease.OpenProposals(),
	}
}

// why returns why the lease is over, without the transport's errors.
func (t *term) why() string {
	cause := context.Cause(t.lease.Context())
	ended, endedTerm := errors.AsType[*client.TermError](cause)
	refused, wasRefused := errors.AsType[*leadership.Error](cause)
	switch expired := errors.Is(cause, client.ErrExpired); {
	case endedTerm:
		return ended.Error()
	case expired && wasRefused:
		return client.ErrExpired.Error() + ": " + worded(refused)
	case expired:
		return client.ErrExpired.Error()
	case wasRefused:
		return worded(refused)
	}
	return strings.TrimPrefix(fmt.Sprint(cause), "client: ")
}

// lost returns the error of a call that only a leader may make. and is added to it, and may be
// empty.
func (t *term) lost(and string) error {
	return &leadership.Error{Code: leadership.LeaseLost, Detail: fmt.Sprintf("the lease of election %q with fencing token %d is over%s: %s", t.lease.Election(), t.lease.Token(), and, t.why())}
}

// failed returns the error of a leader's call, which may have failed because the lease ended.
func (t *term) failed(err error) error {
	switch code := codeOf(err); {
	case err == nil || t.lease.Valid():
	case code == leadership.OutcomeUnknown:
		return t.lost(", and this call may have been done before")
	case code == leadership.StoreUnavailable, code == wire.Internal:
		return t.lost("")
	}
	return err
}

// releaseTimeout limits the release of a lease that no caller waits for.
const releaseTimeout = 5 * time.Second

// release releases the lease, if there is one, even if ctx has ended.
func (t *term) release(ctx context.Context) error {
	if t == nil || t.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if t.lease.EndsBy().MustRunOut() {
		t.lease.LetEnd()
		return nil
	}
	return t.lease.Resign(ctx)
}
