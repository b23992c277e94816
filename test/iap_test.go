package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"regent/httpapi/access/authn/issuertest"
	"regent/leadership/wire"
)

const (
	assertionHeader = "X-Goog-IAP-JWT-Assertion"
	forProxy        = "/projects/123456789/locations/europe-west1/services/regent"
)

// keysOf has a process read the keys of the proxy where it reads Google's. It returns the
// environment of the process.
func keysOf(t *testing.T, p *issuertest.Proxy) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{issuertest.ProxyKeysHost},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	google := httptest.NewUnstartedServer(p)
	google.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	google.StartTLS()
	t.Cleanup(google.Close)
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != issuertest.ProxyKeysHost+":443" {
			http.Error(w, "only the keys are here", http.StatusForbidden)
			return
		}
		there, err := net.Dial("tcp", google.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer there.Close()
		here, waiting, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			io.Copy(there, waiting)
			there.Close()
		}()
		io.Copy(here, there)
	}))
	t.Cleanup(way.Close)
	return []string{"HTTPS_PROXY=" + way.URL, "NO_PROXY=", "SSL_CERT_FILE=" + trusted}
}

// behindProxy is a server that takes tokens of an issuer, and assertions of the proxy.
func behindProxy(t *testing.T) (*authServer, *issuertest.Proxy) {
	t.Helper()
	issuer, proxy := newIssuer(t), issuertest.NewProxy(t)
	a := serveTo(t, issuer, keysOf(t, proxy), people, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--iap-audience", forProxy, "--mcp", "--kubernetes")
	if r := a.ask(a.token("admin@test"), "PUT", "/v1/elections/own-1", `{"lockDelay":"1s"}`); r.status != http.StatusOK {
		t.Fatalf("configure: %d %s", r.status, r.body)
	}
	return a, proxy
}

// people are in the policy by what names them with a second issuer beside Google.
const people = `
grants:
  - {principals: ["https://accounts.google.com|id-operator-test"], roles: [operator], elections: ["*"]}
  - {principals: ["https://accounts.google.com|id-observer-test"], roles: [observer], elections: ["*"]}
  - {principals: [admin@test], roles: [admin], elections: ["*"]}
`

const (
	pausePath  = "/v1/elections/own-1:pause"
	pauseOrder = `{"for":"1h","mode":"drain","reason":"a test"}`
)

// Package authn tests all bad assertions; this tests the rule of each kind, in the real process.
func TestPeopleComeThroughIdentityAwareProxy(t *testing.T) {
	t.Parallel()
	a, proxy := behindProxy(t)
	by := func(email string) []string {
		return []string{assertionHeader, a.secret(proxy.Assertion(forProxy, email))}
	}
	admin := a.token("admin@test")
	forged := a.secret(issuertest.SignProxy(issuertest.ProxyKey{ID: proxy.Key().ID, Private: issuertest.NewProxy(t).Key().Private},
		issuertest.JSON(map[string]any{"alg": "ES256", "kid": proxy.Key().ID}), issuertest.JSON(proxy.Claims(forProxy, "operator@test"))))
	other := a.secret(proxy.Assertion(forProxy+"-2", "operator@test"))
	for _, c := range []struct {
		name, token string
		headers     []string
		want        int
	}{
		{"an operator", "", by("operator@test"), http.StatusOK},
		{"an observer", "", by("observer@test"), http.StatusForbidden},
		{"an observer, with the token of an admin", admin, by("observer@test"), http.StatusForbidden},
		{"an operator, with a token that is none", "nonsense", by("operator@test"), http.StatusOK},
		{"the e-mail of an admin, which another issuer names", "", by("admin@test"), http.StatusForbidden},
		{"a stranger", "", by("stranger@test"), http.StatusForbidden},
		{"a token alone", admin, nil, http.StatusOK},
		{"a forged one, with the token of an admin", admin, []string{assertionHeader, forged}, http.StatusUnauthorized},
		{"one for another service, with the token of an admin", admin, []string{assertionHeader, other}, http.StatusUnauthorized},
		{"two", "", append(by("operator@test"), by("operator@test")...), http.StatusUnauthorized},
		{"an empty one, with the token of an admin", admin, []string{assertionHeader, ""}, http.StatusUnauthorized},
		{"an assertion as a token", a.secret(proxy.Assertion(forProxy, "operator@test")), nil, http.StatusUnauthorized},
		{"an unsigned header of the proxy's", "", []string{"X-Goog-Authenticated-User-Email", "accounts.google.com:operator@test"}, http.StatusUnauthorized},
	} {
		if r := a.ask(c.token, "POST", pausePath, pauseOrder, c.headers...); r.status != c.want {
			t.Errorf("%s: %d %s; want %d", c.name, r.status, r.body, c.want)
		}
	}
}

// Each door knows the person.
func TestAPersonBehindTheProxyHasItsRightsAtEachDoor(t *testing.T) {
	t.Parallel()
	a, proxy := behindProxy(t)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pause","arguments":{"election":"own-1","for":"1h","mode":"drain","reason":"a test"}}}`
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		says                    string
	}{
		{"observer@test", "GET", "/apis/coordination.k8s.io/v1/leases", "", http.StatusOK, "LeaseList"},
		{"stranger@test", "GET", "/apis/coordination.k8s.io/v1/leases", "", http.StatusForbidden, `"reason":"Forbidden"`},
		{"", "GET", "/apis/coordination.k8s.io/v1/leases", "", http.StatusUnauthorized, `"kind":"Status"`},
		{"observer@test", "POST", "/mcp", call, http.StatusOK, "PERMISSION_DENIED"},
		{"operator@test", "POST", "/mcp", call, http.StatusOK, `"structuredContent":{"election":"own-1"`},
		{"", "POST", "/mcp", call, http.StatusUnauthorized, "has no token"},
	} {
		headers := []string{"Accept", "application/json, text/event-stream"}
		if c.who != "" {
			headers = append(headers, assertionHeader, a.secret(proxy.Assertion(forProxy, c.who)))
		}
		if r := a.ask("", c.method, c.path, c.body, headers...); r.status != c.status || !strings.Contains(r.body, c.says) {
			t.Errorf("%s %s as %q: %d %s; want %d and %s", c.method, c.path, c.who, r.status, r.body, c.status, c.says)
		}
	}
	if r := a.ask("", "GET", "/v1/elections/own-1/overrides", "", assertionHeader, a.secret(proxy.Assertion(forProxy, "observer@test"))); !strings.Contains(r.body, "https://accounts.google.com|id-operator-test") {
		t.Errorf("the order is not the operator's: %s", r.body)
	}
}

