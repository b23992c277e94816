package record

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/wire"
	"regent/test/checker"
)

// Line is one thing that an agent did or saw. Exactly one of its members is set, beside N.
type Line struct {
	Sent     *checker.Call         `json:"sent,omitempty"`   // with the outcome unknown, which it is if no Call of the same N follows
	Call     *checker.Call         `json:"call,omitempty"`   // with its outcome
	N        int                   `json:"n,omitempty"`      // of Sent and Call: numbers the recorder's calls from 1
	Belief   *checker.Belief       `json:"belief,omitempty"` // all with one Who, Election and Token are one, from the first to the last
	Reading  *checker.Reading      `json:"reading,omitempty"`
	Consumer *checker.Consumer     `json:"consumer,omitempty"`
	Delivery *Delivery             `json:"delivery,omitempty"`
	Effect   *checker.EffectCall   `json:"effect,omitempty"`
	Proposal *checker.ProposalCall `json:"proposal,omitempty"`
	// Failure is an error that an agent should never meet, whatever is broken around it.
	Failure string `json:"failure,omitempty"`
}

// Delivery is an event that a consumer got.
type Delivery struct {
	Consumer string     `json:"consumer"`
	Event    wire.Event `json:"event"`
}

// Recorder writes lines. All methods may be called at the same time.
type Recorder struct {
	offset time.Duration

	mu   sync.Mutex // guards all below
	put  func(Line)
	sent int
}

// NewRecorder returns a recorder of a process whose clock is shifted by the offset. Each method
// passes its line to put before it returns.
func NewRecorder(offset time.Duration, put func(Line)) *Recorder {
	return &Recorder{offset: offset, put: put}
}

// LinesTo writes lines as JSON. A failed write is ignored: the reader has ended.
func LinesTo(w io.Writer) func(Line) {
	out := json.NewEncoder(w)
	return func(l Line) { out.Encode(l) }
}

// Now is the time on the clock of all recorders.
func (d *Recorder) Now() time.Duration { return boottime.Now() - d.offset }

// Sent writes down a call that is about to leave, and returns its number. It counts as one whose
// answer was lost if the process dies before Call.
func (d *Recorder) Sent(c checker.Call) (n int) {
	c.Answered, c.Code = checker.Forever, leadership.OutcomeUnknown
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent++
	d.put(Line{Sent: &c, N: d.sent})
	return d.sent
}

// Call writes down the outcome of the call of that number.
func (d *Recorder) Call(c checker.Call, n int) { d.write(Line{Call: &c, N: n}) }

// Read writes down a reading.
func (d *Recorder) Read(r checker.Reading) { d.write(Line{Reading: &r}) }

// Effect writes down a begin or a finish of an effect, with its outcome.
func (d *Recorder) Effect(c checker.EffectCall) { d.write(Line{Effect: &c}) }

// Propose writes down a proposal or a decision, with its outcome.
func (d *Recorder) Propose(c checker.ProposalCall) { d.write(Line{Proposal: &c}) }

// Expect names a consumer that is to be told of changes.
func (d *Recorder) Expect(c checker.Consumer) { d.write(Line{Consumer: &c}) }

// Deliver writes down an event that a consumer got.
func (d *Recorder) Deliver(consumer string, e leadership.Event) {
	d.write(Line{Delivery: &Delivery{consumer, wire.NewEvent(e)}})
}

// Fail writes down an error that should not happen.
func (d *Recorder) Fail(format string, args ...any) {
	d.write(Line{Failure: fmt.Sprintf(format, args...)})
}

func (d *Recorder) write(l Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(l)
}

// beliefs are written down no more often than this.
const beliefs = 20 * time.Millisecond

// Believe asks an agent every few milliseconds whether it still believes that it leads, until it
// does not, and writes down from when until when it did. The clock is read before each question, so
// the belief held for at least the time that is written down.
func (d *Recorder) Believe(b checker.Belief, asks time.Duration, valid func() bool) {
	b.From = d.Now()
	b.Until = b.From
	written := time.Duration(-1)
	for at := b.From; valid(); at = d.Now() {
		if b.Until = at; at-written >= beliefs {
			d.write(Line{Belief: &b})
			written = at
		}
		time.Sleep(asks)
	}
	if written >= 0 {
		d.write(Line{Belief: &b})
	}
}
