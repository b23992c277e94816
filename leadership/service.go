package leadership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Service is the protocol on top of a Store: it validates, fills in defaults, and runs the rules in
// the store's transactions. Its errors are an *Error, or carry one of the codes StoreUnavailable,
// OutcomeUnknown, RecordTooNew and RecordCorrupt.
type Service struct {
	store      Store
	publishers []Publisher
	peers      Peers
}

// New returns a service on the store that tells the publishers of each change it makes. Closing the
// store is up to the caller.
func New(store Store, publishers ...Publisher) *Service {
	return &Service{store: store, publishers: publishers}
}

// Acquire asks for the lease; see the rule of that name.
func (s *Service) Acquire(ctx context.Context, r AcquireRequest) (Grant, error) {
	cmd, key, err := r.command()
	if err != nil {
		return Grant{}, err
	}
	if r.Via != (Via{}) {
		if cmd.Parent, err = s.held(ctx, r.Via, r.CandidateID); err != nil {
			return Grant{}, err
		}
	}
	snap, err := s.update(ctx, r.Election, func(snap Snapshot) (Change, error) { return Acquire(snap, cmd) })
	if needs, ok := errors.AsType[*needsParent](err); ok {
		if cmd.Parent, err = s.parent(ctx, needs.parent); err != nil {
			return Grant{}, err
		}
		snap, err = s.update(ctx, r.Election, func(snap Snapshot) (Change, error) { return Acquire(snap, cmd) })
	}
	if err != nil {
		return Grant{}, err
	}
	if r := snap.Record; r.LeaderID != cmd.CandidateID || !r.KeyHash.Equal(cmd.KeyHash) { // it has bid, or challenged
		return Grant{}, snap.refuseWaiting(cmd)
	}
	return Grant{Lease: snap.leaders(), Key: key}, nil
}

// Withdraw forgets the bid and the challenge of a candidate that has gone from that instance; see
// the rule of that name.
func (s *Service) Withdraw(ctx context.Context, e Election, c CandidateID, instance uint32) (Lease, error) {
	if err := validateNames(e, c); err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), e, func(snap Snapshot) (Change, error) { return Withdraw(snap, c, instance) })
}

// Renew keeps the caller's lease; see the rule of that name.
func (s *Service) Renew(ctx context.Context, r LeaseRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	if c.Report != "" {
		return s.renewed(ctx, c, Renewed{Err: ErrNotRenewed})
	}
	return s.renewed(ctx, c, s.store.Renew(ctx, []Renewal{c})[0])
}

// renewed turns the store's answer into the caller's. Where the store could not renew without
// reading, it runs the rule Renew.
func (s *Service) renewed(ctx context.Context, c Renewal, a Renewed) (Lease, error) {
	snap, err := a.Snapshot, a.Err
	switch {
	case errors.Is(err, ErrNotRenewed):
		snap, err = s.update(ExpectHeld(ctx, c), c.Election, func(snap Snapshot) (Change, error) { return Renew(snap, c) })
		if err == nil && !c.holds(snap.Record) { // its report has tripped
			err = snap.refuseLost(c)
		}
	case err == nil:
		snap, err = s.settle(ctx, snap, a.Before)
	}
	if err == nil {
		snap, err = s.follow(ctx, snap, c)
	}
	if err != nil {
		return Lease{}, err
	}
	return snap.leaders(), nil
}

// BatchRenew renews up to MaxBatch leases, no election twice. The results stand in the order of the
// requests; the error is only for a batch that is wrong as a whole.
func (s *Service) BatchRenew(ctx context.Context, batch []LeaseRequest) ([]Result, error) {
	if err := validateBatch("renewals", len(batch), func(i int) Election { return batch[i].Election }); err != nil {
		return nil, err
	}
	results := make([]Result, len(batch))
	leases := make([]Renewal, 0, len(batch))
	place := make([]int, 0, len(batch)) // of leases[i] in the batch
	for i, r := range batch {
		c, err := r.renewal()
		if err != nil {
			results[i].Err = err
			continue
		}
		leases, place = append(leases, c), append(place, i)
	}
	if len(leases) == 0 {
		return results, nil
	}
	var open []int // leases for which the store has to be asked once more
	answers := s.renewPlain(ctx, leases)
	for i := range answers {
		if a := &answers[i]; a.Err == nil && inTime(a.Snapshot, a.Before) && !a.Snapshot.Record.followsUp() {
			results[place[i]].Lease = a.Snapshot.leaders()
		} else {
			open = append(open, i)
		}
	}
	each(len(open), func(n int) {
		i := open[n]
		r := &results[place[i]]
		r.Lease, r.Err = s.renewed(ctx, leases[i], answers[i])
	})
	return results, nil
}

