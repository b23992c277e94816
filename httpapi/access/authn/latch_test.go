package authn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
	"regent/leadership"
	"regent/leadership/wire"
)

// cloud is a transport to a fake Cloud Run: its metadata server, and its front end.
type cloud struct {
	region string // "" if no metadata server answers

	mu    sync.Mutex // guards all below
	front http.HandlerFunc
	asked []string // URLs of the front
}

// urls returns the URLs of the front that were asked.
func (c *cloud) urls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

// answer sets what the front does from now on.
func (c *cloud) answer(front http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.front = front
}

// logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) Len() int { return len(l.String()) }

func (c *cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	switch {
	case r.URL.Host == "metadata.google.internal" && c.region == "":
		return nil, errors.New("no such host")
	case r.URL.Host == "metadata.google.internal":
		if r.Header.Get("Metadata-Flavor") == "Google" && r.URL.Path == "/computeMetadata/v1/instance/region" {
			w.Header().Set("Metadata-Flavor", "Google")
			w.WriteString(c.region)
		}
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, r.URL.String())
		c.front(w, r)
	}
	return w.Result(), nil
}

// The possible answers of the front end to a call without a token.
var (
	guarded = func(w http.ResponseWriter, r *http.Request) { http.Error(w, "Forbidden", http.StatusForbidden) }
	// as Identity-Aware Proxy asks a browser to sign in
	proxied = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Goog-IAP-Generated-Response", "true")
		http.Redirect(w, r, "https://accounts.google.com/o/oauth2/v2/auth", http.StatusFound)
	}
	absent = func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
	// as the service itself answers
	open = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.RequestIDHeader, r.Header.Get(wire.RequestIDHeader))
		w.WriteHeader(http.StatusOK)
	}
	openAndRefused = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(wire.RequestIDHeader, r.Header.Get(wire.RequestIDHeader))
		w.WriteHeader(http.StatusUnauthorized)
	}
)

// started returns a Platform in the cloud whose Run is running, and its log.
func started(t *testing.T, c *cloud, change ...func(*authn.PlatformConfig)) (*authn.Platform, *logged) {
	t.Helper()
	log := new(logged)
	config := authn.PlatformConfig{Service: "regent", Audiences: []string{audience}, Transport: c, Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, f := range change {
		f(&config)
	}
	p, err := authn.NewPlatform(config)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ran })
	synctest.Wait()
	return p, log
}

const here = "projects/123456/regions/europe-west1"

func TestAProbeThatComesThroughClosesTheLatchUntilOneIsRefused(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	for name, front := range map[string]http.HandlerFunc{"answered": open, "refused by the service itself": openAndRefused} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := func() *http.Request {
					_, cut := tokens(issuer)
					return with(cut)
				}
				c := &cloud{region: here, front: guarded}
				p, log := started(t, c)
				wantCaller(t, p, good(), ann)
				c.answer(front)
				time.Sleep(time.Minute)
				synctest.Wait()
				if _, err := p.Authenticate(good()); !errors.Is(err, leadership.StoreUnavailable) || p.Latched() == "" {
					t.Errorf("with IAM off: %v, latched %q; want every call refused", err, p.Latched())
				}
				c.answer(absent) // an unclear verdict
				time.Sleep(time.Minute)
				synctest.Wait()
				if p.Latched() == "" {
					t.Error("an answer that proves nothing has opened the latch")
				}
				c.answer(guarded)
				time.Sleep(time.Minute)
				synctest.Wait()
				wantCaller(t, p, good(), ann)
				if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "allUsers") {
					t.Errorf("%d errors are logged:\n%s", n, log)
				}
				if c.urls()[0] != "https://regent-123456.europe-west1.run.app/health/live" {
					t.Errorf("asked %q", c.urls()[0])
				}
			})
		})
	}
}

