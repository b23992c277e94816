package record

import (
	"slices"
	"time"

	"regent/leadership"
)

// Variable is where an agent process finds its Config, as JSON.
const Variable = "FAULTS_AGENT"

// The commands that an agent process reads on its standard input, a line each. It waits for Begin.
// At Quiet its contending and reading agents end, while those that watch go on. At the end of the
// input all end.
const (
	Begin = "begin"
	Quiet = "quiet"
)

// Config is one agent process.
type Config struct {
	Name      string
	Life      int      // how manieth process of that name it is, from 1
	Servers   []string // host:port of each
	Ledger    string   // host:port of where leaders write
	Elections []leadership.Election
	Seats     int // that Pool has at most
	Lease     time.Duration
	Pace      time.Duration // between two calls of one member, on average
	Offset    time.Duration // by which the time namespace of the process shifts its clock
	Seed      uint64
	Members   []Member
	// Ballots say who should lead the elections that have one.
	Ballots map[leadership.Election]leadership.BallotPolicy
	// Successors are the candidates of the elections whose leaders hand over.
	Successors map[leadership.Election][]leadership.CandidateID

	Lie  time.Duration // for how long leaders believe on when their lease has told them that it is over
	Deaf bool          // watchers do not tell of one event in ten
}

// Role is what a member does.
type Role string

// The roles.
const (
	Campaigner Role = "campaigner" // leads through the SDK, over and over, for a while or until the lease is lost
	Steady     Role = "steady"     // is a campaigner that leads until the lease is lost
	Caller     Role = "caller"     // makes each call by itself, and keeps its key to ask again after a reply was lost
	Watcher    Role = "watcher"    // reads the stream of events
	Reader     Role = "reader"     // reads the cache
	Operator   Role = "operator"   // configures
	Usher      Role = "usher"      // lets Pool have more and fewer seats, pauses it, and halts it
)

// Member is one agent.
type Member struct {
	Name     string
	Role     Role
	Election leadership.Election // "" for all: of watchers only
	Server   int                 // which; Any for one after the other
	// what it says of itself where it asks to lead
	Candidacy leadership.Candidacy
}

// Pool is the election that has seats.
const Pool leadership.Election = "pool"

// WithSeats are the elections, and Pool with so many seats.
func WithSeats(elections []leadership.Election, seats int) []leadership.Election {
	all := append(slices.Clone(elections), Pool)
	for n := range seats {
		all = append(all, Pool.Seat(n+1))
	}
	return all
}

// Any is no particular server.
const Any = -1

// Ledger is the body of a write to the ledger.
type Ledger struct {
	Who      string              `json:"who"`
	Election leadership.Election `json:"election"`
	Token    leadership.Token    `json:"token"`
}
