package pubsubfence_test

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/pubsub/v2"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/pubsubfence"
)

func Example() {
	guard, err := pubsubfence.New(pubsubfence.Config{
		Election: "planner",
		Refused: func(m *pubsub.Message, err error) {
			fmt.Printf("%s: dropped %t\n", m.Data, errors.Is(err, leadership.TokenStale))
		},
	})
	if err != nil {
		panic(err)
	}
	handle := guard.Wrap(func(_ context.Context, m *pubsub.Message) {
		fmt.Printf("%s\n", m.Data)
		m.Ack()
	})
	// outside an example: client.Subscriber("commands").Receive(ctx, handle)
	for _, token := range []leadership.Token{33, 34, 33} {
		m := &pubsub.Message{Data: fmt.Appendf(nil, "mow the lawn, says %d", token)}
		// outside an example: fence.Of(lease), with a *client.Lease
		if err := pubsubfence.Stamp(m, fence.Mark{Election: "planner", Token: token}); err != nil {
			panic(err)
		}
		handle(context.Background(), m)
	}
	// Output:
	// mow the lawn, says 33
	// mow the lawn, says 34
	// mow the lawn, says 33: dropped true
}
