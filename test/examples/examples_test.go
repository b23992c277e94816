package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/emulators/need"
	"regent/leadership/boottime"
	"regent/test/process"
	"regent/test/proxy"
)

func TestDeadlineRule(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	// read here, so that the test's result is not cached when they change
	for _, name := range []string{"agent.py", "test_agent.py"} {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-B", "-m", "unittest", "-q", "test_agent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAgentLeadsWhileItsCommandRuns(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		election := configure(t, serve(t), 3*time.Second)
		server := strings.TrimSuffix(election, "/v1/elections/reports")
		script := `echo "it is $REGENT_ELECTION $REGENT_FENCING_TOKEN $REGENT_CANDIDATE_ID $REGENT_SERVER"; sleep 100 & echo "beside it $!"; exit 7`
		a := p.agent(t, server, []string{"REGENT_CANDIDATE=ann"}, "sh", "-c", script)
		a.exits(t, 7)
		if want := "it is reports 1 ann " + server + "\n"; !strings.Contains(a.log.String(), want) {
			t.Errorf("the command does not print %q:\n%s", want, a.log)
		}
		_, beside, _ := strings.Cut(a.log.String(), "beside it ")
		if pid, err := strconv.Atoi(strings.Fields(beside)[0]); err != nil || runs(pid) {
			t.Errorf("what the command has left behind still runs: %d, %v", pid, err)
		}
		if l := strong(t, election); l.State != "vacant" || l.FencingToken != 1 {
			t.Errorf("after the command has ended the election is %+v, not released", l)
		}
	})
}

func TestNoTwoAgentsLeadAtOnceAfterKills(t *testing.T) {
	t.Parallel()
	need.Programs(t, "bash", "python3", "curl")
	server := serve(t)
	configure(t, server, 5*time.Second)
	pulse := newPulse(t)
	agents := map[string]*agent{}
	for _, p := range programs() {
		for i := range 2 {
			name := fmt.Sprintf("%s-%d", p.file, i)
			agents[name] = p.agent(t, server, []string{"REGENT_CANDIDATE=" + name}, pulse.command(":")...)
		}
	}
	for token := range 4 {
		until(t, fmt.Sprintf("token %d acts", token+1), func() bool { return pulse.last().token == token+1 })
		name := strong(t, server+"/v1/elections/reports").LeaderID
		if token%2 == 0 { // as a failing machine does
			agents[name].kill()
			syscall.Kill(-pulse.last().group, syscall.SIGKILL)
			continue
		}
		agents[name].cmd.Process.Signal(syscall.SIGTERM)
		agents[name].exits(t, 143)
	}
}

func TestInterruptedLeaderStopsThenReleases(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		configure(t, server, time.Hour)
		pulse := newPulse(t)
		first := p.agent(t, server, nil, pulse.command("trap n=0 TERM")...)
		until(t, "the first leads", func() bool { return pulse.last().token == 1 })
		second := p.agent(t, server, nil, pulse.command(":")...)
		first.cmd.Process.Signal(syscall.SIGTERM)
		first.exits(t, 143)
		until(t, "the second leads", func() bool { return pulse.last().token == 2 })
		second.cmd.Process.Signal(syscall.SIGINT)
		second.exits(t, 130)
	})
}

func TestInterruptedCandidateStopsWaiting(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 6*time.Second) // bob leads until the agent has been stopped
		call(t, http.MethodPost, election+":acquire", `{"candidateId":"bob"}`)
		asked := make(chan request, 10)
		tap := newTap(t, server, func(r request) { asked <- r })
		a := p.agent(t, tap.URL, nil, "true")
		<-asked
		a.cmd.Process.Signal(syscall.SIGTERM)
		a.exits(t, 143)
		until(t, "the lease of bob is over", func() bool { return strong(t, election).State == "vacant" })
		if l := strong(t, election); l.FencingToken != 1 {
			t.Errorf("a candidate that no longer waits was granted token %d", l.FencingToken)
		}
	})
}

