package authn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
	"regent/leadership"
	"regent/leadership/wire"
)

// cloud is a transport to a made-up Cloud Run: its metadata server, and its front.
type cloud struct {
	region string // "" if no metadata server answers
	front  http.HandlerFunc
	asked  []string // URLs of the front
}

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
		c.asked = append(c.asked, r.URL.String())
		c.front(w, r)
	}
	return w.Result(), nil
}

// What the front of a service may do with a call without a token.
var (
	guarded = func(w http.ResponseWriter, r *http.Request) { http.Error(w, "Forbidden", http.StatusForbidden) }
	absent  = func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
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
func started(t *testing.T, c *cloud, change ...func(*authn.PlatformConfig)) (*authn.Platform, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	config := authn.PlatformConfig{Service: "regent", Audiences: []string{audience}, Transport: c, Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, f := range change {
		f(&config)
	}
	p, err := authn.NewPlatform(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
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
					claims := issuer.Claims(audience, ann)
					claims["iss"], claims["exp"], claims["iat"] = "https://accounts.google.com", time.Now().Add(time.Hour).Unix(), time.Now().Unix()
					return with(issuertest.CutSignature(issuer.Sign(claims)))
				}
				c := &cloud{region: here, front: guarded}
				p, log := started(t, c)
				wantCaller(t, p, good(), ann)
				c.front = front
				time.Sleep(time.Minute)
				synctest.Wait()
				if _, err := p.Authenticate(good()); !errors.Is(err, leadership.StoreUnavailable) || p.Latched() == "" {
					t.Errorf("with IAM off: %v, latched %q; want every call refused", err, p.Latched())
				}
				c.front = absent // which says nothing
				time.Sleep(time.Minute)
				synctest.Wait()
				if p.Latched() == "" {
					t.Error("an answer that proves nothing has opened the latch")
				}
				c.front = guarded
				time.Sleep(time.Minute)
				synctest.Wait()
				wantCaller(t, p, good(), ann)
				if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "allUsers") {
					t.Errorf("%d errors are logged:\n%s", n, log)
				}
				if c.asked[0] != "https://regent-123456.europe-west1.run.app/health/live" {
					t.Errorf("asked %q", c.asked[0])
				}
			})
		})
	}
}

func TestATokenWithItsSignatureClosesTheLatch(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	for name, headers := range map[string]func(whole, cut string) []string{
		"in Authorization": func(whole, _ string) []string { return []string{authorization, "Bearer " + whole} },
		"in the header of Cloud Run": func(whole, cut string) []string {
			return []string{serverless, "Bearer " + whole, authorization, "Bearer " + cut}
		},
		"with an algorithm that is not": func(_, cut string) []string { return []string{authorization, "Bearer e30.e30." + cut[len(cut)-5:]} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, log := started(t, &cloud{region: here, front: absent})
				claims := issuer.Claims(audience, ann)
				claims["iss"], claims["exp"], claims["iat"] = "https://accounts.google.com", time.Now().Add(time.Hour).Unix(), time.Now().Unix()
				whole := issuer.Sign(claims)
				cut := issuertest.CutSignature(whole)
				elsewhere := request(serverless, "Bearer "+cut, authorization, "Bearer "+whole) // where a caller may send what it likes
				wantCaller(t, p, elsewhere, ann)
				wantUnauthenticated(t, p, request(headers(whole, cut)...), "not checked by the platform")
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

func TestPlatformNeedsTheMetadataServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, host := range map[string]string{"none": "", "another server": "elsewhere.test"} {
			p, err := authn.NewPlatform(authn.PlatformConfig{
				Service: "regent", Audiences: []string{audience}, Transport: &cloud{front: open}, MetadataHost: host,
			})
			if err != nil {
				t.Fatal(err)
			}
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
		if p.Latched() == "" || c.asked[0] != "https://regent.example.com/health/live" {
			t.Errorf("asked %q, latched %q", c.asked, p.Latched())
		}
	})
	for _, wrong := range []string{"regent.example.com", "ftp://regent.example.com", "https://regent.example.com/v1", "https://"} {
		if _, err := authn.NewPlatform(authn.PlatformConfig{Service: "regent", Audiences: []string{audience}, URL: wrong}); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}
