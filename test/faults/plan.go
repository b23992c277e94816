package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/test/faults/record"
)

// Store is what keeps the leases.
type Store string

// The stores.
const (
	File      Store = "file"
	Firestore Store = "firestore"
	Spanner   Store = "spanner"
)

// Plan says what happens in a run.
type Plan struct {
	Store     Store
	Seed      uint64
	Lease     time.Duration
	Pace      time.Duration // between two calls of an agent, on average
	Servers   int
	Elections []leadership.Election
	Seats     int                                             // that record.Pool has at most
	Ballots   map[leadership.Election]leadership.BallotPolicy // of some of them
	// Successors are the candidates of the elections whose leaders hand over: of some of them.
	Successors map[leadership.Election][]leadership.CandidateID
	Groups     []Group
	Wrappers   []Wrapper
	Faults     []Fault
}

// Group is one process with several agents.
type Group struct {
	Name    string
	Members []record.Member
	Offset  time.Duration // of its time namespace; 0 for none of its own
}

// Wrapper is one `regent run`.
type Wrapper struct {
	Name     string
	Election leadership.Election
	Server   int
	Mode     string // of its command, lifespan: "", "stubborn" or "family"
}

// NewPlan draws a plan; clocks are shifted only where shifts says that this machine can. Leases are
// the shortest that the store bears, or of that length if it is longer.
func NewPlan(store Store, seed uint64, shifts bool, lease time.Duration) Plan {
	d := &drawer{rand: rand.New(rand.NewPCG(seed, uint64(len(store)))), shifts: shifts}
	d.plan = Plan{Store: store, Seed: seed, Lease: time.Second, Pace: 30 * time.Millisecond, Servers: 2}
	switch store {
	case File:
		d.plan.Servers = 1
	case Firestore:
		d.plan.Lease, d.plan.Pace = 3*time.Second, 120*time.Millisecond
	case Spanner: // whose emulator takes one transaction after the other
		d.plan.Lease, d.plan.Pace = 2*time.Second, 80*time.Millisecond
	}
	d.plan.Lease = max(d.plan.Lease, lease)
	for i := range 1 + d.rand.IntN(4) {
		d.plan.Elections = append(d.plan.Elections, leadership.Election(fmt.Sprintf("e%d", i)))
	}
	d.agents()
	d.faults()
	d.ballots()
	d.successors()
	d.seats()
	return d.plan
}

// drawer draws a plan.
type drawer struct {
	rand   *rand.Rand
	shifts bool
	plan   Plan
}

func (d *drawer) election() leadership.Election {
	return d.plan.Elections[d.rand.IntN(len(d.plan.Elections))]
}

func (d *drawer) server() int { return d.rand.IntN(d.plan.Servers) }

// between is a duration from low to high, most often nearer to low.
func (d *drawer) between(low, high time.Duration) time.Duration {
	x := d.rand.Float64()
	return (low + time.Duration(x*x*float64(high-low))).Truncate(time.Millisecond)
}

const (
	minCandidates = 5
	maxCandidates = 32
)

// agents draws who takes part. In the first election leaders come and go; each other has one who
// leads until something goes wrong.
func (d *drawer) agents() {
	n := minCandidates + int(float64(maxCandidates-minCandidates+1)*d.rand.Float64()*d.rand.Float64())
	d.wrappers()
	groups := 2 + d.rand.IntN(3)
	for i := range groups {
		t := Group{Name: fmt.Sprintf("agents-%d", i)}
		if d.shifts && d.rand.IntN(5) == 0 {
			t.Offset = time.Duration(1+d.rand.IntN(2_000_000)) * time.Second
		}
		d.plan.Groups = append(d.plan.Groups, t)
	}
	for i := range n - len(d.plan.Wrappers) {
		d.join(i%groups, d.candidate(i))
	}
	for i := range groups {
		watch := record.Member{Name: fmt.Sprintf("observer-%d", i), Role: record.Watcher, Server: d.server()}
		if d.rand.IntN(2) == 0 {
			watch.Election = d.election()
		}
		d.join(i, watch)
		d.join(i, record.Member{Name: fmt.Sprintf("reader-%d", i), Role: record.Reader, Server: d.serverOrAny()})
	}
	d.join(d.rand.IntN(groups), record.Member{Name: "operator", Role: record.Operator, Server: record.Any})
}

// wrappers draws one to three `regent run`s. They lead for as long as they can, and are not in the
// first election.
func (d *drawer) wrappers() {
	others := d.plan.Elections[1:]
	if len(others) == 0 {
		return
	}
	for i := range 1 + d.rand.IntN(3) {
		d.plan.Wrappers = append(d.plan.Wrappers, Wrapper{
			Name: fmt.Sprintf("run-%d", i), Election: others[d.rand.IntN(len(others))], Server: d.server(),
			Mode: []string{"", "stubborn", "family"}[d.rand.IntN(3)],
		})
	}
}

// candidate draws the i-th of those who lead by themselves.
func (d *drawer) candidate(i int) record.Member {
	m := record.Member{Name: fmt.Sprintf("ann-%d", i), Role: record.Campaigner, Election: d.election(), Server: d.server()}
	switch others := d.plan.Elections[1:]; {
	case i < 2:
		m.Election = d.plan.Elections[0]
	case i-2 < len(others):
		m.Role, m.Election = record.Steady, others[i-2]
	case d.rand.IntN(2) == 0:
		m.Role, m.Server = record.Caller, d.serverOrAny()
	}
	return m
}

func (d *drawer) serverOrAny() int {
	if d.rand.IntN(2) == 0 {
		return record.Any
	}
	return d.server()
}

