package examples_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/test/examples"
)

// leads runs the function as a leader of the election.
func leads(t *testing.T, server *clienttest.Server, id leadership.CandidateID, lead func(context.Context, *client.Client, *client.Lease, *client.Journal) error) {
	t.Helper()
	agent := server.Client(client.Candidate{ID: id})
	err := agent.Run(t.Context(), "reports", func(ctx context.Context, l *client.Lease) error {
		j, err := l.Journal(ctx)
		if err != nil {
			return err
		}
		return lead(ctx, agent, l, j)
	})
	require.NoError(t, err)
}

func TestEachCopyOfAReplicatedMapHasWhatItsLeadersHaveSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := clienttest.New(t)
		ctx, stop := context.WithCancel(t.Context())
		var following sync.WaitGroup
		defer following.Wait()
		defer stop()
		copies := make([]examples.Map, 3)
		follow := func(m *examples.Map) {
			following.Go(func() {
				if err := m.Follow(ctx, server.Client(client.Candidate{}), "reports"); ctx.Err() == nil {
					t.Errorf("a copy ends with %v", err)
				}
			})
		}
		follow(&copies[0])
		follow(&copies[1])
		want := map[string]string{}
		for n := range 3 {
			leads(t, server, leadership.CandidateID(fmt.Sprintf("leader-%d", n)), func(ctx context.Context, _ *client.Client, _ *client.Lease, j *client.Journal) error {
				for i := range 20 {
					key, value := fmt.Sprintf("key-%d", i%7), fmt.Sprintf("%d/%d", n, i)
					want[key] = value
					if _, err := examples.Set(ctx, j, map[string]string{key: value}); err != nil {
						return err
					}
				}
				time.Sleep(5 * time.Second) // the copies follow
				return copies[0].Compact(ctx, j)
			})
			server.Cut()
			server.Heal()
		}
		follow(&copies[2]) // from the snapshot
		time.Sleep(15 * time.Second)
		for n := range copies {
			if got, upTo := copies[n].Copy(); !maps.Equal(got, want) || upTo != 60 {
				t.Errorf("copy %d has %v up to %d, want %v", n, got, upTo, want)
			}
		}
	})
}

func TestTheTasksOfAWorkerThatVanishesGoToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := clienttest.New(t)
		var mu sync.Mutex
		begun := map[string][]leadership.CandidateID{}            // of each task; guarded by mu
		var done func(task string, worker leadership.CandidateID) // guarded by mu
		var working sync.WaitGroup
		defer working.Wait()
		worker := func(id leadership.CandidateID, finishes bool) (vanish context.CancelFunc) {
			ctx, stop := context.WithCancel(t.Context())
			agent := server.Client(client.Candidate{ID: id})
			working.Go(func() { _ = agent.Member(ctx, "reports", client.MemberConfig{Role: leadership.RoleWorker}) })
			working.Go(func() {
				_ = examples.Work(ctx, agent, "reports", id, func(task string) {
					mu.Lock()
					begun[task] = append(begun[task], id)
					report := done
					mu.Unlock()
					if finishes {
						report(task, id)
					}
				})
			})
			return stop
		}
		stuck := worker("w1", false)
		defer worker("w2", true)()
		time.Sleep(5 * time.Second)
		for n, leader := range []leadership.CandidateID{"ann", "bob"} {
			leads(t, server, leader, func(ctx context.Context, agent *client.Client, l *client.Lease, _ *client.Journal) error {
				q, err := examples.LeadTasks(ctx, agent, l)
				if err != nil {
					return err
				}
				mu.Lock()
				done = func(task string, worker leadership.CandidateID) {
					if err := q.Done(context.WithoutCancel(ctx), task, worker); err != nil {
						t.Errorf("the end of %s: %v", task, err)
					}
				}
				mu.Unlock()
				watching, end := context.WithCancel(ctx)
				defer end()
				go func() { _ = q.Watch(watching) }()
				for i := range 10 {
					if err := q.Add(ctx, fmt.Sprintf("task-%d-%d", n, i)); err != nil {
						return err
					}
				}
				time.Sleep(10 * time.Second)
				if n == 1 { // its tasks, of both leaders, are not done
					stuck()
					time.Sleep(2 * time.Minute)
				}
				return nil
			})
		}
		mu.Lock()
		defer mu.Unlock()
		again := 0
		for n := range 2 {
			for i := range 10 {
				task := fmt.Sprintf("task-%d-%d", n, i)
				switch who := begun[task]; {
				case slices.Equal(who, []leadership.CandidateID{"w1", "w2"}):
					again++
				case !slices.Equal(who, []leadership.CandidateID{"w2"}):
					t.Errorf("%s was begun by %v", task, who)
				}
			}
		}
		if again == 0 || again == 20 {
			t.Errorf("%d of 20 tasks were handed out again", again)
		}
	})
}