func TestShortOutageDoesNotEndLeadership(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		for name, disturb := range disturbances() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := serve(t)
				election := configure(t, server, 9*time.Second)
				line := proxy.NewLine(t, strings.TrimPrefix(server, "http://"))
				pulse := newPulse(t)
				a := p.agent(t, "http://"+line.Addr(), nil, pulse.command(":")...)
				until(t, "it leads", func() bool { return pulse.last().token == 1 })
				before := strong(t, election).LastHeartbeat
				disturb(line)
				time.Sleep(3600 * time.Millisecond) // the renewal after three seconds fails
				line.Heal()
				until(t, "it renews again", func() bool { return strong(t, election).LastHeartbeat != before })
				since := boottime.Now()
				until(t, "it goes on", func() bool { return pulse.last().at > since })
				if l := strong(t, election); l.FencingToken != 1 {
					t.Errorf("it goes on with token %d", l.FencingToken)
				}
				a.cmd.Process.Signal(syscall.SIGTERM)
				a.exits(t, 143)
			})
		}
	})
}

func TestLongOutageStopsTheCommandBeforeTheLeaseEnds(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		for name, disturb := range disturbances() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := serve(t)
				election := configure(t, server, 5*time.Second)
				line := proxy.NewLine(t, strings.TrimPrefix(server, "http://"))
				pulse := newPulse(t)
				a := p.agent(t, "http://"+line.Addr(), nil, pulse.command("trap '' TERM")...)
				until(t, "it leads", func() bool { return pulse.last().token == 1 })
				disturb(line)
				asked := boottime.Now()
				// or later
				end := asked + time.Duration(strong(t, election).ExpiresInMs)*time.Millisecond
				gone := pulse.ended(t)
				t.Logf("a command that is deaf to SIGTERM is gone %v before the end of its lease of 5 s", end-gone)
				if gone > end {
					t.Errorf("the command is gone %v after the end of the lease", gone-end)
				}
				a.exits(t, 4)
				if !strings.Contains(a.log.String(), "the lease is lost") {
					t.Errorf("the log does not say why:\n%s", a.log)
				}
			})
		}
	})
}

// disturbances are what can happen to a line.
func disturbances() map[string]func(*proxy.Line) {
	return map[string]func(*proxy.Line){"cut": (*proxy.Line).Cut, "stalled": (*proxy.Line).Stall}
}

func TestLostReplyCostsNoToken(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 8*time.Second)
		tap := newTap(t, server, nil)
		tap.loseReplies("acquire", 2)
		tap.loseReplies("renew", 1)
		tap.loseReplies("release", 1)
		pulse := newPulse(t)
		a := p.agent(t, tap.URL, nil, pulse.command(":")...)
		until(t, "it has renewed", func() bool { return len(tap.of("renew")) > 2 })
		a.cmd.Process.Signal(syscall.SIGTERM)
		a.exits(t, 143)
		// configured, acquired, released
		if l := strong(t, election); l.FencingToken != 1 || l.Revision != 3 || l.State != "vacant" {
			t.Errorf("it ends with %+v", l)
		}
		key := tap.of("acquire")[0].Key
		for verb, least := range map[string]int{"acquire": 3, "renew": 3, "release": 2} {
			requests := tap.of(verb)
			if len(requests) < least {
				t.Errorf("%d times %s, not %d", len(requests), verb, least)
			}
			for _, r := range requests {
				if r.Key != key || len(key) != 43 {
					t.Errorf("%s with the key %q, after %q", r.verb, r.Key, key)
				}
			}
		}
		p.agent(t, tap.URL, nil, "true").exits(t, 0)
		if requests := tap.of("acquire"); requests[len(requests)-1].Key == key {
			t.Error("a key was used again after its release")
		}
	})
}

