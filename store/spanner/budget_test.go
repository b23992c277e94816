package spanner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/storetest"
)

// counted is a store whose RPCs are counted, with a session already.
func counted(t *testing.T) (*Store, *storetest.RPCs) {
	cfg := migrated(t)
	c := new(storetest.RPCs)
	cfg.DialOptions = []grpc.DialOption{grpc.WithStatsHandler(c)}
	s := opened(t, cfg)
	if _, err := s.Get(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// during returns the RPCs that do sends.
func during(calls *storetest.RPCs, do func()) []string {
	calls.Take()
	do()
	return calls.Take()
}

// The RPCs, by name. A query and a DML statement that returns rows are sent alike.
const (
	statement = "ExecuteStreamingSql"
	readKeys  = "StreamingRead"
	commit    = "Commit"
	rollback  = "Rollback"
)

func TestACommandThatIsExpectedToWriteIsOneQueryAndOneCommit(t *testing.T) {
	t.Parallel()
	s, calls := counted(t)
	for _, c := range []struct {
		what   string
		decide func(rule.Snapshot) (rule.Change, error)
		want   []string
	}{
		{"grant", acquire("ann"), []string{statement, commit}},
		{"the same again", acquire("ann"), []string{statement, commit}},
		{"renewal by a decision", renewing("ann"), []string{statement, commit}},
		{"configure", lockDelay(time.Second, 0), []string{statement, commit}},
		{"release", releasing("ann"), []string{statement, commit}},
		{"takeover", acquire("bob"), []string{statement, commit}},
		{"refusal", acquire("cid"), []string{statement, rollback}},
		{"nothing to write", rule.Expire, []string{statement, rollback}},
	} {
		got := during(calls, func() {
			_, err := s.Update(t.Context(), "jobs", rule.Expect{Change: true}, c.decide)
			if refused := c.what == "refusal"; (err != nil) != refused {
				t.Errorf("%s: %v", c.what, err)
			}
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, diff)
		}
	}
}

func TestARenewalWithAReportIsOneQueryAndOneCommit(t *testing.T) {
	t.Parallel()
	s, calls := counted(t)
	if _, err := s.Update(t.Context(), "jobs", rule.Expect{}, acquire("ann")); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string][]string{
		`{"progress":1}`: {statement, commit},
		"":               {statement, statement, commit}, // after a Renew that found no such lease, most likely a refusal
	} {
		c := renewalOf("jobs", "ann", 1)
		c.Report = leadership.ReportText(what)
		got := during(calls, func() {
			_, err := s.Update(t.Context(), "jobs", rule.Expect{Held: &c}, func(s rule.Snapshot) (rule.Change, error) { return rule.Renew(s, c) })
			if err != nil {
				t.Errorf("with %q: %v", what, err)
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %q (-want +got)\n%s", what, diff)
		}
	}
}

func renewing(id string) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Renew(s, renewalOf("jobs", id, 1))
	}
}

func releasing(id string) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.Release{LeaseRequest: renewalOf("jobs", id, 1).Request()})
	}
}

func TestARefusalIsOneQueryWithoutALock(t *testing.T) {
	t.Parallel()
	s, calls := counted(t)
	for _, c := range []struct {
		what   string
		decide func(rule.Snapshot) (rule.Change, error)
		want   []string
		err    error
	}{
		{"the end of a lease that never was", rule.Expire, []string{statement}, nil},
		{"grant", acquire("ann"), []string{statement, statement, commit}, nil},
		{"attempt while ann leads", acquire("bob"), []string{statement}, leadership.LeaseHeld},
		{"the end of a lease that lasts", rule.Expire, []string{statement}, nil},
		{"renewal by another candidate", renewing("bob"), []string{statement}, leadership.LeaseLost},
		{"configure for another revision", lockDelay(time.Second, 9), []string{statement}, leadership.RevisionMismatch},
		{"release", releasing("ann"), []string{statement, statement, commit}, nil},
		{"release once more", releasing("ann"), []string{statement}, nil},
		{"renewal of what was released", renewing("ann"), []string{statement}, leadership.LeaseLost},
	} {
		got := during(calls, func() {
			if _, err := s.Update(t.Context(), "jobs", rule.Expect{}, c.decide); !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.what, err, c.err)
			}
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, diff)
		}
	}
}