// A browser adds the cookie of Identity-Aware Proxy to whatever a page of another site sends, and
// the proxy makes a good assertion of it. The page must not get through with it.
func TestNoPageOfAnotherSiteUsesThePersonBehindTheProxy(t *testing.T) {
	t.Parallel()
	a, proxy := behindProxy(t)
	person := []string{assertionHeader, a.secret(proxy.Assertion(forProxy, "operator@test"))}
	host := strings.TrimPrefix(a.line, "http://")
	for _, call := range []struct{ method, path, body string }{
		{"POST", pausePath, pauseOrder},
		{"GET", "/v1/elections", ""},
		{"GET", "/v1/events", ""},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{"POST", "/apis/coordination.k8s.io/v1/namespaces/a/leases", `{"kind":"Lease"}`},
		{"DELETE", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", ""},
		{"GET", "/ui/visitor", ""},
	} {
		for _, from := range [][]string{
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
			{"Sec-Fetch-Site", "cross-site", "Origin", "http://" + host},
			{"Origin", "https://elsewhere.test"},
			{"Origin", "null"},
		} {
			if r := a.ask("", call.method, call.path, call.body, append(from, person...)...); r.status != http.StatusForbidden || !strings.Contains(r.body, "page of another origin") {
				t.Errorf("%s %s from %q: %d %s; want it refused", call.method, call.path, from, r.status, r.body)
			}
		}
	}
	if r := a.ask("", "GET", "/v1/elections/own-1", "", person...); strings.Contains(r.body, "paused") {
		t.Errorf("afterwards: %s", r.body)
	}
	for _, own := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://" + host}, nil} {
		if r := a.ask("", "POST", pausePath, pauseOrder, append(own, person...)...); r.status != http.StatusOK {
			t.Errorf("from %q: %d %s", own, r.status, r.body)
		}
	}
}

