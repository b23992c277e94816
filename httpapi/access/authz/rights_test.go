package authz_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/leadership/wire"
	"regent/store/memory"
)

func TestAGrantMayLimitTheLeaseThatItsPrincipalsAskFor(t *testing.T) {
	t.Parallel()
	h := guarded(t, `
grants:
  - {principals: [ann@test, bob@test], roles: [candidate], elections: ["*"], candidates: ["*"], maxLeaseDuration: 1m}
  - {principals: [bob@test], roles: [candidate], elections: ["long-*"], candidates: ["*"], maxLeaseDuration: 1h}
  - {principals: [bob@test], roles: [candidate], elections: [longest], candidates: ["*"]}
`)
	for i, c := range []struct {
		who      string
		election leadership.Election
		lease    time.Duration
		limit    string // "" if it is granted
	}{
		{"ann", "a", time.Minute, ""},
		{"ann", "a", 0, ""}, // as the election is configured
		{"ann", "b", time.Minute + time.Millisecond, "1m0s at most"},
		{"ann", "long-a", time.Hour, "1m0s at most"},
		{"bob", "long-a", time.Hour, ""},
		{"bob", "long-b", 2 * time.Hour, "1h0m0s at most"},
		{"bob", "longest", leadership.MaxLeaseDuration, ""},
	} {
		id := leadership.CandidateID(fmt.Sprint("c", i))
		if c.who == "ann" && c.election == "a" {
			id = "c0"
		}
		_, err := h.service.Acquire(by(t, c.who), leadership.AcquireRequest{Election: c.election, CandidateID: id, LeaseDuration: c.lease})
		var refusal *leadership.Error
		switch {
		case c.limit == "" && errors.Is(err, leadership.InvalidArgument):
			t.Errorf("%s, %v on %s: %v", c.who, c.lease, c.election, err)
		case c.limit != "" && (!errors.As(err, &refusal) || refusal.Code != leadership.InvalidArgument || refusal.Field != "leaseDuration" || !strings.Contains(refusal.Detail, c.limit)):
			t.Errorf("%s, %v on %s: %v; want %s of leaseDuration, %s", c.who, c.lease, c.election, err, leadership.InvalidArgument, c.limit)
		}
	}
}

// serve returns a service in a bubble, behind a gate that calls access.
func serve(t *testing.T, access func() *authz.Access) *instance.Guarded {
	t.Helper()
	start := time.Now()
	inst, err := instance.New(instance.Config{
		Store: memory.New(memory.Config{}), Name: "test", Alone: true, Now: func() time.Duration { return time.Since(start) },
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { inst.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return instance.Guard(inst, authz.NewGate(access, func(context.Context, authz.Record) {}))
}

// candidates returns an access file by which the principals may lead the elections, as any
// candidate.
func candidates(t *testing.T, principals, elections string) *authz.Access {
	t.Helper()
	p, err := authz.ParseAccess([]byte("grants: [{principals: ["+principals+"], roles: [candidate], elections: ["+elections+"], candidates: [\"*\"]}]"), authz.Admitted)
	require.NoError(t, err)
	return p
}

// A candidate whose grant was removed while it waited in line never leads; the next one does.
func TestAWaiterWithoutRightsIsNotGranted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parse := func(principals string) *authz.Access { return candidates(t, principals, "jobs") }
		var access atomic.Pointer[authz.Access]
		access.Store(parse("leader@test, bob@test, cy@test"))
		service := serve(t, access.Load)

		leader, err := service.Acquire(by(t, "leader"), leadership.AcquireRequest{Election: "jobs", CandidateID: "leader"})
		require.NoError(t, err)
		var line sync.WaitGroup
		answers := map[string]error{}
		var mu sync.Mutex
		for _, who := range []string{"bob", "cy"} {
			line.Go(func() {
				_, err := service.Acquire(by(t, who), leadership.AcquireRequest{Election: "jobs", CandidateID: leadership.CandidateID(who), Wait: time.Minute})
				mu.Lock()
				defer mu.Unlock()
				answers[who] = err
			})
			synctest.Wait()
		}
		access.Store(parse("leader@test, cy@test"))
		if _, err := service.Do(by(t, "leader"), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "leader", Key: leader.Key, Token: leader.Token}}); err != nil {
			t.Fatal(err)
		}
		line.Wait()
		if !errors.Is(answers["bob"], wire.PermissionDenied) || answers["cy"] != nil {
			t.Errorf("bob, whose rights went, got %v, want %s; cy got %v, want the lease", answers["bob"], wire.PermissionDenied, answers["cy"])
		}
	})
}

