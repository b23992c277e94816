package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

// counting is a server that counts its calls.
type counting struct {
	Server
	gets, lists, writes int
}

func (c *counting) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	c.gets++
	return c.Server.Get(ctx, e)
}

func (c *counting) List(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	c.lists++
	return c.Server.List(ctx, r)
}

func (c *counting) Do(ctx context.Context, command leadership.Command) (leadership.Lease, error) {
	c.writes++
	return c.Server.Do(ctx, command)
}

// bench is a server, and another caller that changes elections between the steps.
type bench struct {
	*testing.T
	*client.Client
}

func newBench(t *testing.T) bench {
	return bench{t, clienttest.New(t).Client(client.Candidate{ID: "ann"})}
}

func (b bench) configure(e leadership.Election, c leadership.Config) {
	b.Helper()
	r := leadership.Configure{Election: e, Config: c}
	if _, err := b.Client.Do(b.Context(), r); err != nil {
		b.Fatal(err)
	}
}

func (b bench) delete(e leadership.Election) {
	b.Helper()
	if _, err := b.Client.Do(b.Context(), leadership.Delete{Election: e, Force: true}); err != nil {
		b.Fatal(err)
	}
}

// lead lets a term begin and end.
func (b bench) lead(e leadership.Election) {
	b.Helper()
	grant, err := b.Acquire(b.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann"})
	if err == nil {
		_, err = b.Do(b.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: grant.Key, Token: grant.Token}})
	}
	require.NoError(b, err)
}

func (b bench) look(o Options, declared ...Declared) []Step {
	b.Helper()
	steps, err := Look(b.Context(), b, declared, o)
	require.NoError(b, err)
	return steps
}

func declare(e leadership.Election, lock time.Duration) Declared {
	return Declared{Election: e, Config: leadership.Config{LockDelay: lock}, Place: "f:1"}
}

func TestAStepIsAConflictIfSomeoneElseChangedItsElection(t *testing.T) {
	t.Parallel()
	seconds := func(n int) leadership.Config { return leadership.Config{LockDelay: time.Duration(n) * time.Second} }
	pruned := Options{Prune: []string{"e"}, PruneHeld: true}
	configured := func(b bench) { b.configure("e", seconds(1)) }
	deleted := func(b bench) { b.lead("e"); b.delete("e") }
	for _, c := range []struct {
		name     string
		before   func(bench)
		options  Options
		declared []Declared
		action   Action
		between  func(bench)
		says     string // "" if the step is done
	}{
		{"changed, terms between", configured, Options{}, []Declared{declare("e", 0)}, Change, func(b bench) { b.lead("e"); b.lead("e") }, ""},
		{"changed, configured between", configured, Options{}, []Declared{declare("e", 0)}, Change, func(b bench) { b.configure("e", seconds(2)) }, "was configured since it was read"},
		{"changed, configured alike between", configured, Options{}, []Declared{declare("e", 0)}, Change, func(b bench) { b.configure("e", seconds(0)) }, ""},
		{"changed, deleted between", configured, Options{}, []Declared{declare("e", 0)}, Change, func(b bench) { b.delete("e") }, "was deleted"},
		{"created, nothing between", func(bench) {}, Options{}, []Declared{declare("e", 0)}, Create, func(bench) {}, ""},
		{"created, led between", func(bench) {}, Options{}, []Declared{declare("e", time.Minute)}, Create, func(b bench) { b.lead("e") }, "was created"},
		{"created, created and deleted between", func(bench) {}, Options{}, []Declared{declare("e", time.Minute)}, Create, func(b bench) { b.lead("e"); b.delete("e") }, "was deleted"},
		{"restored, restored between", deleted, Options{Restore: true}, []Declared{declare("e", 0)}, Restore, func(b bench) { b.configure("e", seconds(2)) }, "was restored"},
		{"restored, restored and deleted between", deleted, Options{Restore: true}, []Declared{declare("e", 0)}, Restore, func(b bench) { b.configure("e", seconds(2)); b.delete("e") }, "was restored and deleted again"},
		{"deleted, terms between", configured, pruned, nil, Delete, func(b bench) { b.lead("e") }, ""},
		{"deleted, configured between", configured, pruned, nil, Delete, func(b bench) { b.configure("e", seconds(2)) }, "was configured"},
		{"deleted, deleted between", configured, pruned, nil, Delete, func(b bench) { b.delete("e") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			c.before(b)
			steps := b.look(c.options, c.declared...)
			if len(steps) != 1 || steps[0].Action != c.action {
				t.Fatalf("the steps are %+v; want one to %s", steps, c.action)
			}
			c.between(b)
			was, _, err := Find(t.Context(), b, "e")
			require.NoError(t, err)
			_, err = steps[0].Do(t.Context(), b)
			if c.says == "" {
				if left := b.look(c.options, c.declared...); err != nil || len(left) != len(c.declared) || len(left) == 1 && left[0].Action != None {
					t.Errorf("done: %v, and then %+v is to do", err, left)
				}
				return
			}
			var conflict Conflict
			if !errors.As(err, &conflict) || !errors.Is(err, leadership.RevisionMismatch) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v; want a conflict that says %q", err, c.says)
			}
			if now, _, err := Find(t.Context(), b, "e"); err != nil || now.Revision != was.Revision {
				t.Errorf("the election went from revision %d to %d (%v); want nothing written", was.Revision, now.Revision, err)
			}
		})
	}
}

