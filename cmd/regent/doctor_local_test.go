package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/cmd/regent/internal/cloud"
)

// allEmulators is the environment of a setting without the cloud.
var allEmulators = map[string]string{firestoreEmulator: "127.0.0.1:1", spannerEmulator: "127.0.0.1:2", pubsubEmulator: "127.0.0.1:3"}

func TestDoctorSaysWhatDiffersFromTheCloud(t *testing.T) {
	t.Parallel()
	const (
		firestore = "firestore:p"
		topic     = "projects/p/topics/regent"
		here      = "http://127.0.0.1:8080"
	)
	for name, c := range map[string]struct {
		s     doctorSettings
		env   map[string]string
		parts []string
	}{
		"Firestore":                      {doctorSettings{store: firestore}, allEmulators, []string{firestoreEmulator}},
		"members":                        {doctorSettings{store: "file:/x", members: topic}, allEmulators, []string{pubsubEmulator}},
		"make dev":                       {doctorSettings{store: firestore, events: topic, members: topic, services: []string{here}}, allEmulators, []string{firestoreEmulator, pubsubEmulator, localService}},
		"a service of the cloud":         {doctorSettings{store: firestore, services: []string{"https://regent.example.com"}}, allEmulators, []string{firestoreEmulator}},
		"Firestore with other emulators": {doctorSettings{store: firestore}, map[string]string{spannerEmulator: "127.0.0.1:2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want [][]string
			for _, d := range differences {
				if slices.Contains(c.parts, d.part) {
					want = append(want, []string{d.check, "differs", "", d.text})
				}
			}
			x := &doctorReport{}
			x.addDifferences(c.s, c.env)
			if diff := cmp.Diff(want, x.rows); diff != "" || x.failed > 0 {
				t.Errorf("%d failed; rows (-want +got):\n%s", x.failed, diff)
			}
		})
	}
}

func TestDoctorAsksAServiceOfThisMachineWhetherItIsReady(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health/ready" {
			t.Errorf("%s was asked for", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	settings := doctorSettings{store: "spanner:projects/p/instances/i/databases/d", events: noEvents, members: noMembers, auth: authNone, services: []string{s.URL + "/"}}
	require.NoError(t, settings.validate())
	for _, c := range []struct {
		status int
		result string
	}{{http.StatusOK, "ok"}, {http.StatusServiceUnavailable, "FAILED"}} {
		status = c.status
		x := &doctorReport{}
		x.examineProject(t.Context(), settings, &cloud.Client{}, allEmulators)
		if row := x.rows[0]; row[0] != "service "+strings.TrimPrefix(s.URL, "http://") || row[1] != c.result {
			t.Errorf("status %d: %q, want %s", c.status, row, c.result)
		}
	}
	settings.services = append(settings.services, "https://regent.example.com")
	if settings.validate() == nil {
		t.Error("a service of the cloud may have no access control")
	}
}