// tokens returns one of Google's for ann, valid now, and the same as Cloud Run passes it on.
func tokens(issuer *issuertest.Issuer) (whole, cut string) {
	claims := issuer.Claims(audience, ann)
	claims["iss"], claims["exp"], claims["iat"] = "https://accounts.google.com", time.Now().Add(time.Hour).Unix(), time.Now().Unix()
	whole = issuer.Sign(claims)
	return whole, issuertest.CutSignature(whole)
}

func TestATokenWithItsSignatureClosesTheLatch(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	for name, header := range map[string]string{"in Authorization": authorization, "in the header of Cloud Run": serverless} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, log := started(t, &cloud{region: here, front: absent})
				whole, cut := tokens(issuer)
				wantCaller(t, p, with(cut), ann)
				wantUnauthenticated(t, p, request(header, "Bearer "+whole), "not checked by the platform")
				if _, err := p.Authenticate(with(cut)); !errors.Is(err, leadership.StoreUnavailable) {
					t.Errorf("afterwards: %v, want every call refused", err)
				}
				if !strings.Contains(log.String(), "level=ERROR") || strings.Contains(log.String(), whole) || p.Latched() == "" {
					t.Errorf("latched %q, and the log says\n%s", p.Latched(), log)
				}
			})
		})
	}
}

// With IAM on, a caller can send each of these, or may be able to.
func TestNoCallerThatIAMLetsInCanCloseTheLatch(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	bearer := func(token string) string { return "Bearer " + token }
	for name, headers := range map[string]func(whole, cut string) []string{
		"a whole token where Cloud Run does not look": func(whole, cut string) []string {
			return []string{serverless, bearer(cut), authorization, bearer(whole)}
		},
		"a malformed token in the header of Cloud Run": func(_, cut string) []string {
			return []string{authorization, bearer(cut), serverless, bearer("a.b.c")}
		},
		"an empty header of Cloud Run": func(whole, _ string) []string { return []string{serverless, "", authorization, bearer(whole)} },
		"a whole token in both": func(whole, _ string) []string {
			return []string{serverless, bearer(whole), authorization, bearer(whole)}
		},
		"a whole token in the header of Cloud Run, a cut": func(whole, cut string) []string {
			return []string{serverless, bearer(whole), authorization, bearer(cut)}
		},
		"a header twice": func(whole, cut string) []string {
			return []string{authorization, bearer(whole), authorization, bearer(cut)}
		},
		"three parts that are no token": func(_, _ string) []string { return []string{authorization, bearer("a.b.c")} },
		"a token of another issuer":     func(_, _ string) []string { return []string{authorization, bearer(issuer.Token(audience, ann))} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, log := started(t, &cloud{region: here, front: absent})
				whole, cut := tokens(issuer)
				p.Authenticate(request(headers(whole, cut)...))
				if p.Latched() != "" {
					t.Errorf("latched, and the log says\n%s", log)
				}
				wantCaller(t, p, with(cut), ann)
			})
		})
	}
}

func TestNoCallIsAnsweredBeforeTheFirstProbe(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	for name, c := range map[string]struct {
		front   http.HandlerFunc
		latched bool
	}{
		"refused by the platform": {guarded, false}, "unclear": {absent, false}, "answered": {open, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, _ := started(t, &cloud{region: here, front: func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(9 * time.Second)
					c.front(w, r)
				}})
				_, cut := tokens(issuer)
				wantRefusal(t, p, with(cut), leadership.StoreUnavailable, "is verifying")
				if !strings.Contains(p.Refusing(), "verifying") || p.Latched() != "" {
					t.Errorf("refusing %q, latched %q; want only the first", p.Refusing(), p.Latched())
				}
				time.Sleep(9 * time.Second)
				synctest.Wait()
				if c.latched {
					wantRefusal(t, p, with(cut), leadership.StoreUnavailable, "cannot tell who calls")
				} else {
					wantCaller(t, p, with(cut), ann)
				}
				if strings.Contains(p.Refusing(), "IAM") {
					t.Errorf("anyone is told how to come in: %q", p.Refusing())
				}
				if latched, refusing := p.Latched() != "", p.Refusing() != ""; latched != c.latched || refusing != c.latched {
					t.Errorf("refusing %q, latched %q", p.Refusing(), p.Latched())
				}
			})
		})
	}
}