func TestLostLeaseStopsTheCommandAtOnce(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 9*time.Second)
		tap := newTap(t, server, nil)
		pulse := newPulse(t)
		a := p.agent(t, tap.URL, nil, pulse.command(":")...)
		until(t, "it leads", func() bool { return pulse.last().token == 1 })
		call(t, http.MethodDelete, election+"?force=true", "")
		gone := pulse.ended(t)
		a.exits(t, 4)
		renewals := tap.of("renew")
		if len(renewals) != 1 || renewals[0].status != http.StatusConflict {
			t.Fatalf("renewals: %+v", renewals)
		}
		took := gone - renewals[0].at
		t.Logf("the command is gone %v after the answer", took)
		if took > 2*time.Second {
			t.Errorf("it goes on for %v", took)
		}
		if n := len(tap.of("release")); n != 0 {
			t.Errorf("%d releases of a lease that is lost", n)
		}
		b := p.agent(t, server, nil, "true")
		b.exits(t, 2)
		if !strings.Contains(b.log.String(), "configur") {
			t.Errorf("the log does not say that the election is deleted:\n%s", b.log)
		}
	})
}

// approve begins a new epoch for the leader with the token.
func approve(t *testing.T, election string, token int) {
	t.Helper()
	call(t, http.MethodPost, election+":approve", fmt.Sprintf(`{"fencingToken":%d,"newEpoch":true,"actor":"olga","reason":"a checkpoint"}`, token))
}

func TestNewEpochStartsTheCommandAnewUnderItsToken(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 6*time.Second)
		pulse := newPulse(t)
		a := p.agent(t, server, nil, pulse.command(":")...)
		for token := range 3 {
			until(t, fmt.Sprintf("token %d acts", token+1), func() bool { return pulse.last().token == token+1 })
			if token < 2 {
				approve(t, election, token+1)
			}
		}
		a.cmd.Process.Signal(syscall.SIGTERM)
		a.exits(t, 143)
		if l := strong(t, election); l.State != "vacant" || l.FencingToken != 3 {
			t.Errorf("afterwards the election is %+v, not released", l)
		}
	})
}

func TestEpochOfAnotherLeaseIsNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, p program) {
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
				server := pretend(t, map[string][]string{"acquire": {ours}, "renew": {other.Replace(epoch), ours}, "release": {ours}})
				a := p.agent(t, server, []string{"REGENT_CANDIDATE=ann"}, "sleep", "6")
				if a.exits(t, 4); !strings.Contains(a.log.String(), "gone") {
					t.Errorf("the log does not say why:\n%s", a.log)
				}
			})
		}
	})
}

func TestEvictedLeaderStopsAndSaysWhy(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 8*time.Second)
		pulse := newPulse(t)
		a := p.agent(t, server, nil, pulse.command(":")...)
		until(t, "it leads", func() bool { return pulse.last().token == 1 })
		call(t, http.MethodPost, election+":evict", `{"actor":"olga","reason":"a test"}`)
		a.exits(t, 4)
		for _, want := range []string{"s: evicted", "its term has ended: evicted"} {
			if !strings.Contains(a.log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, a.log)
			}
		}
	})
}

func TestReportOfTheCommandIsSentAndARefusedOneCostsNothing(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 2*time.Second)
		file := filepath.Join(t.TempDir(), "report.json")
		if err := os.WriteFile(file, []byte(`{"progress":99}`), 0o600); err != nil { // of an earlier leader
			t.Fatal(err)
		}
		tap := newTap(t, server, nil)
		a := p.agent(t, tap.URL, []string{"REGENT_REPORT_FILE=" + file}, "sleep", "100")
		report := func(text, want string) {
			t.Helper()
			if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
			until(t, "the report is "+want, func() bool { return string(strong(t, election).Report) == want })
		}
		until(t, "it has renewed", func() bool { return len(tap.of("renew")) > 1 })
		if got := strong(t, election).Report; got != nil {
			t.Errorf("before the command has reported the report is %s", got)
		}
		report(`{"progress":3,"health":"ok"}`, `{"progress":3,"health":"ok"}`)
		report(`{"progress":4,"custom":"no"}`, `{"progress":3,"health":"ok"}`)
		n := len(tap.of("renew"))
		until(t, "it goes on renewing", func() bool { return len(tap.of("renew")) > n+6 })
		report(`{"progress":5,"health":"ok"}`, `{"progress":5,"health":"ok"}`)
		if said := strings.Count(a.log.String(), "the report"); said != 1 {
			t.Errorf("it was said %d times that a report is bad:\n%s", said, a.log)
		}
		a.cmd.Process.Signal(syscall.SIGTERM)
		a.exits(t, 143)
		if l := strong(t, election); l.FencingToken != 1 {
			t.Errorf("it ends with %+v", l)
		}
	})
}