func (d *drawer) join(group int, m record.Member) {
	t := &d.plan.Groups[group]
	t.Members = append(t.Members, m)
}

// ballots draws who should lead, for about half of the elections, and what candidates say of
// themselves. The runs of a wrapper say nothing: they are the last choice.
func (d *drawer) ballots() {
	d.plan.Ballots = map[leadership.Election]leadership.BallotPolicy{}
	for _, e := range d.plan.Elections {
		if d.rand.IntN(2) == 0 {
			d.plan.Ballots[e] = d.ballot(e)
		}
	}
	for i := range d.plan.Groups {
		for j := range d.plan.Groups[i].Members {
			m := &d.plan.Groups[i].Members[j]
			m.Candidacy = leadership.Candidacy{Priority: d.rand.Int64N(4), Load: d.rand.Int64N(4), Capabilities: "gpu"}
			if d.rand.IntN(2) == 0 {
				m.Candidacy.Capabilities = "fast gpu"
			}
			if m.Role == record.Caller && d.rand.IntN(4) == 0 {
				m.Candidacy.Capabilities = ""
			}
		}
	}
}

func (d *drawer) ballot(e leadership.Election) (p leadership.BallotPolicy) {
	all := leadership.Strategies()
	p.Strategy = all[d.rand.IntN(len(all))]
	p.Window = []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond}[d.rand.IntN(3)]
	runs := slices.ContainsFunc(d.plan.Wrappers, func(w Wrapper) bool { return w.Election == e })
	if d.rand.IntN(4) == 0 && !runs {
		p.Require = "gpu"
	}
	switch p.Strategy {
	case leadership.StrategyCapability:
		p.Prefer = "fast"
		fallthrough
	case leadership.StrategyPriority, leadership.StrategyLeastLoaded:
		if p.Preempt = d.rand.IntN(3) == 0; p.Preempt && d.rand.IntN(2) == 0 {
			p.MinTerm = d.plan.Lease
		}
	}
	if names := d.members(e); p.HasBallot() && d.rand.IntN(5) == 0 && len(names) > 1 {
		p.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames(names...), Need: 2}
	}
	return p
}

// successors draws whose leaders hand over: in the first election, where they come and go, most
// often.
func (d *drawer) successors() {
	d.plan.Successors = map[leadership.Election][]leadership.CandidateID{}
	for i, e := range d.plan.Elections {
		if d.rand.IntN(3+2*i) > 1 {
			continue
		}
		for _, name := range d.members(e) {
			d.plan.Successors[e] = append(d.plan.Successors[e], leadership.CandidateID(name))
		}
	}
}

// seats draws who wants a seat of the pool: two more than it has.
func (d *drawer) seats() {
	d.plan.Seats = 2 + d.rand.IntN(2)
	join := func(m record.Member) {
		m.Election = record.Pool
		d.join(d.rand.IntN(len(d.plan.Groups)), m)
	}
	for i := range d.plan.Seats + 2 {
		m := record.Member{Name: fmt.Sprintf("sue-%d", i), Role: record.Campaigner, Server: d.server()}
		if i%2 > 0 {
			m.Role, m.Server = record.Caller, d.serverOrAny()
		}
		join(m)
	}
	join(record.Member{Name: "usher", Role: record.Usher, Server: record.Any})
}

// members are the candidates of an election that lead by themselves.
func (d *drawer) members(e leadership.Election) (names []string) {
	for _, t := range d.plan.Groups {
		for _, m := range t.Members {
			if m.Election == e && (m.Role == record.Campaigner || m.Role == record.Steady || m.Role == record.Caller) {
				names = append(names, m.Name)
			}
		}
	}
	return names[:min(len(names), leadership.MaxElectorate)]
}

// Candidates is how many want to lead.
func (p Plan) Candidates() int {
	n := len(p.Wrappers)
	for _, t := range p.Groups {
		for _, m := range t.Members {
			if slices.Contains([]record.Role{record.Campaigner, record.Steady, record.Caller}, m.Role) {
				n++
			}
		}
	}
	return n
}

// faultsEnd is how long it takes until all faults are over.
func (p Plan) faultsEnd() (until time.Duration) {
	for _, f := range p.Faults {
		until = max(until, f.At+f.For)
	}
	return until
}

// contends is for how long the agents contend.
func (p Plan) contends() time.Duration { return p.Lease + max(warmUp+p.faultsEnd()+calm, round) }

// String is the plan in a few lines.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d: %d servers, %d elections and one with %d seats, %d candidates, %d of them regent run, leases of %v",
		p.Store, p.Seed, p.Servers, len(p.Elections), p.Seats, p.Candidates(), len(p.Wrappers), p.Lease)
	for _, t := range p.Groups {
		fmt.Fprintf(&b, "\n%s:", t.Name)
		if t.Offset != 0 {
			fmt.Fprintf(&b, " clock shifted by %v;", t.Offset)
		}
		for _, m := range t.Members {
			fmt.Fprintf(&b, " %s(%s %s at %d)", m.Name, m.Role, m.Election, m.Server)
		}
	}
	for _, w := range p.Wrappers {
		fmt.Fprintf(&b, "\n%s: %s at %d, command %q", w.Name, w.Election, w.Server, w.Mode)
	}
	for _, e := range p.Elections {
		if ballot, ok := p.Ballots[e]; ok {
			fmt.Fprintf(&b, "\n%s: %+v", e, ballot)
		}
		if len(p.Successors[e]) > 0 {
			fmt.Fprintf(&b, "\n%s: leaders hand over", e)
		}
	}
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "\n%v", f)
	}
	return b.String()
}
