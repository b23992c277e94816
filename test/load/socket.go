package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"regent/leadership/wire"
)

// Socket is a connection on which requests go out that were written beforehand, one at a time. It
// reads the part of HTTP/1.1 that Go's servers write, and allocates next to nothing.
type Socket struct {
	Address string // host:port

	from   string        // the local address to connect from; "" for any
	buffer int           // bytes of the reader; 0 for 4 KiB
	conn   net.Conn      // nil before the first call, and after one that broke it
	in     *bufio.Reader // of conn
	body   []byte        // of the last answer
}

// StatusError is an answer with a status other than 200.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// Post writes a request with a JSON body, to be sent any number of times.
func Post(server, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, server, wire.ContentType, len(text), text), err
}

// Get writes a request without a body. Accept may be "".
func Get(server, path, accept string) []byte {
	header := ""
	if accept != "" {
		header = "Accept: " + accept + "\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, server, header)
}

// Call sends the request and returns the body of an answer with status 200, which is valid until
// the next call. Every other answer is a *StatusError. After any other error the next call connects
// again. A connection lasts no longer than the ctx of the call that made it; nothing else limits
// how long a call takes.
func (s *Socket) Call(ctx context.Context, request []byte) ([]byte, error) {
	if err := s.send(ctx, request); err != nil {
		return nil, err
	}
	return s.receive()
}

// send writes the request, on a new connection if there is none.
func (s *Socket) send(ctx context.Context, request []byte) error {
	if s.conn == nil {
		if err := s.dial(ctx); err != nil {
			return err
		}
	}
	_, err := s.conn.Write(request)
	if err != nil {
		s.Close()
	}
	return err
}

// receive reads the answer to what was sent.
func (s *Socket) receive() ([]byte, error) {
	status, err := s.answer()
	switch {
	case err != nil:
		s.Close()
		return nil, err
	case status != http.StatusOK:
		return nil, &StatusError{status, string(s.body)}
	}
	return s.body, nil
}

// Close closes the connection, if there is one.
func (s *Socket) Close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

func (s *Socket) dial(ctx context.Context) error {
	d := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.ParseIP(s.from)}}
	conn, err := d.DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	s.conn, s.in = conn, bufio.NewReaderSize(conn, cmp.Or(s.buffer, 4<<10))
	return nil
}

// answer reads one answer. After an error the connection is of no more use.
func (s *Socket) answer() (status int, err error) {
	if status, err = s.status(); err != nil {
		return 0, err
	}
	length, err := s.header()
	s.body = s.body[:0]
	switch {
	case err != nil:
		return 0, err
	case length == inChunks:
		return status, s.chunks()
	}
	return status, s.take(length)
}

func (s *Socket) status() (int, error) {
	first, err := s.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	text, is := bytes.CutPrefix(first, []byte("HTTP/1.1 "))
	if !is || len(text) < len("200") {
		return 0, fmt.Errorf("not an HTTP/1.1 answer: %q", first)
	}
	return digits(text[:len("200")], 10)
}

// inChunks stands for the length of a chunked body.
const inChunks = -1

// header reads up to the body and returns its length.
func (s *Socket) header() (length int, err error) {
	told := false
	for {
		field, err := s.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if text, is := bytes.CutPrefix(field, []byte("Content-Length: ")); is {
			if length, err = digits(text, 10); err != nil {
				return 0, err
			}
			told = true
		}
		switch string(field) {
		case "Transfer-Encoding: chunked\r\n":
			length, told = inChunks, true
		case "\r\n":
			if !told {
				err = errors.New("the answer does not say how long it is")
			}
			return length, err
		}
	}
}

// chunks reads a chunked body up to its last chunk, which is empty.
func (s *Socket) chunks() error {
	for {
		head, err := s.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := digits(head, 16)
		if err != nil {
			return err
		}
		if err := s.take(n + len("\r\n")); err != nil {
			return err
		}
		s.body = s.body[:len(s.body)-len("\r\n")]
		if n == 0 {
			return nil
		}
	}
}

// take adds the next n bytes to the body.
func (s *Socket) take(n int) error {
	at := len(s.body)
	s.body = slices.Grow(s.body, n)[:at+n]
	_, err := io.ReadFull(s.in, s.body[at:])
	return err
}

func digits(text []byte, base int) (int, error) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), base, 31)
	return int(n), err
}
