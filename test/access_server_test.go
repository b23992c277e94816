package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn/issuertest"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/machine"
)

// authServer is a server that authenticates its callers, and the issuer whose tokens it takes. At
// the end of the test its whole log is searched for the tokens and keys that it was ever sent.
type authServer struct {
	*server
	t      *testing.T
	issuer *issuertest.Issuer
	access string   // the file
	line   string   // the address of a line to the server on which keys are heard
	heard  *secrets // these, and tokens

	mu     sync.Mutex
	tokens map[string]string // by e-mail; guarded by mu
}

// forRegent is the audience of good tokens.
const forRegent = "https://regent.test"

// issuersKey is made once, because that takes long.
var issuersKey = sync.OnceValue(issuertest.NewKey)

func newIssuer(t *testing.T) *issuertest.Issuer {
	t.Helper()
	return issuertest.Start(t, issuersKey())
}

// serveAsking starts a server on a file of its own, and an issuer for it.
func serveAsking(t *testing.T, access string) *authServer {
	t.Helper()
	issuer := newIssuer(t)
	return serveTo(t, issuer, nil, access, "--auth", "oidc", "--auth-issuer", issuer.URL())
}

// serveTo is serveAsking with an existing issuer, and with the flags in how.
func serveTo(t *testing.T, issuer *issuertest.Issuer, env []string, access string, how ...string) *authServer {
	t.Helper()
	a := newAuthServer(t, issuer, access)
	a.begin(inFile(t).withEnv(env...).with("--auth-audience", forRegent, "--access", a.access).with(how...).serve(t))
	return a
}

func newAuthServer(t *testing.T, issuer *issuertest.Issuer, access string) *authServer {
	t.Helper()
	a := &authServer{t: t, issuer: issuer, access: filepath.Join(t.TempDir(), "access.yaml"), tokens: map[string]string{}}
	require.NoError(t, os.WriteFile(a.access, []byte(access), 0o600))
	return a
}

// begin has a server that was started.
func (a *authServer) begin(s *server) {
	a.server = s
	a.line, a.heard = overhear(a.t, a.URL)
	a.t.Cleanup(a.search)
}

// token returns a valid token, the same each time.
func (a *authServer) token(email string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens[email] == "" {
		a.tokens[email] = a.secret(a.issuer.Token(forRegent, email))
	}
	return a.tokens[email]
}

// secret remembers a text that must not be in the log.
func (a *authServer) secret(text string) string {
	a.heard.add(text)
	return text
}

// secrets remembers the keys of requests.
type secrets struct {
	mu    sync.Mutex // guards the rest
	keys  map[string]bool
	times int // that a key was heard
}

var keyInBody = regexp.MustCompile(`"key":"([A-Za-z0-9_-]{43})"`)

func (s *secrets) find(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range keyInBody.FindAllSubmatch(body, -1) {
		s.keys[string(m[1])] = true
		s.times++
	}
}

func (s *secrets) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[text] = true
}

// all returns the keys, and how many were heard, equal or not.
func (s *secrets) all() (keys []string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.keys)), s.times
}

// overhear returns the address of a proxy to a server that notes the keys of all requests.
func overhear(t *testing.T, target string) (string, *secrets) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	heard := &secrets{keys: map[string]bool{}}
	forward := httputil.NewSingleHostReverseProxy(u)
	forward.Transport = &http.Transport{IdleConnTimeout: 30 * time.Second} // before the server closes a connection
	line := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		heard.find(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(line.Close)
	return line.URL, heard
}

// as returns a client with the token of a principal, which campaigns as a candidate.
func (a *authServer) as(email string, candidate client.Candidate) *client.Client {
	a.t.Helper()
	c, err := client.New(client.Config{
		Server: a.line, Candidate: candidate, Log: slog.New(slog.DiscardHandler),
		Credential: func(context.Context) (string, error) { return a.token(email), nil },
	})
	require.NoError(a.t, err)
	return c
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask makes a request; without authentication if token is "". headers are names and values in turn.
//
// Operators' calls name the revision that the election has.
func (a *authServer) ask(token, method, path, body string, headers ...string) answer {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.line+path, strings.NewReader(body))
	require.NoError(a.t, err)
	if body != "" {
		request.Header.Set("Content-Type", wire.ContentType)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if call := decides.FindStringSubmatch(method + " " + path); call != nil && (method == http.MethodPost) == (call[2] != "") {
		request.Header.Set("If-Match", `"1"`)
		if is := a.ask(a.token("admin@test"), http.MethodGet, call[1]+"?consistency=strong", ""); is.status == http.StatusOK {
			request.Header.Set("If-Match", is.header.Get("ETag"))
		} else if method == http.MethodPut {
			request.Header.Set("If-None-Match", "*")
			request.Header.Del("If-Match")
		}
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := plain.Do(request)
	require.NoError(a.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(a.t, err)
	a.heard.find(text)
	return answer{response.StatusCode, response.Header, string(text)}
}

// await repeats a request until the status is the wanted one.
func (a *authServer) await(want int, token, method, path, body string) {
	a.t.Helper()
	machine.Eventually(a.t, fmt.Sprintf("%s %s: %d", method, path, want), func() bool { return a.ask(token, method, path, body).status == want })
}

// search ends the server and searches its log.
func (a *authServer) search() {
	a.kill()
	for line := range strings.Lines(a.log.String()) {
		if !json.Valid([]byte(line)) {
			a.t.Errorf("this line of the log is no JSON: %s", line)
		}
	}
	if leak := leaks(a.log.String(), a.secrets()); leak != "" {
		a.t.Errorf("a token or a key is in the log: …%s…", leak)
	}
}

// secrets are all that may be in no log.
func (a *authServer) secrets() []string {
	keys, _ := a.heard.all()
	return keys
}

// window is the length of a part of a secret that may appear nowhere.
const window = 20

// leaks returns the first window of a secret in the text, "" if there is none.
func leaks(text string, secrets []string) string {
	parts := map[string]bool{}
	for _, s := range secrets {
		for i := range len(s) - window + 1 {
			parts[s[i:i+window]] = true
		}
	}
	for i := range len(text) - window + 1 {
		if part := text[i : i+window]; parts[part] {
			return part
		}
	}
	return ""
}

// decides are the calls of operators, which name a revision.
var decides = regexp.MustCompile(`^(?:PUT|DELETE|POST) (/v1/elections/[a-z0-9._-]+)(:(?:assign|evict|pause|resume|ban|approve|lift))?([?].*)?$`)
