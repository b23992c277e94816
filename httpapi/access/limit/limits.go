package limit

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits are what one principal may ask of one instance. 0 is the default of each.
type Limits struct {
	Renewals  int `yaml:"renewals"`  // renewed and released leases, a second
	Campaigns int `yaml:"campaigns"` // calls to acquire, a second
	Reads     int `yaml:"reads"`     // all other calls, a second
	Waiters   int `yaml:"waiters"`   // candidates in line, at a time
	Watchers  int `yaml:"watchers"`  // streams and long polls, at a time
	Elections int `yaml:"elections"` // that it has campaigned for or configured since the instance started
}

// Default are the limits of a principal of which nothing else is said.
var Default = Limits{Renewals: 1000, Campaigns: 100, Reads: 500, Waiters: 1000, Watchers: 1000, Elections: 10_000}

// Validate returns why these are no limits.
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
			all = append(all, fmt.Errorf("%s are from 1 to %d, or 0 for the default, not %d", one.name, most, one.value))
		}
	}
	return errors.Join(all...)
}

const most = 1_000_000

// orDefault fills in what is not said.
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
