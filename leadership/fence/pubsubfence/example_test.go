package pubsubfence_test

import (
	"context"
	"fmt"

	"cloud.google.com/go/pubsub/v2"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/pubsubfence"
)

func Example() {
	guard, err := pubsubfence.New(pubsubfence.Config{
		Election: "planner",
		Refused:  func(_ *pubsub.Message, err error) { fmt.Println(err) },
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
	// TOKEN_STALE: token 33 of election "planner" is stale: 34 has written; stop acting as leader
}
