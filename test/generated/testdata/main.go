// Acquires a lease of the server in its first argument with a generated client, and is refused one.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"generated/api"
)

func main() {
	c, err := api.NewClientWithResponses(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for _, candidate := range []string{"ann", "bob"} {
		reply, err := c.AcquireWithResponse(context.Background(), "reports", api.AcquireRequest{CandidateId: candidate})
		switch {
		case err != nil:
			log.Fatal(err)
		case reply.JSON200 != nil:
			fmt.Println(*reply.JSON200.LeaderId, "leads with token", *reply.JSON200.FencingToken)
		case reply.ApplicationproblemJSON409 != nil:
			p := reply.ApplicationproblemJSON409
			fmt.Println(candidate, "is refused:", p.Code, p.Reason != nil)
		default:
			log.Fatalf("%s: %s", reply.Status(), reply.Body)
		}
	}
}