func TestAgentSendsTheTicketOfTheLastReply(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		configure(t, server, 2*time.Second)
		tap := newTap(t, server, nil)
		a := p.agent(t, tap.URL, nil, "sleep", "100")
		until(t, "it has renewed", func() bool { return len(tap.of("renew")) > 3 })
		a.cmd.Process.Signal(syscall.SIGTERM)
		a.exits(t, 143)
		for i, r := range tap.of("renew") {
			if want := fmt.Sprintf("t%d", i+1); r.Ticket != want || r.status != http.StatusOK {
				t.Errorf("renewal %d is sent with the ticket %q and answered %d; want %q", i, r.Ticket, r.status, want)
			}
		}
	})
}

func TestAServerThatRefusesTicketsDoesNotCostTheLease(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		election := configure(t, server, 3*time.Second)
		tap := newTap(t, server, nil)
		tap.refuseTickets()
		a := p.agent(t, tap.URL, nil, "sleep", "100")
		until(t, "it has renewed", func() bool { return len(tap.renewals(http.StatusOK)) > 3 })
		if l := strong(t, election); l.FencingToken != 1 || l.State != "held" {
			t.Errorf("it ends with %+v", l)
		}
		if len(tap.renewals(http.StatusBadRequest)) == 0 {
			t.Error("no ticket was refused")
		}
		a.cmd.Process.Signal(syscall.SIGTERM)
		a.exits(t, 143)
	})
}

func TestWrongUseIsAnsweredWithAdvice(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		for _, c := range []struct {
			env  []string
			args []string
			want string
		}{
			{nil, nil, "usage: " + p.file + " ELECTION -- COMMAND"},
			{nil, []string{"reports"}, "usage: "},
			{nil, []string{"reports", "true", "x"}, "usage: "},
			{[]string{"REGENT_PRIORITY=high"}, []string{"reports", "--", "true"}, "set REGENT_PRIORITY"},
			{[]string{"REGENT_PRIORITY=9999999999"}, []string{"reports", "--", "true"}, "priority is from -2147483648"},
			{[]string{"REGENT_CAPABILITIES=gpu,,eu"}, []string{"reports", "--", "true"}, "set REGENT_CAPABILITIES"},
			{[]string{"REGENT_LOAD=-1"}, []string{"reports", "--", "true"}, "set REGENT_LOAD"},
			{nil, []string{"Reports!", "--", "true"}, "a name is 1 to 128 of a-z"},
			{nil, []string{"réports", "--", "true"}, "a name is 1 to 128 of a-z"},
			{nil, []string{"regent.relay", "--", "true"}, "choose another name"},
			{nil, []string{"reports", "--", "no-such-command"}, "'no-such-command' is no command"},
			{[]string{"REGENT_CANDIDATE=a b"}, []string{"reports", "--", "true"}, "set REGENT_CANDIDATE"},
			{[]string{"REGENT_SERVER=localhost"}, []string{"reports", "--", "true"}, "set REGENT_SERVER"},
			{[]string{"REGENT_SERVER=http://a b"}, []string{"reports", "--", "true"}, "set REGENT_SERVER"},
			{[]string{"REGENT_SERVER=http://[::1].evil.test"}, []string{"reports", "--", "true"}, "set REGENT_SERVER"},
			{[]string{"REGENT_SERVER=http://192.0.2.1:8080"}, []string{"reports", "--", "true"}, "set REGENT_INSECURE=true"},
			{[]string{"REGENT_SERVER=http://127.0.0.1.example"}, []string{"reports", "--", "true"}, "set REGENT_INSECURE=true"},
			{[]string{"REGENT_SERVER=" + server + "/nowhere"}, []string{"reports", "--", "true"}, "no such path"},
		} {
			a := p.start(t, append([]string{"REGENT_SERVER=" + server}, c.env...), c.args...)
			a.exits(t, 2)
			if !strings.Contains(a.log.String(), c.want) {
				t.Errorf("%v %v says\n%s\nnot %q", c.env, c.args, a.log, c.want)
			}
		}
	})
}

