package checker

import (
	"errors"
	"fmt"
	"time"
)

// Named is what one checker found.
type Named struct {
	Name string // of the property
	Report
}

// Findings is what all checkers found, in the order of the package comment.
type Findings []Named

// All runs every checker. Slack is by how much the clocks of the store and of the recording may
// differ during a lease; guard is that of the store, Snapshot.Guard.
func All(r Recording, slack, guard time.Duration) Findings {
	r = r.bySeat()
	return Findings{
		{"ME1", ME1(r, guard)},
		{"ME2", ME2(r, slack)},
		{"FT", FT(r)},
		{"EV", EV(r)},
		{"BS", BS(r, slack)},
		{"ID", ID(r)},
		{"LV", LV(r, slack)},
		{"Told", Told(r)},
		{"Own", Own(r)},
		{"OV", OV(r, guard)},
		{"CH", CH(r, guard)},
		{"EF", EF(r)},
		{"PR", PR(r)},
		{"SE", SE(r, guard)},
		{"Linear", Linear(r, guard)},
	}
}

// Err names the violations of each checker. It is nil if there are none.
func (f Findings) Err() error {
	var errs []error
	for _, n := range f {
		if err := n.Report.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}
