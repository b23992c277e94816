package mcp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/client"
)

// process is a session, as "regent mcp" runs it.
type process struct {
	in   io.WriteCloser
	out  io.Reader
	stop context.CancelFunc
	done chan error
}

// begin starts a session on an API.
func (f *fleet) begin(api http.Handler) *process {
	f.t.Helper()
	connect := f.local(api)
	calls, err := connect(client.Config{})
	require.NoError(f.t, err)
	s := mcp.NewSession(mcp.SessionConfig{Calls: calls, Connect: connect, Candidate: "agent", Actor: "olga", Version: "test"})
	hear, say := io.Pipe()
	read, write := io.Pipe()
	ctx, stop := context.WithCancel(f.t.Context())
	p := &process{say, read, stop, make(chan error, 1)}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		p.done <- s.Run(ctx, hear, write)
	}()
	f.t.Cleanup(func() {
		say.Close()
		<-gone
	})
	return p
}

// open connects a model to a session.
func (f *fleet) open(p *process) *model {
	f.t.Helper()
	return over(f.t, &sdk.IOTransport{Reader: io.NopCloser(p.out), Writer: p.in})
}

func TestAModelLeadsOverStdin(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		p := f.begin(f.api())
		m := f.open(p)
		led := m.must("lead", args{"election": "reports", "leaseDuration": "30s"})
		if led["handle"] != "reports" || led["candidateId"] != "agent" || led["fencingToken"] != 1.0 || led["keep"] != nil {
			t.Errorf("lead answers %v", led)
		}
		time.Sleep(time.Hour)
		if out := m.must("leading", args{"handle": "reports"}); out["leading"] != true {
			t.Errorf("an hour later: %v", out)
		}
		if again := m.must("lead", args{"election": "reports"}); again["fencingToken"] != 1.0 || again["leading"] != true {
			t.Errorf("lead again answers %v", again)
		}
		if _, refusal := m.call("lead", args{"election": "reports", "candidateId": "another"}); !begins(refusal, leadership.InvalidArgument) || !strings.Contains(refusal, "already") {
			t.Errorf("as another candidate: %s", refusal)
		}
		m.must("stop_leading", args{"handle": "reports"})
		if out := m.must("leading", args{"handle": "reports"}); out["leading"] != false || out["why"] == nil {
			t.Errorf("after stop_leading: %v", out)
		}
		if led := m.must("lead", args{"election": "reports"}); led["fencingToken"] != 2.0 {
			t.Errorf("the next lead answers %v", led)
		}
	})
}

func TestAllLeasesAreReleasedWhenTheSessionEnds(t *testing.T) {
	says := func(text string) func(*process, *model) {
		return func(p *process, _ *model) { io.WriteString(p.in, text+"\n") }
	}
	for name, end := range map[string]func(*process, *model){
		"the input ends":                        func(p *process, _ *model) { p.in.Close() },
		"the client closes it":                  func(_ *process, m *model) { m.session.Close() },
		"the process is told":                   func(p *process, _ *model) { p.stop() },
		"wrong input: a word":                   says("hello"),
		"wrong input: JSON that is no message":  says(`{"election":"reports"}`),
		"wrong input: a message that is larger": says(`"` + strings.Repeat("x", mcp.MaxBody) + `"`),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				p := f.begin(f.api())
				m := f.open(p)
				for _, e := range []string{"reports", "backups"} {
					m.must("lead", args{"election": e, "leaseDuration": "1h"})
				}
				end(p, m)
				err := <-p.done
				if wrong := strings.HasPrefix(name, "wrong input"); wrong != (err != nil) || wrong && !strings.Contains(err.Error(), "is not the Model Context Protocol") {
					t.Errorf("the session ended with %v", err)
				}
				for _, e := range []leadership.Election{"reports", "backups"} {
					if l := f.election(e); l.State != leadership.Vacant {
						t.Errorf("%+v", l)
					}
				}
			})
		})
	}
}

func TestASessionThatEndsWhileItWaitsLeavesNoLeaseBehind(t *testing.T) {
	for name, end := range map[string]func(*process){
		"the input ends":      func(p *process) { p.in.Close() },
		"the process is told": func(p *process) { p.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				api := f.api()
				held := f.open(f.begin(api))
				held.must("lead", args{"election": "reports"})
				p := f.begin(api)
				m := f.open(p)
				go m.session.CallTool(context.Background(), &sdk.CallToolParams{Name: "lead", Arguments: args{"election": "reports", "candidateId": "bob", "wait": "5m"}})
				time.Sleep(time.Second)
				began := time.Now()
				end(p)
				if err := <-p.done; err != nil || time.Since(began) > time.Second {
					t.Errorf("the session ended with %v, after %v", err, time.Since(began))
				}
				synctest.Wait() // the server has heard
				held.must("stop_leading", args{"handle": "reports"})
				time.Sleep(time.Minute)
				if l := f.election("reports"); l.Token != 1 {
					t.Errorf("the session that had ended leads: %+v", l)
				}
			})
		})
	}
}

