package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// sentAndRead writes a document, reads it as the other side does, and returns it.
func sentAndRead[T any](t *testing.T, sent T, read func([]byte, any) error) (got T) {
	t.Helper()
	text, err := Marshal(sent)
	require.NoError(t, err)
	require.NoError(t, read(text, &got), text)
	return got
}

func TestMembersAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, sent := range []leadership.Members{
		{Election: "planner", Status: leadership.MembersNoLeader, Participation: 1},
		{
			Election: "planner", LeaderID: "a", Token: 7, Status: leadership.MembersNoQuorum, Participation: 1.0 / 3, Complete: true, ReadOnly: true,
			Quorum: &leadership.QuorumStatus{Size: 3, Need: 2, Present: 1, ToleratedFailures: 1},
			Members: []leadership.Member{
				{ID: "a", Role: leadership.RoleLeader, SeenToken: 7, HeardAgo: 900 * time.Millisecond},
				{ID: "b", Role: leadership.RoleCandidate, Position: 1},
				{ID: "c", Role: leadership.RoleWorker, SeenToken: 6, HeardAgo: time.Second, Note: "shard <3>"},
			},
		},
	} {
		assert.Empty(t, cmp.Diff(sent, sentAndRead(t, NewMembers(sent), Unmarshal).Leadership()), "sent (-) and received (+) differ")
	}
	text, err := Marshal(NewMembers(leadership.Members{Election: "planner", Members: []leadership.Member{{ID: "a", Role: leadership.RoleFollower}}}))
	if err != nil || !strings.Contains(string(text), `"position":null`) || !strings.Contains(string(text), `"term":0,"status"`) {
		t.Errorf("a member that does not wait is written as %s, %v", text, err)
	}
}

// Requests are read again in FuzzDecodeRequests.
func TestRepliesAboutMembersAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, sent := range []leadership.Acknowledgement{
		{Election: "planner", Token: 7, Need: 2, Follow: []leadership.CandidateID{}, Missing: []leadership.CandidateID{"b", "c"}},
		{Election: "planner", Token: 7, Need: 1, Done: true, Complete: true, Follow: []leadership.CandidateID{"b"}, Missing: []leadership.CandidateID{}},
	} {
		assert.Empty(t, cmp.Diff(sent, sentAndRead(t, sent, Unmarshal)), "sent (-) and received (+) differ")
	}
	for _, sent := range []leadership.MemberChange{
		{ID: "b", Role: leadership.RoleWorker, Change: leadership.MemberVanished, SeenToken: 7}, {ID: "b", Role: leadership.RoleFollower, Change: leadership.MemberJoined},
	} {
		assert.Empty(t, cmp.Diff(sent, sentAndRead(t, sent, Unmarshal)), "sent (-) and received (+) differ")
	}
	check := leadership.TokenCheck{Election: "planner", Token: 7, Write: true}
	batch := sentAndRead(t, NewChecks([]leadership.TokenCheck{check}), Decode).Checks[0]
	if got, err := batch.Value.Leadership(batch.Value.Election); got != check || err != nil || batch.Err != nil {
		t.Errorf("sent %+v, and read %+v, %v, in a batch", check, got, err)
	}
}

// A client of an older version hears reasons and numbers that it does not know.
func TestARefusalForAnUnknownReasonIsRead(t *testing.T) {
	t.Parallel()
	p, err := DecodeProblem([]byte(`{"code":"LEASE_HELD","detail":"wait","reason":"FUTURE","retryAfterMs":450,
		"cause":{"code":"FUTURE","untilMs":450,"position":2,"of":3,"have":0,"need":2,"weight":{"a":[7]}}}`))
	require.NoError(t, err)
	want := &leadership.Error{
		Code: leadership.LeaseHeld, Detail: "wait", Reason: "FUTURE", RetryAfter: 450 * time.Millisecond,
		Cause: &leadership.Cause{Code: "FUTURE", Left: 450 * time.Millisecond, Position: 2, Of: 3, Need: 2},
	}
	assert.Empty(t, cmp.Diff(want, p.Leadership()), "want (-) and read (+) differ")
}

func TestThatNoMemberIsPresentIsWritten(t *testing.T) {
	t.Parallel()
	text, err := Marshal(NewProblem(&leadership.Error{Code: leadership.LeaseHeld, Reason: leadership.ReasonQuorum, Cause: &leadership.Cause{Code: leadership.ReasonQuorum, Need: 2}}))
	if err != nil || !strings.Contains(string(text), `"have":0,"need":2`) {
		t.Errorf("written as %s, %v", text, err)
	}
}

// A candidate that knew it could choose an id that wins the next draw.
func TestTheSecretOfADrawIsInNoDocument(t *testing.T) {
	t.Parallel()
	const secret = "c2VjcmV0"
	l := limited()
	l.DrawSecret, l.LastLeader = secret, "last-leader"
	refusal := &leadership.Error{Code: leadership.LeaseHeld, Lease: &l}
	for _, document := range []any{
		new(NewLease(l)), new(NewReading(leadership.Reading{Lease: l})), new(NewGrant(leadership.Grant{Lease: l})),
		new(NewProblem(refusal)), NewPage(leadership.Page{Leases: []leadership.Lease{l}}),
	} {
		text, err := Marshal(document)
		if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "last-leader") {
			t.Errorf("%T has it: %s, %v", document, text, err)
		}
	}
}

// longest is as many names as are allowed, each as long as is allowed.
func longest(n, length int) leadership.Names {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%02d", i)+strings.Repeat("x", length-2))
	}
	return leadership.NewNames(all...)
}

func TestTheLongestRequestsFitIntoABody(t *testing.T) {
	t.Parallel()
	capabilities := longest(leadership.MaxCapabilities, leadership.MaxCapabilityLength)
	config := limited().Config
	config.Description = strings.Repeat("\"", 256) // each takes two bytes
	config.Ballot.Require, config.Ballot.Prefer = capabilities, capabilities
	config.Ballot.Quorum.Electorate = longest(leadership.MaxElectorate, leadership.MaxCandidateLength)
	acquire := leadership.AcquireRequest{
		CandidateID: leadership.CandidateID(strings.Repeat("x", leadership.MaxCandidateLength)), Key: new(leadership.Key{1}), LeaseDuration: time.Hour, Wait: time.Minute,
		Metadata: []byte(`{"a":"` + strings.Repeat("x", leadership.MaxMetadataBytes-8) + `"}`), Note: config.Description,
		Candidacy: leadership.Candidacy{Role: leadership.RoleCandidate, Priority: leadership.MinPriority, Load: leadership.MaxLoad, Capabilities: capabilities},
	}
	if err := acquire.Validate(); err == nil || !strings.Contains(err.Error(), "election") {
		t.Errorf("the acquire is refused for %v, want for its election only", err)
	}
	for _, document := range []any{NewConfigureRequest(config), NewAcquireRequest(acquire)} {
		text, err := Marshal(document)
		if err != nil || len(text) > MaxBody*3/4 {
			t.Errorf("%T has %d bytes, %v; want at most three quarters of %d, so that spaces fit in, too", document, len(text), err, MaxBody)
		}
	}
}
