package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/test/machine"
	"regent/test/process"
)

// Package test/clients leads agent.sh through the cases of all clients. The tests here are of what
// only a program to copy has.

func TestMain(m *testing.M) { machine.MainTogether(m, 0) }

// serve starts `regent serve` on a file of its own, and returns its URL. It ends with the test.
func serve(t *testing.T) string {
	t.Helper()
	return process.Serve(t, process.Regent.Command(t, "serve", "--listen", "127.0.0.1:0", "--store", "file:"+filepath.Join(t.TempDir(), "leases"))).URL
}

// agent starts agent.sh with a command for the election reports. It ends with the test.
func agent(t *testing.T, server string, env []string, command ...string) *process.Process {
	t.Helper()
	return start(t, append(env, "REGENT_SERVER="+server, "REGENT_CANDIDATE=ann"), append([]string{"reports", "--"}, command...)...)
}

const file = "agent.sh"

func start(t *testing.T, env []string, args ...string) *process.Process {
	t.Helper()
	need.Programs(t, "bash", "curl")
	// read here, so that a change of it is no cached result
	if _, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", append([]string{file}, args...)...)
	cmd.Env = process.Environ(env...)
	cmd.WaitDelay = time.Second
	return process.Start(t, cmd)
}

// exits checks how an agent ends, and that it says this.
func exits(t *testing.T, a *process.Process, code int, says string) {
	t.Helper()
	<-a.Gone
	if got := a.ProcessState.ExitCode(); got != code || !strings.Contains(a.Log.String(), says) {
		t.Errorf("the agent ends with %d, not %d, or does not say %q:\n%s", got, code, says, a.Log)
	}
}

// pretend is a server that answers each verb with its next reply, a status and a document, over and
// over. look sees each request that arrived whole: an agent whose command has ended cuts a renewal
// off.
func pretend(t *testing.T, replies map[string][]string, look func(verb, body string)) string {
	t.Helper()
	var mu sync.Mutex // guards replies
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, verb, _ := strings.Cut(r.URL.Path, ":")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		look(verb, string(body))
		mu.Lock()
		defer mu.Unlock()
		next := replies[verb][0]
		replies[verb] = append(replies[verb][1:], next)
		status, document, _ := strings.Cut(next, " ")
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
		fmt.Fprintln(w, document)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const ours = `200 {"election":"reports","state":"held","leaderId":"ann","fencingToken":7,"expiresInMs":4000,"renewInMs":200}`

func TestAgentEndsAsItsCommandDoesAndWithAllThatItHasStarted(t *testing.T) {
	t.Parallel()
	server := serve(t)
	script := `echo "it is $REGENT_ELECTION $REGENT_FENCING_TOKEN $REGENT_CANDIDATE_ID $REGENT_SERVER"; sleep 100 & echo "beside it $!"; exit 7`
	a := agent(t, server, nil, "sh", "-c", script)
	exits(t, a, 7, "it is reports 1 ann "+server+"\n")
	_, beside, _ := strings.Cut(a.Log.String(), "beside it ")
	pid, err := strconv.Atoi(strings.Fields(beside)[0])
	if _, state := process.Stat(pid); err != nil || state != "" && state != "Z" {
		t.Errorf("what the command has left behind still runs: %d, %v", pid, err)
	}
}

func TestTheCandidateIsTheSameAfterARestart(t *testing.T) {
	t.Parallel()
	server := serve(t)
	const long = "nightly-of-the-department-that-writes-all-reports-of-the-quarter-nightly-of-the-department-that-writes-all-reports-of-the-quarter"
	host, err := os.Hostname()
	require.NoError(t, err)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprintln(w, "0069c7a98896d7d4a8c5a3ed")
	}))
	t.Cleanup(metadata.Close)
	at := "GCE_METADATA_HOST=" + strings.TrimPrefix(metadata.URL, "http://")
	for _, c := range []struct {
		env    []string
		want   string
		stable bool
	}{
		{nil, regexp.QuoteMeta(host), !strings.HasPrefix(host, "localhost")},
		{[]string{"K_SERVICE=writer", at}, `writer\.d7d4a8c5a3ed`, true},
		{[]string{"CLOUD_RUN_JOB=nightly", "CLOUD_RUN_TASK_INDEX=3"}, `nightly-3`, true},
		{[]string{"CLOUD_RUN_JOB=" + long}, long[:111] + `\.[0-9a-f]{16}`, true},
		{[]string{"K_SERVICE=writer", "GCE_METADATA_HOST=127.0.0.1:1"}, `writer\.[0-9A-Za-z_-]{12,16}`, false},
	} {
		var ids []string
		for range 2 {
			a := start(t, append(c.env, "REGENT_SERVER="+server), "reports", "--", "sh", "-c", `echo "it is <$REGENT_CANDIDATE_ID>"`)
			exits(t, a, 0, "it is <")
			_, id, _ := strings.Cut(a.Log.String(), "it is <")
			id, _, _ = strings.Cut(id, ">")
			ids = append(ids, id)
			if said := strings.Count(a.Log.String(), "no name of its own"); c.stable != (said == 0) || said > 1 {
				t.Errorf("%s: it says so %d times:\n%s", c.env, said, a.Log)
			}
		}
		if !regexp.MustCompile("^"+c.want+"$").MatchString(ids[0]) && c.stable || c.stable != (ids[0] == ids[1]) {
			t.Errorf("%s: the candidates are %q, not %s", c.env, ids, c.want)
		}
	}
}

