package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/memory"
	"regent/store/storetest"
)

// serverWith returns the URL of a server that knows one election.
func serverWith(t *testing.T, e leadership.Election) string {
	t.Helper()
	service := newTestInstance(t, instance.Config{Store: memory.New(memory.Config{})})
	if _, err := service.Configure(t.Context(), leadership.ConfigureRequest{Election: e}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: service}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAFlagGoesBeforeTheEnvironment(t *testing.T) {
	t.Parallel()
	one, other := serverWith(t, "one"), serverWith(t, "other")
	env := []string{"REGENT_SERVER=" + one, "REGENT_OUTPUT=json"}
	if r := regent(t, env, "list").want(t, exitDone); !strings.Contains(r.out, `"election":"one"`) {
		t.Errorf("with the environment alone: %s", r.out)
	}
	if r := regent(t, env, "list --output table --server "+other).want(t, exitDone); !strings.HasPrefix(r.out, "ELECTION") || !strings.Contains(r.out, "other") {
		t.Errorf("with flags: %s", r.out)
	}
}

func TestAnEmptyVariableIsNotSet(t *testing.T) {
	t.Parallel()
	server := serverWith(t, "one")
	regent(t, []string{"REGENT_OUTPUT=", "REGENT_TIMEOUT="}, "list --server "+server).want(t, exitDone)
	regent(t, []string{"REGENT_CANDIDATE="}, "acquire one --server "+server).want(t, exitUsage)
}

func TestAWrongVariableIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ variable, args string }{
		{"REGENT_TIMEOUT=soon", "list"},
		{"REGENT_SERVER=nowhere", "list"},
		{"REGENT_OUTPUT=yaml", "list"},
		{"REGENT_TOKEN=first", "check e"},
		{"REGENT_CANDIDATE=a/b", "acquire e"},
		{"REGENT_STORE=redis:", "migrate"},
		{"REGENT_KEY=short", "acquire e --candidate a"},
		{"REGENT_LISTEN=8080", "serve --store memory:"},
		{"PORT=http", "serve --store memory:"},
		{"REGENT_EVENTS=changes", "serve --store memory:"},
		{"REGENT_MEMBERS=members", "serve --store memory:"},
		{"REGENT_MEMBERS=projects/p/topics/regent", "serve --store memory: --events projects/p/topics/regent"},
		{"REGENT_EVENTS_ENDPOINT=europe-west4", "serve --store memory: --events projects/p/topics/regent"},
		{"REGENT_EVENTS_ENDPOINT=https://europe-west4-pubsub.googleapis.com", "doctor --store memory: --events projects/p/topics/regent"},
		{"REGENT_EVENTS_ENDPOINT=europe-west4-pubsub.googleapis.com:443", "serve --store memory:"},
		{"REGENT_HISTORY=1m", "serve --store memory:"},
		{"REGENT_CACHE_EXPIRY=11s", "serve --store memory:"},
		{"REGENT_STREAM_LIMIT=0s", "serve --store memory:"},
		{"REGENT_MAX_CONCURRENCY=0", "serve --store memory:"},
		{"REGENT_MAX_CONCURRENCY=1", "serve --store memory:"},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		r := regent(t, []string{c.variable}, c.args).want(t, exitUsage)
		if !strings.Contains(r.err, name) && !strings.Contains(r.err, value) {
			t.Errorf("%s %s: %q names neither the variable nor its value", c.variable, c.args, r.err)
		}
	}
}

