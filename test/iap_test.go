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

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn/issuertest"
)

const (
	assertionHeader = "X-Goog-IAP-JWT-Assertion"
	forProxy        = "/projects/123456789/locations/europe-west1/services/regent"
)

// people are in the access file by what names them with a second issuer beside Google.
const people = `
grants:
  - {principals: ["https://accounts.google.com|id-operator-test"], roles: [operator], elections: ["*"]}
  - {principals: ["https://accounts.google.com|id-observer-test"], roles: [observer], elections: ["*"]}
  - {principals: [admin@test], roles: [admin], elections: ["*"]}
`

// keysOf has a process read the keys of the proxy where it reads Google's. It returns the
// environment of the process.
func keysOf(t *testing.T, p *issuertest.Proxy) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{issuertest.ProxyKeysHost},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
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

// Package authn tests all bad assertions; this tests the rule of each kind, in the real process,
// and that each door knows the person.
func TestPeopleComeThroughIdentityAwareProxy(t *testing.T) {
	t.Parallel()
	issuer, proxy := newIssuer(t), issuertest.NewProxy()
	a := serveTo(t, issuer, keysOf(t, proxy), people, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--iap-audience", forProxy, "--mcp", "--kubernetes")
	admin := a.token("admin@test")
	a.ask(admin, "PUT", "/v1/elections/own-1", `{"lockDelay":"1s"}`)
	by := func(email string) []string {
		return []string{assertionHeader, a.secret(proxy.Assertion(forProxy, email)), "Accept", "application/json, text/event-stream"}
	}
	other := []string{assertionHeader, a.secret(proxy.Assertion(forProxy+"-2", "operator@test"))}
	const (
		order = `{"for":"1h","mode":"drain","reason":"a test"}`
		call  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pause","arguments":{"election":"own-1","revision":3,"for":"1h","mode":"drain","reason":"a test"}}}`
		pause = "/v1/elections/own-1:pause"
		kube  = "/apis/coordination.k8s.io/v1/leases"
	)
	for _, c := range []struct {
		name, token        string
		headers            []string
		method, path, body string
		want               int
		says               string
	}{
		{"an operator", "", by("operator@test"), "POST", pause, order, http.StatusOK, ""},
		{"an observer, with the token of an admin", admin, by("observer@test"), "POST", pause, order, http.StatusForbidden, ""},
		{"the e-mail of an admin, which another issuer names", "", by("admin@test"), "POST", pause, order, http.StatusForbidden, ""},
		{"a token alone", admin, nil, "POST", pause, order, http.StatusOK, ""},
		{"one for another service, with the token of an admin", admin, other, "POST", pause, order, http.StatusUnauthorized, ""},
		{"two", "", append(by("operator@test"), other...), "POST", pause, order, http.StatusUnauthorized, ""},
		{"an assertion as a token", other[1], nil, "POST", pause, order, http.StatusUnauthorized, ""},
		{"an operator at a page of another site", "", append(by("operator@test"), "Sec-Fetch-Site", "cross-site"), "POST", pause, order, http.StatusForbidden, "page of another origin"},
		{"an observer", "", by("observer@test"), "GET", kube, "", http.StatusOK, "LeaseList"},
		{"a stranger", "", by("stranger@test"), "GET", kube, "", http.StatusForbidden, `"reason":"Forbidden"`},
		{"an observer", "", by("observer@test"), "POST", "/mcp", call, http.StatusOK, "PERMISSION_DENIED"},
		{"an operator", "", by("operator@test"), "POST", "/mcp", call, http.StatusOK, `"structuredContent":{"election":"own-1"`},
		{"an observer", "", by("observer@test"), "GET", "/ui/visitor", "", http.StatusOK, `"principal":"https://accounts.google.com|id-observer-test"`},
		{"the actor of an order", "", by("observer@test"), "GET", "/v1/elections/own-1/overrides", "", http.StatusOK, "https://accounts.google.com|id-operator-test"},
	} {
		if r := a.ask(c.token, c.method, c.path, c.body, c.headers...); r.status != c.want || !strings.Contains(r.body, c.says) {
			t.Errorf("%s: %s %s: %d %s; want %d and %s", c.name, c.method, c.path, r.status, r.body, c.want, c.says)
		}
	}
}

// Behind the proxy, the token that Cloud Run has checked is of the proxy's own account.
func TestOnCloudRunThePersonCountsAndNotTheAccountOfTheProxy(t *testing.T) {
	t.Parallel()
	issuer, proxy := newIssuer(t), issuertest.NewProxy()
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
	live(t, a.server) // it has probed
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
}
