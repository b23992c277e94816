package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxSeats is how many seats an election may have.
const MaxSeats = 100

// Seat is the name of a seat of the election, from 1: "gpu.2". Each is an election like any other,
// with its own token and history.
func (e Election) Seat(n int) Election { return Election(string(e) + "." + strconv.Itoa(n)) }

// SeatOf returns the election of which one with that name may be a seat, and the seat's number. It
// is one only if Lease.Seat says so.
func (e Election) SeatOf() (of Election, n int, ok bool) {
	at := strings.LastIndexByte(string(e), '.')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(string(e[at+1:]))
	if err != nil || n < 1 || n > MaxSeats || e[:at].Seat(n) != e {
		return "", 0, false
	}
	return e[:at], n, true
}

// Selection says which elections a stream of many is about.
type Selection struct {
	Prefix string   // those whose names begin so; "" for all
	Of     Election // "" or, without a Prefix, this one and its seats
}

// Has reports whether the election is one of them. A name such as "gpu.7" counts as that of a seat
// of "gpu", however many that has: streams go on while seats come and go.
func (s Selection) Has(e Election) bool {
	if s.Of == "" {
		return strings.HasPrefix(string(e), s.Prefix)
	}
	of, _, ok := e.SeatOf()
	return e == s.Of || ok && of == s.Of
}

// Begin is how all their names begin.
func (s Selection) Begin() string { return s.Prefix + string(s.Of) }

// Validate returns what is wrong with the selection, with the code InvalidArgument.
func (s Selection) Validate() error {
	switch {
	case s.Of == "":
		return ValidatePrefix(s.Prefix)
	case s.Prefix != "":
		return Invalid("of", fmt.Errorf("of is for the events of %q and its seats, prefix for those of many elections; give one of them", s.Of))
	}
	return fields("of", s.Of.Validate())
}

// Whole is the election of which this one is a seat; "" if it is none.
func (l Lease) Whole() Election {
	if l.Seat == 0 {
		return ""
	}
	of, _, _ := l.Election.SeatOf()
	return of
}

// Seat is what is known of a seat.
type Seat struct {
	Election Election
	Leader   CandidateID
	Since    time.Time     // when the leader was granted it, by the store's clock
	Left     time.Duration // until it can be granted, as far as is known; 0: it can now
	For      CandidateID   // to which it is assigned: no other is granted it; "" if it is not
}

// OrderSeats says in which order a candidate asks for seats: for the one that it has, for one that
// is assigned to it, for those that may be vacant, and last of all for the one that may be had
// first, so that it is told when to ask again. It asks for one that is assigned to another only if
// all are. Candidates begin at different ones, and each at the same again.
func OrderSeats(seats []Seat, by CandidateID) (order []Seat) {
	var own, free, others []Seat
	var first Seat
	for _, s := range seats {
		switch {
		case s.Left > 0 && s.Leader == by:
			order = append(order, s)
		case s.For != "" && s.For != by:
			others = append(others, s)
		case s.Left == 0 && s.For == by:
			own = append(own, s)
		case s.Left == 0:
			free = append(free, s)
		case first.Left == 0 || s.Left < first.Left:
			first = s
		}
	}
	order = append(order, own...)
	if n := uint32(len(free)); n > 0 {
		at := crc32.ChecksumIEEE([]byte(by)) % n
		order = append(append(order, free[at:]...), free[:at]...)
	}
	if first.Left > 0 {
		order = append(order, first)
	}
	if len(order) == 0 && len(others) > 0 {
		order = append(order, slices.MinFunc(others, func(a, b Seat) int { return cmp.Compare(a.Left, b.Left) }))
	}
	return order
}

// validateSeats checks the number of seats, and what does not go with it.
func (c Config) validateSeats() (field string, err error) {
	const name = "policy.seats"
	switch {
	case c.Seats == 0:
		return "", nil
	case c.Seats < 0 || c.Seats > MaxSeats:
		return name, fmt.Errorf("policy.seats is from 1 to %d, not %d", MaxSeats, c.Seats)
	case c.RetireAfter > 0:
		return name, errors.New("policy.seats does not go with retireAfter: a seat that is vacant is not given up")
	case c.Delegation.Parent != "":
		return name, errors.New("policy.seats does not go with policy.delegation.parent: a part of a task has one leader")
	case c.Ballot.Preempt:
		return name, errors.New("policy.seats does not go with preempt: a better candidate waits for a seat, and ends no term")
	case c.Ballot.Quorum != (QuorumPolicy{}):
		return name, errors.New("policy.seats does not go with a quorum: which members must be present counts for one leader")
	case c.Term.Approval.Every > 0 || c.Term.Cooldown > 0 || c.Term.Series != (SeriesPolicy{}):
		return name, errors.New("policy.seats does not go with approval, cooldown or series: what bars candidates from one seat would let them have another")
	}
	return "", nil
}
