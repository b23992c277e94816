package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/httpapi"
)

func TestADoorThatIsShutNamesItsFlag(t *testing.T) {
	t.Parallel()
	d, err := openDoors(serviceSettings{}, nil, nil, httpapi.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, flag := range map[string]string{"/apis": "--kubernetes", "/mcp": "--mcp", "/ui": "--ui"} {
		w := httptest.NewRecorder()
		d.byPath[path].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "start it with "+flag) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
