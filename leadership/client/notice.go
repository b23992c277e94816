package client

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"regent/leadership"
)

// Notice tells a leader of a change that concerns its term.
type Notice struct {
	Kind     NoticeKind
	Election leadership.Election
	Token    leadership.Token // of the lease; the new one after NoticeNewEpoch
	// Left is the time from the notice until the term ends; 0 if the term has no end.
	Left time.Duration
}

// NoticeKind says what has changed. It may have other values than these: a newer server may send
// other reasons why a term ends, as in leadership.EndReason.
type NoticeKind string

const (
	NoticeEvicted     NoticeKind = "evicted"     // an operator ends the term
	NoticeDrained     NoticeKind = "drained"     // an operator pauses the election, and ends the term
	NoticeHandOver    NoticeKind = "handOver"    // the lease passes to another candidate: see Lease.Succession
	NoticeSeats       NoticeKind = "seats"       // the election has fewer seats now, and this one ends
	NoticeMaxTerm     NoticeKind = "maxTerm"     // the policy limits the term
	NoticeApprovalDue NoticeKind = "approvalDue" // the term ends unless operators approve; see Lease.RequestApproval
	NoticeStuck       NoticeKind = "stuck"       // the term ends with this lease unless new progress is reported
	NoticeGoesOn      NoticeKind = "goesOn"      // the end that an earlier notice told of was taken back
	NoticeNewEpoch    NoticeKind = "newEpoch"    // the lease goes on with another token
	NoticeTripped     NoticeKind = "tripped"     // the policy has ended the term: ErrDeposed
	NoticeReadOnly    NoticeKind = "readOnly"    // the quorum is lost: do not write; see Lease.ReadOnly
	NoticeWritable    NoticeKind = "writable"    // the quorum is back
	NoticeAsked       NoticeKind = "asked"       // there are proposals to decide; see Candidate.HearProposals
)

// Ending is the instant past which no renewal extends the lease.
type Ending struct {
	At      time.Time // by the store's clock, for people; zero if the term has no end
	Because leadership.EndReason
	Left    time.Duration // until At
	// Near reports that the present Deadline is the end of the term: renewals no longer extend it.
	Near bool
}

// EndsBy returns when and why the term ends even if the lease is renewed, according to the last
// answer. A leader that obeys its Deadline need not look at it.
func (l *Lease) EndsBy() Ending {
	now := l.client.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.because == "" {
		return Ending{}
	}
	return Ending{At: l.ends.at, Because: l.ends.because, Left: max(l.ends.on-now, 0), Near: l.ends.cuts(l.belief)}
}

// MustRunOut reports whether the lease must end by itself, and not by a release, so that the end of
// the term has its consequences: the server deposes a leader without progress, or grants no lease
// before the missing approval. A release right before would let the candidate lead again at once.
func (e Ending) MustRunOut() bool { return e.Near && mustRunOut(e.Because) }

func mustRunOut(because leadership.EndReason) bool {
	return because == leadership.EndsStuck || because == leadership.EndsApproval
}

// TermError says that a lease expired because its term has ended, at Lease.EndsBy. It is wrapped
// together with ErrExpired.
type TermError struct {
	Because leadership.EndReason
}

// Error says why the term has ended.
func (e *TermError) Error() string { return "the term has ended: " + e.why() }

func (e *TermError) why() string {
	switch e.Because {
	case leadership.EndsMaxTerm:
		return "it was as long as the election's policy allows"
	case leadership.EndsApproval:
		return "it needed an approval by an operator"
	case leadership.EndsStuck:
		return "the leader has reported no progress for as long as the election's policy allows"
	case leadership.EndsEvicted:
		return "an operator has evicted the leader"
	case leadership.EndsDrained:
		return "an operator has paused the election"
	case leadership.EndsHandOver:
		return "the lease passes to another candidate"
	case leadership.EndsParent:
		return "the lease that this one stands on has ended, or could not be read"
	case leadership.EndsSeats:
		return "the election has fewer seats now"
	}
	return fmt.Sprint(e.Because)
}

// termEnd is the end of a term according to an answer; the zero termEnd is none.
type termEnd struct {
	because leadership.EndReason
	at      time.Time     // by the store's clock
	on      time.Duration // on the client's clock, no later than at
}

// newTermEnd returns the end of the term from the answer to a request that left at sent and stood
// in line for waited.
func newTermEnd(sent, waited time.Duration, answer leadership.Lease) termEnd {
	if answer.EndsBecause == "" || answer.EndsBy.IsZero() {
		return termEnd{}
	}
	return termEnd{because: answer.EndsBecause, at: answer.EndsBy, on: leadership.Deadline(sent, waited, answer.EndsIn, 0)}
}

// cuts reports whether the lease that b believes in ends with the term.
func (e termEnd) cuts(b leadership.Belief) bool { return e.because != "" && b.LeaseEnd() >= e.on }

// kind returns the kind of the notice for this end; empty if it needs none. EndsStuck moves with
// each report of progress, so it needs a notice only when it is near. EndsParent moves with each
// renewal and needs none.
func (e termEnd) kind(b leadership.Belief) NoticeKind {
	switch {
	case e.because == leadership.EndsStuck && !e.cuts(b), e.because == leadership.EndsParent:
		return ""
	case e.because == leadership.EndsApproval:
		return NoticeApprovalDue
	}
	return NoticeKind(e.because)
}

// notices delivers the notices of a lease, in order and one at a time.
type notices struct {
	mu      sync.Mutex
	waiting []Notice // guarded by mu
	running bool     // a goroutine delivers them; guarded by mu

	kind NoticeKind // of the last notice of an end; only the renewing goroutine uses it
	at   time.Time  // the end in that notice; only the renewing goroutine uses it
}

// post queues a notice for Config.OnNotice. It does not block.
func (l *Lease) post(n Notice) {
	if l.client.onNotice == nil {
		return
	}
	n.Election, n.Token = l.Election(), l.Token()
	q := &l.notices
	q.mu.Lock()
	defer q.mu.Unlock()
	if n.Kind == NoticeAsked && slices.ContainsFunc(q.waiting, func(w Notice) bool { return w.Kind == NoticeAsked }) {
		return
	}
	if q.waiting = append(q.waiting, n); !q.running {
		q.running = true
		go l.deliver()
	}
}

func (l *Lease) deliver() {
	for {
		n, ok := l.notices.next()
		if !ok {
			return
		}
		l.client.onNotice(n)
	}
}

func (q *notices) next() (Notice, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running = len(q.waiting) > 0; !q.running {
		return Notice{}, false
	}
	n := q.waiting[0]
	q.waiting = q.waiting[1:]
	return n, true
}

// noteEnd posts a notice if the end of the term has changed. Only the renewing goroutine calls it.
func (l *Lease) noteEnd(now time.Duration) {
	l.mu.Lock()
	end, kind := l.ends, l.ends.kind(l.belief)
	l.mu.Unlock()
	at := end.at
	if kind == "" {
		end, at = termEnd{}, time.Time{}
	}
	last := &l.notices
	if kind == last.kind && at.Equal(last.at) {
		return
	}
	last.kind, last.at = kind, at
	n := Notice{Kind: NoticeGoesOn}
	if kind != "" {
		n = Notice{Kind: kind, Left: max(end.on-now, 0)}
	}
	l.client.logOf(l).Info("the end of the term has changed", "notice", n.Kind, "left", n.Left)
	l.post(n)
}
