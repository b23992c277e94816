package httpapi

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

type message struct {
	id   string // where to resume once this was read; "" leaves that as it was
	name string // "" for an event of an election
	data any
	text []byte // the encoded message; nil: encode makes it
}

func (m message) encode() ([]byte, error) {
	if m.text != nil {
		return m.text, nil
	}
	data, err := wire.Marshal(m.data)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, len("event: \nid: \ndata: \n\n")+len(m.name)+len(m.id)+len(data))
	if m.name != "" {
		text = append(append(append(text, "event: "...), m.name...), '\n')
	}
	if m.id != "" {
		text = append(append(append(text, "id: "...), m.id...), '\n')
	}
	return append(append(append(text, "data: "...), data...), "\n\n"...), nil
}

// source produces the messages of a stream.
type source interface {
	// next blocks until there are messages.
	next(context.Context) ([]message, error)
	// cursor returns where to resume.
	cursor() string
}

// encodedReport is a report and its message.
type encodedReport struct {
	report  *instance.Report
	message message
}

// report returns the message about a report. It has no id, because a resumed stream does not repeat
// it.
func (m *encoded) report(r *instance.Report) message {
	at := &m.reports[uint64(r.At.UnixMicro())%uint64(len(m.reports))]
	if known := at.Load(); known != nil && known.report == r {
		return known.message
	}
	made := message{name: wire.StreamReport, data: wire.NewStreamReported(r.Text, r.At, r.Token)}
	text, err := made.encode()
	if err != nil {
		return made // the stream fails with it
	}
	made = message{text: text}
	at.Store(&encodedReport{r, made})
	return made
}

const (
	// streamRetry is the pause after an error of the store.
	streamRetry = time.Second
	// limitJitter is the part of the limit by which a stream may end earlier, so that streams which
	// began together do not end together.
	limitJitter = 0.1
)

// stream answers with the first messages and then with those of the source, until there is a reason
// to stop or the reader leaves.
func (a *api) stream(w http.ResponseWriter, r *http.Request, from source, first []message) error {
	t := newStreamWriter(w, r, a.stall)
	if r.Method == http.MethodHead {
		return nil
	}
	defer t.hurryAtTheEnd()()
	limit := time.Duration(float64(a.limit) * (1 - limitJitter*rand.Float64()))
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, errLimit)
	defer cancel()
	if err := t.write(first); err != nil {
		return err
	}
	pinging := &pinging{ctx: ctx, every: a.ping}
	defer pinging.stop()
	for {
		messages, err := a.listen(pinging, from)
		switch reason := stopReason(ctx, err); {
		case reason != "":
			return t.write([]message{{id: from.cursor(), name: wire.StreamEnd, data: wire.StreamStop{Reason: reason}}})
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			err = t.write(messages)
		default: // nothing new, or a transient error of the store
			err = t.write(ping)
		}
		if err != nil {
			return err
		}
	}
}

type streamWriter struct {
	ctx        context.Context // of the request
	shared     bool            // HTTP/2: the connection carries several streams
	w          http.ResponseWriter
	connection *http.ResponseController
	stall      time.Duration
}

// newStreamWriter begins the reply. From then on it is too late for a problem document.
func newStreamWriter(w http.ResponseWriter, r *http.Request, stall time.Duration) *streamWriter {
	if e, ok := w.(*exchange); ok {
		e.streaming = true
	}
	t := &streamWriter{ctx: r.Context(), shared: r.ProtoMajor >= 2, w: w, connection: http.NewResponseController(w), stall: stall}
	t.connection.SetReadDeadline(time.Time{}) // an error means that the connection has no deadlines
	w.Header().Set("Content-Type", wire.StreamType)
	w.Header().Set("X-Accel-Buffering", "no") // tells nginx not to buffer
	w.WriteHeader(http.StatusOK)
	io.WriteString(w, "retry: 1000\n\n") // the next write returns the error
	return t
}

// portion is the number of bytes after which written data is flushed.
const portion = 64 << 10

