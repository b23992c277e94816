package client_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

func TestDefaultCandidateIDIsTheSameAfterARestart(t *testing.T) {
	t.Parallel()
	const instance = "0069c7a98896d7d4a8c5a3ed4e8e41e7ba7dca7e6e21a12b56e0a0f8a0fbc5e8"
	const random = `\.[0-9a-f]{16}`
	run := map[string]string{"K_SERVICE": "writer", "K_REVISION": "writer-00042-abc"}
	for _, c := range []struct {
		name   string
		env    map[string]string
		host   string
		answer string // of the metadata server; "" for none
		flavor string
		want   string
	}{
		{"a host", nil, "writer-7d4b9-x2k", instance, "Google", `writer-7d4b9-x2k`},
		{"a host with a domain", nil, "web1.eu.example.com", "", "", `web1\.eu\.example\.com`},
		{"a name with what no id has", nil, "a b/ü", "", "", `a-b--`},
		{"a name that is too long", nil, strings.Repeat("r", 200), "", "", `r{111}\.[0-9a-f]{16}`},
		{"on Cloud Run", run, "localhost", instance + "\n", "Google", `writer\.` + instance[52:]},
		{"in a job", map[string]string{"CLOUD_RUN_JOB": "nightly", "CLOUD_RUN_EXECUTION": "nightly-xk2", "CLOUD_RUN_TASK_INDEX": "3"}, "localhost", "", "", `nightly-3`},
		{"no answer", run, "localhost", "", "", `writer` + random},
		{"another server answers", run, "localhost", "<html>", "", `writer` + random},
		{"a name that all hosts have", nil, "Localhost.localdomain", "", "", `Localhost\.localdomain` + random},
		{"no name", nil, "", "", "", `agent` + random},
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
		id, stable := client.CandidateIDOn(t.Context(), env, c.host, metadata)
		if want := regexp.MustCompile(`^` + c.want + `$`); !want.MatchString(string(id)) || id.Validate() != nil {
			t.Errorf("%s: the id is %q (%v), want %v", c.name, id, id.Validate(), want)
		}
		again, _ := client.CandidateIDOn(t.Context(), env, c.host, metadata)
		if named := !strings.HasSuffix(c.want, random) || c.name == "a name that is too long"; stable != named || (again == id) != named {
			t.Errorf("%s: the id is %q and then %q, and stable is %t", c.name, id, again, stable)
		}
	}
}

func TestAClientWithoutANameOfItsOwnSaysSoOnce(t *testing.T) {
	t.Setenv("K_SERVICE", "writer")
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1")
	var log strings.Builder
	c, err := client.New(client.Config{
		Server: "http://127.0.0.1:1", Log: slog.New(slog.NewTextHandler(&log, nil)), Candidate: client.Candidate{Rounds: 1},
	})
	require.NoError(t, err)
	for range 2 {
		if _, err := c.TryAcquire(t.Context(), "jobs"); err == nil {
			t.Fatal("granted by no server")
		}
	}
	if strings.Count(log.String(), "no name of its own") != 1 {
		t.Errorf("the log says:\n%s", &log)
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
		client.CandidateIDOn(t.Context(), func(name string) string { return map[string]string{"K_SERVICE": "writer"}[name] }, "localhost", silent)
		if d := time.Since(began); d != time.Second {
			t.Errorf("it took %v to give up", d)
		}
	})
}

// Two programs of one host that name no candidate.
func TestASecondIncarnationOfACandidateWaitsAsAnyOther(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		first, second := server.Client(client.Candidate{LeaseDuration: 10 * time.Second}), server.Client(client.Candidate{LeaseDuration: 10 * time.Second})
		l := lead(t, first)
		_, err := second.TryAcquire(t.Context(), "reports")
		if e, ok := errors.AsType[*leadership.Error](err); !ok || e.Code != leadership.LeaseHeld || e.Reason != leadership.ReasonIncarnation {
			t.Errorf("while the first leads: %v", err)
		}
		next := make(chan *client.Lease, 1)
		go func() { next <- lead(t, second) }()
		time.Sleep(5 * time.Minute)
		if len(next) > 0 || !l.Valid() || l.CandidateID() != leader(t, server) {
			t.Errorf("the second leads beside the first, which is valid: %t", l.Valid())
		}
		if err := l.HandOver(t.Context(), ""); err == nil || !l.Valid() {
			t.Errorf("handed over to itself: %v", err)
		}
		require.NoError(t, l.Resign(t.Context()))
		other := <-next
		if other.CandidateID() != l.CandidateID() || other.Token() != l.Token()+1 || l.Valid() {
			t.Errorf("%s leads with token %d, after %s with %d", other.CandidateID(), other.Token(), l.CandidateID(), l.Token())
		}
		other.Resign(t.Context())
	})
}
