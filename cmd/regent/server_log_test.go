package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStrangersCauseOneLineAMinuteInTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		server, _ := newServer(http.NotFoundHandler(), nil, slog.New(slog.NewTextHandler(&log, nil)))
		lines := func() int { return strings.Count(log.String(), "\n") }
		for i := range 200 {
			server.ErrorLog.Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", i)
		}
		if lines() != 1 || !strings.Contains(log.String(), "failed=1 ") || !strings.Contains(log.String(), "192.0.2.1:0: EOF") {
			t.Errorf("of 200 connections at once, the log says\n%s", log.String())
		}
		time.Sleep(time.Minute)
		server.ErrorLog.Print("http2: server connection error from 192.0.2.1:1: PROTOCOL_ERROR")
		if lines() != 2 || !strings.Contains(log.String(), "failed=200 ") {
			t.Errorf("a minute later, the log says\n%s", log.String())
		}
		for range 3 { // these are faults of the server, and each counts
			server.ErrorLog.Print("http: panic serving 192.0.2.1:1: oops")
		}
		if lines() != 5 {
			t.Errorf("with three panics, the log says\n%s", log.String())
		}
	})
}

// serverLog depends on the wording of net/http: this test checks it.
func TestJunkOnATLSPortIsCountedAsSuch(t *testing.T) {
	t.Parallel()
	files := certificateFiles(t)
	writeCertificate(t, files, 1)
	at, err := openEndpoint(serviceSettings{listen: "127.0.0.1:0", certificate: files}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	read, write := io.Pipe()
	server, _ := newServer(http.NotFoundHandler(), nil, slog.New(slog.NewTextHandler(write, nil)))
	go at.serve(server)
	t.Cleanup(func() { read.Close(); server.Close() })
	c, err := net.Dial("tcp", at.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprint(c, "junk junk junk junk")
	line := make([]byte, 1000)
	n, err := read.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "failed=1 ") {
		t.Errorf("%s, %v; want a counted line", line[:n], err)
	}
}
