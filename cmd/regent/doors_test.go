package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/access/authn"
)

func TestMetadataOfTheIssuersIsThereForModelsWhereTokensAreVerifiedHere(t *testing.T) {
	t.Parallel()
	issuers, url := []string{"https://issuer.test"}, []string{"1234", "https://regent.test"}
	for what, c := range map[string]struct {
		access accessSettings
		mcp    bool
		there  bool
	}{
		"oidc":                       {accessSettings{auth: authOIDC, issuers: issuers, audiences: url}, true, true},
		"oidc without --mcp":         {accessSettings{auth: authOIDC, issuers: issuers, audiences: url}, false, false},
		"oidc, not known by any URL": {accessSettings{auth: authOIDC, issuers: issuers, audiences: url[:1]}, true, false},
		"platform":                   {accessSettings{auth: authPlatform, audiences: url}, true, false},
		"none":                       {accessSettings{auth: authNone}, true, false},
	} {
		d, err := openDoors(serviceSettings{access: c.access, mcp: c.mcp}, &access{}, nil, httpapi.Config{}, nil)
		require.NoError(t, err)
		if _, there := d.byPath[authn.ResourcePath]; there != c.there {
			t.Errorf("%s: the metadata is there: %v", what, there)
		}
		d.close()
	}
}

func TestADoorThatIsShutNamesItsFlag(t *testing.T) {
	t.Parallel()
	d, err := openDoors(serviceSettings{}, nil, nil, httpapi.Config{}, nil)
	require.NoError(t, err)
	for path, flag := range map[string]string{"/apis": "--kubernetes", "/mcp": "--mcp", "/ui": "--ui"} {
		w := httptest.NewRecorder()
		d.byPath[path].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "start it with "+flag) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
