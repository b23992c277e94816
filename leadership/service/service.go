package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Service is the protocol on top of a Store: it validates, fills in defaults, and runs the rules in
// the store's transactions. Its errors are an *Error, or carry one of the codes StoreUnavailable,
// OutcomeUnknown, RecordTooNew and RecordCorrupt.
type Service struct {
	store      Store
	publishers []Publisher
	peers      Peers
	floor      rule.Floor
	oneByOne   bool
	expiring   atomic.Value // the Election after which ExpireAll continues, in the order of Store.Held
}

// New returns a service on the store that passes the events of each change to the publishers. The
// caller must close the store.
func New(store Store, publishers ...Publisher) *Service {
	return &Service{store: store, publishers: publishers}
}

// Floor is where elections begin that the store has never seen. Read it with store.Floor.
type Floor = rule.Floor

// WithFloor returns the service with the floor of its store.
func (s *Service) WithFloor(f Floor) *Service {
	with := *s
	with.floor = f
	return &with
}

// needed is how often the rule Acquire may ask for more data: the lease of a parent, the presence
// of the electorate, and the election that this one is a seat of. Each is needed again only after a
// change of the policy.
const needed = 4

// command returns the request in the form that the rule Acquire takes, and its key, which is new if
// the request has none.
func command(r leadership.AcquireRequest) (rule.AcquireCommand, leadership.Key, error) {
	metadata, err := r.Parse()
	if err != nil {
		return rule.AcquireCommand{}, leadership.Key{}, err
	}
	key := leadership.NewKey()
	if r.Key != nil {
		key = *r.Key
	}
	return rule.AcquireCommand{
		CandidateID:   r.CandidateID,
		KeyHash:       key.Hash(),
		LeaseDuration: r.LeaseDuration,
		Metadata:      metadata,
		Note:          r.Note,
		Candidacy:     r.Candidacy,
		Instance:      r.InLine.Instance,
		Waited:        r.InLine.Waited,
		Withdraw:      r.InLine.Withdraw,
		Present:       presence(r.InLine, r.InLine.Quorum),
		Secret:        rule.NewSecret(),
		Restore:       r.Restore,
		Halts:         r.InLine.Halts,
	}, key, nil
}

// renewal returns the request in the form that the rule Renew takes.
func renewal(r leadership.LeaseRequest) (rule.Renewal, error) {
	report, err := r.Parse()
	if err != nil {
		return rule.Renewal{}, err
	}
	return rule.Renewal{Election: r.Election, CandidateID: r.CandidateID, KeyHash: r.Key.Hash(), Token: r.Token, Ticket: r.Ticket, Report: report}, nil
}

// Acquire asks for the lease; see rule.Acquire. For an election that has seats it asks for one of
// them.
func (s *Service) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	g, err := s.acquire(ctx, r, nil, nil)
	if needs, ok := errors.AsType[*rule.NeedsSeat](err); ok {
		if needs.Whole.Record.Standing.Untold > 0 { // the caller that changed it stopped before all seats were told
			_ = s.tell(ctx, needs.Whole) // if it fails, the grant is still decided on the whole as it was read
		}
		if needs.Refused != nil {
			return leadership.Grant{}, needs.Refused
		}
		return s.acquireSeat(ctx, r, needs.Whole)
	}
	return g, err
}