// renewPlain renews the leases that come without a report; the others need a decision.
func (s *Service) renewPlain(ctx context.Context, leases []Renewal) []Renewed {
	if !slices.ContainsFunc(leases, func(c Renewal) bool { return c.Report != "" }) {
		return s.store.Renew(ctx, leases)
	}
	answers := make([]Renewed, len(leases))
	var plain []Renewal
	var place []int // of plain[i] among the leases
	for i, c := range leases {
		if answers[i].Err = ErrNotRenewed; c.Report == "" {
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

// Release ends the caller's lease; see the rule of that name.
func (s *Service) Release(ctx context.Context, r LeaseRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) { return Release(snap, c) })
}

// CheckToken returns the lease if the token is that of the present leader; see the rule Check.
func (s *Service) CheckToken(ctx context.Context, r TokenCheck) (Lease, error) {
	if err := r.validate(); err != nil {
		return Lease{}, err
	}
	snap, err := s.store.Get(ctx, r.Election)
	if err != nil {
		return Lease{}, err
	}
	if !snap.exists() {
		return Lease{}, snap.refuseUnseen()
	}
	if err := Check(snap, r.Token); err != nil {
		return Lease{}, err
	}
	if r.Write && snap.Record.Standing.Unready {
		return Lease{}, snap.refuse(NotReady, "the leader of election %q has not said that it is ready; do not write yet", r.Election)
	}
	return snap.Lease(), nil
}

// BatchCheckTokens checks up to MaxBatch tokens, no election twice. The results stand in the order
// of the checks.
func (s *Service) BatchCheckTokens(ctx context.Context, batch []TokenCheck) ([]Result, error) {
	if err := validateBatch("checks", len(batch), func(i int) Election { return batch[i].Election }); err != nil {
		return nil, err
	}
	results := make([]Result, len(batch))
	each(len(batch), func(i int) {
		results[i].Lease, results[i].Err = s.CheckToken(ctx, batch[i])
	})
	return results, nil
}

// Get reads an election from the store, strongly. A deleted one is NotFound.
func (s *Service) Get(ctx context.Context, e Election) (Lease, error) {
	snap, err := s.look(ctx, e)
	if err != nil {
		return Lease{}, err
	}
	return snap.Lease(), nil
}

// look reads an election that was seen and is not deleted.
func (s *Service) look(ctx context.Context, e Election) (Snapshot, error) {
	if err := e.Validate(); err != nil {
		return Snapshot{}, invalid("election", err)
	}
	snap, err := s.store.Get(ctx, e)
	switch {
	case err != nil:
		return Snapshot{}, err
	case !snap.exists():
		return Snapshot{}, snap.refuseUnseen()
	case snap.Record.Deleted:
		return Snapshot{}, snap.refuse(NotFound, "election %q is deleted; configuring it brings it back, and its fencing token goes on from %d", e, snap.Record.Token)
	}
	return snap, nil
}

// List reads a page of elections in the order of their names, without the deleted ones.
func (s *Service) List(ctx context.Context, r ListRequest) (Page, error) {
	limit, err := r.validate()
	if err != nil {
		return Page{}, err
	}
	listing, err := s.store.List(ctx, r.Prefix, r.After, limit)
	if err != nil {
		return Page{}, err
	}
	page := Page{Next: listing.Next}
	for _, snap := range listing.Snapshots {
		if !snap.Record.Deleted {
			page.Leases = append(page.Leases, snap.Lease())
		}
	}
	return page, nil
}

// Events reads a part of an election's history, oldest first. A deleted election still has its
// history.
func (s *Service) Events(ctx context.Context, r EventsRequest) ([]Event, error) {
	limit, err := r.validate()
	if err != nil {
		return nil, err
	}
	events, err := s.store.Events(ctx, r.Election, r.After, limit)
	if err != nil || len(events) > 0 {
		return gapless(r, events, err)
	}
	snap, err := s.store.Get(ctx, r.Election)
	switch {
	case err != nil:
		return nil, err
	case !snap.exists():
		return nil, snap.refuseUnseen()
	case snap.Record.Revision <= r.After:
		return nil, nil
	}
	if events, err = s.store.Events(ctx, r.Election, r.After, limit); err == nil && len(events) == 0 {
		return nil, Compacted(r.Election, snap.Record.Revision+1)
	}
	return gapless(r, events, err)
}

// gapless refuses events that do not follow each other, or the revision that was asked for: those
// between are no longer kept.
func gapless(r EventsRequest, events []Event, err error) ([]Event, error) {
	if err != nil {
		return nil, err
	}
	previous, oldest := r.After, Revision(0)
	for _, e := range events {
		if e.Revision != previous+1 {
			oldest = e.Revision
		}
		previous = e.Revision
	}
	if oldest > 0 {
		return nil, Compacted(r.Election, oldest)
	}
	return events, nil
}

// Since reads what was committed after the instant in all elections, at most MaxRecent events; see
// Store.Since.
func (s *Service) Since(ctx context.Context, after time.Time) (Recent, error) {
	return s.store.Since(ctx, after, MaxRecent)
}

// Now reads the store's clock.
func (s *Service) Now(ctx context.Context) (time.Time, error) {
	snap, err := s.store.Get(ctx, "now") // any name will do: one that was never seen has a time too
	return snap.Now, err
}

// Census reads all elections whose names begin with prefix, the deleted ones too.
func (s *Service) Census(ctx context.Context, prefix string) (Census, error) {
	if err := ValidatePrefix(prefix); err != nil {
		return Census{}, err
	}
	var census Census
	err := s.walk(ctx, prefix, func(snap Snapshot) error {
		if census.From.IsZero() || snap.Now.Before(census.From) {
			census.From = snap.Now
		}
		census.Leases = append(census.Leases, snap.Lease())
		return nil
	})
	return census, err
}

// walk visits all elections in the order of their names.
func (s *Service) walk(ctx context.Context, prefix string, visit func(Snapshot) error) error {
	var after Election
	for {
		listing, err := s.store.List(ctx, prefix, after, MaxPageSize)
		if err != nil {
			return err
		}
		for _, snap := range listing.Snapshots {
			if err := visit(snap); err != nil {
				return err
			}
		}
		if after = listing.Next; after == "" {
			return nil
		}
	}
}

// Configure sets an election's configuration; see the rule of that name.
func (s *Service) Configure(ctx context.Context, r ConfigureRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	if field, err := r.Config.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	if parent := r.Config.Delegation.Parent; parent != "" && !r.Election.childOf(parent) {
		return Lease{}, invalid("policy.delegation.parent", fmt.Errorf("the parent of election %q is what stands before the last dot of its name, and not %q", r.Election, parent))
	}
	if err := validateCondition(r.IfRevision); err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Configure(snap, r.ConfigureCommand) })
}

