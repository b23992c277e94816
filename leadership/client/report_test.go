package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

// reports are the reports that the calls have carried for an election, empty for none.
func reports(calls []*renewalCall, e leadership.Election) (all []string) {
	for _, c := range calls {
		for _, r := range c.renewals {
			if r.Election == e {
				all = append(all, string(r.Report))
			}
		}
	}
	return all
}

func TestReportsAreMergedAndCountersNeverFall(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		l := lead(t, server.Client(named("ann")))
		for _, r := range []client.Report{
			{Progress: 5, Tasks: 2, ETA: time.Hour, Health: "ok", Dependencies: map[string]any{"bq": "ok", "gcs": "slow"}},
			{Progress: 3, Calls: 9, Errors: 1, Custom: map[string]any{"shard": 7, "list": []int{1}}},
			{Progress: 8, ETA: 20 * time.Minute, Dependencies: map[string]any{"gcs": nil, "sql": "ok"}},
		} {
			require.NoError(t, l.Report(r))
		}
		time.Sleep(15 * time.Second)
		got, err := server.Client(client.Candidate{}).Get(t.Context(), "reports")
		const want = `{"progress":8,"tasks":2,"calls":9,"errors":1,"eta":"20m0s","health":"ok","dependencies":{"bq":"ok","sql":"ok"},"custom":{"list":[1],"shard":7}}`
		if err != nil || string(got.Report) != want {
			t.Errorf("the server has\n%s, want\n%s", got.Report, want)
		}
		l.Resign(t.Context())
	})
}

func TestABadReportIsRefusedAndTheOneBeforeStays(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		l := lead(t, agent.Client)
		require.NoError(t, l.Report(client.Report{Progress: 1}))
		for _, c := range []struct {
			report client.Report
			want   string
		}{
			{client.Report{Progress: -1}, "0 or more"},
			{client.Report{Calls: 1 << 53}, "calls is from 0"},
			{client.Report{Calls: 1, Errors: 2}, "2 errors are more than 1 calls"},
			{client.Report{ETA: -time.Second}, "eta"},
			{client.Report{Health: "two\nlines"}, "health"},
			{client.Report{Custom: map[string]any{"f": func() {}}}, `custom: "f"`},
			{client.Report{Custom: map[string]any{"text": strings.Repeat("x", leadership.MaxReportBytes)}}, "at most 2048 bytes"},
		} {
			if err := l.Report(c.report); !errors.Is(err, leadership.InvalidArgument) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+.80v: %v, want %q", c.report, err, c.want)
			}
		}
		time.Sleep(25 * time.Second)
		if got := reports(agent.take(), "reports"); len(got) != 2 || got[0] != `{"progress":1}` || got[1] != "" {
			t.Errorf("reports %q", got)
		}
		l.Resign(t.Context())
	})
}

func TestAReportGoesWithEveryThirdRenewalAtMostAndOnlyIfItHasChanged(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		l := lead(t, agent.Client)
		leases := append(leadMany(t, agent.Client, "shard", 5, time.Millisecond), l)
		for n := range int64(10 * 60) {
			require.NoError(t, l.Report(client.Report{Progress: n}))
			time.Sleep(time.Second)
		}
		all, last, with := reports(agent.take(), "reports"), -3, 0
		for i, r := range all {
			if r == "" {
				continue
			}
			if with++; i-last < 3 {
				t.Errorf("renewals %d and %d of %d carry a report", last, i, len(all))
			}
			last = i
		}
		if with < len(all)/3-1 {
			t.Errorf("%d of %d renewals carry a report", with, len(all))
		}
		time.Sleep(5 * time.Minute)
		all = slices.DeleteFunc(reports(agent.take(), "reports"), func(r string) bool { return r == "" })
		if len(all) > 1 {
			t.Errorf("%d reports of nothing new", len(all))
		}
		requireValid(t, leases)
		resignAll(t, leases)
	})
}

