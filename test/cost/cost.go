package cost

import (
	"maps"

	"regent/test/proxy"
)

// Cost is what something asked of a store. The zero value is nothing.
type Cost struct {
	Calls   proxy.Calls // RPCs, by method
	Read    int         // documents or rows
	Written int         // documents or rows
}

// RPCs is the number of all calls.
func (c Cost) RPCs() int { return c.Calls.Total() }

// plus is both together.
func (c Cost) plus(other Cost) Cost {
	calls := c.Calls.Plus(other.Calls)
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
	return Cost{Calls: calls, Read: c.Read + other.Read, Written: c.Written + other.Written}
}

// minus is what is left of it without the other.
func (c Cost) minus(other Cost) Cost { return c.plus(other.scaled(-1, 1)) }

// scaled is n times of it, divided by d. What is left over is dropped.
func (c Cost) scaled(n, d int) Cost {
	calls := maps.Clone(c.Calls)
	for name := range calls {
		calls[name] = calls[name] * n / d
	}
	return Cost{Calls: calls, Read: c.Read * n / d, Written: c.Written * n / d}
}
