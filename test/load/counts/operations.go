package counts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/test/proxy"
)

// Operation is an operation of Regent, and its cost.
type Operation struct {
	Name string
	Cost Cost
}

// OperationsTable returns the cost of each operation on a store, in Markdown.
func OperationsTable(kind emulators.Kind, done []Operation) string {
	store, unit := "Firestore", "documents"
	if kind == emulators.KindSpanner {
		store, unit = "Spanner", "rows"
	}
	var t strings.Builder
	fmt.Fprintf(&t, "| %s | RPCs | %s read | %[2]s written | which RPCs |\n| --- | ---: | ---: | ---: | --- |\n", store, unit)
	for _, o := range done {
		fmt.Fprintf(&t, "| %s | %d | %d | %d | %s |\n", o.Name, o.Cost.RPCs(), o.Cost.Read, o.Cost.Written, proxy.Calls{}.Plus(o.Cost.Calls))
	}
	return t.String()
}

// Operations does each operation of Regent, one after the other, and returns the cost of each. It
// takes some seconds, because two leases must run out.
func Operations(ctx context.Context, p Place) ([]Operation, error) {
	h, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	inst, err := instance.New(instance.Config{Store: h, Journal: h, Name: "regent-test", Alone: true})
	if err != nil {
		return nil, err
	}
	s := &script{ctx: ctx, place: p, handle: h, inst: inst, service: service.New(h), ann: newAgent("ann"), bob: newAgent("bob")}
	for _, act := range []step{
		s.lead, s.batch, s.read, s.handOver, s.runOut, s.reports, s.people, s.candidacies,
		s.successions, s.checkpoints, s.effects, s.proposals, s.journals, s.hierarchy, s.seats, s.announce, s.kubernetes,
	} {
		if err := act(); err != nil {
			return nil, err
		}
	}
	return s.done, nil
}

// script does operations and records their costs.
type script struct {
	ctx      context.Context
	place    Place
	handle   Handle
	inst     *instance.Instance
	service  *service.Service
	ann, bob agent
	done     []Operation
}

// step is a part of the script.
type step = func() error

// count does one operation and records its cost.
func (s *script) count(name string, do func() error) error {
	s.handle.Take()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	asked, relay := s.handle.Take()
	s.done = append(s.done, Operation{name, asked.plus(relay)})
	return nil
}

// all runs the steps up to the first that fails.
func all(steps ...step) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// counted is count as a step.
func (s *script) counted(name string, do step) step {
	return func() error { return s.count(name, do) }
}

// sends gives a command to the service.
func (s *script) sends(c leadership.Command) step {
	return func() error { _, err := s.service.Do(s.ctx, c); return err }
}

// releases ends a lease of the agent.
func (s *script) releases(a agent, e leadership.Election, token leadership.Token) step {
	return s.sends(leadership.Release{LeaseRequest: a.lease(e, token)})
}

// configures configures an election, whose lease is an hour unless it says another one.
func (s *script) configures(e leadership.Election, c leadership.Config) step {
	c.LeaseDuration = cmp.Or(c.LeaseDuration, time.Hour)
	return s.sends(leadership.Configure{Election: e, Config: c})
}

// refuses expects that the store holds the lease against the one who asks for it.
func refuses(ask func() error) step {
	return func() error {
		if err := ask(); !errors.Is(err, leadership.LeaseHeld) {
			return fmt.Errorf("it was not refused: %w", err)
		}
		return nil
	}
}

func (s *script) acquire(a agent, e leadership.Election) step {
	return func() error { _, err := s.service.Acquire(s.ctx, a.ask(e)); return err }
}

func (s *script) renew(a agent, e leadership.Election, token leadership.Token) step {
	return func() error { _, err := s.service.Renew(s.ctx, a.lease(e, token)); return err }
}

// lead lets ann lead and bob be refused.
func (s *script) lead() error {
	return all(
		s.counted("grant, the first of an election", s.acquire(s.ann, "jobs")),
		s.counted("renewal", s.renew(s.ann, "jobs", 1)),
		s.counted("renewal after it", s.renew(s.ann, "jobs", 1)),
		s.counted("grant repeated to the leader, whose reply was lost", s.acquire(s.ann, "jobs")),
		s.counted("refused attempt", refuses(s.acquire(s.bob, "jobs"))),
	)
}

// many is the size of a batch.
const many = 100

func (s *script) batch() error {
	batch, err := granted(s.ctx, s.service, s.ann, many)
	if err != nil {
		return err
	}
	return s.count("batch renewal of 100 leases", func() error { return renewed(s.service.BatchRenew(s.ctx, batch)) })
}

// granted lets one candidate lead n elections.
func granted(ctx context.Context, service *service.Service, a agent, n int) ([]leadership.LeaseRequest, error) {
	var leases []leadership.LeaseRequest
	for i := range n {
		e := leadership.Election(fmt.Sprintf("e%05d", i))
		ask := a.ask(e)
		ask.LeaseDuration = time.Hour
		g, err := service.Acquire(ctx, ask)
		if err != nil {
			return nil, err
		}
		leases = append(leases, a.lease(e, g.Token))
	}
	return leases, nil
}

