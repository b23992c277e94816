package leadership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Values beyond a limit are refused in the tests of each kind of value; the limit itself is still
// accepted.
func TestAValueAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("x ", n)) }
	names := func(n, length int) Names {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%0*d", length, i))
		}
		return NewNames(all...)
	}
	errOf := func(_ any, err error) error { return err }
	config := func(c Config) error { return errOf(c.validate()) }
	ballot := func(p BallotPolicy) error { return errOf(p.validate()) }
	entries := func(all ...Entry) error { return errOf(AppendRequest{Entries: all}.entries()) }
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
	jobs := Snapshot{Now: aMoment, Record: Record{Election: "jobs"}}
	elections := func(n int) error {
		return validateBatch("elections", n, func(i int) Election { return Election(fmt.Sprint(i)) })
	}
	at := aMoment
	data := `"` + long(MaxAppendBytes-2) + `"`
	for name, err := range map[string]error{
		"an approval":               approval{By: words(MaxApprovals), Orders: words(maxApprovalOrders), ForMS: MaxOrder.Milliseconds()}.validate(),
		"no approval":               approval{}.validate(),
		"a cooldown":                breaker{"ann", MaxToken, MaxCooldown.Milliseconds(), at, long(MaxReasonBytes)}.validate(),
		"a short cooldown":          breaker{"ann", 1, 1, at, ""}.validate(),
		"a probation":               probation{at, MaxLeaseDuration.Milliseconds()}.validate(),
		"a short probation":         probation{at, MinLeaseDuration.Milliseconds()}.validate(),
		"a deposed term":            deposed{1, long(MaxReasonBytes)}.validate(),
		"an ended term":             ended{1, EndReason(long(maxEndReasonBytes))}.validate(),
		"an ordered end":            ends{Ordered: at, Because: EndReason(long(maxEndReasonBytes))}.validate(),
		"hand-overs":                handOvers{1, words(maxNamed)}.validate(),
		"one hand-over":             handOvers{1, "x"}.validate(),
		"verdicts":                  verdicts{words(MaxVerdicts), words(MaxVerdicts)}.validate(),
		"an event":                  Event{Type: EventAcquired, Reason: long(MaxReasonBytes)}.validate(),
		"a ticket":                  Ticket(long(MaxTicketBytes)).validate(),
		"a text":                    validateText(long(maxTextBytes)),
		"an election":               Election(long(MaxElectionLength)).Validate(),
		"a prefix":                  validatePrefix(long(MaxElectionLength)),
		"a candidate":               CandidateID(long(MaxCandidateLength)).Validate(),
		"a peer":                    validatePeer(long(MaxPeerLength)),
		"a parent":                  Parent{Election: "jobs", Token: MaxToken, Until: at}.validate(),
		"the first parent":          Parent{Election: "jobs", Token: 1, Until: at}.validate(),
		"a token":                   Token(MaxToken).validate(),
		"the first token":           Token(1).validate(),
		"a bid":                     Bid{CandidateID: "ann", Priority: MaxPriority, Load: MaxLoad, Preferred: MaxCapabilities, Present: 1<<MaxElectorate - 1, Since: at, At: at}.validate(),
		"a low bid":                 Bid{CandidateID: "ann", Priority: MinPriority, Since: at, At: at}.validate(),
		"a candidacy":               errOf(Candidacy{Priority: MaxPriority, Load: MaxLoad, Capabilities: names(MaxCapabilities, MaxCapabilityLength)}.validate()),
		"a low candidacy":           errOf(Candidacy{Priority: MinPriority}.validate()),
		"a delegation":              Delegation{Depth: MaxDepth, Children: MaxChildren, Budget: MaxBudget}.validate(),
		"limits":                    errOf(Limits{MaxDepth, MaxChildren, MaxBudget}.validate()),
		"limits of the parent":      errOf(Limits{AsParent, AsParent, AsParent}.validate()),
		"a window":                  ballot(BallotPolicy{Window: MaxWindow}),
		"a quorum":                  ballot(BallotPolicy{Quorum: QuorumPolicy{Electorate: names(MaxElectorate, 2), Need: MaxElectorate, Grace: MaxGrace}}),
		"a lease and its lock":      config(Config{LeaseDuration: MaxLeaseDuration, MaxLeaseDuration: MaxLeaseDuration, LockDelay: MaxLockDelay, RetireAfter: MaxRetireAfter}),
		"a short lease":             config(Config{LeaseDuration: MinLeaseDuration, MaxLeaseDuration: MinLeaseDuration, RetireAfter: MinRetireAfter}),
		"an asked lease":            LeaseBounds.Check("leaseDuration", MaxLeaseDuration),
		"a term":                    errOf(TermPolicy{MaxTerm: MaxOrder, Approval: ApprovalPolicy{MaxOrder, MaxApprovals}, Cooldown: MaxCooldown, Verdicts: MaxVerdicts, StuckAfter: MinOrder, Budget: Counters{Calls: maxCounter}}.validate(MinOrder / 2)),
		"an error rate":             ErrorRate{1, maxCounter}.validate(),
		"an error rate of one call": ErrorRate{1, 1}.validate(),
		"the latest end of a lease": VerifyAlone(Snapshot{Now: at, Record: Record{Election: "jobs", Token: 1, Revision: 1, LeaderID: "ann", KeyHash: Key{1}.Hash(), LeaseDuration: MaxLeaseDuration, HeartbeatAt: at, EndsBy: at, EndsBecause: EndReason(long(maxEndReasonBytes))}}),
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
		"a raise":                   errOf(Raise(jobs, RaiseCommand{Above: MaxRaise, Lock: MaxLeaseDuration + MaxLockDelay})),
		"a low raise":               errOf(Raise(jobs, RaiseCommand{Above: MinRaise})),
		"an append":                 entries(Entry{Data: []byte(data)}),
		"entries":                   entries(slices.Repeat([]Entry{{Data: []byte("1")}}, MaxEntries)...),
		"an entry's type":           entries(Entry{Type: long(MaxEntryTypeBytes), Data: []byte("1")}),
		"a URI":                     errOf(oneOf(nil, "x:"+long(MaxURIBytes-2), 1)),
		"data":                      errOf(oneOf([]byte(data), "", len(data))),
		"a page":                    errOf(pageSize("limit", MaxPageSize)),
		"a page of one":             errOf(pageSize("limit", 1)),
		"a batch":                   elections(MaxBatch),
		"a batch of one":            elections(1),
		"metadata":                  errOf(ParseMetadata([]byte(`{"a":"` + long(MaxMetadataBytes-8) + `"}`))),
		"metadata with spaces":      errOf(ParseMetadata([]byte(`{ "a":"` + long(MaxMetadataBytes-8) + `"}`))),
	} {
		if err != nil {
			t.Errorf("%s at its limit: %v", name, err)
		}
	}
}