// write sends messages. An error means that the reader has left, or did not read in time.
func (t *streamWriter) write(messages []message) error {
	t.extend()
	size := 0
	for _, m := range messages {
		text, err := m.encode()
		if err == nil {
			_, err = t.w.Write(text)
		}
		if err != nil {
			return err
		}
		if size += len(text); size >= portion {
			size = 0
			if err := t.connection.Flush(); err != nil {
				return err
			}
			t.extend()
		}
	}
	err := t.connection.Flush()
	if t.shared {
		t.rest()
	}
	return err
}

// extend moves the write deadline, so that the reader has the stall timeout for the next bytes.
func (t *streamWriter) extend() {
	if t.ctx.Err() == nil {
		t.connection.SetWriteDeadline(time.Now().Add(t.stall))
	}
}

// rest removes the deadline until there is something to send, because HTTP/2 ends an idle stream at
// its deadline.
func (t *streamWriter) rest() {
	if t.ctx.Err() != nil {
		return
	}
	if t.connection.SetWriteDeadline(time.Time{}); t.ctx.Err() != nil {
		t.hurry() // the context may have ended already
	}
}

// lastWords is how long a reader may take to read the last message.
const lastWords = 500 * time.Millisecond

// hurryAtTheEnd calls hurry when the request's context ends. done must be called before the handler
// returns; it waits for hurry, because an HTTP/2 reply panics if it is used after the handler.
func (t *streamWriter) hurryAtTheEnd() (done func()) {
	hurried := make(chan struct{})
	stop := context.AfterFunc(t.ctx, func() {
		defer close(hurried)
		t.hurry()
	})
	return func() {
		if !stop() {
			<-hurried
		}
	}
}

// hurry limits the time for the last message, in case the reader does not read.
func (t *streamWriter) hurry() { t.connection.SetWriteDeadline(time.Now().Add(lastWords)) }

// ping is a comment, which shows that the stream is alive.
var ping = []message{{text: []byte(": ping\n\n")}}

var errLimit = errors.New("the stream has reached its time limit")

// pinging is the time until a ping is due.
type pinging struct {
	ctx    context.Context // of the stream
	every  time.Duration
	next   context.Context // ends when a ping is due; nil: due makes a new one
	cancel context.CancelFunc
}

// due returns a context that ends when a ping is due. It is the same until then, whatever is sent:
// a new one for each event would cost more than the event.
func (p *pinging) due() context.Context {
	if p.next == nil || p.next.Err() != nil {
		p.stop()
		p.next, p.cancel = context.WithTimeout(p.ctx, p.every)
	}
	return p.next
}

func (p *pinging) stop() {
	if p.cancel != nil {
		p.cancel()
	}
}

// listen blocks until the source has messages or a ping is due. After an error of the store it
// pauses.
func (a *api) listen(p *pinging, from source) ([]message, error) {
	waiting := p.due()
	messages, err := from.next(waiting)
	if err != nil && waiting.Err() == nil && stopReason(p.ctx, err) == "" {
		select {
		case <-time.After(streamRetry):
		case <-p.ctx.Done():
		}
	}
	return messages, err
}

// stopReason returns why the stream must end; "" if it need not.
func stopReason(ctx context.Context, err error) wire.StopReason {
	switch {
	case err == nil:
		return ""
	case errors.Is(context.Cause(ctx), errLimit):
		return wire.StopLimit
	case errors.Is(err, wire.Draining), errors.Is(context.Cause(ctx), wire.Draining):
		return wire.StopDraining
	case errors.Is(err, instance.ErrSlow):
		return wire.StopSlow
	case errors.Is(err, leadership.HistoryCompacted):
		return wire.StopCompacted
	}
	return ""
}

// lastEventID returns the header, or "". EventSource sends it by itself.
func lastEventID(r *http.Request) (string, error) {
	values := r.Header.Values(wire.LastEventIDHeader)
	if len(values) > 1 {
		return "", wrong(wire.LastEventIDHeader, "the header %s occurs %d times", wire.LastEventIDHeader, len(values))
	}
	return strings.Join(values, ""), nil
}