func TestARequiredProbeAnswersNoCallBeforeItsVerdict(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	required := func(c *authn.PlatformConfig) { c.Required = true }
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{region: here, front: absent}
		p, log := started(t, c, required)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		_, forged := tokens(issuer)
		wantRefusal(t, p, with(forged), leadership.StoreUnavailable, "verifying that Cloud Run checks")
		if p.Refusing() == "" || strings.Count(log.String(), "required=true") != 1 || !strings.Contains(log.String(), "--auth-probe") {
			t.Errorf("refusing %q, and it logged\n%s", p.Refusing(), log)
		}
		for _, front := range []http.HandlerFunc{guarded, absent} { // once verified, no answer changes nothing
			c.answer(front)
			time.Sleep(time.Minute)
			synctest.Wait()
			_, cut := tokens(issuer)
			wantCaller(t, p, with(cut), ann)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p, err := authn.NewPlatform(authn.PlatformConfig{Service: "regent", Audiences: []string{audience}, Transport: &cloud{region: "elsewhere", front: guarded}, Required: true})
		require.NoError(t, err)
		if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "names no region") {
			t.Errorf("without a URL to probe: %v", err)
		}
	})
}

func TestAnUnclearProbeIsSoonRepeatedAndThenLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{region: here, front: absent}
		p, log := started(t, c)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := len(c.urls()); n != 12 || log.Len() > 0 {
			t.Errorf("asked %d times in the first minute, want 12; logged\n%s", n, log)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n := len(c.urls()); n != 15 || strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), "--auth-probe") {
			t.Errorf("asked %d times in four minutes, want 15; logged\n%s", n, log)
		}
		c.answer(open)
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.Latched() == "" {
			t.Error("not latched by a probe that came through later")
		}
	})
	for _, front := range []http.HandlerFunc{guarded, proxied} {
		synctest.Test(t, func(t *testing.T) {
			_, log := started(t, &cloud{region: here, front: front})
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if log.Len() > 0 {
				t.Errorf("with clear verdicts it logged\n%s", log)
			}
		})
	}
}

func TestWithoutAURLToProbeCallsAreAnsweredAndAWarningIsLogged(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	synctest.Test(t, func(t *testing.T) {
		p, log := started(t, &cloud{region: "elsewhere", front: guarded})
		_, cut := tokens(issuer)
		wantCaller(t, p, with(cut), ann)
		if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), "names no region") {
			t.Errorf("logged\n%s", log)
		}
	})
}

func TestPlatformNeedsTheMetadataServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, host := range map[string]string{"none": "", "another server": "elsewhere.test"} {
			p, err := authn.NewPlatform(authn.PlatformConfig{
				Service: "regent", Audiences: []string{audience}, Transport: &cloud{front: open}, MetadataHost: host,
			})
			require.NoError(t, err)
			if err = p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the metadata server does not answer") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestTheProbedURLMayBeGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{region: here, front: open}
		p, _ := started(t, c, func(c *authn.PlatformConfig) { c.URL = "https://regent.example.com/" })
		if p.Latched() == "" || c.urls()[0] != "https://regent.example.com/health/live" {
			t.Errorf("asked %q, latched %q", c.urls(), p.Latched())
		}
	})
	for _, wrong := range []string{"regent.example.com", "ftp://regent.example.com", "https://regent.example.com/v1", "https://"} {
		if _, err := authn.NewPlatform(authn.PlatformConfig{Service: "regent", Audiences: []string{audience}, URL: wrong}); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
