package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/httpapi"
	"regent/leadership/wire"
	"regent/store/memory"
)

// pages are the calls that a page could try to make.
var pages = []struct{ method, path, body string }{
	{"GET", "/v1/elections", ""},
	{"GET", "/v1/elections/planner", ""},
	{"HEAD", "/v1/elections/planner", ""},
	{"GET", "/v1/elections/planner/events", ""},
	{"GET", "/v1/events", ""},
	{"POST", "/v1/elections/planner:acquire", `{"candidateId":"page"}`},
	{"POST", "/v1/elections/planner:release", asLeader},
	{"POST", "/v1/elections:batchRenew", `{"renewals":[{}]}`},
	{"PUT", "/v1/elections/planner", `{"leaseDuration":"1s"}`},
	{"DELETE", "/v1/elections/planner?force=true", ""},
	{"POST", "/v1/maintenance:tick", ""},
	{"OPTIONS", "/v1/elections/planner:acquire", ""},
	{"POST", "/v1%2Felections/planner:acquire", `{"candidateId":"page"}`},
}

// request returns a request to the host, with headers as name and value in turn.
func request(t *testing.T, method, host, path, body string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = host
	if body != "" {
		r.Header.Set("Content-Type", wire.ContentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestAPageOfAnotherOriginMayNotCall(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.acquire()
	before := w.state()
	for _, headers := range [][]string{
		{"Origin", "http://evil.test"},
		{"Origin", "null"},
		{"Origin", "http://127.0.0.1:3000"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "cross-site", "Origin", "http://127.0.0.1:8080"},
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
	} {
		for _, p := range pages {
			a := w.send(request(t, p.method, "127.0.0.1:8080", p.path, p.body, headers...), p.body)
			if a.status != http.StatusForbidden {
				t.Errorf("%s %s with %q: status %d, want 403", p.method, p.path, headers, a.status)
				continue
			}
			if got := a.problem(t); got.Code != wire.PermissionDenied || !strings.Contains(got.Detail, "another origin") {
				t.Errorf("%s %s with %q: %+v", p.method, p.path, headers, got)
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: the reply has %s", p.method, p.path, name)
				}
			}
		}
	}
	if after := w.state(); after != before {
		t.Errorf("a page changed\n%s to\n%s", before, after)
	}
}

// A browser that is too old to name the origin of a page still names what a form sends.
func TestAFormCannotTick(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, contentType := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain;charset=UTF-8"} {
		for _, body := range []string{"", "x=y"} {
			a := w.do("POST", "/v1/maintenance:tick", body, "Content-Type", contentType)
			if a.status != http.StatusUnsupportedMediaType || !strings.Contains(a.problem(t).Detail, "send none") {
				t.Errorf("%s: status %d, %s; want 415 and what to do", contentType, a.status, a.body)
			}
		}
	}
	for _, contentType := range []string{"", "application/json", "application/octet-stream"} {
		if a := w.do("POST", "/v1/maintenance:tick", "", "Content-Type", contentType); a.status != http.StatusOK {
			t.Errorf("Content-Type %q: status %d, %s; want 200, as for curl and schedulers", contentType, a.status, a.body)
		}
	}
}

func TestProgramsAndPagesOfTheServersOwnOriginMayCall(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, headers := range [][]string{
		{},
		{"Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:8080"},
		{"Sec-Fetch-Site", "none"},
		{"Origin", "http://127.0.0.1:8080"},
		{"Sec-Fetch-Site", "same-origin", "Origin", "https://regent.example"}, // behind a proxy that names itself
	} {
		const body = `{"candidateId":"agent-7","key":"` + otherKey + `"}`
		w.send(request(t, "POST", "127.0.0.1:8080", "/v1/elections/planner:acquire", body, headers...), body).lease(t)
	}
	// A link in a page elsewhere may lead to a public page.
	if a := w.send(request(t, "GET", "127.0.0.1:8080", "/openapi.yaml", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), ""); a.status != http.StatusOK {
		t.Errorf("a link to the specification: status %d", a.status)
	}
}

func TestWithoutAccessControlOnlyLocalNamesAreAnswered(t *testing.T) {
	t.Parallel()
	c := &clock{}
	w := newFixtureOn(t, httpapi.Config{Service: newInstance(t, memory.New(memory.Config{Now: c.Now}), c), Hosts: httpapi.LocalHosts("regent", "regent.corp.example")})
	for host, status := range map[string]int{
		"127.0.0.1:8080":           http.StatusOK,
		"[::1]:8080":               http.StatusOK,
		"10.0.0.7:8080":            http.StatusOK,
		"localhost:8080":           http.StatusOK,
		"regent:8080":              http.StatusOK,
		"Regent.Corp.Example":      http.StatusOK,
		"":                         http.StatusOK, // HTTP/1.0, as health checks of proxies send it
		"evil.test":                http.StatusForbidden,
		"127.0.0.1.evil.test":      http.StatusForbidden,
		"evil.localhost:8080":      http.StatusForbidden,
		"localhost.:8080":          http.StatusForbidden,
		"0.0.0.0:8080":             http.StatusForbidden,
		"[::]:8080":                http.StatusForbidden,
		"[::ffff:0.0.0.0]:8080":    http.StatusForbidden,
		"[::ffff:127.0.0.1]:8080":  http.StatusOK,
		"127.0.0.1:8080:evil.test": http.StatusForbidden,
		"evil.test\"<script>":      http.StatusForbidden,
	} {
		for _, path := range []string{"/v1/elections", "/health/ready", "/openapi.yaml"} {
			a := w.send(request(t, "GET", host, path, ""), "")
			if a.status != status {
				t.Errorf("Host %q, %s: status %d, want %d", host, path, a.status, status)
			}
			if status == http.StatusForbidden && !strings.Contains(a.problem(t).Detail, "--allow-host") {
				t.Errorf("Host %q: %s does not say what to do", host, a.body)
			}
		}
	}
}
