package rule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
)

// limitedTo is ann's lease of 30 s in an election whose leases last a minute at most.
func limitedTo(t *testing.T, most, later time.Duration) rule.Snapshot {
	t.Helper()
	s := held(t, later)
	ch, err := rule.Apply(s, leadership.Configure{Config: leadership.Config{LeaseDuration: most / 2, MaxLeaseDuration: most}})
	require.NoError(t, err)
	return apply(s, ch)
}

func TestALongerLeaseThanTheElectionAllowsIsRefusedByName(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]rule.Snapshot{"vacant": limitedTo(t, time.Minute, time.Hour), "held by another": limitedTo(t, time.Minute, time.Second)} {
		ask := rule.AcquireCommand{CandidateID: "bob", KeyHash: hash('b'), LeaseDuration: time.Minute + time.Millisecond}
		_, err := rule.Acquire(s, ask)
		var refusal *leadership.Error
		if !errors.As(err, &refusal) || refusal.Code != leadership.InvalidArgument || refusal.Field != "leaseDuration" || !strings.Contains(refusal.Detail, "1m at most") {
			t.Errorf("%s: %v, want %s of leaseDuration that names the limit", name, err, leadership.InvalidArgument)
		}
		ask.LeaseDuration = time.Minute
		if _, err := rule.Acquire(s, ask); errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("%s: as long as allowed: %v", name, err)
		}
	}
}

func TestALowerLimitNeverShortensALeaseThatIsHeld(t *testing.T) {
	t.Parallel()
	s := limitedTo(t, 10*time.Second, time.Second)
	promised := noon.Add(30 * time.Second)
	if end := s.Record.LeaseEnd(); end.Before(promised) {
		t.Errorf("the lease ends at %v, and %v was promised", end, promised)
	}
	ch, err := rule.Renew(s, rule.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: hash('a'), Token: 1})
	if err != nil || ch.Record.LeaseDuration != 30*time.Second {
		t.Errorf("a renewal: %+v, %v; want a lease of 30s", ch.Record, err)
	}
	ann := rule.AcquireCommand{CandidateID: "ann", KeyHash: hash('a'), LeaseDuration: 30 * time.Second}
	if ch, err := rule.Acquire(s, ann); err != nil || ch.Record.Token != 1 || ch.Record.LeaseDuration != 30*time.Second {
		t.Errorf("the leader repeats its acquire: %+v, %v", ch.Record, err)
	}
	ann.LeaseDuration++
	_, err = rule.Acquire(s, ann)
	assert.ErrorIs(t, err, leadership.InvalidArgument, "the leader asks for more than it has")
	s.Now = noon.Add(time.Hour)
	ann.LeaseDuration = 30 * time.Second
	_, err = rule.Acquire(s, ann)
	assert.ErrorIs(t, err, leadership.InvalidArgument, "the next grant")
	ann.LeaseDuration = 0
	if ch, err := rule.Acquire(s, ann); err != nil || ch.Record.LeaseDuration != 5*time.Second {
		t.Errorf("a grant as configured: %+v, %v; want 5s", ch.Record, err)
	}
}