// renewed returns the first error of a batch.
func renewed(results []leadership.Result, err error) error {
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

func (s *script) read() error {
	first := func() error {
		_, err := s.inst.Read(s.ctx, leadership.ReadRequest{Election: "jobs"})
		return err
	}
	return all(
		s.counted("strong read", func() error { _, err := s.service.Get(s.ctx, "jobs"); return err }),
		s.counted("token check", func() error {
			_, err := s.service.CheckToken(s.ctx, leadership.TokenCheck{Election: "jobs", Token: 1})
			return err
		}),
		s.counted("read, not in the cache", first),
		s.counted("read, in the cache", first),
		s.counted("read of the halts before a grant, once in five seconds", func() error { return s.halts(s.inst) }),
		s.counted("joining, asking who is a member, and leaving", s.member),
		s.counted("first watch on an election", s.watch),
		s.counted("each further watch on it", s.watch),
		s.counted(fmt.Sprintf("list of %d elections", many), func() error { _, err := s.service.List(s.ctx, leadership.ListRequest{Prefix: "e"}); return err }),
		s.counted(fmt.Sprintf("census, with %d elections held", many+1), s.census),
	)
}

// halts reads the halts, so that the next grant through the instance need not: it finds them in the
// cache.
func (s *script) halts(inst *instance.Instance) error {
	for {
		reading, err := inst.Read(s.ctx, leadership.ReadRequest{Election: leadership.HaltsElection})
		if err != nil && !errors.Is(err, leadership.NotFound) { // no halt was ever ordered
			return err
		}
		if reading.Age < time.Second {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *script) census() error {
	c, err := s.inst.Census(s.ctx, leadership.Selection{})
	if err != nil {
		return err
	}
	defer c.Close()
	for more := true; more; {
		if _, more, err = c.Next(s.ctx); err != nil {
			return err
		}
	}
	return nil
}

// member joins, asks for the members, and leaves. The election is in the cache.
func (s *script) member() error {
	join := leadership.JoinRequest{Election: "jobs", CandidateID: "fay", Role: leadership.RoleFollower, TTL: time.Minute, SeenToken: 1}
	if _, err := s.inst.Join(s.ctx, join); err != nil {
		return err
	}
	if _, err := s.inst.Members(s.ctx, "jobs"); err != nil {
		return err
	}
	return s.inst.Leave(s.ctx, leadership.LeaveRequest{Election: "jobs", CandidateID: "fay"})
}

// watch begins to watch. The watch stays open.
func (s *script) watch() error {
	_, w, err := s.inst.Watch(s.ctx, leadership.WatchRequest{Election: "jobs"})
	if err != nil {
		return err
	}
	_, err = w.Ready(s.ctx)
	return err
}

func (s *script) handOver() error {
	return all(
		s.counted("release", s.releases(s.ann, "jobs", 1)),
		s.counted("grant of a vacant election", s.acquire(s.bob, "jobs")),
		s.counted("configuration", s.configures("jobs", leadership.Config{LeaseDuration: time.Minute})),
	)
}

// runOut lets two leases run out: one election gets another leader, and of the other only the end
// is recorded.
func (s *script) runOut() error {
	return all(
		s.lapse("taken"),
		s.counted("takeover of an expired lease", s.acquire(s.bob, "taken")),
		s.lapse("left"),
		s.counted("end of a lease without candidates", func() error { _, err := s.service.Expire(s.ctx, "left"); return err }),
	)
}

// lapse lets ann lead for the shortest lease, and returns when it is over by the store's clock.
func (s *script) lapse(e leadership.Election) func() error {
	const guard = 100 * time.Millisecond // larger than that of either store
	return func() error {
		ask := s.ann.ask(e)
		ask.LeaseDuration = leadership.MinLeaseDuration
		g, err := s.service.Acquire(s.ctx, ask)
		for now := g.ReadAt; err == nil && now.Before(g.LeaseExpiration.Add(guard)); {
			if err = pause(s.ctx, g.LeaseExpiration.Add(guard).Sub(now)); err == nil {
				now, err = s.service.Now(s.ctx)
			}
		}
		return err
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// announce marks events as announced, as an instance does.
func (s *script) announce() error {
	left, err := s.handle.Unannounced(s.ctx, "", 2*many)
	if err != nil {
		return err
	}
	ids := make([]leadership.EventID, len(left))
	for i, e := range left {
		ids[i] = e.ID()
	}
	mark := func(ids []leadership.EventID) func() error {
		return func() error { return s.handle.MarkAnnounced(s.ctx, ids) }
	}
	return all(
		s.counted("marking an event as announced", mark(ids[:1])),
		s.counted(fmt.Sprintf("marking %d events as announced", many), mark(ids[1:1+many])),
		mark(ids[1+many:]),
		s.counted("reading the outbox, which is empty", func() error { _, err := s.handle.Unannounced(s.ctx, "", 100); return err }),
	)
}

// agent is a candidate with a key.
type agent struct {
	id  leadership.CandidateID
	key leadership.Key
}

func newAgent(id leadership.CandidateID) agent { return agent{id, leadership.NewKey()} }

func (a agent) ask(e leadership.Election) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &a.key}
}

func (a agent) lease(e leadership.Election, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: a.key, Token: token}
}
