package authn_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
)

var issuersOfResource = []string{"https://issuer.test", "https://other.test/realm"}

// newResource returns the metadata of a service with these audiences.
func newResource(t *testing.T, audiences ...string) *authn.Resource {
	t.Helper()
	r, err := authn.NewResource("/mcp", issuersOfResource, audiences)
	require.NoError(t, err)
	return r
}

func TestMetadataOfAResourceNamesTheServiceAndItsIssuers(t *testing.T) {
	t.Parallel()
	r := newResource(t, "1234.apps.example.com", "https://regent.test/mcp", "https://second.test")
	for path, resource := range map[string]string{"": "https://regent.test", "/mcp": "https://regent.test/mcp"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := httptest.NewRecorder()
			w.Header().Set("Cache-Control", "no-store")
			request := httptest.NewRequest(method, authn.ResourcePath+path, nil)
			request.Host = "evil.test" // nothing that its sender chooses may come back
			for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Origin"} {
				request.Header.Set(name, "evil.test")
			}
			r.ServeHTTP(w, request)
			want := `{"resource":"` + resource + `","authorization_servers":["https://issuer.test","https://other.test/realm"],"bearer_methods_supported":["header"],"resource_name":"Regent"}`
			if w.Code != http.StatusOK || w.Body.String() != want {
				t.Errorf("%s %s: %d\n%s\nwant\n%s", method, path, w.Code, w.Body, want)
			}
			if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "public, max-age=3600" {
				t.Errorf("%s %s: %v", method, path, h)
			}
		}
		if got, want := r.Challenge(path), `resource_metadata="https://regent.test/.well-known/oauth-protected-resource`+path+`"`; got != want {
			t.Errorf("the challenge is %s, not %s", got, want)
		}
	}
}

func TestMetadataThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	r := newResource(t, "https://regent.test")
	for request, want := range map[string]int{
		"POST ": 405, "DELETE /mcp": 405, "GET /": 404, "GET /mcp/": 404, "GET /mcp/x": 404, "GET /ui": 404, "GET //mcp": 404, "POST /x": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(method, authn.ResourcePath+path, nil))
		if w.Code != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") || strings.Contains(w.Header().Get("Cache-Control"), "public") ||
			(w.Header().Get("Allow") == "GET, HEAD") != (want == 405) {
			t.Errorf("%s: %d %v %s; want %d", request, w.Code, w.Header(), w.Body, want)
		}
	}
}

func TestAResourceIsKnownByAnAddressAmongItsAudiencesAlone(t *testing.T) {
	t.Parallel()
	for audience, want := range map[string]string{
		"https://regent.test": "https://regent.test", "https://regent.test/": "https://regent.test", "https://regent.test:8443/mcp": "https://regent.test:8443",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "http://localhost:8080/mcp": "http://localhost:8080", "https://[2001:db8::1]": "https://[2001:db8::1]",
		"http://regent.test": "", "regent.test": "", "1234.apps.example.com": "", "/projects/1/locations/x/services/y": "", "https://": "", "https://user@regent.test": "",
		"https://regent.test/other": "", "https://regent.test/mcp/": "", "https://regent.test?x=1": "", "https://regent.test#x": "", `https://a".test`: "", "https://a b.test": "", "mcp": "", "/mcp": "",
		"https://regent.test/\r\nX: y": "", "https://" + strings.Repeat("x", 3000): "",
	} {
		got := ""
		if r := newResource(t, audience); r != nil {
			got = strings.TrimSuffix(strings.TrimPrefix(r.Challenge(""), `resource_metadata="`), authn.ResourcePath+`"`)
		}
		if got != want {
			t.Errorf("%q: the service is known as %q, not %q", audience, got, want)
		}
	}
	if r := newResource(t); r != nil {
		t.Errorf("without an audience: %v", r)
	}
}
