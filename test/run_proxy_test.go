package test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/wire"
)

// grantOf is a leadership.
type grantOf struct {
	election leadership.Election
	token    leadership.Token
}

// leaseProxy passes HTTP on to a server, and learns when leases end. It counts on the safe side: a
// lease that a reply grants or renews began when the request arrived here, or later. A released
// lease is over when the request arrives here.
type leaseProxy struct {
	*httptest.Server

	mu     sync.Mutex // guards all below
	target string
	ends   map[grantOf]time.Duration             // on boottime.Now, as all moments here
	given  map[grantOf]time.Duration             // back
	silent map[leadership.Election]chan struct{} // closed when it is heard again
}

func newLeaseProxy(t testing.TB, target string) *leaseProxy {
	t.Helper()
	p := &leaseProxy{target: target, ends: map[grantOf]time.Duration{}, given: map[grantOf]time.Duration{}, silent: map[leadership.Election]chan struct{}{}}
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: p.learn,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as the server's end would be
		Transport:      &http.Transport{MaxIdleConnsPerHost: 128},
		ErrorLog:       log.New(io.Discard, "", 0), // what it would say is what the test does
	})
	p.Config.Handler = p.hearing(p.Config.Handler)
	t.Cleanup(p.CloseClientConnections)
	return p
}

type heardAt struct{}

// hearing notes when a request came and the lease that it releases, and holds the requests of a
// silenced election.
func (p *leaseProxy) hearing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := boottime.Now()
		election, verb := electionOf(r.URL.Path)
		if verb == "release" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			var of struct{ FencingToken leadership.Token }
			if json.Unmarshal(body, &of) == nil {
				p.giveBack(grantOf{election, of.FencingToken}, now)
			}
		}
		if heard := p.silenceOf(election); heard != nil {
			select {
			case <-r.Context().Done():
			case <-heard:
			}
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), heardAt{}, now)))
	})
}

// electionOf returns the election of a request.
func electionOf(path string) (leadership.Election, string) {
	name, verb, _ := strings.Cut(strings.TrimPrefix(path, "/v1/elections/"), ":")
	return leadership.Election(name), verb
}

func (p *leaseProxy) rewrite(r *httputil.ProxyRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if target, err := url.Parse(p.target); err == nil {
		r.SetURL(target)
	}
}

// learn reads a lease from a reply.
func (p *leaseProxy) learn(r *http.Response) error {
	election, verb := electionOf(r.Request.URL.Path)
	if r.StatusCode != http.StatusOK || verb != "acquire" && verb != "renew" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var grant wire.Grant
	if err := json.Unmarshal(body, &grant); err != nil || grant.ExpiresInMs == nil {
		return err
	}
	heard := r.Request.Context().Value(heardAt{}).(time.Duration)
	p.extend(grantOf{election, grant.FencingToken}, heard+time.Duration(grant.WaitedMs+*grant.ExpiresInMs)*time.Millisecond)
	return nil
}

func (p *leaseProxy) extend(g grantOf, end time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends[g] = max(p.ends[g], end)
}

func (p *leaseProxy) giveBack(g grantOf, at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.given[g]; !again {
		p.given[g] = at
	}
}

// endOf returns when a lease runs out, at the earliest, and when it was released; 0 if it was not.
func (p *leaseProxy) endOf(g grantOf) (end, given time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[g], p.given[g]
}

// leadTo makes the proxy pass requests to another target.
func (p *leaseProxy) leadTo(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// silence leaves all requests about an election unanswered, until heal is called.
func (p *leaseProxy) silence(e leadership.Election) (heal func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent[e] = make(chan struct{})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.silent[e])
		delete(p.silent, e)
	}
}

func (p *leaseProxy) silenceOf(e leadership.Election) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent[e]
}
