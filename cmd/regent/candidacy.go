package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
)

// candidacyFlags are the values by which a policy compares candidates.
type candidacyFlags struct {
	role         leadership.Role
	priority     priority
	capabilities []string
	load         int64
}

// priority is a number or, if cksum is set, the checksum of the candidate's id.
type priority struct {
	number int64
	cksum  bool
}

const cksumPriority = "cksum"

func (f *candidacyFlags) add(c *cli, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&value[priority]{&f.priority, "0", "N", parsePriority}, "priority", "where the policy goes by priority: a greater one is better; or cksum, the checksum of the candidate's id less 2^31")
	flags.Var(&value[[]string]{&f.capabilities, "", "NAMES", parseCapabilities}, "capabilities", "what the candidate can do, comma-separated, such as gpu,eu")
	flags.Var(&value[int64]{&f.load, "0", "N", integers[int64](0, leadership.MaxLoad, fmt.Sprintf("must be an integer from 0 to %d", leadership.MaxLoad))}, "load", "where the policy goes by load: a smaller one is better")
	addChoice(c, cmd, &f.role, leadership.RoleCandidate, "role", "ROLE", "candidate; or witness: it stands in line, counts for the quorum, and never leads", leadership.RoleCandidate, leadership.RoleWitness)
	c.complete(cmd, "priority", cksumPriority)
}

// of returns the candidacy of the candidate with that id.
func (f *candidacyFlags) of(id leadership.CandidateID) leadership.Candidacy {
	own := leadership.Candidacy{Role: f.role, Priority: f.priority.number, Load: f.load, Capabilities: leadership.NewNames(f.capabilities...)}
	if f.priority.cksum {
		own.Priority = client.CksumPriority(id)
	}
	return own
}

// addTo puts the candidacy into a candidate of the SDK, which must have an id.
func (f *candidacyFlags) addTo(to *client.Candidate) {
	own := f.of(to.ID)
	to.Role, to.Priority, to.Capabilities = own.Role, own.Priority, f.capabilities
	to.Load = func() int64 { return own.Load }
}

func parsePriority(text string) (priority, error) {
	if text == cksumPriority {
		return priority{cksum: true}, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return priority{}, fmt.Errorf("must be an integer from %d to %d, or %s", leadership.MinPriority, leadership.MaxPriority, cksumPriority)
	}
	return priority{number: n}, nil
}

func parseCapabilities(text string) ([]string, error) {
	names, err := parseTexts(text)
	if err != nil {
		return nil, err
	}
	if len(names) > leadership.MaxCapabilities {
		return nil, fmt.Errorf("must be at most %d names, not %d", leadership.MaxCapabilities, len(names))
	}
	for _, name := range names {
		if len(name) > leadership.MaxCapabilityLength || leadership.CandidateID(name).Validate() != nil {
			return nil, fmt.Errorf("must be names of 1 to %d of A-Z, a-z, 0-9 and \"._@:-\", comma-separated", leadership.MaxCapabilityLength)
		}
	}
	return names, nil
}
