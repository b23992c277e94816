package httpfence_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"testing"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
)

func TestReadsPassOnlyOnRequestAndOnlyIfTheyAreReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, header string
		passes, want   bool
	}{
		{http.MethodGet, "", true, true},
		{http.MethodHead, "", true, true},
		{http.MethodGet, "", false, false},
		{http.MethodHead, "", false, false},
		{http.MethodGet, "Upgrade", true, false},
		{http.MethodGet, "X-HTTP-Method-Override", true, false},
		{http.MethodHead, "X-HTTP-Method", true, false},
		{http.MethodGet, "x-method-override", true, false},
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
		if c.header != "" {
			r.Header.Set(c.header, "DELETE")
		}
		want := http.StatusBadRequest // the headers are missing
		if c.want {
			want = http.StatusOK
		}
		if got := send(h, r).StatusCode; got != want {
			t.Errorf("%s, header %q, passes %t: %d, want %d", c.method, c.header, c.passes, got, want)
		}
		r.Header.Set(httpfence.ElectionHeader, string(election))
		r.Header.Set(httpfence.TokenHeader, "34")
		if got := send(h, r).StatusCode; got != http.StatusOK {
			t.Errorf("%s with headers: %d", c.method, got)
		}
		if raised := marks.Mark(string(election)) != (fence.Mark{}); raised == c.want {
			t.Errorf("%s, header %q, passes %t: the mark was raised: %t", c.method, c.header, c.passes, raised)
		}
	}
}

// A service that knows nothing of Regent, such as a model of Vertex AI
// (https://REGION-aiplatform.googleapis.com/v1/projects/P/locations/REGION/endpoints/E:predict), is
// guarded by a proxy that alone has the right to call it. Leaders call the proxy, with their
// headers; it adds its own credentials. It asks Regent: a proxy that only remembered tokens in
// memory would admit a former leader after a restart, and beside another proxy.
func Example_reverseProxy() {
	vertex := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("Vertex AI is asked:", r.Method, path.Base(r.URL.Path), r.Header.Get("Authorization"), r.Header.Get(httpfence.TokenHeader) == "")
	}))
	defer vertex.Close()
	target, _ := url.Parse(vertex.URL)

	checks, err := httpfence.NewChecks(httpfence.ChecksConfig{Regent: regent{}, Write: true})
	if err != nil {
		panic(err)
	}
	defer checks.Wait()
	gate, err := httpfence.New(httpfence.Config{Election: "planner", Check: checks, ReadsPass: true})
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
	for _, token := range []leadership.Token{33, 34} {
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
	// Regent is asked about token 33
	// 33 409
	// Regent is asked about token 34
	// Vertex AI is asked: POST 7:predict Bearer of-the-proxy true
	// 34 200
	// Vertex AI is asked: GET 7 Bearer of-the-proxy true
	// a read: 200
}
