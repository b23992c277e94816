package limit

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits are what one principal may ask of one instance. 0 means the default.
type Limits struct {
	Renewals  int `yaml:"renewals"`  // renewed and released leases per second
	Campaigns int `yaml:"campaigns"` // calls of acquire per second
	Reads     int `yaml:"reads"`     // other calls per second
	Waiters   int `yaml:"waiters"`   // candidates that wait at the same time
	Watchers  int `yaml:"watchers"`  // streams and long polls open at the same time
	Elections int `yaml:"elections"` // acquired or configured within a day, and not deleted
}

// Default applies where the policy says nothing else.
var Default = Limits{Renewals: 1000, Campaigns: 100, Reads: 500, Waiters: 1000, Watchers: 1000, Elections: 10_000}

// Validate returns an error for each limit that is out of range.
func (l Limits) Validate() error {
	var all []error
	for _, one := range []struct {
		name  string
		value int
	}{
		{"renewals", l.Renewals},
		{"campaigns", l.Campaigns},
		{"reads", l.Reads},
		{"waiters", l.Waiters},
		{"watchers", l.Watchers},
		{"elections", l.Elections},
	} {
		if one.value < 0 || one.value > most {
			all = append(all, fmt.Errorf("%s must be from 1 to %d, or 0 for the default, not %d", one.name, most, one.value))
		}
	}
	return errors.Join(all...)
}

const most = 1_000_000

// orDefault replaces zeros by defaults.
func (l Limits) orDefault() Limits {
	return Limits{
		Renewals:  cmp.Or(l.Renewals, Default.Renewals),
		Campaigns: cmp.Or(l.Campaigns, Default.Campaigns),
		Reads:     cmp.Or(l.Reads, Default.Reads),
		Waiters:   cmp.Or(l.Waiters, Default.Waiters),
		Watchers:  cmp.Or(l.Watchers, Default.Watchers),
		Elections: cmp.Or(l.Elections, Default.Elections),
	}
}