// refuseReports answers a renewal that carries a report as a server does that does not take it.
func refuseReports(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	carries := false
	for _, r := range c.renewals {
		carries = carries || r.Report != nil
	}
	response, err := send()
	if err != nil || !carries {
		return response, err
	}
	refusal := `{"type":"about:blank","title":"No","status":400,"detail":"unknown field \"report\"","code":"INVALID_ARGUMENT","errors":[{"pointer":"%s/report","detail":"unknown field"}]}`
	if !c.batch {
		response.StatusCode = http.StatusBadRequest
		response.Header.Set("Content-Type", "application/problem+json")
		replace(response, fmt.Appendf(nil, refusal, ""))
		return response, nil
	}
	parts := make([]string, len(c.renewals))
	for i, r := range c.renewals {
		parts[i] = fmt.Sprintf(`{"election":%q,"error":`+refusal+`}`, r.Election, fmt.Sprint("/renewals/", i))
	}
	replace(response, []byte(`{"results":[`+strings.Join(parts, ",")+`]}`))
	return response, nil
}

func TestAServerThatRefusesReportsEndsNoLeaseAndIsTriedAgainLater(t *testing.T) {
	for _, n := range []int{1, 6} {
		t.Run(fmt.Sprint(n, " leases"), func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				agent := recordRenewals(t, server, named("ann"))
				agent.answer(refuseReports)
				leases := leadMany(t, agent.Client, "shard", n, time.Millisecond)
				for progress := range int64(9 * 60) {
					for _, l := range leases {
						require.NoError(t, l.Report(client.Report{Progress: progress}))
						if l.Remaining() < 15*time.Second {
							t.Fatalf("a refused report leaves %v of the lease", l.Remaining())
						}
					}
					time.Sleep(time.Second)
				}
				calls := agent.take()
				var before *renewalCall
				refused := 0
				for _, c := range calls {
					if !c.has("shard-0") {
						continue
					}
					if before != nil {
						refused++
						if gap := c.at.Sub(before.at); gap > 0 {
							t.Errorf("after a report was refused the lease was renewed %v later", gap)
						}
					}
					if before = nil; reports([]*renewalCall{c}, "shard-0")[0] != "" {
						before = c
					}
				}
				assert.EqualValues(t, 1, refused, "reports in nine minutes to a server that takes none")
				agent.answer(nil)
				time.Sleep(2 * time.Minute)
				got, err := server.Client(client.Candidate{}).Get(t.Context(), "shard-0")
				if want := leadership.ReportText(`{"progress":539}`); err != nil || got.Report != want {
					t.Errorf("afterwards the server has the report %s, %v", got.Report, err)
				}
				requireValid(t, leases)
				resignAll(t, leases)
			})
		})
	}
}

func TestAfterAFailureTheLeaseIsRenewedWithoutItsReport(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := recordRenewals(t, server, named("ann"))
		agent.answer(func(c renewalCall, _ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if err == nil && c.renewals[0].Report != nil { // a store that cannot write it
				response.StatusCode = http.StatusServiceUnavailable
				replace(response, []byte("no"))
			}
			return response, err
		})
		l := lead(t, agent.Client)
		for progress := range int64(600) {
			require.NoError(t, l.Report(client.Report{Progress: progress}))
			time.Sleep(time.Second)
			if l.Remaining() < 10*time.Second {
				t.Fatalf("a report that cannot be stored leaves %v of the lease", l.Remaining())
			}
		}
		requireValid(t, []*client.Lease{l})
		l.Resign(t.Context())
	})
}

func TestReportOfJSONIsTheReportThatItSays(t *testing.T) {
	t.Parallel()
	got, err := client.ParseReport([]byte(`{"progress":412,"eta":"20m","tokensUsed":81000,"health":"ok","dependencies":{"bq":"ok"}}`))
	if err != nil || got.Progress != 412 || got.ETA != 20*time.Minute || got.TokensUsed != 81000 || got.Health != "ok" || fmt.Sprintf("%s", got.Dependencies["bq"]) != `"ok"` {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := client.ParseReport([]byte(`{"progres":1}`)); err == nil || !strings.Contains(err.Error(), "progres") {
		t.Errorf("an unknown field: %v", err)
	}
}
