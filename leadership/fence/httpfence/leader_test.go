package httpfence_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/fence/httpfence"
)

// server is a real server with a gate, with an http.Client for each leader.
func server(t *testing.T) (url string, of func(leader) *http.Client) {
	t.Helper()
	s := httptest.NewServer(gate(t, httpfence.Config{Marks: new(httpfence.Memory)}))
	t.Cleanup(s.Close)
	return s.URL, func(l leader) *http.Client {
		return &http.Client{Transport: &httpfence.Transport{Leader: l, Base: s.Client().Transport}}
	}
}

func post(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("a command"))
	require.NoError(t, err)
	reply, err := c.Do(r)
	if err == nil {
		t.Cleanup(func() { reply.Body.Close() })
	}
	if len(r.Header) > 0 {
		t.Errorf("the caller's request was changed: %v", r.Header)
	}
	return reply, err
}

func TestRefusalTellsTheLeaderToStop(t *testing.T) {
	t.Parallel()
	url, of := server(t)
	reply, err := post(t, of(leader{mark(34), true}), url)
	require.NoError(t, err)
	assert.NoError(t, httpfence.Refusal(reply), "a reply that refuses nothing was read")
	if body, err := io.ReadAll(reply.Body); string(body) != "planner 34 true" {
		t.Errorf("the body is %q, %v", body, err)
	}
	reply, err = post(t, of(leader{mark(33), true}), url)
	require.NoError(t, err)
	refusal := wantRefusal(t, httpfence.Refusal(reply), leadership.TokenStale)
	if l := refusal.Lease; l == nil || l.Election != election || l.Token != 34 {
		t.Errorf("the refusal has %v, want token 34 of %q", l, election)
	}
	if body, err := io.ReadAll(reply.Body); !strings.HasPrefix(string(body), "{") || err != nil {
		t.Errorf("the body cannot be read once more: %q, %v", body, err)
	}
}

func TestALeaderWhoseLeaseIsOverSendsNothing(t *testing.T) {
	t.Parallel()
	sent, closed := false, false
	base := apitest.RoundTrip(func(*http.Request) (*http.Response, error) { sent = true; return nil, errors.ErrUnsupported })
	c := &http.Client{Transport: &httpfence.Transport{Leader: leader{mark(33), false}, Base: base}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service.test/", body{strings.NewReader("a"), &closed})
	require.NoError(t, err)
	_, err = c.Do(r)
	refusal := wantRefusal(t, err, leadership.LeaseLost)
	if want := `the lease of election "planner" with fencing token 33 is over, so nothing was sent; stop acting as leader`; refusal.Detail != want {
		t.Errorf("%q, want %q", refusal.Detail, want)
	}
	if sent || !closed {
		t.Errorf("sent %t, body closed %t", sent, closed)
	}
}

type body struct {
	io.Reader
	closed *bool
}

func (b body) Close() error {
	*b.closed = true
	return nil
}

func TestHeadersOfAnotherLeaderAreReplaced(t *testing.T) {
	t.Parallel()
	h := headers([]string{"cleaner", "cleaner"}, []string{"7", "8"})
	require.NoError(t, httpfence.SetHeaders(h, leader{mark(34), true}))
	if got, err := httpfence.Parse(h); err != nil || got != mark(34) {
		t.Errorf("the headers say %v, %v", got, err)
	}
}

func TestRefusalIgnoresOtherReplies(t *testing.T) {
	t.Parallel()
	const problem = "application/problem+json"
	long := `{"code":"TOKEN_STALE","type":"urn:regent:problem:TOKEN_STALE","detail":"` + strings.Repeat("a", 1<<20) + `"}`
	for name, c := range map[string]struct {
		status      int
		contentType string
		body        string
	}{
		"a success":                  {200, problem, `{"code":"TOKEN_STALE","type":"urn:regent:problem:TOKEN_STALE"}`},
		"no problem document":        {409, "application/json", `{"code":"TOKEN_STALE","type":"urn:regent:problem:TOKEN_STALE"}`},
		"another's problem":          {409, problem, `{"code":"TOKEN_STALE","type":"https://service.test/stale"}`},
		"a code that is not known":   {409, problem, `{"code":"STALE","type":"urn:regent:problem:STALE"}`},
		"no code":                    {409, problem, `{"type":"urn:regent:problem:"}`},
		"no JSON":                    {409, problem, `stale`},
		"nothing":                    {409, problem, ``},
		"a problem that is too long": {409, problem, long},
	} {
		reply := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.contentType}}, Body: io.NopCloser(strings.NewReader(c.body))}
		assert.NoError(t, httpfence.Refusal(reply), "%s: read", name)
		if body, err := io.ReadAll(reply.Body); string(body) != c.body || err != nil {
			t.Errorf("%s: the body is %d bytes now, %v", name, len(body), err)
		}
	}
}