// The emulator runs one read-write transaction at a time in a database, so one that is under way
// shows what needs no lock.
func TestARefusalDoesNotWaitForATransactionThatIsUnderWay(t *testing.T) {
	t.Parallel()
	cfg := migrated(t)
	cfg.CallTimeout = 10 * time.Second // for one that does wait
	s, foreign := opened(t, cfg), client(t, cfg)
	granted(t, s, 1)
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := foreign.ReadWriteTransaction(patience, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, spanner.NewStatement("UPDATE Leadership SET needs = needs WHERE cluster_id = 'e000'")); err != nil {
			return err
		}
		for what, decide := range map[string]func(rule.Snapshot) (rule.Change, error){"bob": acquire("bob"), "nothing": rule.Expire} {
			if _, err := s.Update(t.Context(), "e000", rule.Expect{}, decide); err != nil && !errors.Is(err, leadership.LeaseHeld) {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestARenewalOfAnyNumberOfLeasesIsOneStatementAndOneCommit(t *testing.T) {
	t.Parallel()
	s, calls := counted(t)
	all := leadership.MaxBatch
	if testing.Short() {
		all = 200 // each is granted by a transaction of its own
	}
	leases := granted(t, s, all)
	for _, n := range []int{1, 100, all} {
		got := during(calls, func() {
			for i, a := range s.Renew(t.Context(), leases[:n]) {
				if a.Err != nil {
					t.Fatalf("%d leases: renew %s: %v", n, leases[i].Election, a.Err)
				}
			}
		})
		if diff := cmp.Diff([]string{statement, commit}, got); diff != "" {
			t.Errorf("%d leases (-want +got)\n%s", n, diff)
		}
	}
}

func TestAReadIsOneQueryAndMarkingEventsIsOneReadOfTheirKeysAndOneCommit(t *testing.T) {
	t.Parallel()
	s, calls := counted(t)
	granted(t, s, 3)
	var waiting []leadership.Event
	for _, c := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"get", func() error { _, err := s.Get(t.Context(), "e000"); return err }, []string{statement}},
		{"list", func() error { _, err := s.List(t.Context(), "e", "", 2); return err }, []string{statement}},
		{"events", func() error { _, err := s.Events(t.Context(), "e000", 0, 2); return err }, []string{statement}},
		{"since", func() error { _, err := s.Since(t.Context(), time.Now(), 2); return err }, []string{statement}},
		{"unannounced, the first", func() error { _, err := s.Unannounced(t.Context(), "", 9); return err }, []string{statement, statement}},
		{"unannounced", func() (err error) { waiting, err = s.Unannounced(t.Context(), "", 9); return err }, []string{statement}},
		{"unannounced of one", func() error { _, err := s.Unannounced(t.Context(), "e000", 9); return err }, []string{statement}},
		{"mark", func() error { return s.MarkAnnounced(t.Context(), ids(waiting)) }, []string{readKeys, commit}},
		{"mark once more", func() error { return s.MarkAnnounced(t.Context(), ids(waiting)) }, []string{readKeys, rollback}},
		{"mark none", func() error { return s.MarkAnnounced(t.Context(), nil) }, nil},
		{"renew none", func() error { s.Renew(t.Context(), nil); return nil }, nil},
	} {
		got := during(calls, func() {
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, diff)
		}
	}
	if len(waiting) != 3 {
		t.Errorf("%d events were waiting, want 3", len(waiting))
	}
	if rest, err := s.Unannounced(t.Context(), "", 9); err != nil || len(rest) != 0 {
		t.Errorf("waiting after all were marked: %v, %v", rest, err)
	}
}

func ids(events []leadership.Event) []leadership.EventID {
	all := make([]leadership.EventID, len(events))
	for i, e := range events {
		all[i] = e.ID()
	}
	return all
}
