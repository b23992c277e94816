package counts

import (
	"maps"

	"regent/test/proxy"
)

// Cost counts calls of a store. The zero value is none.
type Cost struct {
	Calls   proxy.Calls // RPCs, by method
	Read    int         // documents or rows
	Written int         // documents or rows
}

// RPCs returns the number of all calls.
func (c Cost) RPCs() int { return c.Calls.Total() }

// plus returns the sum of both.
func (c Cost) plus(other Cost) Cost {
	calls := c.Calls.Plus(other.Calls)
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
	return Cost{Calls: calls, Read: c.Read + other.Read, Written: c.Written + other.Written}
}

// minus returns the difference.
func (c Cost) minus(other Cost) Cost {
	less := Cost{Calls: proxy.Calls{}, Read: -other.Read, Written: -other.Written}
	for name, n := range other.Calls {
		less.Calls[name] = -n
	}
	return c.plus(less)
}
