package main

import (
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

func TestCallersThatAreNotKnownDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a, err := openAccess(t.Context(), accessSettings{auth: authNone}, nil, &measures{Metrics: newTestMetrics(t), log: newLogTo(&log, false, "")})
		require.NoError(t, err)
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

func TestCallersThatNoGrantNamesDoNotFillTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "access.yaml")
	require.NoError(t, os.WriteFile(file, []byte("grants: [{principals: [ann@test, '*'], roles: [observer], elections: [reports]}]"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := accessSettings{auth: authOIDC, issuers: []string{defaultIssuer}, audiences: []string{"regent"}, file: file}
		a, err := openAccess(t.Context(), s, nil, &measures{Metrics: newTestMetrics(t), log: newLogTo(&log, false, "")})
		require.NoError(t, err)
		verbs := wire.Verbs()
		row := &verbs[slices.IndexFunc(verbs, func(r wire.Row) bool { return r.Verb == wire.VerbAcquire })]
		for name, want := range map[string]int{"ann@test": 1000, "eve@test": 100} {
			log.Reset()
			for range 1000 {
				ctx := authn.With(t.Context(), authn.Principal{Issuer: defaultIssuer, Subject: name, Email: name})
				if _, err := a.rights.Enter(ctx, instance.Op{Row: row, Election: "reports", Candidate: "c"}); !errors.Is(err, wire.PermissionDenied) {
					t.Fatalf("%s acquires: %v", name, err)
				}
			}
			if n := strings.Count(log.String(), "audit"); n != want {
				t.Errorf("1000 refusals of %s leave %d lines, want %d", name, n, want)
			}
		}
	})
}

func TestACallerIsVerifiedAtOnceOrNot(t *testing.T) {
	t.Parallel()
	for _, auth := range []string{authNone, authOIDC} {
		a := &access{}
		if auth == authOIDC {
			o, err := authn.NewOIDC(authn.OIDCConfig{Issuers: []string{defaultIssuer}, Audiences: []string{"regent"}})
			require.NoError(t, err)
			a.who = o
		}
		if r := httptest.NewRequest("GET", "/v1/elections", nil); a.verified(r) != (auth == authNone) {
			t.Errorf("with --auth %s a caller without a token is verified: %v", auth, a.verified(r))
		}
	}
}
