package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

// sink takes a reply, and keeps only its status.
type sink struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return s.body.Write(b) }

// benchCaller calls an API again and again, without a connection.
type benchCaller struct {
	api   http.Handler
	reply sink
	body  bytes.Reader
}

// call sends a request that was sent before or not. It fails unless the status is 200.
func (c *benchCaller) call(b *testing.B, r *http.Request, body string) {
	c.body.Reset([]byte(body))
	if body != "" {
		r.Body, r.ContentLength = io.NopCloser(&c.body), int64(len(body))
	}
	clear(c.reply.header)
	c.reply.status = http.StatusOK
	c.reply.body.Reset()
	c.api.ServeHTTP(&c.reply, r)
	if c.reply.status != http.StatusOK {
		b.Fatalf("%s %s: %d %s", r.Method, r.URL, c.reply.status, c.reply.body.Bytes())
	}
}

func newRequest(b *testing.B, method, target string) *http.Request {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, target, nil)
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Accept", wire.ContentType)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", wire.ContentType)
	}
	return r
}

// BenchmarkCalls reports what the API, the instance and the memory store need for a call, without
// net/http.
func BenchmarkCalls(b *testing.B) {
	service, err := instance.New(instance.Config{Store: memory.New(memory.Config{}), Alone: true})
	if err != nil {
		b.Fatal(err)
	}
	c := &benchCaller{reply: sink{header: make(http.Header)}, api: httpapi.New(httpapi.Config{
		Service: instance.Guard(service), Hosts: httpapi.LocalHosts(),
	})}
	acquire := func(e leadership.Election, duration string) {
		body := `{"candidateId":"agent-7","key":"` + key + `","leaseDuration":"` + duration + `","metadata":{"address":"10.0.0.7:8080","zone":"europe-west1-b"}}`
		c.call(b, newRequest(b, http.MethodPost, wire.Path(e, wire.Acquire)), body)
	}
	acquire("planner", "24h")
	repeat := func(name, method, target, body string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := newRequest(b, method, target)
			for b.Loop() {
				c.call(b, r, body)
			}
		})
	}
	repeat("renew", http.MethodPost, wire.Path("planner", wire.Renew), asLeader)
	repeat("read", http.MethodGet, wire.Path("planner", ""), "")
	repeat("strong", http.MethodGet, wire.Path("planner", "")+"?consistency=strong", "")
	b.Run("acquire and release", func(b *testing.B) {
		b.ReportAllocs()
		grant, release := newRequest(b, http.MethodPost, wire.Path("tender", wire.Acquire)), newRequest(b, http.MethodPost, wire.Path("tender", wire.Release))
		body := `{"candidateId":"agent-7","key":"` + key + `","metadata":{"address":"10.0.0.7:8080","zone":"europe-west1-b"}}`
		token := 0
		for b.Loop() {
			c.call(b, grant, body)
			if token == 0 {
				var l wire.Lease
				if err := wire.Unmarshal(c.reply.body.Bytes(), &l); err != nil {
					b.Fatal(err)
				}
				token = int(l.FencingToken)
			}
			c.call(b, release, fmt.Sprintf(`{"candidateId":"agent-7","key":"%s","fencingToken":%d}`, key, token))
			token++
		}
	})
	var renewals []string
	for i := range 100 {
		e := leadership.Election(fmt.Sprint("planner-", i))
		acquire(e, (24 * time.Hour).String())
		renewals = append(renewals, fmt.Sprintf(`{"election":%q,%s`, e, asLeader[1:]))
	}
	repeat("batchRenew of 100", http.MethodPost, wire.VerbBatchRenew.Row().Path, `{"renewals":[`+strings.Join(renewals, ",")+`]}`)
}
