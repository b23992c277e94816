package rule

import (
	"fmt"

	"regent/leadership"
)

// Apply runs the rule of a valid command. A store may run it more than once. Any other type is an
// error, and so is a pointer to a command. If the election has seats, they must be told of the
// change by Tell.
func Apply(s Snapshot, c leadership.Command) (Change, error) {
	ch, err := apply(s, c)
	ch.untold(s.Record)
	return ch, err
}

func apply(s Snapshot, c leadership.Command) (Change, error) {
	switch c := c.(type) {
	case leadership.Release:
		return release(s, c)
	case leadership.StepDown:
		return stepDown(s, c)
	case leadership.RequestApproval:
		return requestApproval(s, c)
	case leadership.HandOver:
		return handOver(s, c)
	case leadership.SayReady:
		return sayReady(s, c)
	case leadership.SayServing:
		return sayServing(s, c)
	case leadership.Yield:
		return yield(s, c)
	case leadership.Withdraw:
		return withdraw(s, c)
	case leadership.Configure:
		return configure(s, c)
	case leadership.Delete:
		return remove(s, c)
	case leadership.Unlock:
		return unlock(s, c)
	case leadership.Order:
		return order(s, c)
	case leadership.Judge:
		return judge(s, c)
	}
	return Change{}, fmt.Errorf("leadership: a %T is no command", c)
}
