package instance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
)

// reports renews the lease with a report of that progress.
func (c *cluster) reports(on *instance.Instance, lease leadership.LeaseRequest, progress int) {
	c.Helper()
	lease.Report = fmt.Appendf(nil, `{"progress":%d}`, progress)
	_, err := on.Renew(c.Context(), lease)
	require.NoError(c, err)
}

// told returns the report that the watch is told of within the time; nil for none.
func told(t *testing.T, w *instance.Watch, within time.Duration) *instance.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	news, err := w.Listen(ctx)
	events, report := news.Events, news.Report
	if len(events) > 0 || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("told of %v, %v", events, err)
	}
	return report
}

func TestAReportReachesTheWatchersOfTheInstanceThatTheLeaderRenewsAt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		lease := c.lead(c.a, "ann")
		c.reports(c.a, lease, 1)
		reading, w, err := c.a.Watch(t.Context(), leadership.WatchRequest{Election: "jobs"})
		if err != nil || reading.Report != `{"progress":1}` {
			t.Fatalf("got %+v, %v; want the report", reading, err)
		}
		defer w.Close()
		if again := told(t, w, time.Second); again != nil {
			t.Errorf("told of %+v, which the reader began with", again)
		}
		_, err = c.a.Renew(t.Context(), lease)
		require.NoError(t, err)
		if again := told(t, w, 2*time.Second); again != nil {
			t.Errorf("told of %+v after a renewal without a report", again)
		}
		c.take()
		c.reports(c.a, lease, 2)
		first := told(t, w, time.Minute)
		if first == nil || first.Text != `{"progress":2}` || first.Token != lease.Token || !first.At.Equal(time.Now()) {
			t.Fatalf("told of %+v", first)
		}
		for n := 3; n < 100; n++ {
			time.Sleep(5 * time.Millisecond)
			c.reports(c.a, lease, n)
		}
		began := time.Now()
		last := told(t, w, time.Minute)
		if last == nil || last.Text != `{"progress":99}` || time.Since(began)+97*5*time.Millisecond != time.Second {
			t.Errorf("told of %+v after %v, want the last of many a second after the first", last, time.Since(began))
		}
		if again := told(t, w, 2*time.Second); again != nil {
			t.Errorf("told of %+v, and there is nothing new", again)
		}
		assert.Equal(t, "0 reads, 98 updates, 0 renewals, 0 histories", took(&c.ca), "98 reports and a watcher cost")
	})
}

func TestAfterANewEpochNoCacheShowsTheOldToken(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		lease := c.lead(c.a, "ann")
		c.read(c.a)
		c.read(c.b)
		_, err := c.b.Do(t.Context(), leadership.Order{Election: "jobs", Kind: leadership.OrderApprove, Token: lease.Token, NewEpoch: true, Reason: "a checkpoint", Actor: "operator"})
		require.NoError(t, err)
		synctest.Wait()
		for name, i := range map[string]*instance.Instance{"a": c.a, "b": c.b} {
			if l := c.read(i); l.Token != lease.Token+1 || l.LeaderID != "ann" {
				t.Errorf("%s shows %q with token %d, want ann with the next one", name, l.LeaderID, l.Token)
			}
		}
	})
}

// explained returns why the candidate does not lead, by an instance.
func (c *cluster) explained(on *instance.Instance, candidate leadership.CandidateID) (x leadership.Explanation, codes string) {
	c.Helper()
	x, err := on.Explain(c.Context(), leadership.ExplainRequest{Election: "jobs", CandidateID: candidate})
	require.NoError(c, err)
	for _, cause := range x.Causes {
		codes += string(cause.Code) + " "
	}
	return x, codes
}

func TestAnExplanationSaysWhereACandidateStandsInLineAndCostsOneRead(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.lead(c.a, "ann")
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		for _, candidate := range []leadership.CandidateID{"bob", "cy", "dee"} {
			go c.a.Acquire(ctx, c.ask(candidate, time.Minute))
			synctest.Wait()
		}
		witness := c.ask("wit", time.Minute)
		witness.Role = leadership.RoleWitness
		go c.a.Acquire(ctx, witness)
		synctest.Wait()
		_, err := c.b.Do(t.Context(), leadership.Order{Election: "jobs", Kind: leadership.OrderBan, CandidateID: "cy", For: time.Hour, Reason: "wrong numbers", Actor: "operator"})
		require.NoError(t, err)
		c.take()
		x, codes := c.explained(c.a, "cy")
		if codes != "BANNED HELD IN_LINE " || x.Causes[2].Position != 2 || x.Causes[2].Of != 3 {
			t.Errorf("got %s, %+v", codes, x)
		}
		assert.Equal(t, "1 reads, 0 updates, 0 renewals, 0 histories", took(&c.ca), "an explanation costs")
		if _, codes := c.explained(c.b, "cy"); codes != "BANNED HELD NOT_ASKING " {
			t.Errorf("got %s of an instance at which it does not wait", codes)
		}
		if _, codes := c.explained(c.a, "wit"); !strings.Contains(codes, string(leadership.ReasonWitness)) {
			t.Errorf("got %s of a witness", codes)
		}
		if x, codes := c.explained(c.a, "ann"); !x.Leads || codes != "" {
			t.Errorf("got %s, %+v of the leader", codes, x)
		}
	})
}
