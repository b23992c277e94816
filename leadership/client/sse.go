package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"regent/leadership"
)

type message struct {
	name string // "" for the type that the standard calls message
	data []byte
	id   string // the last id of the stream, from this event or an earlier one
}

// events reads server-sent events as the HTML standard defines them
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), with two differences: the field
// retry is ignored, because Watch has its own backoff, and invalid UTF-8 is kept.
type events struct {
	in    *bufio.Reader
	begun bool
	cr    bool   // the last line ended with CR; a LF that follows belongs to it
	line  []byte // the line being read
	next  message
}

// maxMessage limits one event and one line, in bytes. The longest event that a server sends is an
// entry of a journal.
const maxMessage = leadership.MaxAppendBytes + 64<<10

var (
	byteOrderMark = []byte("\ufeff")
	errTooLong    = fmt.Errorf("it has an event of more than %d bytes", maxMessage)
)

func newEvents(in io.Reader) *events { return &events{in: bufio.NewReader(in)} }

// read reads the next line, and returns the event if the line completes one. An event cut off by
// the end of the stream is dropped.
func (e *events) read() (message, bool, error) {
	if err := e.readLine(); err != nil {
		return message{}, false, err
	}
	if len(e.line) == 0 {
		m, ok := e.dispatch()
		return m, ok, nil
	}
	if len(e.line)+len(e.next.data) > maxMessage {
		return message{}, false, errTooLong
	}
	e.take()
	return message{}, false, nil
}

// readLine reads up to the end of a line: CR, LF, or both. It does not wait for the byte after a
// CR.
func (e *events) readLine() error {
	e.line = e.line[:0]
	for {
		c, err := e.in.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '\n' && e.cr:
			e.cr = false
		case c == '\n' || c == '\r':
			e.cr = c == '\r'
			if !e.begun {
				e.line = bytes.TrimPrefix(e.line, byteOrderMark)
			}
			e.begun = true
			return nil
		case len(e.line) == maxMessage:
			return errTooLong
		default:
			e.cr = false
			e.line = append(e.line, c)
		}
	}
}

// take handles a field of an event. A line that begins with a colon is a comment: a field without a
// name.
func (e *events) take() {
	name, value, _ := bytes.Cut(e.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.next.name = string(value)
	case "data":
		e.next.data = append(append(e.next.data, value...), '\n')
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.next.id = string(value)
		}
	}
}

// dispatch returns the event that an empty line completes. The id stays in force for the following
// events.
func (e *events) dispatch() (message, bool) {
	m := e.next
	e.next = message{id: m.id}
	if len(m.data) == 0 {
		return message{}, false
	}
	m.data = m.data[:len(m.data)-1]
	if m.name == "message" {
		m.name = ""
	}
	return m, true
}
