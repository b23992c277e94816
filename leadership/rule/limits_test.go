package rule

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
)

func TestAValueAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("x ", n)) }
	errOf := func(_ any, err error) error { return err }
	jobs := Snapshot{Now: aMoment, Record: Record{Election: "jobs"}}
	at := aMoment
	for name, err := range map[string]error{
		"an approval":               approval{By: words(leadership.MaxApprovals), Orders: words(maxApprovalOrders), ForMS: leadership.MaxOrder.Milliseconds()}.Validate(),
		"no approval":               approval{}.Validate(),
		"a cooldown":                breaker{"ann", leadership.MaxToken, leadership.MaxCooldown.Milliseconds(), at, long(leadership.MaxReasonBytes), long(leadership.MaxActorBytes)}.Validate(),
		"a short cooldown":          breaker{"ann", 1, 1, at, "", ""}.Validate(),
		"a probation":               probation{at, leadership.MaxLeaseDuration.Milliseconds()}.Validate(),
		"a short probation":         probation{at, leadership.MinLeaseDuration.Milliseconds()}.Validate(),
		"a deposed term":            deposed{1, long(leadership.MaxReasonBytes)}.Validate(),
		"an ended term":             ended{1, leadership.EndReason(long(maxEndReasonBytes))}.Validate(),
		"an ordered end":            ends{Ordered: at, Because: leadership.EndReason(long(maxEndReasonBytes))}.Validate(),
		"hand-overs":                handOvers{1, words(maxNamed)}.Validate(),
		"one hand-over":             handOvers{1, "x"}.Validate(),
		"verdicts":                  verdicts{words(leadership.MaxVerdicts), words(leadership.MaxVerdicts)}.Validate(),
		"an event":                  validateEvent(leadership.Event{Type: leadership.EventAcquired, Reason: long(leadership.MaxReasonBytes)}),
		"the latest end of a lease": VerifyAlone(Snapshot{Now: at, Record: Record{Election: "jobs", Token: 1, Revision: 1, LeaderID: "ann", KeyHash: leadership.Key{1}.Hash(), LeaseDuration: leadership.MaxLeaseDuration, HeartbeatAt: at, EndsBy: at, EndsBecause: leadership.EndReason(long(maxEndReasonBytes))}}),
		"a raise":                   errOf(Raise(jobs, RaiseCommand{Above: MaxRaise, Lock: leadership.MaxLeaseDuration + leadership.MaxLockDelay})),
		"a low raise":               errOf(Raise(jobs, RaiseCommand{Above: MinRaise})),
	} {
		assert.NoError(t, err, "%s at its limit", name)
	}
}