// A client may start the process once to list its tools, and once more to use it.
func TestAProbingStartAsksTheServerNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		var calls atomic.Int32
		api := f.api()
		p := f.begin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			api.ServeHTTP(w, r)
		}))
		m := f.open(p)
		if _, err := m.session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		p.in.Close()
		if err := <-p.done; err != nil || calls.Load() != 0 {
			t.Errorf("%v; %d calls", err, calls.Load())
		}
	})
}

func TestTwoCallsOfLeadAreOneCampaign(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		api := f.api()
		held := f.open(f.begin(api))
		held.must("lead", args{"election": "reports", "candidateId": "bob"})
		m := f.open(f.begin(api))
		var led args
		won := make(chan struct{})
		go func() {
			defer close(won)
			led = m.must("lead", args{"election": "reports", "wait": "5m"})
		}()
		synctest.Wait()
		if _, refusal := m.call("lead", args{"election": "reports"}); !begins(refusal, leadership.LeaseHeld) || !strings.Contains(refusal, "under way") {
			t.Errorf("the second lead: %s", refusal)
		}
		held.must("stop_leading", args{"handle": "reports"})
		<-won
		if led["fencingToken"] != 2.0 {
			t.Errorf("the first lead answers %v", led)
		}
	})
}

func TestAnUnreachableServerIsSaidPlainly(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := f.open(f.begin(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		})))
		for tool, in := range map[string]args{"lead": {"election": "reports"}, "who_leads": {"election": "reports"}, "watch": {"election": "reports", "wait": "1s"}} {
			began := time.Now()
			_, refusal := m.call(tool, in)
			if !begins(refusal, leadership.StoreUnavailable) && !begins(refusal, leadership.OutcomeUnknown) {
				t.Errorf("%s: %s", tool, refusal)
			}
			if took := time.Since(began); took > 50*time.Second { // many clients wait for a minute
				t.Errorf("%s: answered after %v", tool, took)
			}
		}
	})
}

// The Go SDK retries for as long as the lease lasts.
func TestACallIsAnsweredInTimeThoughTheServerIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		api := f.api()
		var gone atomic.Bool
		m := f.open(f.begin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if gone.Load() {
				panic(http.ErrAbortHandler)
			}
			api.ServeHTTP(w, r)
		})))
		m.must("lead", args{"election": "reports", "leaseDuration": "1h"})
		gone.Store(true)
		for tool, in := range map[string]args{
			"checkpoint_put": {"handle": "reports", "sequence": 1, "data": 1}, "journal_append": {"handle": "reports", "after": 0, "entries": []any{args{"data": 1}}},
			"stop_leading": {"handle": "reports"},
		} {
			began := time.Now()
			_, refusal := m.call(tool, in)
			if took := time.Since(began); refusal == "" || took > 50*time.Second {
				t.Errorf("%s: after %v: %s", tool, took, refusal)
			}
		}
		gone.Store(false)
	})
}

func TestACallThatOutlivesItsLeaseSaysThatTheLeaseIsLost(t *testing.T) {
	for tool, in := range map[string]args{
		"checkpoint_put": {"handle": "reports", "sequence": 1, "data": 1}, "journal_append": {"handle": "reports", "after": 0, "entries": []any{args{"data": 1}}},
	} {
		t.Run(tool, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				api := f.api()
				var gone atomic.Bool
				m := f.open(f.begin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if gone.Load() {
						panic(http.ErrAbortHandler)
					}
					api.ServeHTTP(w, r)
				})))
				m.must("lead", args{"election": "reports", "leaseDuration": "6s"})
				gone.Store(true)
				for _, asItEnds := range []bool{true, false} {
					if _, refusal := m.call(tool, in); !begins(refusal, leadership.LeaseLost) || strings.Contains(refusal, "http://") || strings.Contains(refusal, "may have been done") != asItEnds {
						t.Errorf("as the lease ends, %v: %s", asItEnds, refusal)
					}
				}
				if out := m.must("leading", args{"handle": "reports"}); out["leading"] != false || strings.Contains(out["why"].(string), "http://") {
					t.Errorf("leading answers %v", out)
				}
			})
		})
	}
}
