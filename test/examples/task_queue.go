package examples

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"regent/leadership"
	"regent/leadership/client"
)

// Tasks is a queue that its leader hands out to the workers of an election. The journal records
// which worker has which task, so that the next leader knows; workers follow it to learn of their
// tasks. The tasks of a worker that leaves or vanishes go to others.
type Tasks struct {
	agent *client.Client
	lease *client.Lease
	log   *client.Journal

	mu    sync.Mutex
	given map[string]leadership.CandidateID // the worker of each task; "" for none; guarded by mu
}

// Assignment is an entry of the journal.
type Assignment struct {
	Task   string                 `json:"task"`
	Worker leadership.CandidateID `json:"worker,omitempty"` // "" while no worker has it
	Done   bool                   `json:"done,omitempty"`
}

// LeadTasks opens the queue for its leader, with what earlier leaders have left.
func LeadTasks(ctx context.Context, agent *client.Client, lease *client.Lease) (*Tasks, error) {
	log, err := lease.Journal(ctx)
	if err != nil {
		return nil, err
	}
	q := &Tasks{agent: agent, lease: lease, log: log, given: map[string]leadership.CandidateID{}}
	for item, err := range log.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		var a Assignment
		if err := json.Unmarshal(item.Entry.Data, &a); err != nil {
			return nil, err
		}
		q.take(a)
	}
	return q, nil
}

func (q *Tasks) take(a Assignment) {
	if q.given[a.Task] = a.Worker; a.Done {
		delete(q.given, a.Task)
	}
}

// write appends assignments to the journal, and then takes them into memory. Call with mu held.
func (q *Tasks) write(ctx context.Context, all ...Assignment) error {
	for a := range slices.Chunk(all, leadership.MaxEntries) {
		var entries []client.Entry
		for _, one := range a {
			entries = append(entries, client.Entry{Type: "assignment", Data: one})
		}
		if _, err := q.log.Append(ctx, entries...); err != nil {
			return err
		}
		for _, one := range a {
			q.take(one)
		}
	}
	return nil
}

// Add adds a task, and hands it out.
func (q *Tasks) Add(ctx context.Context, task string) error {
	q.mu.Lock()
	err := q.write(ctx, Assignment{Task: task})
	q.mu.Unlock()
	if err != nil {
		return err
	}
	return q.HandOut(ctx)
}

// Done ends a task, unless another worker has it by now.
func (q *Tasks) Done(ctx context.Context, task string, worker leadership.CandidateID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.given[task] != worker {
		return nil
	}
	return q.write(ctx, Assignment{Task: task, Worker: worker, Done: true})
}

// HandOut gives each task without a present worker to the worker with the fewest tasks.
func (q *Tasks) HandOut(ctx context.Context) error {
	members, err := q.agent.Members(ctx, q.lease.Election())
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	load := map[leadership.CandidateID]int{}
	for _, m := range members.Members {
		if m.Role == leadership.RoleWorker {
			load[m.ID] = 0
		}
	}
	var free []Assignment
	for task, worker := range q.given {
		if _, present := load[worker]; present {
			load[worker]++
		} else {
			free = append(free, Assignment{Task: task})
		}
	}
	if len(load) == 0 {
		return nil
	}
	for i := range free {
		for worker, n := range load {
			if least := free[i].Worker; least == "" || n < load[least] {
				free[i].Worker = worker
			}
		}
		load[free[i].Worker]++
	}
	return q.write(ctx, free...)
}

// Watch hands tasks out as workers come and go, until ctx ends: that of the leader's function.
func (q *Tasks) Watch(ctx context.Context) error {
	for news, err := range q.agent.Watch(ctx, client.WatchRequest{Election: q.lease.Election(), Members: true}) {
		if err != nil {
			return err
		}
		if news.Member == nil && news.Lease == nil { // the first item is the lease
			continue
		}
		if err := q.HandOut(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Work calls do for each task that the worker is given, until ctx ends. A task whose worker was cut
// off may also be given to another worker, so do must tolerate running twice.
func Work(ctx context.Context, agent *client.Client, election leadership.Election, worker leadership.CandidateID, do func(task string)) error {
	for item, err := range agent.Follow(ctx, election, 0) {
		if err != nil {
			return err
		}
		var a Assignment
		if err := json.Unmarshal(item.Entry.Data, &a); err != nil {
			return err
		}
		if a.Worker == worker && !a.Done {
			do(a.Task)
		}
	}
	return nil
}
