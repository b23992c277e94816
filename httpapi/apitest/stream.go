package apitest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"regent/leadership/wire"
)

// stream returns the body, which is checked event by event while it is read.
func (c *Contract) stream(r *http.Request, body io.ReadCloser) io.ReadCloser {
	return &stream{ReadCloser: body, contract: c, request: r}
}

type stream struct {
	io.ReadCloser
	contract *Contract
	request  *http.Request
	unread   []byte // the beginning of an event
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.unread = append(s.unread, p[:n]...)
	for {
		event, rest, whole := bytes.Cut(s.unread, []byte("\n\n"))
		if !whole {
			return n, err
		}
		s.unread = bytes.Clone(rest)
		if err := s.contract.checkEvent(string(event)); err != nil {
			s.contract.tb.Errorf("%s %s: the contract has no such event of a stream: %v\n%s", s.request.Method, s.request.URL, err, event)
		}
	}
}

// checkEvent checks one event of a stream.
func (c *Contract) checkEvent(event string) error {
	fields := map[string]string{}
	for line := range strings.SplitSeq(event, "\n") {
		name, value, _ := strings.Cut(line, ":")
		if _, twice := fields[name]; twice {
			return fmt.Errorf("%q stands in it twice", name)
		}
		fields[name] = strings.TrimPrefix(value, " ")
	}
	data, told := fields["data"]
	if !told {
		return checkComment(fields)
	}
	schema, ok := map[string]string{
		"":                  "Event",
		wire.StreamSnapshot: "Reading",
		wire.StreamReady:    "StreamReady",
		wire.StreamReport:   "StreamReport",
		wire.StreamMember:   "StreamMember",
		wire.StreamEntry:    "JournalEntry",
		wire.StreamEnd:      "StreamEnd",
	}[fields["event"]]
	if !ok {
		return fmt.Errorf("its name is %q", fields["event"])
	}
	if err := c.checkKeys(Exchange{Body: []byte(data)}); err != nil {
		return err
	}
	return c.root.At("components", "schemas", schema).fitsJSON([]byte(data))
}

// checkComment checks a ping, or the time to wait before the stream is opened again.
func checkComment(fields map[string]string) error {
	_, retry := fields["retry"]
	if _, comment := fields[""]; len(fields) != 1 || !comment && !retry {
		return fmt.Errorf("it has no data")
	}
	return nil
}