// Delete deletes an election; see the rule of that name.
func (s *Service) Delete(ctx context.Context, r DeleteRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	if err := validateCondition(r.IfRevision); err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Delete(snap, r.DeleteCommand) })
}

// Unlock ends the wait for an election before its time; see the rule of that name. Two candidates
// may then believe that they lead.
func (s *Service) Unlock(ctx context.Context, r UnlockRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	if field, err := r.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	return s.lease(ctx, r.Election, func(snap Snapshot) (Change, error) { return Unlock(snap, r.UnlockCommand) })
}

// Order carries out an operator's order; see the rule of that name. Where the caller is verified,
// that principal is the actor. The lease has the overrides.
func (s *Service) Order(ctx context.Context, r OrderRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	var err error
	if r.Actor, err = actor(ctx, r.Actor); err != nil {
		return Lease{}, err
	}
	if field, err := r.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	if err := validateCondition(r.IfRevision); err != nil {
		return Lease{}, err
	}
	snap, err := s.update(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Order(snap, r.OrderCommand) })
	if err != nil {
		return Lease{}, err
	}
	l := snap.Lease()
	l.Overrides = snap.Orders()
	return l, nil
}

// actor is the principal that makes a call: the verified one, or the one named if none is. A name
// that is too long for an order is cut, and ends with what tells it apart.
func actor(ctx context.Context, named string) (string, error) {
	verified := Actor(ctx)
	if verified != "" && named != "" {
		return "", invalid("actor", fmt.Errorf("the actor is the verified caller, %q; leave actor out", verified))
	}
	if len(verified) > MaxActorBytes {
		digest := digestOf(verified)
		verified = strings.ToValidUTF8(verified[:MaxActorBytes-len(digest)-1], "") + "#" + digest
	}
	return cmp.Or(verified, named), nil
}