func TestWhereServeListensAndStores(t *testing.T) {
	t.Parallel()
	home := []string{"HOME=/home/me"}
	open := accessSettings{auth: authOIDC, audiences: []string{"https://regent.test"}, policy: "policy.yaml"}
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

func TestServeRefusesUnsafeSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args string
		env        []string
		want       string
	}{
		{"an emulator", "serve --store memory:", []string{"FIRESTORE_EMULATOR_HOST=localhost:8081"}, "FIRESTORE_EMULATOR_HOST is set, and an emulator forgets every lease; unset it, or give --dev"},
		{"an unknown emulator", "serve --store memory:", []string{"NEW_EMULATOR_HOST=x"}, "NEW_EMULATOR_HOST"},
		{"two emulators", "serve --store memory:", []string{"SPANNER_EMULATOR_HOST=x", "PUBSUB_EMULATOR_HOST=y"}, "PUBSUB_EMULATOR_HOST, SPANNER_EMULATOR_HOST"},
		{"--dev on every address", "serve --store memory: --dev --listen 0.0.0.0:0", nil, "--dev serves this machine only"},
		{"--dev without a host", "serve --store memory: --dev --listen :0", nil, "--dev serves this machine only"},
		{"--dev on another address", "serve --store memory: --dev --listen 192.0.2.1:0", nil, "--dev serves this machine only"},
		{"--dev on a name", "serve --store memory: --dev --listen example.com:0", nil, "--dev serves this machine only"},
		{"--dev on PORT", "serve --store memory: --dev", []string{"PORT=8080"}, "--dev serves this machine only"},
		{"no port", "serve --store memory: --listen 127.0.0.1", nil, "is not HOST:PORT"},
		{"an empty port", "serve --store memory: --listen 127.0.0.1:", nil, "is not HOST:PORT"},
		{"a port too high", "serve --store memory: --listen 127.0.0.1:65536", nil, "is not HOST:PORT"},
		{"a negative port", "serve --store memory: --listen 127.0.0.1:-1", nil, "is not HOST:PORT"},
		{"a port with a name", "serve --store memory: --listen 127.0.0.1:http", nil, "is not HOST:PORT"},
		{"IPv6 without brackets", "serve --store memory: --listen ::1:80", nil, "is not HOST:PORT"},
		{"PORT out of range", "serve --store memory:", []string{"PORT=0"}, `PORT="0" is not a port`},
		{"PORT as a URL", "serve --store memory:", []string{"PORT=tcp://10.0.0.1:80"}, "is not a port from 1 to 65535"},
		{"a local folder on Cloud Run", "serve", []string{"K_SERVICE=regent", "HOME=/root"}, "a local folder is lost with its instance; give --store"},
		{"every address without --auth", "serve --store memory: --listen :0", nil, "other machines can reach this address, and callers would not be authenticated"},
		{"PORT without --auth", "serve --store memory:", []string{"PORT=8080"}, "give --auth platform (behind Cloud Run's IAM) or --auth oidc"},
		{"a way to ask that is none", "serve --store memory: --auth basic", nil, `--auth "basic" is not none, platform or oidc`},
		{"a policy without --auth", "serve --store memory: --policy p.yaml", nil, "have no effect without authentication"},
		{"an audience without --auth", "serve --store memory:", []string{"REGENT_AUTH_AUDIENCE=a"}, "have no effect without authentication"},
		{"an empty audience", "serve --store memory: --auth oidc --auth-audience a,,b", nil, "the list has an empty element"},
		{"no audience", "serve --store memory: --auth oidc --policy p.yaml", nil, "--auth oidc needs --auth-audience"},
		{"no policy", "serve --store memory: --auth oidc --auth-audience a", nil, "--auth oidc needs --policy FILE"},
		{"no such policy", "serve --listen 127.0.0.1:0 --store memory: --auth oidc --auth-audience a --policy /nowhere/p.yaml", nil, "--policy /nowhere/p.yaml: open /nowhere/p.yaml"},
		{"an issuer without TLS", "serve --listen 127.0.0.1:0 --store memory: --auth oidc --auth-audience a --auth-issuer http://issuer.test --policy p.yaml", nil, "--auth oidc: "},
		{"the platform elsewhere", "serve --store memory: --auth platform --auth-audience a --policy p.yaml", nil, "this is not Cloud Run (K_SERVICE is not set); give --auth oidc"},
		{"a probe elsewhere", "serve --store memory: --auth oidc --auth-audience a --policy p.yaml --auth-probe required", nil, "--auth-probe is for --auth platform"},
		{"the platform's issuer", "serve --store memory: --auth platform --auth-issuer https://a.test", []string{"K_SERVICE=regent"}, "on Cloud Run the issuer is Google"},
		{"the platform without an audience", "serve --store memory: --auth platform --policy p.yaml", []string{"K_SERVICE=regent"}, "--auth platform needs --auth-audience"},
		{"Identity-Aware Proxy without --auth", "serve --store memory: --iap-audience /projects/1/global/backendServices/2", nil, "have no effect without authentication"},
		{"Identity-Aware Proxy by the name of the project", "serve --listen 127.0.0.1:0 --store memory: --auth oidc --auth-audience a --policy p.yaml", []string{"REGENT_IAP_AUDIENCE=/projects/1/global/backendServices/2,/projects/my-project/global/backendServices/2"}, "--iap-audience: \"/projects/my-project/global/backendServices/2\" is not an audience of Identity-Aware Proxy: write /projects/NUMBER/"},
		{"one request at a time", "serve --store memory: --max-concurrency 1", nil, "must be an integer, 2 or more: with one request at a time, no candidate could wait"},
		{"no home", "serve", nil, "no home folder for the leases; give --store file:PATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := regent(t, c.env, c.args).want(t, exitUsage)
			if !strings.Contains(r.err, c.want) || strings.Count(r.err, "\n") != 2 {
				t.Errorf("%q: want one line with %q, and the hint", r.err, c.want)
			}
		})
	}
}

