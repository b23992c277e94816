package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
)

// socket is a connection on which requests go out that are written already, one at a time. It reads of HTTP/1.1 what Go's servers write,
// and makes no garbage.
type socket struct {
	address string
	conn    net.Conn // nil before the first call, and after one that broke it
	in      *bufio.Reader
	body    []byte // of the last answer
}

// call returns the body of an answer with status 200, until the next call overwrites it; every other answer is an error. After one that
// broke the connection the next call makes a new one. A connection lasts no longer than the ctx of the call that made it; nothing else
// bounds how long an answer is waited for.
func (s *socket) call(ctx context.Context, request []byte) ([]byte, error) {
	if s.conn == nil {
		if err := s.dial(ctx); err != nil {
			return nil, err
		}
	}
	status, err := s.exchange(request)
	switch {
	case err != nil:
		s.conn.Close()
		s.conn = nil
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("status %d: %s", status, s.body)
	}
	return s.body, nil
}

// repeat makes one call again and again.
func (s *socket) repeat(request []byte) step {
	return func(ctx context.Context) (int, error) {
		_, err := s.call(ctx, request)
		return 1, err
	}
}

func (s *socket) dial(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	s.conn, s.in = conn, bufio.NewReader(conn)
	return nil
}

// exchange writes the request and reads the answer. After an error nobody knows what comes next on the connection.
func (s *socket) exchange(request []byte) (status int, err error) {
	if _, err := s.conn.Write(request); err != nil {
		return 0, err
	}
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

func (s *socket) status() (int, error) {
	first, err := s.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	text, is := bytes.CutPrefix(first, []byte("HTTP/1.1 "))
	if !is || len(text) < len("200") {
		return 0, fmt.Errorf("no answer of HTTP/1.1: %q", first)
	}
	return digits(text[:len("200")], 10)
}

// inChunks stands for a length that is told piece by piece.
const inChunks = -1

// header reads up to the body, and returns how long that is.
func (s *socket) header() (length int, err error) {
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
				err = errors.New("an answer that does not say how long it is")
			}
			return length, err
		}
	}
}

// chunks reads a body that comes in pieces, up to the last, which is empty.
func (s *socket) chunks() error {
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
func (s *socket) take(n int) error {
	at := len(s.body)
	s.body = slices.Grow(s.body, n)[:at+n]
	_, err := io.ReadFull(s.in, s.body[at:])
	return err
}

func digits(text []byte, base int) (int, error) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), base, 31)
	return int(n), err
}