// acquire is Acquire for one election. whole is the election that it is a seat of, or nil if that
// was not read; seats are the seats of whole.
func (s *Service) acquire(ctx context.Context, r leadership.AcquireRequest, whole *rule.Snapshot, seats []leadership.Seat) (leadership.Grant, error) {
	cmd, key, err := command(r)
	if err != nil {
		return leadership.Grant{}, err
	}
	cmd.Principal, cmd.Whole, cmd.Seats = principal(ctx), whole, seats
	if r.Via != (leadership.Via{}) {
		if cmd.Parent, err = s.held(ctx, r.Via, r.CandidateID); err != nil {
			return leadership.Grant{}, err
		}
	}
	granted := false
	decide := func(snap rule.Snapshot) (ch rule.Change, err error) {
		ch, err = rule.Acquire(snap, cmd)
		granted = ch.Before.IsZero()
		return ch, err
	}
	expect := rule.Expect{Change: r.InLine.Writes}
	snap, err := s.update(ctx, r.Election, expect, decide)
	for range needed {
		if needs, ok := errors.AsType[*rule.NeedsParent](err); ok {
			if cmd.Parent, err = s.parent(ctx, needs.Parent); err != nil {
				return leadership.Grant{}, err
			}
		} else if needs, ok := errors.AsType[*rule.NeedsPresence](err); ok {
			cmd.Present = presence(r.InLine, needs.Of)
		} else if needs, ok := errors.AsType[*rule.NeedsWhole](err); ok {
			if cmd.Whole, err = s.whole(ctx, needs.Whole); err != nil {
				return leadership.Grant{}, err
			}
		} else {
			break
		}
		snap, err = s.update(ctx, r.Election, expect, decide)
	}
	if needs, ok := errors.AsType[*rule.NeedsWhole](err); ok {
		err = rule.Corrupt(r.Election, fmt.Errorf("it has heard of a revision of election %q that this store does not have", needs.Whole))
	}
	if err != nil {
		return leadership.Grant{}, err
	}
	if r := snap.Record; r.LeaderID != cmd.CandidateID || !r.KeyHash.Equal(cmd.KeyHash) { // it has bid, or challenged
		return leadership.Grant{}, snap.RefuseWaiting(cmd)
	}
	if !snap.Live() { // it was granted, but its limit had passed when it was committed
		return leadership.Grant{}, &leadership.Error{Code: leadership.OutcomeUnknown, Detail: fmt.Sprintf("the grant of election %q reached the store when its lease had to be over; ask again", r.Election)}
	}
	if granted {
		if err := s.confirm(ctx, snap); err != nil {
			return leadership.Grant{}, err
		}
	}
	return leadership.Grant{Lease: snap.Leaders(), Key: key}, nil
}

// Renew renews the caller's lease; see rule.Renew.
func (s *Service) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	c, err := renewal(r)
	if err != nil {
		return leadership.Lease{}, err
	}
	leases := []rule.Renewal{c}
	return s.renewed(ctx, &leases[0], &s.renewPlain(ctx, leases)[0])
}

// renewed turns the store's answer into the caller's. If the store could not renew without a read,
// it runs the rule Renew.
func (s *Service) renewed(ctx context.Context, c *rule.Renewal, a *rule.Renewed) (leadership.Lease, error) {
	var snap rule.Snapshot
	err := a.Err
	switch {
	case errors.Is(err, rule.ErrNotRenewed):
		snap, err = s.update(ctx, c.Election, rule.Expect{Held: c}, func(snap rule.Snapshot) (rule.Change, error) { return rule.Renew(snap, *c) })
		if err == nil && !c.Holds(&snap.Record) { // its report has tripped
			err = snap.RefuseLost(*c)
		}
	case err == nil:
		snap = a.Snapshot()
		err = s.settle(ctx, &snap, a.Before)
	}
	if err == nil && snap.Record.FollowsUp() {
		snap, err = s.follow(ctx, snap, *c)
	}
	if err != nil {
		return leadership.Lease{}, err
	}
	return snap.Leaders(), nil
}

// BatchRenew renews up to MaxBatch leases, no election twice. The results are in the order of the
// requests; the error is only for a batch that is invalid as a whole.
func (s *Service) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	if err := leadership.ValidateBatch("renewals", len(batch), func(i int) leadership.Election { return batch[i].Election }); err != nil {
		return nil, err
	}
	results := make([]leadership.Result, len(batch))
	leases := make([]rule.Renewal, 0, len(batch))
	place := make([]int, 0, len(batch)) // place[i] is the index of leases[i] in the batch
	for i, r := range batch {
		c, err := renewal(r)
		if err != nil {
			results[i].Err = err
			continue
		}
		leases, place = append(leases, c), append(place, i)
	}
	if len(leases) == 0 {
		return results, nil
	}
	var open []int // leases that need another call of the store
	answers := s.renewPlain(ctx, leases)
	for i := range answers {
		if a := &answers[i]; a.Err == nil && inTime(a.Now, a.Before) && !a.Record.FollowsUp() {
			snap := a.Snapshot()
			results[place[i]].Lease = snap.Leaders()
		} else {
			open = append(open, i)
		}
	}
	each(len(open), func(n int) {
		i := open[n]
		r := &results[place[i]]
		r.Lease, r.Err = s.renewed(ctx, &leases[i], &answers[i])
	})
	return results, nil
}

