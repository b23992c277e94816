package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/cmd/regent/internal/leash"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

// ending is a request body that calls a function at its end.
type ending struct {
	io.Reader
	do func()
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	if err == io.EOF && e.do != nil {
		e.do()
		e.do = nil
	}
	return n, err
}

func (*ending) Close() error { return nil }

func TestSignalDuringTheGrantReleasesTheLease(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t)
	config := server.Config()
	r := &runner{cli: &cli{timeout: time.Second}, election: "reports", signals: make(chan os.Signal, 16), log: slog.New(slog.DiscardHandler)}
	r.wait = forever
	under := config.HTTP.Transport
	config.HTTP = &http.Client{Transport: apitest.RoundTrip(func(q *http.Request) (*http.Response, error) {
		reply, err := under.RoundTrip(q)
		if err != nil || !strings.HasSuffix(q.URL.Path, ":acquire") {
			return reply, err
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body = &ending{strings.NewReader(string(text)), func() {
			r.signals <- syscall.SIGTERM
			for len(r.signals) > 0 {
				time.Sleep(time.Millisecond)
			}
		}}
		return reply, err
	})}
	var err error
	if r.server, err = client.New(config); err != nil {
		t.Fatal(err)
	}
	lease, err := r.campaign(context.Background())
	var end exitStatus
	if !errors.As(err, &end) || end.code != exitSignal+int(syscall.SIGTERM) {
		t.Fatalf("the campaign returned %v, %v; want that SIGTERM ended it", lease, err)
	}
	if l, err := r.server.Get(t.Context(), "reports"); err == nil && l.State == leadership.Held {
		t.Errorf("%q was left with the lease", l.LeaderID)
	}
}

func TestSignalWhileFollowersAreAwaitedEndsTheRun(t *testing.T) {
	t.Parallel()
	server := clienttest.New(t)
	r := &runner{cli: &cli{timeout: time.Second}, election: "reports", signals: make(chan os.Signal, 16), log: slog.New(slog.DiscardHandler)}
	r.wait, r.awaitFollowers = forever, 1
	r.server = server.Client(client.Candidate{})
	lease, err := r.campaign(context.Background())
	require.NoError(t, err)
	r.signals <- syscall.SIGTERM
	_, err = r.awaitedTerm(context.Background(), lease)
	var end exitStatus
	if !errors.As(err, &end) || end.code != exitSignal+int(syscall.SIGTERM) || !lease.Valid() {
		t.Errorf("it returned %v; want that SIGTERM ended it, and that the lease is still to be released", err)
	}
	r.resign(lease, leash.End{})
}

func TestBlockedLogDoesNotBlockTheWriter(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	s := newAsyncWriter(out)
	for range 10 * asyncLines {
		if n, err := io.WriteString(s, "a line\n"); n != 7 || err != nil {
			t.Fatal(n, err)
		}
	}
	s.drain() // no reader: must not block
	in.Close()

	var read strings.Builder
	s = newAsyncWriter(&read)
	io.WriteString(s, "one\n")
	io.WriteString(s, "two\n")
	s.drain()
	if read.String() != "one\ntwo\n" {
		t.Errorf("%q was written", read.String())
	}
}