func TestStrangersMayLookAndChangeNothing(t *testing.T) {
	t.Parallel()
	for _, role := range wire.Roles() {
		text := fmt.Sprintf(`grants: [{principals: ["*"], roles: [observer, %s], elections: ["*"]}]`, role)
		if role == wire.RoleObserver {
			text = `grants: [{principals: ["*"], roles: [observer], elections: ["*"]}]`
		}
		_, err := authz.ParseAccess([]byte(text), authz.Anyone)
		looks := role == wire.RoleObserver
		if (err == nil) != looks || err != nil && !strings.Contains(err.Error(), `grant 1 of the access file: principal "*" may not be a `+string(role)) {
			t.Errorf("%s for everyone with a token: %v; want it accepted: %v", role, err, looks)
		}
		if _, err := authz.ParseAccess([]byte(text), authz.Admitted); err != nil {
			t.Errorf("%s for everyone whom the platform lets in: %v", role, err)
		}
		if _, err := authz.ParseAccess([]byte(strings.Replace(text, `"*"`, "ann@test", 1)), authz.Anyone); err != nil {
			t.Errorf("%s for one principal: %v", role, err)
		}
	}
}

// An e-mail address may be given to another person; a subject never is.
func TestAGrantMayNameThePrincipalBySubject(t *testing.T) {
	t.Parallel()
	h := guarded(t, `grants: [{principals: ["https://issuer.test|ann"], roles: [candidate], elections: ["*"], candidates: ["*"]}]`)
	acquire := func(subject string) error {
		ctx := authn.With(t.Context(), authn.Principal{Issuer: "https://issuer.test", Subject: subject, Email: "ann@test"})
		_, err := h.service.Acquire(ctx, leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
		return err
	}
	if err := acquire("ann"); err != nil {
		t.Errorf("the person who was named: %v", err)
	}
	if err := acquire("another"); !errors.Is(err, wire.PermissionDenied) {
		t.Errorf("another person with the same e-mail address: %v, want %s", err, wire.PermissionDenied)
	}
}

func TestAForbiddenBatchLeavesOneRecord(t *testing.T) {
	t.Parallel()
	h := guarded(t, accessText)
	var batch []leadership.LeaseRequest
	for i := range leadership.MaxBatch {
		batch = append(batch, leadership.LeaseRequest{Election: leadership.Election(fmt.Sprintf("foreign-%d", i)), CandidateID: "ann", Token: 1})
	}
	batch[7].Election = "own"
	results, err := h.service.BatchRenew(by(t, "candidate"), batch)
	if err != nil || !errors.Is(results[0].Err, wire.PermissionDenied) || errors.Is(results[7].Err, wire.PermissionDenied) {
		t.Fatalf("%v, %v", results[:8], err)
	}
	want := []authz.Record{{
		Principal: "candidate@test", Verb: wire.VerbBatchRenew, Election: "foreign-0", Code: wire.PermissionDenied, Parts: leadership.MaxBatch - 1,
	}}
	if diff := cmp.Diff(want, *h.records); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
}

// counted counts the elections that are listed from the store.
type counted struct {
	service.Store
	seen *atomic.Int64
}

func (s counted) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	l, err := s.Store.List(ctx, prefix, after, limit)
	s.seen.Add(int64(len(l.Snapshots)))
	return l, err
}

