package test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/checker"
)

// message is one event of a stream, in the sense of server-sent events.
type message struct{ id, name, data string }

// messages reads a stream until it ends; the error is for one that broke off.
func messages(body io.Reader) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		var m message
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "id":
				m.id = value
			case "event":
				m.name = value
			case "data":
				m.data = value
			case "":
				if m.data != "" && lines.Text() == "" && !yield(m, nil) {
					return
				}
				if lines.Text() == "" {
					m = message{}
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield(message{}, err)
		}
	}
}

// patient is for streams and waiting calls; each has a connection.
var patient = &http.Client{Transport: &http.Transport{}}

// follower reads a stream from one server after the other.
type follower struct {
	path   string                 // of the stream
	cursor string                 // "" begins with the present state
	begun  func(leadership.Lease) // told of each election as it is
	got    func(leadership.Event) // told of each event
	ready  func()                 // nothing more of how things were is to come
	reason wire.StopReason        // why the last stream ended
}

// streamOf is the path of an election's stream.
func streamOf(e leadership.Election) string { return wire.Path(e, wire.Events) }

// follow reads a stream until it ends, and remembers where to resume. The error is for one that
// breaks off.
func (f *follower) follow(ctx context.Context, s *server) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+f.path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", wire.StreamType)
	if f.cursor != "" {
		request.Header.Set(wire.LastEventIDHeader, f.cursor)
	}
	response, err := patient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	for m, err := range messages(response.Body) {
		if err == nil {
			err = f.take(m)
		}
		if err != nil || m.name == wire.StreamEnd {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

func (f *follower) take(m message) error {
	if m.id != "" {
		f.cursor = m.id
	}
	switch m.name {
	case "":
		var e wire.Event
		if err := json.Unmarshal([]byte(m.data), &e); err != nil {
			return err
		}
		f.got(e.Leadership())
	case wire.StreamSnapshot:
		var l wire.Lease
		if err := json.Unmarshal([]byte(m.data), &l); err != nil {
			return err
		}
		f.begun(leadership.Lease{Election: l.Election, Revision: l.Revision})
		if m.id != "" {
			f.ready()
		}
	case wire.StreamReady:
		f.ready()
	case wire.StreamEnd:
		var stop wire.StreamStop
		if err := json.Unmarshal([]byte(m.data), &stop); err != nil {
			return err
		}
		f.reason = stop.Reason
	}
	return nil
}

// listener returns a follower whose events a recorder writes down.
func listener(name, path string, recorder *checker.Recorder) *follower {
	consumer := checker.Consumer{Name: name, After: make(map[leadership.Election]leadership.Revision)}
	return &follower{
		path: path,
		begun: func(l leadership.Lease) {
			consumer.After[l.Election] = l.Revision
			if path != wire.PathEvents {
				consumer.Elections = []leadership.Election{l.Election}
			}
		},
		ready: func() { recorder.Expect(consumer) },
		got:   func(e leadership.Event) { recorder.Deliver(name, e) },
	}
}
