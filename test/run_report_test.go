package test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
)

// order gives an operator's order about the election e.
func (s *server) order(t *testing.T, c leadership.OrderCommand) {
	t.Helper()
	c.Actor, c.Reason = "olga", "a test"
	if _, err := s.client.Order(t.Context(), leadership.OrderRequest{Election: "e", OrderCommand: c}); err != nil {
		t.Fatalf("%s: %v", c.Kind, err)
	}
}

// awaitReport waits until the election e has this report.
func (s *server) awaitReport(t *testing.T, r *session, want string) {
	t.Helper()
	var got leadership.Lease
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		var err error
		if got, err = s.client.Get(t.Context(), "e"); err == nil && string(got.Report) == want {
			return
		}
	}
	t.Fatalf("the report is %s, want %s\nstderr: %s", got.Report, want, r.text("err"))
}

func TestACommandStartsAnewUnderTheTokenOfANewEpoch(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 6s", "echo token $REGENT_FENCING_TOKEN; trap 'echo stopped; exit 9' TERM"+untilTold)
	r.await("out", "begun")
	s.order(t, leadership.OrderCommand{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})
	if out := r.await("out", "token 2\nbegun"); out != "token 1\nbegun\nstopped\ntoken 2\nbegun\n" {
		t.Errorf("%q", out)
	}
	r.finish()
	r.end(0)
	if l, err := s.client.Get(t.Context(), "e"); err != nil || l.State != leadership.Vacant || l.Token != 2 {
		t.Errorf("%+v, %v; want that the lease was given back", l, err)
	}
}

func TestASignalDuringANewEpochStartsNoCommand(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 6s --grace 2s", `echo token $REGENT_FENCING_TOKEN; trap 'echo asked; n=x$n; test $n = xx && exit 9' TERM`+untilTold)
	r.await("out", "begun")
	s.order(t, leadership.OrderCommand{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})
	r.await("out", "asked")
	r.signal(15)
	r.end(9)
	if strings.Contains(r.text("out"), "token 2") {
		t.Errorf("it began again: %s", r.text("out"))
	}
}

func TestAnEvictedCommandIsStoppedAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 6s", untilTold)
	r.await("out", "begun")
	s.order(t, leadership.OrderCommand{Kind: leadership.OrderEvict, Token: 1})
	if r.end(120); !strings.Contains(r.text("err"), "an operator has evicted the leader") || !strings.Contains(r.text("err"), `"notice":"evicted"`) {
		t.Errorf("stderr does not say why:\n%s", r.text("err"))
	}
}

func TestACommandWithoutProgressDoesNotLeadAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	_, err := s.client.Configure(t.Context(), leadership.ConfigureRequest{Election: "e", ConfigureCommand: leadership.ConfigureCommand{
		Config: leadership.Config{LeaseDuration: time.Second, Term: leadership.TermPolicy{StuckAfter: 2 * time.Second, Cooldown: time.Hour}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := runScript(t, s.URL, "e --restart --candidate ann", untilTold)
	r.await("out", "begun")
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		l, err := s.client.Get(t.Context(), "e")
		if err == nil && l.State == leadership.Vacant {
			break
		}
	}
	x, err := s.client.Explain(t.Context(), leadership.ExplainRequest{Election: "e", CandidateID: "ann"})
	if err != nil || len(x.Causes) == 0 || x.Causes[0].Code != leadership.ReasonBanned {
		t.Errorf("%+v, %v; want that it is banned for its cooldown\nstderr: %s", x, err, r.text("err"))
	}
	r.signal(15)
	r.end(128 + 15)
}

func TestTheReportOfACommandReachesTheElection(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	script := `echo '{"progress":3,"health":"ok"}' >$REGENT_REPORT_FILE; echo begun
		until test -e $dir/second; do sleep 0.01; done
		echo '{"progress":4,"tasks":1}' >$REGENT_REPORT_FILE.new; mv $REGENT_REPORT_FILE.new $REGENT_REPORT_FILE
		until test -e $dir/third; do sleep 0.01; done; rm $dir/third
		echo '{"progres":5}' >$REGENT_REPORT_FILE` + untilTold
	file := t.TempDir() + "/report.json"
	r := runScript(t, s.URL, "e --lease 6s --report-file "+file, script)
	s.awaitReport(t, r, `{"progress":3,"health":"ok"}`)
	r.create("second")
	s.awaitReport(t, r, `{"progress":4,"tasks":1,"health":"ok"}`)
	r.create("third")
	r.await("err", `"the report of the command is ignored"`)
	<-time.After(500 * time.Millisecond) // it is told of once, however often it is looked at
	s.order(t, leadership.OrderCommand{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true})
	// the command starts anew, and its counters add to those before
	r.await("err", "a new epoch has begun")
	s.awaitReport(t, r, `{"progress":8,"tasks":2,"health":"ok"}`)
	if n := strings.Count(r.text("err"), "is ignored"); n != 1 {
		t.Errorf("it was said %d times that a report is ignored:\n%s", n, r.text("err"))
	}
	r.create("third")
	r.finish()
	r.end(0)
}

func TestTheLinesOfACommandAreItsProgress(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	r := runScript(t, s.URL, "e --lease 6s --progress-from-output", "echo one; echo two; echo three >&2; printf unfinished"+untilTold+"; seq 20000")
	s.awaitReport(t, r, `{"progress":3}`) // the line that says "begun", too
	r.finish()
	r.end(0)
	if out := r.text("out"); !strings.HasPrefix(out, "one\ntwo\nunfinishedbegun\n1\n") || !strings.HasSuffix(out, "\n20000\n") || strings.Count(out, "\n") != 20003 {
		t.Errorf("the output is not passed on as it is: %d bytes, %.60q", len(out), out)
	}
}

// The frozen leader cannot hear of anything: its command must be gone before the end that it was
// promised, and its successor leads after that.
func TestAFrozenLeaderThatIsEvictedHasASuccessorAndActsNoMore(t *testing.T) {
	t.Parallel()
	s := inFile(t).serve(t)
	frozen := runScript(t, s.URL, "e --lease 6s", `while ! test -e $dir/over; do echo acts; sleep 0.05; done`)
	frozen.await("out", "acts")
	frozen.signal(syscall.SIGSTOP)
	s.order(t, leadership.OrderCommand{Kind: leadership.OrderEvict, Token: 1, Ban: time.Hour})
	next := runScript(t, s.URL, "e --lease 30s", "echo token $REGENT_FENCING_TOKEN; grep -c acts "+frozen.dir+"/out >$dir/acted"+untilTold)
	next.await("out", "token 2\nbegun")
	frozen.signal(syscall.SIGCONT)
	frozen.end(121, 137) // its guard has killed the command
	if acted, before := strings.Count(frozen.text("out"), "acts"), strings.TrimSpace(next.text("acted")); fmt.Sprint(acted) != before {
		t.Errorf("the command had acted %s times when its successor began, and %d times in the end", before, acted)
	}
	next.finish()
	next.end(0)
}
