package line_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

func TestAWaitThatIsOverIsRefusedForTheReasonThatCounts(t *testing.T) {
	ordered := func(c leadership.Order) func(*instance) leadership.AcquireRequest {
		return func(i *instance) leadership.AcquireRequest {
			i.releases(i.leads("ann"))
			c.For = time.Hour
			i.orders(c)
			return briefly(request("bob"))
		}
	}
	for reason, c := range map[leadership.Reason]struct {
		ask  func(*instance) leadership.AcquireRequest
		left time.Duration // of the cause; 0 is not checked
	}{
		leadership.ReasonBanned:   {ordered(leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob"}), time.Hour - brief},
		leadership.ReasonAssigned: {ordered(leadership.Order{Kind: leadership.OrderAssign, CandidateID: "cy"}), time.Hour - brief},
		leadership.ReasonPaused:   {ordered(leadership.Order{Kind: leadership.OrderPause}), time.Hour - brief},
		leadership.ReasonParent: {func(i *instance) leadership.AcquireRequest {
			ann := i.leads("ann")
			i.delegates(ann)
			i.releases(ann)
			return inPart(briefly(request("bob")))
		}, 0},
		leadership.ReasonWitness: {func(i *instance) leadership.AcquireRequest {
			i.releases(i.leads("ann"))
			return briefly(attends("wit"))
		}, 0},
		leadership.ReasonLockDelay: {func(i *instance) leadership.AcquireRequest {
			i.locks(time.Hour)
			i.leads("ann")
			time.Sleep(lease + time.Second)
			_, err := i.Expire(i.Context(), jobs)
			require.NoError(i, err)
			return briefly(request("bob"))
		}, 0},
		leadership.ReasonBallot: {func(i *instance) leadership.AcquireRequest {
			i.elects(byPriority)
			return briefly(rated("bob", 9))
		}, window - brief},
		leadership.ReasonOutranked: {func(i *instance) leadership.AcquireRequest {
			i.elects(byPriority)
			i.waits(rated("ann", 9))
			return briefly(rated("bob", 1))
		}, window - brief},
	} {
		t.Run(string(reason), func(t *testing.T) {
			alone(t, func(t *testing.T, i *instance) {
				refusal := i.waits(c.ask(i)).refused(leadership.LeaseHeld)
				if cause := refusal.Cause; refusal.Reason != reason || cause != nil && cause.Code != reason || c.left != 0 && cause == nil {
					t.Fatalf("got %+v because of %+v, want %s", refusal, cause, reason)
				}
				if c.left != 0 && (refusal.Cause.Left != c.left || refusal.RetryAfter != c.left) {
					t.Errorf("%v are left, and asking again may help in %v, want %v", refusal.Cause.Left, refusal.RetryAfter, c.left)
				}
			})
		})
	}
}
