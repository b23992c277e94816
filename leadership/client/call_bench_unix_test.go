//go:build unix

package client_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// canned answers each request with the same document.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {wire.ContentType}},
		Body: io.NopCloser(bytes.NewReader(c)), ContentLength: int64(len(c)), Request: r,
	}, nil
}

// cannedServer is a server that does as little as can be, so that the client's share of a call is
// large. It returns the server's address.
func cannedServer(b *testing.B, document []byte) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	reply := append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(document)), document...)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReaderSize(conn, 64<<10)
				for answerOnce(in) == nil {
					if _, err := conn.Write(reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// answerOnce reads one request.
func answerOnce(in *bufio.Reader) error {
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			_, err := in.Discard(length)
			return err
		}
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchmarkLease is a reply of some 600 bytes, as long as most are.
func benchmarkLease(e leadership.Election, token leadership.Token) wire.Lease {
	at := time.Date(2027, 3, 1, 12, 0, 0, 123456789, time.UTC)
	return wire.NewLease(leadership.Lease{
		Election: e, State: leadership.Held, LeaderID: "agent-7", Token: token, Revision: 12, LeaseDuration: 30 * time.Second,
		Metadata: `{"address":"10.0.0.7:8080"}`, ExpiresIn: 30 * time.Second, RenewIn: 9876 * time.Millisecond,
		AcquiredAt: at, LastHeartbeat: at.Add(time.Hour), LeaseExpiration: at.Add(time.Hour + 30*time.Second), ReadAt: at.Add(time.Hour),
		Config: leadership.Config{LeaseDuration: 30 * time.Second},
	})
}

// benchmarked is a call of a client.
type benchmarked struct {
	answer any // the document that answers it
	renews int // leases
	make   func(*client.Client) error
}

func benchmarkCalls(b *testing.B) map[string]benchmarked {
	held := leadership.LeaseRequest{Election: "shard-7", CandidateID: "agent-7", Key: leadership.NewKey(), Token: 3}
	var batch []leadership.LeaseRequest
	var results wire.Results
	for i := range 100 {
		r := held
		r.Election = leadership.Election(fmt.Sprintf("shard-7-%d", i))
		batch = append(batch, r)
		results.Results = append(results.Results, wire.Result{Election: r.Election, Lease: new(benchmarkLease(r.Election, r.Token))})
	}
	one := benchmarkLease(held.Election, held.Token)
	return map[string]benchmarked{
		"renew": {one, 1, func(c *client.Client) error { _, err := c.Renew(b.Context(), held); return err }},
		"read": {one, 1, func(c *client.Client) error {
			_, err := c.Read(b.Context(), leadership.ReadRequest{Election: held.Election})
			return err
		}},
		"batch of 100": {results, 100, func(c *client.Client) error { _, err := c.BatchRenew(b.Context(), batch); return err }},
	}
}

// BenchmarkCall measures the client alone: its transport answers by itself.
func BenchmarkCall(b *testing.B) {
	for name, call := range benchmarkCalls(b) {
		document, err := wire.Marshal(call.answer)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			c, err := client.New(client.Config{Server: "http://localhost", HTTP: &http.Client{Transport: canned(document)}})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkCall(b, call.renews, func() error { return call.make(c) })
		})
	}
}

// BenchmarkCallOverSocket measures a client with its usual transport, and a server that does
// nothing; and beside it net/http with a request that was made before, whose answer is not decoded.
func BenchmarkCallOverSocket(b *testing.B) {
	for name, call := range benchmarkCalls(b) {
		document, err := wire.Marshal(call.answer)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			c, err := client.New(client.Config{Server: "http://" + cannedServer(b, document)})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkCall(b, call.renews, func() error { return call.make(c) })
		})
		b.Run(name+", bare", func(b *testing.B) {
			url := "http://" + cannedServer(b, document) + "/v1/elections/shard-7:renew"
			body := strings.Repeat("x", 120*call.renews)
			transport := client.NewTransport()
			benchmarkCall(b, call.renews, func() error {
				r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
				if err != nil {
					return err
				}
				response, err := transport.RoundTrip(r)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				_, err = io.Copy(io.Discard, response.Body)
				return err
			})
		})
	}
}

// benchmarkCall reports the processor time of a call for each lease that it is about.
func benchmarkCall(b *testing.B, leases int, call func() error) {
	b.ReportAllocs()
	if err := call(); err != nil { // connected
		b.Fatal(err)
	}
	begun := cpuTime()
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-begun).Nanoseconds())/float64(b.N*leases), "cpu-ns/lease")
}