func TestADelegatedElectionIsNotCutLoose(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	part := leadership.Config{Delegation: leadership.Delegation{Parent: "p", Budget: 5}}
	b.configure("p.gone", part)
	b.delete("p.gone")
	b.configure("p.part", part)
	for _, e := range []leadership.Election{"p.gone", "p.part"} {
		for _, s := range b.look(Options{Restore: true}, declare(e, time.Second)) {
			if !errors.Is(s.Refused, leadership.InvalidArgument) || !strings.Contains(s.Refused.Error(), `was delegated by the leader of "p"`) {
				t.Errorf("to %s %s is refused with %v", s.Action, e, s.Refused)
			}
		}
		if steps := b.look(Options{Restore: true}, Declared{Election: e, Config: part, Place: "f:1"}); steps[0].Refused != nil {
			t.Errorf("%s with its parent is refused: %v", e, steps[0].Refused)
		}
	}
	if steps := b.look(Options{Prune: []string{"p."}}); len(steps) != 1 || steps[0].Refused != nil {
		t.Errorf("to prune: %+v", steps)
	}
}

func TestAnElectionThatIsLedInTheMeantimeIsNotPruned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.configure("e", leadership.Config{})
	steps := b.look(Options{Prune: []string{"e"}})
	if _, err := b.Acquire(t.Context(), leadership.AcquireRequest{Election: "e", CandidateID: "bob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := steps[0].Do(t.Context(), b); !errors.Is(err, leadership.LeaseHeld) || !strings.Contains(err.Error(), "give --prune-held") {
		t.Errorf("%v", err)
	}
}

// cmd/regent/README.md has these numbers.
func TestHowManyCallsItTakes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ten, all := []Declared{}, []Declared{}
	for i := range 1500 {
		d := declare(leadership.Election(fmt.Sprintf("team-%04d", i)), time.Second)
		b.configure(d.Election, d.Config)
		if all = append(all, d); i < 10 {
			ten = append(ten, d)
		}
	}
	b.configure("other", leadership.Config{})
	changed := append([]Declared{declare("team-0000", time.Minute), declare("team-00000", 0)}, all[1:]...)
	for _, c := range []struct {
		name     string
		options  Options
		declared []Declared
		want     [3]int // gets, lists, writes
	}{
		{"ten", Options{}, ten, [3]int{10, 0, 0}},
		{"1500", Options{}, all, [3]int{0, 2, 0}},
		{"1500, all under a prefix to prune", Options{Prune: []string{"team-"}}, all, [3]int{0, 2, 0}},
		{"ten, and two pages to prune", Options{Prune: []string{"team-1"}}, append(ten[:10:10], all[1000:]...), [3]int{10, 1, 0}},
		{"1501, of which one is new and one differs", Options{}, changed, [3]int{1, 2, 2}},
		{"1499, and two to prune", Options{Prune: []string{"team-"}}, all[1:], [3]int{0, 2, 2}},
	} {
		server := &counting{Server: b}
		steps, err := Look(t.Context(), server, c.declared, c.options)
		require.NoError(t, err)
		for _, s := range steps {
			if s.Action == None {
				continue
			}
			if _, err := s.Do(t.Context(), server); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(c.want, [3]int{server.gets, server.lists, server.writes}); diff != "" {
			t.Errorf("%s: gets, lists, writes (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestADiffIsInTheWordsOfAFile(t *testing.T) {
	t.Parallel()
	from := leadership.Config{RetireAfter: 720 * time.Hour, Term: leadership.TermPolicy{Verdicts: 3}}
	to := leadership.Config{LeaseDuration: 90 * time.Second, Description: "a \u202e b", Ballot: leadership.BallotPolicy{
		Strategy: leadership.StrategyCapability, Prefer: leadership.NewNames("gpu", "eu"),
	}}
	want := [][3]string{
		{"description", "", `"a \u202e b"`},
		{"leaseDuration", "30s", "1m30s"},
		{"policy.prefer", "", `["eu","gpu"]`},
		{"policy.strategy", "", `"capability"`},
		{"policy.verdicts", "3", ""},
		{"policy.window", "", "300ms"},
		{"retireAfter", "720h", ""},
	}
	var got [][3]string
	differ := diff(&from, &to)
	for _, m := range differ {
		got = append(got, [3]string{m.Name, Words(m.From), Words(m.To)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	document, err := json.Marshal(differ[3:5])
	if want := `[{"member":"policy.strategy","to":"capability"},{"member":"policy.verdicts","from":3}]`; string(document) != want || err != nil {
		t.Errorf("%s, %v, want %s", document, err, want)
	}
}

func TestSeatsAreNotPrunedWithoutTheirElection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seats := leadership.Config{Seats: 2}
	b.configure("e", seats)
	for _, s := range b.look(Options{Prune: []string{"e"}}, Declared{Election: "e", Config: seats, Place: "f:1"}) {
		if s.Action != None {
			_, err := s.Do(t.Context(), b)
			t.Errorf("%s %s: %v", s.Action, s.Election, err)
		}
	}
}
