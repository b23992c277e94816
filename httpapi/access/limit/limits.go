package limit

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits limits the calls of one principal to one instance. 0 means the default.
type Limits struct {
	Renewals  int `yaml:"renewals"`  // renewed and released leases per second
	Campaigns int `yaml:"campaigns"` // calls of acquire per second
	Reads     int `yaml:"reads"`     // other calls per second
	Waiters   int `yaml:"waiters"`   // candidates that wait at the same time
	Watchers  int `yaml:"watchers"`  // streams and long polls open at the same time
	Elections int `yaml:"elections"` // acquired or configured within a day, and not deleted
	Bytes     int `yaml:"bytes"`     // written to logs per second; see doc.go
}

// Default has the limits that apply unless the access file sets others.
var Default = Limits{Renewals: 1000, Campaigns: 100, Reads: 500, Waiters: 1000, Watchers: 1000, Elections: 10_000, Bytes: 1 << 20}

// Validate returns an error for each limit that is out of range.
func (l Limits) Validate() error {
	var all []error
	for _, one := range []struct {
		name  string
		value int
		most  int
	}{
		{"renewals", l.Renewals, most},
		{"campaigns", l.Campaigns, most},
		{"reads", l.Reads, most},
		{"waiters", l.Waiters, most},
		{"watchers", l.Watchers, most},
		{"elections", l.Elections, most},
		{"bytes", l.Bytes, mostBytes},
	} {
		if one.value < 0 || one.value > one.most {
			all = append(all, fmt.Errorf("%s must be from 1 to %d, or 0 for the default, not %d", one.name, one.most, one.value))
		}
	}
	return errors.Join(all...)
}

const (
	most      = 1_000_000
	mostBytes = 1 << 30
)

func (l Limits) orDefault() Limits {
	return Limits{
		Renewals:  cmp.Or(l.Renewals, Default.Renewals),
		Campaigns: cmp.Or(l.Campaigns, Default.Campaigns),
		Reads:     cmp.Or(l.Reads, Default.Reads),
		Waiters:   cmp.Or(l.Waiters, Default.Waiters),
		Watchers:  cmp.Or(l.Watchers, Default.Watchers),
		Elections: cmp.Or(l.Elections, Default.Elections),
		Bytes:     cmp.Or(l.Bytes, Default.Bytes),
	}
}