func TestKeyIsNeverVisible(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		configure(t, server, 6*time.Second)
		seen := process.NewLog()
		tap := newTap(t, server, func(r request) {
			for _, what := range []string{"cmdline", "environ"} {
				names, _ := filepath.Glob("/proc/[0-9]*/" + what)
				for _, name := range names {
					if text, _ := os.ReadFile(name); strings.Contains(string(text), r.Key) {
						fmt.Fprintf(seen, "%s has the key while %s is under way\n", name, r.verb)
					}
				}
			}
		})
		// Shell options from the environment must not reveal the key either.
		env := []string{"key=x", "_key=x", "SHELLOPTS=allexport:xtrace"}
		a := p.agent(t, tap.URL, env, "sh", "-c", "env; sleep 5")
		a.exits(t, 0)
		key := tap.of("acquire")[0].Key
		if len(tap.of("renew")) < 2 || len(key) != 43 {
			t.Fatalf("%d renewals, with the key %q", len(tap.of("renew")), key)
		}
		if strings.Contains(a.log.String(), key) {
			t.Errorf("the key is printed:\n%s", a.log)
		}
		if seen.String() != "" {
			t.Error(seen.String())
		}
	})
}

// pretend is a server that answers each verb with its next reply, a status and a document, over and
// over.
func pretend(t *testing.T, replies map[string][]string) string {
	t.Helper()
	var mu sync.Mutex // guards replies
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, verb, _ := strings.Cut(r.URL.Path, ":")
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

const (
	ours = `200 {"election":"reports","state":"held","leaderId":"ann","fencingToken":7,"expiresInMs":4000,"renewInMs":200}`
	// The leader chooses the names in its metadata; they must not be mistaken for the server's.
	held = `409 {"code":"LEASE_HELD","detail":"\"bob\" leads \\","leaderId":"bob","fencingToken":6,"metadata":{"a":"}\"{","code":"ELECTION_DELETED",` +
		`"b":[{"leaderId":"ann"}],"fencingToken":9},"retryAfterMs":1}`
)

func TestOtherErrorsDoNotStopALeader(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		renewals := []string{
			`503 {"code":"STORE_UNAVAILABLE"}`, `504 {"code":"OUTCOME_UNKNOWN"}`, ours,
			`503 {"code":"DRAINING"}`, `429 {"code":"RATE_LIMITED"}`, ours,
			`500 {"code":"INTERNAL"}`, `502 <html>Bad gateway</html>`, ours,
			`200 {"cut":{"code":"LEASE_LOST"}`, `409 {"code":"LEASE_HELD","metadata":{"code":"LEASE_LOST"}}`, ours,
		}
		server := pretend(t, map[string][]string{"acquire": {held, `503 {"code":"DRAINING"}`, ours}, "renew": renewals, "release": {ours}})
		a := p.agent(t, server, []string{"REGENT_CANDIDATE=ann"}, "sh", "-c", "sleep 5.5; echo token $REGENT_FENCING_TOKEN")
		a.exits(t, 0)
		if !strings.Contains(a.log.String(), "token 7\n") {
			t.Errorf("it does not lead to the end:\n%s", a.log)
		}
	})
}