func TestAgentAsksForAnApprovalWhenItsCommandDoes(t *testing.T) {
	t.Parallel()
	file, asked := filepath.Join(t.TempDir(), "approval"), make(chan string, 100)
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write(`{"note":"of an earlier command"}`)
	server := pretend(t, map[string][]string{
		"acquire": {ours}, "renew": {ours}, "release": {ours},
		"requestApproval": {"503 {}", "429 {}", ours, `400 {"code":"INVALID_ARGUMENT","detail":"it needs no approval"}`, ours},
	}, func(verb, body string) {
		if verb == "requestApproval" {
			_, said, _ := strings.Cut(strings.ReplaceAll(body, " ", ""), `"key":`)
			_, said, _ = strings.Cut(said, ",")
			asked <- said
		}
	})
	a := agent(t, server, []string{"REGENT_APPROVAL_FILE=" + file}, "sh", "-c", `echo begun; until [ -e "$REGENT_APPROVAL_FILE.end" ]; do sleep 0.1; done`)
	says := func(what string) {
		t.Helper()
		for !strings.Contains(a.Log.String(), what) {
			select {
			case <-a.Gone:
				t.Fatalf("it has not said %q:\n%s", what, a.Log)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	says("begun")
	write(`{"note":"page-1"}`)
	for _, again := range []string{"not answered", "one of too many", "answered"} {
		if got := <-asked; got != `"fencingToken":7,"note":"page-1"}` {
			t.Errorf("the first request, %s, is %s", again, got)
		}
	}
	says("operators are asked")
	write(`{"note":"page-2","newEpoch":true}`)
	if got := <-asked; got != `"fencingToken":7,"note":"page-2","newEpoch":true}` {
		t.Errorf("the request for a new epoch is %s", got)
	}
	says("it needs no approval")
	write("nonsense")
	write(`{"note":"page-3"}`)
	if got := <-asked; got != `"fencingToken":7,"note":"page-3"}` {
		t.Errorf("after nonsense, the request is %s", got)
	}
	require.NoError(t, os.WriteFile(file+".end", nil, 0o600))
	exits(t, a, 0, "")
	if len(asked) > 0 {
		t.Errorf("a request is sent twice: %s", <-asked)
	}
}

func TestEpochOfAnotherLeaseIsNotFollowed(t *testing.T) {
	t.Parallel()
	const epoch = `409 {"code":"LEASE_LOST","reason":"EPOCH","detail":"gone","election":"reports","state":"held","leaderId":"ann","fencingToken":8}`
	for name, other := range map[string]*strings.Replacer{
		"another leader":   strings.NewReplacer(`"ann"`, `"bob"`),
		"another election": strings.NewReplacer(`"reports"`, `"others"`),
		"an earlier token": strings.NewReplacer(`:8`, `:6`),
		"another reason":   strings.NewReplacer(`EPOCH`, `DEPOSED`),
		"no leader":        strings.NewReplacer(`"held"`, `"vacant"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pretend(t, map[string][]string{"acquire": {ours}, "renew": {other.Replace(epoch), ours}, "release": {ours}}, func(string, string) {})
			exits(t, agent(t, server, nil, "sleep", "100"), 4, "gone")
		})
	}
}

func TestWrongUseIsAnsweredWithAdvice(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for _, c := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, nil, "usage: " + file + " ELECTION -- COMMAND"},
		{nil, []string{"reports", "true", "x"}, "usage: "},
		{[]string{"REGENT_PRIORITY=high"}, []string{"reports", "--", "true"}, "set REGENT_PRIORITY"},
		{[]string{"REGENT_CAPABILITIES=gpu,,eu"}, []string{"reports", "--", "true"}, "set REGENT_CAPABILITIES"},
		{[]string{"REGENT_LOAD=-1"}, []string{"reports", "--", "true"}, "set REGENT_LOAD"},
		{nil, []string{"Reports!", "--", "true"}, "a name is 1 to 128 of a-z"},
		{nil, []string{"regent.relay", "--", "true"}, "choose another name"},
		{nil, []string{"reports", "--", "no-such-command"}, "'no-such-command' is no command"},
		{[]string{"REGENT_CANDIDATE=a b"}, []string{"reports", "--", "true"}, "set REGENT_CANDIDATE"},
		{[]string{"REGENT_SERVER=localhost"}, []string{"reports", "--", "true"}, "set REGENT_SERVER"},
		{[]string{"REGENT_SERVER=http://[::1].evil.test"}, []string{"reports", "--", "true"}, "set REGENT_SERVER"},
		{[]string{"REGENT_SERVER=http://192.0.2.1:8080"}, []string{"reports", "--", "true"}, "set REGENT_INSECURE=true"},
		{[]string{"REGENT_SERVER=http://127.0.0.1.example"}, []string{"reports", "--", "true"}, "set REGENT_INSECURE=true"},
		{[]string{"REGENT_SERVER=" + server + "/nowhere"}, []string{"reports", "--", "true"}, "no such path"},
	} {
		exits(t, start(t, append([]string{"REGENT_SERVER=" + server}, c.env...), c.args...), 2, c.want)
	}
}

func TestKeyIsNeverVisible(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards seen
	var seen []string
	server := pretend(t, map[string][]string{"acquire": {ours}, "renew": {ours}, "release": {ours}}, func(verb, body string) {
		_, key, _ := strings.Cut(body, `"key"`)
		key = strings.Trim(strings.SplitN(key, ",", 2)[0], `:" }`)
		if len(key) != 43 {
			t.Errorf("%s has the key %q", verb, key)
		}
		for _, what := range []string{"cmdline", "environ"} {
			names, _ := filepath.Glob("/proc/[0-9]*/" + what)
			for _, name := range names {
				if text, _ := os.ReadFile(name); strings.Contains(string(text), key) {
					t.Errorf("%s has the key while %s is under way", name, verb)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, key)
	})
	// Shell options from the environment must not reveal the key either.
	env := []string{"key=x", "_key=x", "SHELLOPTS=allexport:xtrace"}
	a := agent(t, server, env, "sh", "-c", "env; sleep 2")
	exits(t, a, 0, "REGENT_FENCING_TOKEN=7")
	if len(seen) < 3 || strings.Contains(a.Log.String(), seen[0]) {
		t.Errorf("%d requests, or the key is printed:\n%s", len(seen), a.Log)
	}
}

func TestAgentSaysWhatItIsWorth(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		fmt.Sprintf(`"priority":%d`, 3074249056-1<<31): {"REGENT_PRIORITY=cksum"},
		`"capabilities":["eu","gpu"]`:                  {"REGENT_CAPABILITIES=eu,gpu"},
		`"load":3`:                                     {"REGENT_LOAD=3"},
	} {
		said, ours := make(chan string, 1), strings.Replace(ours, "ann", "agent-1", 1)
		server := pretend(t, map[string][]string{"acquire": {ours}, "renew": {ours}, "release": {ours}}, func(verb, body string) {
			if verb == "acquire" {
				said <- strings.ReplaceAll(body, " ", "")
			}
		})
		exits(t, start(t, append(env, "REGENT_SERVER="+server, "REGENT_CANDIDATE=agent-1"), "reports", "--", "true"), 0, "")
		if body := <-said; !strings.Contains(body, want) {
			t.Errorf("acquire says %s, not %s", body, want)
		}
	}
}
