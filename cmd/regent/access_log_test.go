package main

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/wire"
)

func TestCallersThatAreNotKnownDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a, err := openAccess(t.Context(), accessSettings{auth: authNone}, nil, &measures{Metrics: newTestMetrics(t), log: newLogTo(&log, false, "")})
		if err != nil {
			t.Fatal(err)
		}
		refuse := func(calls int) (lines int) {
			log.Reset()
			for range calls {
				a.refused(httptest.NewRequest("GET", "/v1/elections", io.NopCloser(nil)), &leadership.Error{Code: wire.Unauthenticated})
			}
			return strings.Count(log.String(), "audit")
		}
		if n := refuse(1000); n != 100 {
			t.Errorf("1000 calls at once leave %d lines, want 100", n)
		}
		time.Sleep(time.Second)
		if n := refuse(1000); n != 10 {
			t.Errorf("1000 calls a second later leave %d lines, want 10", n)
		}
	})
}

func TestACallerIsVerifiedAtOnceOrNot(t *testing.T) {
	t.Parallel()
	for _, auth := range []string{authNone, authOIDC} {
		a := &access{}
		if auth == authOIDC {
			o, err := authn.NewOIDC(authn.OIDCConfig{Issuers: []string{defaultIssuer}, Audiences: []string{"regent"}})
			if err != nil {
				t.Fatal(err)
			}
			a.who = o
		}
		if r := httptest.NewRequest("GET", "/v1/elections", nil); a.verified(r) != (auth == authNone) {
			t.Errorf("with --auth %s a caller without a token is verified: %v", auth, a.verified(r))
		}
	}
}