// renewPlain renews the leases that come without a report; the others need a decision.
func (s *Service) renewPlain(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	if !slices.ContainsFunc(leases, func(c rule.Renewal) bool { return c.Report != "" }) {
		return s.store.Renew(ctx, leases)
	}
	answers := make([]rule.Renewed, len(leases))
	var plain []rule.Renewal
	var place []int // place[i] is the index of plain[i] in leases
	for i, c := range leases {
		if answers[i].Err = rule.ErrNotRenewed; c.Report == "" {
			plain, place = append(plain, c), append(place, i)
		}
	}
	if len(plain) > 0 {
		for i, a := range s.store.Renew(ctx, plain) {
			answers[place[i]] = a
		}
	}
	return answers
}

// CheckToken returns the lease if the token is that of the present leader; see the rule Check.
func (s *Service) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	if err := r.Validate(); err != nil {
		return leadership.Lease{}, err
	}
	snap, err := s.store.Get(ctx, r.Election)
	if err != nil {
		return leadership.Lease{}, err
	}
	if !snap.Exists() {
		return leadership.Lease{}, snap.RefuseUnseen()
	}
	if err := rule.Check(snap, r.Token); err != nil {
		return leadership.Lease{}, err
	}
	if r.Write && snap.Record.Standing.NotServing {
		return leadership.Lease{}, snap.Refuse(leadership.NotReady, "the leader of election %q has not said that it serves; do not write yet", r.Election)
	}
	l := snap.Lease()
	l.Configured = snap.Record.Policy.Configured()
	return l, nil
}

// BatchCheckTokens checks up to MaxBatch tokens, no election twice. The results are in the order of
// the checks.
func (s *Service) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	if err := leadership.ValidateBatch("checks", len(batch), func(i int) leadership.Election { return batch[i].Election }); err != nil {
		return nil, err
	}
	results := make([]leadership.Result, len(batch))
	each(len(batch), func(i int) {
		results[i].Lease, results[i].Err = s.CheckToken(ctx, batch[i])
	})
	return results, nil
}

func (s *Service) lease(ctx context.Context, e leadership.Election, x rule.Expect, rule func(rule.Snapshot) (rule.Change, error)) (leadership.Lease, error) {
	snap, err := s.update(ctx, e, x, rule)
	if err != nil {
		return leadership.Lease{}, err
	}
	return snap.Lease(), nil
}

// update runs a rule in the store's transaction. A heartbeat that was committed too late returns
// LeaseLost. Another change that extends a lease, such as an approval, stands, but the lease is
// ended again if it had ended before the commit.
func (s *Service) update(ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	snap, made, err := s.commit(ctx, e, x, decide)
	switch {
	case err != nil:
		return rule.Snapshot{}, err
	case !inTime(snap.Now, made.prolonged):
		return s.lapse(ctx, snap, made.prolonged)
	}
	return snap, s.settle(ctx, &snap, made.before)
}

// made describes a committed change.
type made struct {
	before    time.Time // Change.Before
	prolonged time.Time // Change.Prolongs
	events    []leadership.Event
}

