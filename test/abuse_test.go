package test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/machine"
)

// abuse is how much noise there is, and for how long: 1 leaves a small machine some time for
// others.
var abuse = flag.Int("abuse", 1, "how many times as much noise, and for how many times as long, in the test of a noisy tenant")

// tenants is a policy for two tenants: one leads, and one makes noise.
const tenants = `
grants:
  - {principals: [victim@test], roles: [candidate], elections: ["quiet-*"], candidates: ["ann-*"]}
  - {principals: [noisy@test], roles: [candidate, observer], elections: ["noise-*"], candidates: ["*"]}
limits:
  - {principals: [noisy@test], renewals: 50, campaigns: 50, reads: 100, waiters: 20, watchers: 20, elections: 200}
`

const (
	quietLeases = 50
)

// quietLease is, in the short form, long enough to be renewed in time on a busy machine.
func quietLease() time.Duration { return machine.Size(8*time.Second, 2*time.Second) }

// One tenant disturbs as much as it can: silent connections, dripping bodies, endless headers and
// bodies, readers that do not read, and as many calls as it can send. Another one renews short
// leases meanwhile, and loses none. The test runs alone: it depends on how processors are shared.
func TestANoisyTenantCostsNoOtherTenantALease(t *testing.T) {
	a := serveAsking(t, tenants)
	v := a.newVictim()
	v.watch.after(t.Context(), machine.Size(quietLease()/2, 3*quietLease()/2))
	t.Logf("in silence  %v, %v", v.watch.take(), a.usage())
	before := a.usage()
	n := newNoise(a, *abuse)
	n.make(within(t, time.Duration(*abuse)*machine.Size(2*quietLease(), 12*time.Second)))
	t.Logf("in noise    %v, at most %v", v.watch.take(), n.peak)
	t.Logf("the noise   %v", &n.fates)
	v.check()
	n.check()
	after := a.settle(before)
	v.watch.after(t.Context(), quietLease())
	v.check()
	t.Logf("afterwards  %v, %v", v.watch.take(), after)
}

// victim is the tenant that leads.
type victim struct {
	t      *testing.T
	client *client.Client
	watch  *stopwatch
	leases []*client.Lease
}

func (a *authServer) newVictim() *victim {
	a.t.Helper()
	v := &victim{t: a.t, watch: &stopwatch{next: &http.Transport{MaxIdleConnsPerHost: quietLeases}}}
	var err error
	v.client, err = client.New(client.Config{
		Server: a.URL, HTTP: &http.Client{Transport: v.watch}, Log: slog.New(slog.DiscardHandler),
		Token: func(context.Context) (string, error) { return a.token("victim@test"), nil },
	})
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range quietLeases {
		c := v.client.As(client.Candidate{ID: leadership.CandidateID(fmt.Sprintf("ann-%d", i)), LeaseDuration: quietLease()})
		l, err := c.Campaign(within(a.t, patience), leadership.Election(fmt.Sprintf("quiet-%d", i)))
		if err != nil {
			a.t.Fatal(err)
		}
		a.t.Cleanup(func() { l.Resign(context.WithoutCancel(a.t.Context())) })
		v.leases = append(v.leases, l)
	}
	return v
}

// check reports a lease that was lost at any moment until now: one that was over once is never
// valid again, and its token is never current again.
func (v *victim) check() {
	v.t.Helper()
	for _, l := range v.leases {
		if !l.Valid() {
			v.t.Errorf("%s is lost: %v", l.Election(), context.Cause(l.Context()))
			continue
		}
		found, err := v.client.CheckToken(within(v.t, patience), leadership.TokenCheck{Election: l.Election(), Token: l.Token()})
		if err != nil || found.Revision != 1 {
			v.t.Errorf("%s: %+v, %v; want the first grant still", l.Election(), found, err)
		}
	}
}

// stopwatch is a transport that notes how long renewals take.
type stopwatch struct {
	next http.RoundTripper

	mu     sync.Mutex
	took   []time.Duration // guarded by mu
	failed int             // guarded by mu
}

func (s *stopwatch) RoundTrip(r *http.Request) (*http.Response, error) {
	begin := time.Now()
	response, err := s.next.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, ":renew") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took = append(s.took, time.Since(begin))
		if err != nil || response.StatusCode != http.StatusOK {
			s.failed++
		}
	}
	return response, err
}

// after waits.
func (s *stopwatch) after(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// take describes the renewals since the last call.
func (s *stopwatch) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	took, failed := s.took, s.failed
	s.took, s.failed = nil, 0
	if len(took) == 0 {
		return "no renewals"
	}
	return fmt.Sprintf("%d renewals in %s, %d of them tried again", len(took), distribution(took), failed)
}

// usage has the resources that a process holds.
type usage struct {
	files    int
	resident int64
}

func (u usage) String() string { return fmt.Sprintf("%d files and %d MiB", u.files, u.resident>>20) }

func (a *authServer) usage() usage {
	a.t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.cmd.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	return usage{len(open), resident(a.t, a.cmd.Process.Pid)}
}

// settle waits until the server holds no more files than before, give or take what the victim has
// opened anew.
func (a *authServer) settle(before usage) usage {
	a.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		now := a.usage()
		if now.files <= before.files+quietLeases {
			return now
		}
		if time.Now().After(end) {
			a.t.Errorf("the server still holds %v, and held %v before", now, before)
			return now
		}
	}
}

// maxResident is far more memory than the server needs for all the noise.
const maxResident = 512 << 20

// check checks that every kind of noise was made, and answered correctly or not at all.
func (n *noise) check() {
	n.a.t.Helper()
	for kind, wanted := range map[string][]string{
		"silent": {"cut off"}, "dripping": {"408"}, "headers": {"431"}, "body": {"413"},
		"waiting": {"429"}, "watching": {"200", "429"}, "flood": {"200", "401", "403", "404", "409", "429"},
	} {
		for _, fate := range wanted {
			if n.fates.counts[kind+": "+fate] == 0 {
				n.a.t.Errorf("nothing of the kind %s was answered with %s", kind, fate)
			}
		}
		for told := range n.fates.counts {
			fate, of := strings.CutPrefix(told, kind+": ")
			if of && !slices.Contains(wanted, fate) && !slices.Contains([]string{"cut off", "no answer", "409", "429"}, fate) { // 429 before the body is read
				n.a.t.Errorf("%s; want %s", told, strings.Join(wanted, " or "))
			}
		}
	}
	if n.peak.resident > maxResident {
		n.a.t.Errorf("the noise costs the server %v", n.peak)
	}
	if slices.Max(n.watching) > 20 {
		n.a.t.Errorf("up to %d streams were open, and 20 are allowed", slices.Max(n.watching))
	}
}
