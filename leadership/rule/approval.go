package rule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// approval counts the operators' approvals of the present leader or, if Awaited, of the next one.
// They are counted in rounds: each ends when there are as many as the policy needs.
type approval struct {
	By     string `json:"by,omitempty"`     // the principals of this round: digests, separated by spaces
	ForMS  int64  `json:"forMs,omitempty"`  // the shortest time that an order of this round gives
	Epoch  bool   `json:"epoch,omitempty"`  // an order of this round asks for a new epoch
	Orders string `json:"orders,omitempty"` // the latest orders, of earlier rounds too: digests, separated by spaces
	Asked  bool   `json:"asked,omitempty"`  // the leader has asked for an approval
	// Awaited: the last term ended for want of an approval, so no lease is granted.
	Awaited bool `json:"awaited,omitempty"`
	// AskedEpoch: the leader has also asked for a new epoch.
	AskedEpoch bool `json:"askedEpoch,omitempty"`
}

// maxApprovalOrders is how many orders are remembered, to recognize one that is sent again.
const maxApprovalOrders = 2 * leadership.MaxApprovals

func (a approval) Validate() error {
	if len(strings.Fields(a.By)) > leadership.MaxApprovals || len(strings.Fields(a.Orders)) > maxApprovalOrders {
		return errors.New("it has more approvals than are counted")
	}
	if a.ForMS < 0 || a.ForMS > leadership.MaxOrder.Milliseconds() {
		return fmt.Errorf("it is approved for %d ms", a.ForMS)
	}
	return nil
}

// repeats reports whether the order was counted before. Its digest covers the revision that it was
// decided on, so the same words at a later revision are another order.
func (a approval) repeats(order string) bool { return slices.Contains(strings.Fields(a.Orders), order) }

// count counts the order, once for each principal in a round. It returns the number of approvals in
// the round, or 0 if the principal was counted before.
func (a *approval) count(cmd leadership.Order, order string, every time.Duration) (have int) {
	by, orders := strings.Fields(a.By), strings.Fields(a.Orders)
	principal := form.Digest(cmd.Actor)
	if slices.Contains(by, principal) {
		return 0
	}
	orders = append(orders, order)
	by, orders = append(by, principal), orders[max(len(orders)-maxApprovalOrders, 0):]
	a.By, a.Orders, a.Epoch = strings.Join(by, " "), strings.Join(orders, " "), a.Epoch || cmd.NewEpoch
	d := cmp.Or(cmd.For, every).Milliseconds()
	a.ForMS = min(d, cmp.Or(a.ForMS, d))
	return len(by)
}

// approve counts an approval of the present leader or, if one is awaited, of the next one. Enough
// approvals move the end of the term on, by the shortest time that one of them gives, and begin a
// new epoch if one of them asks for it.
func (c *Change) approve(s Snapshot, cmd leadership.Order) error {
	r := &c.Record
	a, policy := &r.Standing.Approval, r.Policy.Term.Approval
	order := form.Digest(fmt.Sprintf("%q %q %d %d %t %d", cmd.Actor, cmd.Reason, cmd.For, cmd.Token, cmd.NewEpoch, cmd.IfRevision))
	if a.repeats(order) || cmd.NewEpoch && r.GoesOnFrom(cmd.Token) {
		return nil
	}
	switch {
	case cmd.Token == r.Token && r.Yielded():
		return s.Refuse(leadership.TokenStale, "the leader of election %q has yielded to its successor, so there is nothing to approve; the next leader has another fencing token", r.Election)
	case cmd.Token == r.Token && r.parked() && !s.Record.parked():
		return s.Refuse(leadership.TokenStale, "the term of election %q has ended, and the election is parked: %s; look at that, and approve anew if it shall go on", r.Election, r.Standing.Series.Parked)
	case cmd.Token == r.Token && r.LeaderID == "" && !a.Awaited:
		return s.Refuse(leadership.TokenStale, "election %q has no leader, and its next one needs no approval before it is granted the lease", r.Election)
	case cmd.Token != r.Token:
		return s.Refuse(leadership.TokenStale, "fencing token %d of election %q is not that of the present leader, so there is nothing to approve; the newest is %d", cmd.Token, r.Election, r.Token)
	case policy.Every == 0 && !cmd.NewEpoch && !r.parked():
		return leadership.Invalid("fencingToken", fmt.Errorf("election %q needs no approval; its policy has no approval.every", r.Election))
	case cmd.NewEpoch && r.LeaderID == "":
		return s.Refuse(leadership.TokenStale, "election %q has no leader, so there is no new epoch to begin", r.Election)
	}
	have, need := a.count(cmd, order, policy.Every), max(policy.Need, 1)
	switch {
	case have == 0 && cmd.NewEpoch && !a.Epoch:
		return leadership.Invalid("newEpoch", fmt.Errorf("%q has approved already, without a new epoch, and counts once; let the next approval ask for it", cmd.Actor))
	case have == 0:
		return nil
	}
	c.announce(leadership.EventApproved, "")
	c.explain("", leadership.Detail{Have: have, Need: need})
	if have < need {
		return nil
	}
	return c.approved(s.Now)
}

// approved ends a round of approvals.
func (c *Change) approved(now time.Time) error {
	r := &c.Record
	a, e := &r.Standing.Approval, &r.Standing.Ends
	won := *a
	*a = approval{Orders: won.Orders} // a new round
	if r.LeaderID == "" {
		r.Standing.Series = series{}
		return nil
	}
	if r.Policy.Term.Approval.Every > 0 {
		promised := r.LeaseEnd()
		if end := form.Later(now, time.Duration(won.ForMS)*time.Millisecond); end.After(e.Approval) {
			e.Approval = end
		}
		c.limit(promised)
	}
	if won.Epoch {
		return c.epoch(now)
	}
	return nil
}

// GoesOnFrom reports whether the present leader already led under the earlier token, and has led
// without a break since.
func (r *Record) GoesOnFrom(earlier leadership.Token) bool {
	return r.Standing.EpochFrom > 0 && r.Standing.EpochFrom <= earlier && earlier < r.Token
}

// epoch grants the lease anew to its leader, with the next token. Work begun under the previous
// token is then stale; the leader learns of the new token at its next renewal.
func (c *Change) epoch(now time.Time) error {
	r := &c.Record
	r.Standing.Created = r.created()
	from := r.Token
	if from >= leadership.MaxToken {
		return Corrupt(r.Election, fmt.Errorf("there is no fencing token after %d", from))
	}
	r.Token++
	r.AcquiredAt, r.HeartbeatAt = now, now
	r.Standing.EpochFrom = cmp.Or(r.Standing.EpochFrom, from)
	r.Standing.Ended = ended{from, leadership.EndsEpoch}
	c.Heartbeat = true
	c.announce(leadership.EventEpoch, r.LeaderID)
	c.explain("", leadership.Detail{From: from})
	return nil
}