// Overrides reads the standing orders of an election from the store, strongly.
func (s *Service) Overrides(ctx context.Context, e Election) ([]Override, error) {
	snap, err := s.look(ctx, e)
	if err != nil {
		return nil, err
	}
	return snap.Orders().At(snap.Now), nil
}

// Explain says why a candidate does not lead, by one strong read; see the function of that name.
func (s *Service) Explain(ctx context.Context, r ExplainRequest) (Explanation, error) {
	if err := r.CandidateID.Validate(); err != nil {
		return Explanation{}, invalid("candidateId", err)
	}
	snap, err := s.look(ctx, r.Election)
	if err != nil {
		return Explanation{}, err
	}
	return Explain(snap, r.CandidateID), nil
}

// Judge counts a verifier's verdict on the present term; see the rule of that name.
func (s *Service) Judge(ctx context.Context, r JudgeRequest) (Lease, error) {
	if err := r.Election.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	var err error
	if r.Actor, err = actor(ctx, r.Actor); err != nil {
		return Lease{}, err
	}
	if field, err := r.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return Judge(snap, r.JudgeCommand) })
}

// StepDown ends the caller's lease and says why; see the rule of that name.
func (s *Service) StepDown(ctx context.Context, r StepDownRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	command := StepDownCommand{Renewal: c, Reason: r.Reason, For: r.For}
	if field, err := command.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) { return StepDown(snap, command) })
}

// RequestApproval asks operators to approve of the caller's term; see the rule of that name.
func (s *Service) RequestApproval(ctx context.Context, r ApprovalNote) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	if field, err := validateWord("-", r.Note); err != nil {
		if field == "reason" {
			field, err = "note", errors.New(strings.Replace(err.Error(), "reason", "note", 1))
		}
		return Lease{}, invalid(field, err)
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) {
		return RequestApproval(snap, ApprovalRequest{Renewal: c, Note: r.Note})
	})
}

// Expire records that the election's lease has run out, if it has.
func (s *Service) Expire(ctx context.Context, e Election) (Lease, error) {
	if err := e.Validate(); err != nil {
		return Lease{}, invalid("election", err)
	}
	return s.lease(ctx, e, Expire)
}

// ExpireAll records each lease that has run out unrecorded, for a service that was asleep when it
// happened. It reads the elections that have a leader and no others, and leaves out those whose
// record cannot be trusted or needs a newer program. It returns how many it recorded, also with an
// error: one election that fails or is slow does not stop the others, and the error is the first.
func (s *Service) ExpireAll(ctx context.Context) (expired int, err error) {
	var failed error
	var after Election
	for {
		held, err := s.store.Held(ctx, after, MaxPageSize)
		if err != nil {
			return expired, cmp.Or(failed, err)
		}
		var over []Election
		for _, snap := range held.Snapshots {
			if snap.over() {
				over = append(over, snap.Record.Election)
			}
		}
		n, err := s.changeAll(ctx, over, Expire)
		expired, failed = expired+n, cmp.Or(failed, err, ctx.Err())
		if after = held.Next; after == "" || ctx.Err() != nil {
			return expired, failed
		}
	}
}

// RetireAll deletes the elections that have been vacant for too long; see the rule Retire. It
// returns how many it deleted, also with an error, as ExpireAll does.
func (s *Service) RetireAll(ctx context.Context) (retired int, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	for {
		due, err := s.store.Retirable(ctx, now, MaxPageSize)
		if err != nil {
			return retired, err
		}
		n, err := s.changeAll(ctx, due, Retire)
		retired += n
		if err != nil || n == 0 || len(due) < MaxPageSize {
			return retired, err
		}
	}
}