func TestAListReadsNothingThatTheCallerMayNotSee(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	inst, err := instance.New(instance.Config{Store: counted{memory.New(memory.Config{}), &seen}, Name: "test", Alone: true})
	require.NoError(t, err)
	for i := range 500 {
		for _, prefix := range []string{"a-", "hidden-", "z-"} {
			e := leadership.Election(fmt.Sprintf("%s%03d", prefix, i))
			if _, err := inst.Do(t.Context(), leadership.Configure{Election: e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	access, err := authz.ParseAccess([]byte(`
grants:
  - {principals: [ann@test], roles: [observer], elections: ["a-00*", "a-001", a-42, "hidden-499", "z-0*", "z-00*", missing]}
  - {principals: [ann@test], roles: [verifier], elections: ["hidden-*"]}
`), authz.Admitted)
	require.NoError(t, err)
	service := instance.Guard(inst, authz.NewGate(func() *authz.Access { return access }, func(context.Context, authz.Record) {}))
	for prefix, want := range map[string]int{"": 10 + 1 + 100, "a-": 10, "hidden-": 1, "hidden-1": 0, "z-05": 10, "zz": 0} {
		for _, limit := range []int{1, 3, 10, 100, 1000} {
			seen.Store(0)
			r := leadership.ListRequest{Prefix: prefix, Limit: limit}
			var names []string
			pages := 0
			for more := true; more; pages++ {
				page, err := service.List(by(t, "ann"), r)
				if err != nil || len(page.Leases) > limit || page.Next != "" && len(page.Leases) == 0 {
					t.Fatalf("%q by %d: %d elections, next %q, %v", prefix, limit, len(page.Leases), page.Next, err)
				}
				for _, l := range page.Leases {
					names = append(names, string(l.Election))
				}
				r.After, more = page.Next, page.Next != ""
			}
			if len(names) != want || !slices.IsSorted(names) {
				t.Errorf("%q by %d: %d elections, want %d: %q", prefix, limit, len(names), want, names)
			}
			if most := int64(want + 6*pages); seen.Load() > most {
				t.Errorf("%q by %d: %d elections were read to show %d in %d pages", prefix, limit, seen.Load(), want, pages)
			}
		}
	}
}

// Deleted elections stay in the store for good, and there may be a hundred times as many as others.
func TestAListDoesNotReadAllDeletedElectionsInOneCall(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	inst, err := instance.New(instance.Config{Store: listings{memory.New(memory.Config{}), &calls}, Name: "test", Alone: true})
	require.NoError(t, err)
	const many = 3_000
	var grants strings.Builder
	grants.WriteString(`grants: [{principals: [ann@test], roles: [observer], elections: [job-*, z`)
	for i := range many {
		e := leadership.Election(fmt.Sprintf("job-%04d", i))
		if _, err := inst.Do(t.Context(), leadership.Configure{Election: e}); err != nil {
			t.Fatal(err)
		}
		if i == many-1 { // it alone is there
			break
		}
		if _, err := inst.Do(t.Context(), leadership.Delete{Election: e}); err != nil {
			t.Fatal(err)
		}
		if i < 200 {
			fmt.Fprintf(&grants, ", never-%d", i)
		}
	}
	access, err := authz.ParseAccess([]byte(grants.String()+"]}]"), authz.Admitted)
	require.NoError(t, err)
	service := instance.Guard(inst, authz.NewGate(func() *authz.Access { return access }, func(context.Context, authz.Record) {}))
	for _, limit := range []int{1, 100, 1000} {
		var names []leadership.Election
		r, pages := leadership.ListRequest{Limit: limit}, 0
		for more := true; more; pages++ {
			calls.Store(0)
			page, err := service.List(by(t, "ann"), r)
			if err != nil || calls.Load() > 100 {
				t.Fatalf("by %d: one call of list made %d of the store (%v)", limit, calls.Load(), err)
			}
			for _, l := range page.Leases {
				names = append(names, l.Election)
			}
			r.After, more = page.Next, page.Next != ""
		}
		if want := []leadership.Election{"job-2999"}; !slices.Equal(names, want) || pages > 12 {
			t.Errorf("by %d: %d pages with %q, want %q", limit, pages, names, want)
		}
	}
}

// listings counts the calls of List.
type listings struct {
	service.Store
	calls *atomic.Int64
}

func (s listings) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	s.calls.Add(1)
	return s.Store.List(ctx, prefix, after, limit)
}

// The same holds for a candidate that may no longer lead the election that its lease would stand
// on.
func TestAWaiterWhoseParentWasTakenAwayIsNotGranted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parse := func(elections string) *authz.Access { return candidates(t, "leader@test, bob@test", elections) }
		var access atomic.Pointer[authz.Access]
		access.Store(parse("global, orders.eu"))
		service := serve(t, access.Load)

		leader, err := service.Acquire(by(t, "leader"), leadership.AcquireRequest{Election: "global", CandidateID: "leader"})
		require.NoError(t, err)
		parent, err := service.Acquire(by(t, "bob"), leadership.AcquireRequest{Election: "orders.eu", CandidateID: "bob", LeaseDuration: time.Hour})
		require.NoError(t, err)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, err := service.Acquire(by(t, "bob"), leadership.AcquireRequest{
				Election: "global", CandidateID: "bob", Wait: time.Minute, Via: leadership.Via{Election: "orders.eu", Token: parent.Token},
			})
			if !errors.Is(err, wire.PermissionDenied) {
				t.Errorf("bob, who may no longer lead orders.eu, got %v, want %s", err, wire.PermissionDenied)
			}
		})
		synctest.Wait()
		access.Store(parse("global"))
		if _, err := service.Do(by(t, "leader"), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "global", CandidateID: "leader", Key: leader.Key, Token: leader.Token}}); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
	})
}
