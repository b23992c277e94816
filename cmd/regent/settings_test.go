package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/telemetry"
	"regent/store/memory"
	"regent/store/storetest"
)

func TestWhereServeListensAndStores(t *testing.T) {
	t.Parallel()
	home := []string{"HOME=/home/me"}
	open := accessSettings{auth: authOIDC, audiences: []string{"https://regent.test"}, file: "access.yaml"}
	for _, c := range []struct {
		name          string
		set           serviceSettings
		env           []string
		listen, store string
	}{
		{"nothing is set", serviceSettings{}, home, "127.0.0.1:8080", "file:/home/me/.local/state/regent/leases"},
		{"the state folder is elsewhere", serviceSettings{}, append(home, "XDG_STATE_HOME=/state"), "127.0.0.1:8080", "file:/state/regent/leases"},
		{"a relative state folder does not count", serviceSettings{}, append(home, "XDG_STATE_HOME=state"), "127.0.0.1:8080", "file:/home/me/.local/state/regent/leases"},
		{"PORT is every address", serviceSettings{store: "memory:", access: open}, []string{"PORT=9000"}, "0.0.0.0:9000", "memory:"},
		{"an address goes before PORT", serviceSettings{listen: "127.0.0.1:1", store: "memory:"}, []string{"PORT=9000"}, "127.0.0.1:1", "memory:"},
		{"port 0 is any", serviceSettings{listen: "[::1]:0", store: "memory:"}, nil, "[::1]:0", "memory:"},
		{"no host is every address", serviceSettings{listen: ":8080", store: "memory:", access: open}, nil, ":8080", "memory:"},
		{"--dev allows an emulator", serviceSettings{store: "memory:", dev: true}, []string{"SPANNER_EMULATOR_HOST=localhost:9010"}, "127.0.0.1:8080", "memory:"},
		{"--dev with localhost", serviceSettings{listen: "localhost:80", store: "memory:", dev: true}, nil, "localhost:80", "memory:"},
		{"--dev with IPv6", serviceSettings{listen: "[::1]:80", store: "memory:", dev: true}, nil, "[::1]:80", "memory:"},
		{"an empty emulator variable is not set", serviceSettings{store: "memory:"}, []string{"PUBSUB_EMULATOR_HOST="}, "127.0.0.1:8080", "memory:"},
		{"on Cloud Run with a store", serviceSettings{store: "firestore:p", access: open}, []string{"K_SERVICE=regent", "PORT=8080"}, "0.0.0.0:8080", "firestore:p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := c.set.resolve(newCLI(system{environ: c.env}).env)
			if err != nil || got.listen != c.listen || got.store != c.store {
				t.Errorf("%+v, %v; want %s and %s", got, err, c.listen, c.store)
			}
		})
	}
}

func TestReadinessIsTheStoresUntilTheServiceDrains(t *testing.T) {
	t.Parallel()
	leases := memory.New(memory.Config{})
	inst := newTestInstance(t, instance.Config{Store: leases})
	r := &readiness{store: leases, instance: inst}
	if _, err := r.check(t.Context()); err != nil {
		t.Errorf("a store that answers: %v", err)
	}
	r.draining.Store(true)
	if _, err := r.check(t.Context()); !unreachable(err) || errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("while draining: %v", err)
	}
	leases.Close()
	if _, err := (&readiness{store: leases, instance: inst}).check(t.Context()); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("a store that is closed: %v", err)
	}
}