// commit runs a rule in the store's transaction and tells the publishers.
func (s *Service) commit(ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (snap rule.Snapshot, m made, err error) {
	requestID, actor := leadership.RequestID(ctx), leadership.Actor(ctx)
	snap, err = s.store.Update(ctx, e, x, func(snap rule.Snapshot) (ch rule.Change, err error) {
		m = made{} // the store may run this again
		if err := ctx.Err(); err != nil {
			return rule.Change{}, fmt.Errorf("%w: caller cancelled: %w", leadership.StoreUnavailable, err)
		}
		snap.Floor = s.floor
		ch, err = decide(snap)
		m = made{ch.Before, ch.Prolongs(&snap.Record), ch.Events}
		for i := range m.events {
			m.events[i].Actor = cmp.Or(actor, m.events[i].Actor)
			m.events[i].RequestID = requestID
		}
		return ch, err
	})
	if errors.Is(err, leadership.OutcomeUnknown) {
		s.doubt(e)
	}
	if err != nil {
		return rule.Snapshot{}, made{}, err
	}
	s.publish(snap.Now, m.events)
	return snap, m, nil
}

// publish passes the events that were committed at the instant to the publishers.
func (s *Service) publish(at time.Time, events []leadership.Event) {
	if len(events) == 0 || len(s.publishers) == 0 {
		return
	}
	told := slices.Clone(events) // the others are the store's
	for i := range told {
		told[i].At = at
	}
	for _, p := range s.publishers {
		p.Publish(told...)
	}
}

// doubt tells the publishers of a change whose outcome is unknown.
func (s *Service) doubt(e leadership.Election) {
	for _, p := range s.publishers {
		if p, ok := p.(interface{ Doubt(leadership.Election) }); ok {
			p.Doubt(e)
		}
	}
}

// lapseTimeout bounds the clean-up after a heartbeat that came too late. If the clean-up fails too,
// the lease runs out by itself; its leader was never told that it was renewed.
const lapseTimeout = 5 * time.Second

// inTime reports whether a heartbeat was committed before the end of the lease that it renewed.
// before is that end, zero at a grant.
func inTime(committed, before time.Time) bool { return before.IsZero() || committed.Before(before) }

// settle returns nil if the heartbeat was committed before the end of the lease that it renewed. If
// not, it records that end and returns LeaseLost.
func (s *Service) settle(ctx context.Context, snap *rule.Snapshot, before time.Time) error {
	if inTime(snap.Now, before) {
		return nil
	}
	r := snap.Record
	after, err := s.lapse(ctx, *snap, before)
	if err != nil {
		after = rule.Snapshot{Record: r.Vacated(before, r.Policy.LockDelay+snap.Guard), Now: snap.Now, Guard: snap.Guard}
	}
	return after.Refuse(leadership.LeaseLost, "the renewal of election %q reached the store %v after the lease had ended: stop acting as its leader, and acquire again",
		r.Election, snap.Now.Sub(before).Round(time.Millisecond))
}

// lapse records that a lease has ended at before, because the change that extended it was committed
// later.
func (s *Service) lapse(ctx context.Context, snap rule.Snapshot, before time.Time) (rule.Snapshot, error) {
	r := snap.Record
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lapseTimeout)
	defer cancel()
	after, _, err := s.commit(clean, r.Election, rule.Expect{Change: true}, func(now rule.Snapshot) (rule.Change, error) {
		return rule.Lapse(now, r.Token, r.HeartbeatAt, before)
	})
	return after, err
}

// GiveBack releases a granted lease that the caller does not report to its leader, unless a copy of
// the call was answered meanwhile.
func (s *Service) GiveBack(ctx context.Context, g leadership.Grant) (leadership.Lease, error) {
	snap, err := s.giveBack(ctx, leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, KeyHash: g.Key.Hash(), Token: g.Token}, g.LastHeartbeat)
	return snap.Lease(), err
}

func (s *Service) giveBack(ctx context.Context, r leadership.LeaseRequest, granted time.Time) (rule.Snapshot, error) {
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lapseTimeout)
	defer cancel()
	snap, _, err := s.commit(clean, r.Election, rule.Expect{Change: true}, func(now rule.Snapshot) (rule.Change, error) {
		if !now.Record.HeartbeatAt.Equal(granted) {
			return rule.Change{}, nil
		}
		return rule.Apply(now, leadership.Release{LeaseRequest: r})
	})
	return snap, err
}

// OneByOne makes the service handle the seats of an election one after the other, for tests that
// control time in one goroutine.
func (s *Service) OneByOne() { s.oneByOne = true }

// eachSeat is each for the seats of an election.
func (s *Service) eachSeat(n int, do func(int)) {
	if !s.oneByOne {
		each(n, do)
		return
	}
	for i := range n {
		do(i)
	}
}

// batchParallelism is how many elections of one batch are read concurrently.
const batchParallelism = 16

// each is Each for the elections of a batch.
func each(n int, do func(int)) { Each(n, batchParallelism, do) }

// Each calls do(0) to do(n-1), atATime of them concurrently, and waits for all. It panics if one of
// them does.
func Each(n, atATime int, do func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atATime)
	panics := make(chan any, n)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panics <- v
				}
				<-slots
			}()
			do(i)
		})
	}
	wg.Wait()
	select {
	case v := <-panics:
		panic(v)
	default:
	}
}

// Publisher receives what a Service has committed.
type Publisher interface {
	// Publish takes the events of one change, in order, after its commit. It must not block: the
	// caller that made the change waits for it. It may be called concurrently, and the changes of
	// one election may come in the wrong order. It is not called for a change whose outcome is
	// unknown: if that was made, the store's outbox has its events, and a publisher with a method
	// Doubt(Election) is told.
	Publish(events ...leadership.Event)
}

// presence asks the instance which members of the electorate are present.
func presence(i leadership.InLine, q leadership.QuorumPolicy) rule.Presence {
	if i.Present == nil {
		return nil
	}
	p := rule.Presence{}
	for _, name := range q.Electorate.List() {
		p[leadership.CandidateID(name)] = i.Present(leadership.CandidateID(name))
	}
	return p
}
