package leadership

import (
	"cmp"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Bounds limit a duration, which must be in whole milliseconds. A setting may also be 0, for its
// default or for none.
type Bounds struct {
	Min, Max time.Duration

	refusal string // format of the error; its arguments are the name, the bounds and the duration
}

// The bounds of the durations that operators and candidates set.
var (
	LeaseBounds    = Bounds{Min: MinLeaseDuration, Max: MaxLeaseDuration}
	MaxLeaseBounds = Bounds{MinLeaseDuration, MaxLeaseDuration, "%s is %s, not %s; leave it out for no limit of the election's own"}
	LockBounds     = Bounds{Max: MaxLockDelay}
	RetireBounds   = Bounds{MinRetireAfter, MaxRetireAfter, "%s is %s, or 0s for never, not %s"}
	OrderBounds    = Bounds{Min: MinOrder, Max: MaxOrder}
	CooldownBounds = Bounds{Min: MinOrder, Max: MaxCooldown}
	WindowBounds   = Bounds{Max: MaxWindow}
	GraceBounds    = Bounds{Max: MaxGrace}
	MemberBounds   = Bounds{Min: MinMemberTTL, Max: MaxMemberTTL}
	ProposalBounds = Bounds{Min: MinProposalTTL, Max: MaxProposalTTL}
)

// String returns the bounds as "from 1s to 24h".
func (b Bounds) String() string { return "from " + form.Spoken(b.Min) + " to " + form.Spoken(b.Max) }

// UpTo returns the upper bound as "up to 24h".
func (b Bounds) UpTo() string { return "up to " + form.Spoken(b.Max) }

// Check returns an error that names the duration unless it is within the bounds.
func (b Bounds) Check(name string, d time.Duration) error {
	switch {
	case d < b.Min || d > b.Max:
		return fmt.Errorf(cmp.Or(b.refusal, "%s is %s, not %s"), name, b, form.Spoken(d))
	case d%time.Millisecond != 0:
		return fmt.Errorf("%s is in whole milliseconds, not %v", name, d)
	}
	return nil
}

// bounded is a duration setting with its bounds. A value of 0 is not checked.
type bounded struct {
	field  string
	value  time.Duration
	bounds Bounds
}

func validateBounds(all ...bounded) (field string, err error) {
	for _, d := range all {
		if d.value == 0 {
			continue
		}
		if err := d.bounds.Check(d.field, d.value); err != nil {
			return d.field, err
		}
	}
	return "", nil
}