func TestAThousandProbesWithinASecondAskTheStoreOnce(t *testing.T) {
	t.Parallel()
	inst := newTestInstance(t, instance.Config{Store: memory.New(memory.Config{})})
	synctest.Test(t, func(t *testing.T) {
		var calls storetest.Counter
		leases := &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
			time.Sleep(10 * time.Millisecond) // a call takes a moment
			return calls.Count(ctx, c, next)
		}}
		r := &readiness{store: leases, instance: inst}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := r.check(gone); err == nil { // its question is shared by the others
			t.Error("a caller that is gone was answered")
		}
		var probes sync.WaitGroup
		for range 1000 {
			probes.Go(func() {
				if _, err := r.check(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		probes.Wait()
		if n := calls.Take()["List"]; n != 1 {
			t.Errorf("the store was asked %d times", n)
		}
		time.Sleep(readyFor)
		leases.Store.(*memory.Store).Close()
		if _, err := r.check(t.Context()); !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("a second later: %v", err)
		}
		if n := calls.Take()["List"]; n != 1 {
			t.Errorf("a second later the store was asked %d times more, want once", n)
		}
	})
}

func TestAnAccessFileThatBecomesInvalidIsShown(t *testing.T) {
	t.Parallel()
	inst := newTestInstance(t, instance.Config{Store: memory.New(memory.Config{})})
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "access.yaml")
		write := func(text string) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		write("grants: [{principals: [a@b.c], roles: [observer], elections: [reports]}]")
		file, err := accessSettings{auth: authOIDC, file: path}.openFile(slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { file.Run(ctx) })
		defer running.Wait()
		defer stop()
		r, a := &readiness{store: memory.New(memory.Config{}), instance: inst, access: file}, &access{file: file}
		if degraded, err := r.check(t.Context()); degraded != "" || err != nil || a.troubles() != nil {
			t.Errorf("with a valid file: %q, %v, %v", degraded, err, a.troubles())
		}
		write("grants: [{principals: [secret@b.c], roles: [king]}]")
		time.Sleep(time.Minute)
		degraded, err := r.check(t.Context())
		if !strings.Contains(degraded, "the access file has changed and cannot be used") || strings.Contains(degraded, "king") || err != nil {
			t.Errorf("with an invalid one: %q, %v", degraded, err)
		}
		if got := a.troubles(); !slices.Equal(got, []instance.Trouble{telemetry.InvalidAccess}) {
			t.Errorf("with an invalid one the troubles are %q", got)
		}
	})
}

func TestAnInstanceThatCannotTellWhoCallsIsNotReadyAndSaysWhy(t *testing.T) {
	t.Parallel()
	why := ""
	leases := memory.New(memory.Config{})
	r := &readiness{store: leases, instance: newTestInstance(t, instance.Config{Store: leases}), latch: func() string { return why }}
	if _, err := r.check(t.Context()); err != nil {
		t.Error(err)
	}
	why = "IAM lets everyone in"
	if _, err := r.check(t.Context()); !errors.Is(err, leadership.StoreUnavailable) || !strings.Contains(err.Error(), why) {
		t.Errorf("latched: %v", err)
	}
}

// The bus refuses an endpoint together with an emulator, which shows that both commands pass it on.
func TestServeAndDoctorPublishThroughTheEndpoint(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
	env := []string{"PUBSUB_EMULATOR_HOST=127.0.0.1:1", "REGENT_EVENTS_ENDPOINT=europe-west4-pubsub.googleapis.com:443"}
	for _, command := range []string{"serve --dev --listen 127.0.0.1:0 --store memory:", "doctor --store file:" + filepath.Join(t.TempDir(), "leases")} {
		r := regent(t, env, command+" --events projects/p/topics/regent")
		if said := r.out + r.err; !strings.Contains(said, "no endpoint of a region") || !strings.Contains(said, "unset PUBSUB_EMULATOR_HOST") {
			t.Errorf("%s says: %s", command, said)
		}
		if strings.HasPrefix(command, "serve") && !strings.Contains(r.err, "check --events, --events-endpoint") {
			t.Errorf("serve does not name the flag that is wrong: %s", r.err)
		}
	}
}

func TestAHostWithoutANameOfItsOwnIsTold(t *testing.T) {
	t.Setenv("K_SERVICE", "writer") // read by the SDK
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1")
	env := startServer(t, newClock())
	r := regent(t, env, "acquire jobs --output json")
	if r.code != exitDone || !strings.Contains(r.out, `"leaderId":"writer.`) || strings.Count(r.err, "no stable name") != 1 || !strings.Contains(r.err, "REGENT_CANDIDATE") {
		t.Errorf("acquire: %+v", r)
	}
	r = regent(t, env, "renew jobs --token 1 --key "+testKey(1))
	if r.code != exitUsage || !strings.Contains(r.err, "--candidate is missing; give it, or set REGENT_CANDIDATE; this host has no stable name") {
		t.Errorf("renew: %+v", r)
	}
	t.Setenv("CLOUD_RUN_JOB", "nightly")
	if r = regent(t, env, "acquire other --output json"); strings.Contains(r.err, "no name") || !strings.Contains(r.out, `"leaderId":"nightly-"`) {
		t.Errorf("a job: %+v", r)
	}
}
