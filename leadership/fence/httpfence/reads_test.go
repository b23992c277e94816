package httpfence_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
)

func TestReadsPassOnlyOnRequestAndOnlyIfTheyAreReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, upgrade string
		passes, want    bool
	}{
		{http.MethodGet, "", true, true},
		{http.MethodHead, "", true, true},
		{http.MethodGet, "", false, false},
		{http.MethodHead, "", false, false},
		{http.MethodGet, "websocket", true, false},
		{http.MethodPost, "", true, false},
		{http.MethodPut, "", true, false},
		{http.MethodPatch, "", true, false},
		{http.MethodDelete, "", true, false},
		{http.MethodOptions, "", true, false},
		{"get", "", true, false},
	} {
		marks := new(httpfence.Memory)
		h := gate(t, httpfence.Config{Marks: marks, ReadsPass: c.passes})
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method = c.method
		if c.upgrade != "" {
			r.Header.Set("Upgrade", c.upgrade)
		}
		want := http.StatusBadRequest // the headers are missing
		if c.want {
			want = http.StatusOK
		}
		if got := send(h, r).StatusCode; got != want {
			t.Errorf("%s, upgrade %q, passes %t: %d, want %d", c.method, c.upgrade, c.passes, got, want)
		}
		r.Header.Set(httpfence.ElectionHeader, string(election))
		r.Header.Set(httpfence.TokenHeader, "34")
		if got := send(h, r).StatusCode; got != http.StatusOK {
			t.Errorf("%s with headers: %d", c.method, got)
		}
		if raised := marks.Mark(string(election)) != (fence.Mark{}); raised == c.want {
			t.Errorf("%s, upgrade %q, passes %t: the mark was raised: %t", c.method, c.upgrade, c.passes, raised)
		}
	}
}

func TestAReadThatPassesHasNoMark(t *testing.T) {
	t.Parallel()
	g, err := httpfence.New(httpfence.Config{Election: election, Marks: new(httpfence.Memory), ReadsPass: true})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if m, ok := httpfence.FromContext(r.Context()); ok {
			t.Errorf("%s has the mark %+v", r.Method, m)
		}
	}))
	r := command(34)
	r.Method = http.MethodGet
	wantStatus(t, send(h, r), http.StatusOK)
}

// counting says that token 34 leads, and counts how often it is asked.
type counting struct{ calls atomic.Int64 }

func (c *counting) CheckToken(context.Context, leadership.TokenCheck) (leadership.Lease, error) {
	c.calls.Add(1)
	return leadership.Lease{Election: election, State: leadership.Held, LeaderID: "ann", Token: 34, ExpiresIn: 30 * time.Second}, nil
}

// BenchmarkShareOfCallsSaved counts the calls to Regent of a gate with Checks, for requests of
// which nine in ten are reads, by how many there are in a second. The clock is the benchmark's own,
// so the counts are the same on every machine.
func BenchmarkShareOfCallsSaved(b *testing.B) {
	for _, perSecond := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%d requests in a second", perSecond), func(b *testing.B) {
			var calls [2]int64
			requests := 0
			for b.Loop() {
				requests = 1000
				for i, pass := range []bool{false, true} {
					calls[i] = callsOf(b, pass, perSecond, requests)
				}
			}
			b.ReportMetric(float64(calls[0]), "checked-calls/1000")
			b.ReportMetric(float64(calls[1]), "passing-calls/1000")
			b.ReportMetric(100*float64(calls[0]-calls[1])/float64(calls[0]), "%saved")
		})
	}
}

// callsOf returns how often Regent is asked because of so many requests.
func callsOf(tb testing.TB, pass bool, perSecond, requests int) int64 {
	tb.Helper()
	var now time.Duration
	regent := new(counting)
	checks, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: regent, Now: func() time.Duration { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	defer checks.Wait()
	g, err := httpfence.New(httpfence.Config{Election: election, Check: checks, ReadsPass: pass})
	if err != nil {
		tb.Fatal(err)
	}
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i := range requests {
		r := command(34)
		if i%10 > 0 {
			r.Method = http.MethodGet
		}
		if reply := send(h, r); reply.StatusCode != http.StatusOK {
			tb.Fatal(reply.Status)
		}
		now += time.Second / time.Duration(perSecond)
	}
	return regent.calls.Load()
}

func TestReadsThatPassSaveCallsInProportionWhereRequestsAreFew(t *testing.T) {
	t.Parallel()
	checked, passing := callsOf(t, false, 1, 1000), callsOf(t, true, 1, 1000)
	if checked != 500 || passing != 100 { // an answer is believed for 2 s
		t.Errorf("%d calls, and %d if reads pass; want 500 and 100", checked, passing)
	}
}

// A service that knows nothing of Regent, such as a model of Vertex AI
// (https://REGION-aiplatform.googleapis.com/v1/projects/P/locations/REGION/endpoints/E:predict), is
// guarded by a proxy that alone has the right to call it. Leaders call the proxy, with their
// headers; it adds its own credentials.
func Example_reverseProxy() {
	vertex := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("Vertex AI is asked:", r.Method, path.Base(r.URL.Path), r.Header.Get("Authorization"), r.Header.Get(httpfence.TokenHeader) == "")
	}))
	defer vertex.Close()
	target, _ := url.Parse(vertex.URL)

	gate, err := httpfence.New(httpfence.Config{Election: "planner", Marks: new(httpfence.Memory), ReadsPass: true})
	if err != nil {
		panic(err)
	}
	proxy := httptest.NewServer(gate.Wrap(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer of-the-proxy") // outside an example: of its service account
		r.Out.Header.Del(httpfence.ElectionHeader)
		r.Out.Header.Del(httpfence.TokenHeader)
	}}))
	defer proxy.Close()

	const endpoint = "/v1/projects/p/locations/europe-west1/endpoints/7"
	for _, token := range []leadership.Token{33, 34, 33} {
		lease := leader{fence.Mark{Election: "planner", Token: token}, true} // outside an example: a *client.Lease
		commands := &http.Client{Transport: &httpfence.Transport{Leader: lease}}
		reply, err := commands.Post(proxy.URL+endpoint+":predict", "application/json", nil)
		if err != nil {
			panic(err)
		}
		reply.Body.Close()
		fmt.Println(token, reply.StatusCode)
	}
	reply, err := http.Get(proxy.URL + endpoint) // by anyone that the proxy lets in
	if err != nil {
		panic(err)
	}
	reply.Body.Close()
	fmt.Println("a read:", reply.StatusCode)
	// Output:
	// Vertex AI is asked: POST 7:predict Bearer of-the-proxy true
	// 33 200
	// Vertex AI is asked: POST 7:predict Bearer of-the-proxy true
	// 34 200
	// 33 409
	// Vertex AI is asked: GET 7 Bearer of-the-proxy true
	// a read: 200
}
