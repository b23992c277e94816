package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// message is one event of a stream.
type message struct {
	id   string // what to resume from once this was read; "" leaves it as it was
	name string // "" for an event of an election
	data any
}

// source is what a stream tells.
type source interface {
	// next waits for more.
	next(context.Context) ([]message, error)
	// cursor is what to resume from.
	cursor() string
}

const (
	// streamRetry is how long to wait before looking again for what the store could not tell.
	streamRetry = time.Second
	// limitJitter is the part of a stream's limit by which it may end earlier, so that those which began together do not end together.
	limitJitter = 0.1
)

// stream answers with what there is to tell first, and goes on with what the source has until there is a reason to stop, or the reader is
// gone.
func (a *api) stream(w http.ResponseWriter, r *http.Request, from source, first []message) error {
	t := newTeller(r.Context(), w, a.stall)
	if r.Method == http.MethodHead {
		return nil
	}
	defer context.AfterFunc(r.Context(), t.hurry)()
	limit := time.Duration(float64(a.limit) * (1 - limitJitter*rand.Float64()))
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, errLimit)
	defer cancel()
	if err := t.tell(first); err != nil {
		return err
	}
	for {
		messages, err := a.listen(ctx, from)
		switch reason := stopReason(ctx, err); {
		case reason != "":
			return t.tell([]message{{from.cursor(), wire.StreamEnd, wire.StreamStop{Reason: reason}}})
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			err = t.tell(messages)
		default: // nothing new, or the store is away: both pass
			err = t.ping()
		}
		if err != nil {
			return err
		}
	}
}

// teller writes a reply that goes on.
type teller struct {
	ctx        context.Context // of the request
	w          http.ResponseWriter
	connection *http.ResponseController
	stall      time.Duration
	buffer     bytes.Buffer
}

// newTeller begins such a reply. An error cannot be told in it any more.
func newTeller(ctx context.Context, w http.ResponseWriter, stall time.Duration) *teller {
	if e, ok := w.(*exchange); ok {
		e.streaming = true
	}
	t := &teller{ctx: ctx, w: w, connection: http.NewResponseController(w), stall: stall}
	t.connection.SetReadDeadline(time.Time{}) // an error means that the connection has no deadlines
	w.Header().Set("Content-Type", wire.StreamType)
	w.Header().Set("X-Accel-Buffering", "no") // to nginx, and what speaks like it
	w.WriteHeader(http.StatusOK)
	t.buffer.WriteString("retry: 1000\n\n")
	return t
}

// portion is how many bytes are sent at once.
const portion = 64 << 10

// tell sends messages.
func (t *teller) tell(messages []message) error {
	for _, m := range messages {
		if err := t.add(m); err != nil {
			return err
		}
		if t.buffer.Len() >= portion {
			if err := t.send(); err != nil {
				return err
			}
		}
	}
	return t.send()
}

func (t *teller) add(m message) error {
	data, err := json.Marshal(m.data)
	if err != nil {
		return err
	}
	if m.name != "" {
		t.buffer.WriteString("event: " + m.name + "\n")
	}
	if m.id != "" {
		t.buffer.WriteString("id: " + m.id + "\n")
	}
	t.buffer.WriteString("data: ")
	t.buffer.Write(data)
	t.buffer.WriteString("\n\n")
	return nil
}

// send sends what was added. The error is for a reader that is gone, or that has stalled and is cut off.
func (t *teller) send() error {
	if t.ctx.Err() == nil {
		t.connection.SetWriteDeadline(time.Now().Add(t.stall))
	}
	_, err := t.w.Write(t.buffer.Bytes())
	if t.buffer.Reset(); err != nil {
		return err
	}
	return t.connection.Flush()
}

// lastWords is how long a reader may take once its time is over.
const lastWords = 500 * time.Millisecond

// hurry waits for a reader that has stalled no longer than for its last words.
func (t *teller) hurry() { t.connection.SetWriteDeadline(time.Now().Add(lastWords)) }

// ping shows that the stream is alive.
func (t *teller) ping() error {
	t.buffer.WriteString(": ping\n\n")
	return t.send()
}

var errLimit = errors.New("the stream has lasted for as long as it may")

// listen waits for what the source has next, or until a ping is due. While the store is away it does not ask at once again.
func (a *api) listen(ctx context.Context, from source) ([]message, error) {
	waiting, cancel := context.WithTimeout(ctx, a.ping)
	defer cancel()
	messages, err := from.next(waiting)
	if err != nil && waiting.Err() == nil && stopReason(ctx, err) == "" {
		select {
		case <-time.After(streamRetry):
		case <-ctx.Done():
		}
	}
	return messages, err
}

// stopReason is why a stream ends because of the error; "" if it does not.
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

// lastEventID is the header, "" if it is not there. EventSource sends it by itself.
func lastEventID(r *http.Request) (string, error) {
	values := r.Header.Values(wire.LastEventIDHeader)
	if len(values) > 1 {
		return "", wrong(wire.LastEventIDHeader, "%s stands in the header %d times", wire.LastEventIDHeader, len(values))
	}
	return strings.Join(values, ""), nil
}
