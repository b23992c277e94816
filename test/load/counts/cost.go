package main

import (
	"maps"

	"regent/test/proxy"
)

// Cost is what was asked of a store. The zero value is nothing.
type Cost struct {
	Calls   proxy.Calls // RPCs, by method
	Read    int         // documents or rows
	Written int         // documents or rows
}

// RPCs is the number of all calls.
func (c Cost) RPCs() int { return c.Calls.Total() }

// plus is the sum of both.
func (c Cost) plus(other Cost) Cost {
	calls := c.Calls.Plus(other.Calls)
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
	return Cost{Calls: calls, Read: c.Read + other.Read, Written: c.Written + other.Written}
}

// minus is the difference.
func (c Cost) minus(other Cost) Cost { return c.plus(other.scaled(-1, 1)) }

// scaled is the cost times n, divided by d. Fractions are dropped.
func (c Cost) scaled(n, d int) Cost {
	calls := maps.Clone(c.Calls)
	for name := range calls {
		calls[name] = calls[name] * n / d
	}
	return Cost{Calls: calls, Read: c.Read * n / d, Written: c.Written * n / d}
}
