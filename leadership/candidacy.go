package leadership

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"regent/leadership/internal/form"
)

// Limits of a Candidacy.
const (
	MinPriority         = math.MinInt32
	MaxPriority         = math.MaxInt32
	MaxLoad             = math.MaxInt32
	MaxCapabilities     = 32 // names
	MaxCapabilityLength = 64 // bytes of a name
)

// Role is the part that a member plays in an election.
type Role string

// The roles. A candidate asks for the lease; a witness stands in line, counts for the quorum, and
// is never granted. Followers and workers have joined: see JoinRequest.
const (
	RoleCandidate Role = "candidate"
	RoleWitness   Role = "witness"
	RoleFollower  Role = "follower"
	RoleWorker    Role = "worker"
	RoleLeader    Role = "leader"
)

// Candidacy is a candidate's description of itself, by which strategies compare it. It counts while
// the candidate waits; a new call replaces it.
type Candidacy struct {
	Role         Role  // RoleCandidate or RoleWitness; "" is RoleCandidate
	Priority     int64 // MinPriority to MaxPriority; a greater one is better
	Load         int64 // 0 to MaxLoad; a smaller one is better
	Capabilities Names
}

func (c Candidacy) validate() (field string, err error) {
	switch {
	case c.Role != "" && c.Role != RoleCandidate && c.Role != RoleWitness:
		return "role", fmt.Errorf("role is %q or %q, not %s", RoleCandidate, RoleWitness, form.Shown(string(c.Role)))
	case c.Priority < MinPriority || c.Priority > MaxPriority:
		return "priority", fmt.Errorf("priority is from %d to %d, not %d", MinPriority, MaxPriority, c.Priority)
	case c.Load < 0 || c.Load > MaxLoad:
		return "load", fmt.Errorf("load is from 0 to %d, not %d", MaxLoad, c.Load)
	}
	return "capabilities", c.Capabilities.validateCapabilities("capabilities")
}

// Names is a set of names in a canonical form that can be compared with ==: sorted, without
// repeats, separated by one space.
type Names string

// NewNames returns the set of the names. The caller must have validated them; none may contain a
// space.
func NewNames(names ...string) Names {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return Names(strings.Join(slices.Compact(sorted), " "))
}

// List returns the names, sorted.
func (n Names) List() []string {
	if n == "" {
		return nil
	}
	return strings.Split(string(n), " ")
}

// Has reports whether the name is in the set.
func (n Names) Has(name string) bool { return slices.Contains(n.List(), name) }

// Without returns the names of n that are not in other.
func (n Names) Without(other Names) []string {
	return slices.DeleteFunc(n.List(), other.Has)
}

// Shared returns how many names are in both sets.
func (n Names) Shared(other Names) int { return len(n.List()) - len(n.Without(other)) }

// Validate returns an error unless n is in canonical form.
func (n Names) Validate() error {
	all := n.List()
	for i, name := range all {
		if name == "" || i > 0 && name <= all[i-1] {
			return errors.New("a set of names is sorted, has each name once, and one space between two")
		}
	}
	return nil
}

// validateCapabilities accepts at most MaxCapabilities names, each in the form of a candidate's id.
func (n Names) validateCapabilities(field string) error {
	all := n.List()
	if len(all) > MaxCapabilities {
		return fmt.Errorf("%s has at most %d names, not %d", field, MaxCapabilities, len(all))
	}
	for _, name := range all {
		if len(name) > MaxCapabilityLength || CandidateID(name).Validate() != nil {
			return fmt.Errorf("a name of %s is 1 to %d of A-Z, a-z, 0-9 and \"._@:-\", not %s", field, MaxCapabilityLength, form.Shown(name))
		}
	}
	if err := n.Validate(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