func TestKeyIsReadFromFlagFileOrEnvironment(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(testKey(2)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags keyFlags
		env   []string
		want  string
	}{
		{"nowhere", keyFlags{}, nil, ""},
		{"the flag", keyFlags{text: testKey(1)}, nil, testKey(1)},
		{"the file", keyFlags{file: file}, nil, testKey(2)},
		{"standard input", keyFlags{file: "-"}, nil, testKey(3)},
		{"the environment", keyFlags{}, []string{"REGENT_KEY=" + testKey(4)}, testKey(4)},
		{"the flag before the environment", keyFlags{text: testKey(1)}, []string{"REGENT_KEY=" + testKey(4)}, testKey(1)},
		{"the file before the environment", keyFlags{file: file}, []string{"REGENT_KEY=" + testKey(4)}, testKey(2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key, err := newCLI(system{in: strings.NewReader(testKey(3)), environ: c.env}).key(c.flags)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(key); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func text(k *leadership.Key) string {
	if k == nil {
		return ""
	}
	return k.Text()
}

func TestReadinessIsTheStoresUntilTheServiceDrains(t *testing.T) {
	t.Parallel()
	leases := memory.New(memory.Config{})
	inst := newTestInstance(t, instance.Config{Store: leases})
	r := &readiness{store: leases, instance: inst}
	if _, err := r.check(t.Context()); err != nil {
		t.Errorf("a store that answers: %v", err)
	}
	r.drain()
	if _, err := r.check(t.Context()); !unreachable(err) || errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("while draining: %v", err)
	}
	leases.Close()
	if _, err := (&readiness{store: leases, instance: inst}).check(t.Context()); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("a store that is closed: %v", err)
	}
}

func TestCommandsSendNothingOverPlainHTTPToAnotherMachine(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a.b.c"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"REGENT_SERVER=http://192.0.2.1:1", "REGENT_ID_TOKEN_FILE=" + token, "REGENT_TIMEOUT=1ms"}
	for _, args := range []string{
		"list", "status e", "acquire e --candidate a", "renew e --candidate a --token 1 --key " + testKey(1), "watch e", "run e -- true", "delete e",
	} {
		r := regent(t, env, args).want(t, exitUsage)
		if !strings.Contains(r.err, "--insecure") || !strings.Contains(r.err, "https://") {
			t.Errorf("%s: %q does not say what to do", args, r.err)
		}
	}
	regent(t, env, "list --insecure").want(t, exitUnreachable)
	regent(t, append(env, "REGENT_INSECURE=true"), "list").want(t, exitUnreachable)
	if r := regent(t, env, "list --insecure=perhaps").want(t, exitUsage); !strings.Contains(r.err, `"perhaps" for "--insecure" flag: must be true or false`) {
		t.Errorf("%q does not say what the flag may be", r.err)
	}
	if r := regent(t, append(env, "REGENT_INSECURE=perhaps"), "list").want(t, exitUsage); !strings.Contains(r.err, `REGENT_INSECURE: "perhaps" must be true or false`) {
		t.Errorf("%q does not name the variable and what it may be", r.err)
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
		if _, err := r.check(gone); err == nil { // whose question the others share
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

// TestServeAndDoctorPublishThroughTheEndpoint sees by the bus's refusal, with an emulator, that
// both give it the endpoint.
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
