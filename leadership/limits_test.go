package leadership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Values beyond a limit are refused in the tests of each kind of value; the limit itself is still
// accepted.
func TestAValueAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	names := func(n, length int) Names {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%0*d", length, i))
		}
		return NewNames(all...)
	}
	errOf := func(_ any, err error) error { return err }
	config := func(c Config) error { return errOf(c.Check()) }
	ballot := func(p BallotPolicy) error { return errOf(p.validate()) }
	join := func(r JoinRequest) error {
		r.Election, r.CandidateID, r.Role = "jobs", "ann", RoleWorker
		return r.Validate()
	}
	await := func(r AcknowledgementRequest) error {
		r.Election, r.Token = "jobs", 1
		return r.Validate()
	}
	handOver := func(within time.Duration) error {
		return HandOver{LeaseRequest: LeaseRequest{Election: "jobs", CandidateID: "ann", Key: NewKey(), Token: 1}, To: "bob", Within: within}.Validate()
	}
	propose := func(r ProposeRequest) error {
		r.Election, r.CandidateID = "jobs", "ann"
		return r.Validate()
	}
	elections := func(n int) error {
		return ValidateBatch("elections", n, func(i int) Election { return Election(fmt.Sprint(i)) })
	}
	at := time.Date(2026, 12, 31, 23, 59, 59, 123457000, time.UTC)
	for name, err := range map[string]error{
		"a ticket":                  Ticket(long(MaxTicketBytes)).Validate(),
		"an election":               Election(long(MaxElectionLength)).Validate(),
		"a prefix":                  validatePrefix(long(MaxElectionLength)),
		"a candidate":               CandidateID(long(MaxCandidateLength)).Validate(),
		"a peer":                    validatePeer(long(MaxPeerLength)),
		"a parent":                  Parent{Election: "jobs", Token: MaxToken, Until: at}.Validate(),
		"the first parent":          Parent{Election: "jobs", Token: 1, Until: at}.Validate(),
		"a token":                   Token(MaxToken).Validate(),
		"the first token":           Token(1).Validate(),
		"a bid":                     Bid{CandidateID: "ann", Priority: MaxPriority, Load: MaxLoad, Preferred: MaxCapabilities, Present: 1<<MaxElectorate - 1, Since: at, At: at}.Validate(),
		"a low bid":                 Bid{CandidateID: "ann", Priority: MinPriority, Since: at, At: at}.Validate(),
		"a candidacy":               errOf(Candidacy{Priority: MaxPriority, Load: MaxLoad, Capabilities: names(MaxCapabilities, MaxCapabilityLength)}.validate()),
		"a low candidacy":           errOf(Candidacy{Priority: MinPriority}.validate()),
		"a delegation":              Delegation{Depth: MaxDepth, Children: MaxChildren, Budget: MaxBudget}.Validate(),
		"limits":                    Limits{MaxDepth, MaxChildren, MaxBudget}.Validate(),
		"limits of the parent":      Limits{AsParent, AsParent, AsParent}.Validate(),
		"a window":                  ballot(BallotPolicy{Window: MaxWindow}),
		"a quorum":                  ballot(BallotPolicy{Quorum: QuorumPolicy{Electorate: names(MaxElectorate, 2), Need: MaxElectorate, Grace: MaxGrace}}),
		"a lease and its lock":      config(Config{LeaseDuration: MaxLeaseDuration, MaxLeaseDuration: MaxLeaseDuration, LockDelay: MaxLockDelay, RetireAfter: MaxRetireAfter}),
		"a short lease":             config(Config{LeaseDuration: MinLeaseDuration, MaxLeaseDuration: MinLeaseDuration, RetireAfter: MinRetireAfter}),
		"an asked lease":            LeaseBounds.Check("leaseDuration", MaxLeaseDuration),
		"a term":                    errOf(TermPolicy{MaxTerm: MaxOrder, Approval: ApprovalPolicy{MaxOrder, MaxApprovals}, Cooldown: MaxCooldown, Verdicts: MaxVerdicts, StuckAfter: MinOrder, Budget: Counters{Calls: maxCounter}}.validate(MinOrder / 2)),
		"an error rate":             ErrorRate{1, maxCounter}.Validate(),
		"an error rate of one call": ErrorRate{1, 1}.Validate(),
		"a cooldown's name":         OverrideID("cooldown-1-ann").validate(),
		"a ban's name":              OverrideID("ban-1").validate(),
		"a report with spaces":      errOf(ParseReport([]byte("{" + strings.Repeat(" ", 4*MaxReportBytes-2) + "}"))),
		"a report of no time left":  Report{ETA: "0s"}.validate(),
		"a member":                  join(JoinRequest{TTL: MaxMemberTTL, SeenToken: MaxToken}),
		"a member for a short time": join(JoinRequest{TTL: MinMemberTTL}),
		"members":                   await(AcknowledgementRequest{Need: MaxMembers, Wait: MaxWait}),
		"one member":                await(AcknowledgementRequest{Need: 1}),
		"a hand-over":               handOver(MaxWithin),
		"a hand-over at once":       handOver(MinWithin),
		"a proposal":                propose(ProposeRequest{ID: ProposalID(long(MaxProposalLength)), Kind: long(MaxProposalKindBytes), TTL: MaxProposalTTL, Wait: MaxWait}),
		"a proposal for a second":   propose(ProposeRequest{ID: "p", Kind: "k", TTL: MinProposalTTL, Wait: MinProposalTTL}),
		"a page":                    ListRequest{Limit: MaxPageSize}.Validate(),
		"a page of one":             ListRequest{Limit: 1}.Validate(),
		"a batch":                   elections(MaxBatch),
		"a batch of one":            elections(1),
		"metadata":                  errOf(ParseMetadata([]byte(`{"a":"` + long(MaxMetadataBytes-8) + `"}`))),
		"metadata with spaces":      errOf(ParseMetadata([]byte(`{ "a":"` + long(MaxMetadataBytes-8) + `"}`))),
	} {
		assert.NoError(t, err, "%s at its limit", name)
	}
}