// The page is shown to every visitor: it has to say how to sign in.
func TestTheDashboardSaysHowToSignIn(t *testing.T) {
	t.Parallel()
	a, proxy := behindProxy(t)
	if r := a.ask("", "GET", "/ui/", ""); r.status != http.StatusOK || !strings.Contains(r.body, "/ui/assets/app.js") {
		t.Errorf("the page: %d %s", r.status, r.body)
	}
	script := a.ask("", "GET", "/ui/assets/app.js", "")
	for _, way := range []string{"Identity-Aware Proxy", "--iap-audience", "gcloud run services proxy"} {
		if script.status != http.StatusOK || !strings.Contains(script.body, way) {
			t.Errorf("the script (%d) does not speak of %s", script.status, way)
		}
	}
	if r := a.ask("", "GET", "/ui/visitor", ""); r.status != http.StatusUnauthorized || r.code() != wire.Unauthenticated || !strings.Contains(r.body, "has no token") {
		t.Errorf("without a credential: %d %s", r.status, r.body)
	}
	for want, how := range map[string][]string{
		`"principal":"https://accounts.google.com|id-observer-test"`: {assertionHeader, a.secret(proxy.Assertion(forProxy, "observer@test"))},
		`"principal":"admin@test"`:                                   {"Authorization", "Bearer " + a.token("admin@test")}, // as gcloud run services proxy adds it
	} {
		r := a.ask("", "GET", "/ui/visitor", "", how...)
		if r.status != http.StatusOK || !strings.Contains(r.body, want) || strings.Contains(r.body, `"pause"`) != strings.Contains(want, "admin") {
			t.Errorf("%d %s; want %s", r.status, r.body, want)
		}
	}
}

// Behind the proxy, the token that Cloud Run has checked is of the proxy's own account.
func TestOnCloudRunThePersonCountsAndNotTheAccountOfTheProxy(t *testing.T) {
	t.Parallel()
	issuer, proxy := newIssuer(t), issuertest.NewProxy(t)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		io.WriteString(w, "projects/1/regions/europe-west1")
	}))
	t.Cleanup(metadata.Close)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // asks to sign in
		w.Header().Set("X-Goog-IAP-Generated-Response", "true")
		http.Redirect(w, r, "https://accounts.google.com/o/oauth2/v2/auth", http.StatusFound)
	}))
	t.Cleanup(front.Close)
	env := []string{"K_SERVICE=regent", "GCE_METADATA_HOST=" + strings.TrimPrefix(metadata.URL, "http://"), "REGENT_AUTH_PROBE=required," + front.URL, "REGENT_IAP_AUDIENCE=" + forProxy}
	a := serveTo(t, issuer, append(env, keysOf(t, proxy)...), roles, "--auth", "platform")
	awaitHealth(t, a.server, wire.Healthy) // it has probed
	checked := func(email string) string {
		c := issuer.Claims(forRegent, email)
		c["iss"] = "https://accounts.google.com"
		return a.secret(issuertest.CutSignature(issuer.Sign(c)))
	}
	agent := []string{"X-Serverless-Authorization", "Bearer " + checked("admin@test")}
	by := func(email string) []string {
		return append(agent[:2:2], assertionHeader, a.secret(proxy.Assertion(forProxy, email)))
	}
	for _, c := range []struct {
		name, token string
		headers     []string
		want        int
	}{
		{"a person", "", by("observer@test"), http.StatusOK},
		{"a stranger", "", by("stranger@test"), http.StatusForbidden},
		{"an assertion that is none", "", append(agent[:2:2], assertionHeader, "a.b.c"), http.StatusUnauthorized},
		{"a program, without the proxy", checked("observer@test"), nil, http.StatusOK},
		{"no credential", "", nil, http.StatusUnauthorized},
	} {
		if r := a.ask(c.token, "GET", "/v1/elections", "", c.headers...); r.status != c.want {
			t.Errorf("%s: %d %s; want %d", c.name, r.status, r.body, c.want)
		}
	}
	if r := a.ask("", "GET", "/ui/visitor", "", by("observer@test")...); r.status != http.StatusOK || !strings.Contains(r.body, `"principal":"observer@test"`) {
		t.Errorf("the visitor: %d %s", r.status, r.body)
	}
	if r := a.ask("", "GET", "/ui/", ""); r.status != http.StatusOK {
		t.Errorf("the page: %d %s", r.status, r.body)
	}
}