func TestOnlyItsOwnSuccessExtendsALease(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		var others []string
		for _, other := range []*strings.Replacer{
			strings.NewReplacer(`"reports"`, `"others"`),
			strings.NewReplacer(`"ann"`, `"bob"`),
			strings.NewReplacer(`:7`, `:8`),
			strings.NewReplacer(`"expiresInMs":4000,`, ``),
			strings.NewReplacer(`:4000`, `:"4000"`),
			strings.NewReplacer(`{`, `{"metadata":{`, `}`, `}}`),
			strings.NewReplacer(`}`, ``), // cut short
		} {
			others = append(others, other.Replace(ours))
		}
		server := pretend(t, map[string][]string{"acquire": {ours}, "renew": others, "release": {ours}})
		p.agent(t, server, []string{"REGENT_CANDIDATE=ann"}, "sleep", "12").exits(t, 4)
	})
}

func TestDeadlineCountsFromSendingAndWaiting(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		for _, c := range []struct{ delay, waited, left time.Duration }{
			{delay: time.Second, left: 4 * time.Second},
			{delay: 2500 * time.Millisecond, waited: 1500 * time.Millisecond, left: 4 * time.Second},
		} {
			t.Run(fmt.Sprint(c), func(t *testing.T) {
				t.Parallel()
				asked := make(chan time.Duration, 1)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, ":acquire") {
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					asked <- boottime.Now()
					<-time.After(c.delay)
					fmt.Fprintf(w, `{"election":"reports","leaderId":"ann","fencingToken":7,"expiresInMs":%d,"renewInMs":100,"waitedMs":%d}`,
						c.left.Milliseconds(), c.waited.Milliseconds())
				}))
				t.Cleanup(server.Close)
				pulse := newPulse(t)
				a := p.agent(t, server.URL, []string{"REGENT_CANDIDATE=ann"}, pulse.command("trap '' TERM")...)
				until(t, "it leads", func() bool { return pulse.last().token == 7 })
				used := pulse.ended(t) - <-asked - c.waited
				t.Logf("of a lease of %v, that waited for %v, and whose reply took %v, %v are used", c.left, c.waited, c.delay, used)
				if used > c.left || used < c.left*3/4 {
					t.Errorf("it acts for %v of a lease of %v", used, c.left)
				}
				a.exits(t, 4)
			})
		}
	})
}

func TestAgentSaysWhatItIsWorth(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		tap := newTap(t, serve(t), nil)
		p.agent(t, tap.URL, []string{"REGENT_CANDIDATE=agent-1", "REGENT_PRIORITY=cksum", "REGENT_CAPABILITIES=eu,gpu", "REGENT_LOAD=3"}, "true").exits(t, 0)
		p.agent(t, tap.URL, []string{"REGENT_CANDIDATE=agent-1", "REGENT_PRIORITY=-7"}, "true").exits(t, 0)
		p.agent(t, tap.URL, nil, "true").exits(t, 0)
		want := []request{{Priority: 3074249056 - 1<<31, Load: 3, Capabilities: []string{"eu", "gpu"}}, {Priority: -7}, {}}
		for i, r := range tap.of("acquire") {
			if r.Priority != want[i].Priority || r.Load != want[i].Load || !slices.Equal(r.Capabilities, want[i].Capabilities) {
				t.Errorf("acquire %d says %+v, not %+v", i+1, r, want[i])
			}
		}
	})
}

func TestAgentThatIsNotEligibleIsToldAtOnce(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		server := serve(t)
		call(t, http.MethodPut, server+"/v1/elections/reports", `{"policy":{"strategy":"priority","require":["gpu"]}}`)
		a := p.agent(t, server, []string{"REGENT_CAPABILITIES=eu"}, "true")
		if a.exits(t, 2); !strings.Contains(a.log.String(), ": gpu;") {
			t.Errorf("the log does not name the missing capability:\n%s", a.log)
		}
		b := p.agent(t, server, []string{"REGENT_CAPABILITIES=eu,gpu"}, "echo", "it leads")
		if b.exits(t, 0); !strings.Contains(b.log.String(), "it leads") {
			t.Errorf("it does not lead:\n%s", b.log)
		}
	})
}
