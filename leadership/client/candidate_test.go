package client_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi/apitest"
	"regent/leadership/client"
)

func TestDefaultCandidateIDsAreUnique(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const instance = "0069c7a98896d7d4a8c5a3ed4e8e41e7ba7dca7e6e21a12b56e0a0f8a0fbc5e8"
	run := map[string]string{"K_SERVICE": "writer", "K_REVISION": "writer-00042-abc"}
	for _, c := range []struct {
		name   string
		env    map[string]string
		answer string // of the metadata server; "" for none
		flavor string
		want   string
	}{
		{"on Cloud Run", run, instance + "\n", "Google", `writer-00042-abc\.` + instance[52:]},
		{"no answer", run, "", "", `writer-00042-abc`},
		{"another server answers", run, "<html>", "", `writer-00042-abc`},
		{"in a job", map[string]string{"CLOUD_RUN_EXECUTION": "nightly-xk2", "CLOUD_RUN_TASK_INDEX": "3"}, instance, "Google", `nightly-xk2-3\.` + instance[52:]},
		{"a name with what no id has", map[string]string{"K_REVISION": "a b/ü"}, "", "", `a-b--`},
		{"a name that is too long", map[string]string{"K_REVISION": strings.Repeat("r", 200)}, strings.Repeat("9", 200), "Google", `r{40}\.9{12}`},
		{"anywhere else", nil, instance, "Google", regexp.QuoteMeta(host)},
	} {
		metadata := apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.String() != "http://metadata.google.internal/computeMetadata/v1/instance/id" || r.Header.Get("Metadata-Flavor") != "Google" {
				t.Errorf("%s: asked %s with %v", c.name, r.URL, r.Header)
			}
			if c.answer == "" {
				return nil, io.EOF
			}
			h := http.Header{"Metadata-Flavor": {c.flavor}}
			return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader(c.answer))}, nil
		})
		env := func(name string) string { return c.env[name] }
		id := client.DrawCandidateID(t.Context(), env, metadata)
		if want := regexp.MustCompile(`^` + c.want + `\.[0-9a-f]{16}$`); !want.MatchString(string(id)) || id.Validate() != nil {
			t.Errorf("%s: the id is %q (%v), want %v", c.name, id, id.Validate(), want)
		}
		if other := client.DrawCandidateID(t.Context(), env, metadata); other == id {
			t.Errorf("%s: two processes are called %q", c.name, id)
		}
	}
}

func TestSilentMetadataServerDoesNotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		silent := apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		client.DrawCandidateID(t.Context(), func(string) string { return "writer-00042-abc" }, silent)
		if d := time.Since(began); d != time.Second {
			t.Errorf("it took %v to give up", d)
		}
	})
}