// changeAll runs a rule on each of the elections, a few at a time, and returns how many it changed.
// The error is the first. One that needs a newer program is left to it.
func (s *Service) changeAll(ctx context.Context, all []Election, rule func(Snapshot) (Change, error)) (changed int, err error) {
	var mu sync.Mutex // guards changed and err
	each(len(all), func(i int) {
		wrote := false
		_, failed := s.update(ctx, all[i], func(snap Snapshot) (Change, error) {
			ch, err := rule(snap)
			wrote = !ch.Empty()
			return ch, err
		})
		mu.Lock()
		defer mu.Unlock()
		if failed == nil && wrote {
			changed++
		}
		if !errors.Is(failed, RecordTooNew) {
			err = cmp.Or(err, failed)
		}
	})
	return changed, err
}

func (s *Service) lease(ctx context.Context, e Election, rule func(Snapshot) (Change, error)) (Lease, error) {
	snap, err := s.update(ctx, e, rule)
	if err != nil {
		return Lease{}, err
	}
	return snap.Lease(), nil
}

// update runs a rule in the store's transaction. A heartbeat that came too late does not count.
func (s *Service) update(ctx context.Context, e Election, rule func(Snapshot) (Change, error)) (Snapshot, error) {
	snap, before, err := s.commit(ctx, e, rule)
	if err != nil {
		return Snapshot{}, err
	}
	return s.settle(ctx, snap, before)
}

// commit runs a rule in the store's transaction and tells the publishers. before is Change.Before.
func (s *Service) commit(ctx context.Context, e Election, rule func(Snapshot) (Change, error)) (snap Snapshot, before time.Time, err error) {
	var events []Event
	requestID, actor := RequestID(ctx), Actor(ctx)
	snap, err = s.store.Update(ctx, e, func(snap Snapshot) (Change, error) {
		before, events = time.Time{}, nil // the store may run this again
		if err := ctx.Err(); err != nil {
			return Change{}, fmt.Errorf("%w: caller cancelled: %w", StoreUnavailable, err)
		}
		ch, err := rule(snap)
		before, events = ch.Before, ch.Events
		for i := range events {
			events[i].Actor = cmp.Or(actor, events[i].Actor)
			events[i].RequestID = requestID
		}
		return ch, err
	})
	if err != nil {
		return Snapshot{}, time.Time{}, err
	}
	s.publish(snap, events)
	return snap, before, nil
}

// publish tells what was committed at snap.Now.
func (s *Service) publish(snap Snapshot, events []Event) {
	if len(events) == 0 || len(s.publishers) == 0 {
		return
	}
	told := slices.Clone(events) // the others are the store's
	for i := range told {
		told[i].At = snap.Now
	}
	for _, p := range s.publishers {
		p.Publish(told...)
	}
}

// lapseTimeout bounds the clean-up after a heartbeat that came too late. If the clean-up fails too,
// the lease runs out by itself; its leader was never told that it was renewed.
const lapseTimeout = 5 * time.Second

// inTime reports whether a heartbeat that was committed at snap.Now counts. before is the end of
// the lease that it renewed, zero at a grant.
func inTime(snap Snapshot, before time.Time) bool { return before.IsZero() || snap.Now.Before(before) }

// settle returns snap if its heartbeat was committed before the end of the lease that it renewed.
// If not, it records that end and returns LeaseLost.
func (s *Service) settle(ctx context.Context, snap Snapshot, before time.Time) (Snapshot, error) {
	if inTime(snap, before) {
		return snap, nil
	}
	r := snap.Record
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lapseTimeout)
	defer cancel()
	after, _, err := s.commit(ExpectChange(clean), r.Election, func(now Snapshot) (Change, error) {
		return Lapse(now, r.Token, r.HeartbeatAt, before)
	})
	if err != nil {
		after = Snapshot{Record: r.vacated(before, r.Policy.LockDelay+snap.Guard), Now: snap.Now, Guard: snap.Guard}
	}
	return Snapshot{}, after.refuse(LeaseLost, "the renewal of election %q reached the store %v after the lease had ended: stop acting as its leader, and acquire again",
		r.Election, snap.Now.Sub(before).Round(time.Millisecond))
}

// batchParallelism is how many elections of one batch are read side by side.
const batchParallelism = 16

// each calls do(0) to do(n-1), a few at a time, and waits for all. A panic of one becomes the
// caller's.
func each(n int, do func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, batchParallelism)
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
