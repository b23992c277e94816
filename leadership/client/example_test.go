package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

// An agent that leads, works until it is done, and releases the lease.
func ExampleClient_Run() {
	// outside a test: client.New(client.Config{Server: "https://regent.example.com"})
	server := clienttest.Start()
	defer server.Close()
	agent := server.Client(client.Candidate{ID: "agent-1", LeaseDuration: 10 * time.Second})

	err := agent.Run(context.Background(), "reports", func(ctx context.Context, l *client.Lease) error {
		for page := range 3 {
			if !l.Valid() { // check before each step that matters
				return context.Cause(ctx)
			}
			// the token goes with each write
			fmt.Printf("page %d, written with token %d\n", page, l.Token())
		}
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// page 0, written with token 1
	// page 1, written with token 1
	// page 2, written with token 1
	// error: <nil>
}

// A leader that cannot renew its lease is stopped by its own clock before the lease ends.
func ExampleClient_Run_cutOff() {
	server := clienttest.Start()
	defer server.Close()
	agent := server.Client(client.Candidate{ID: "agent-1", LeaseDuration: time.Second})

	err := agent.Run(context.Background(), "reports", func(ctx context.Context, l *client.Lease) error {
		server.Cut()
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(errors.Is(err, client.ErrExpired))
	// Output: true
}

// Lead only if no other candidate does, and hold the lease for as long as needed.
func ExampleClient_TryAcquire() {
	server := clienttest.Start()
	defer server.Close()
	ctx := context.Background()

	first, err := server.Client(client.Candidate{ID: "agent-1"}).TryAcquire(ctx, "reports")
	if err != nil {
		log.Fatal(err)
	}
	_, err = server.Client(client.Candidate{ID: "agent-2"}).TryAcquire(ctx, "reports")
	fmt.Println(errors.Is(err, leadership.LeaseHeld))

	if err := first.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	second, err := server.Client(client.Candidate{ID: "agent-2"}).TryAcquire(ctx, "reports")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Valid(), second.Valid(), second.Token())
	// Output:
	// true
	// false true 2
}

// Follow who leads.
func ExampleClient_Observe() {
	server := clienttest.Start()
	defer server.Close()
	ctx := context.Background()

	agent := server.Client(client.Candidate{ID: "agent-1"})
	lease, err := agent.Campaign(ctx, "reports")
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range agent.Observe(ctx, "reports") {
		if err != nil {
			log.Fatal(err)
		}
		if event.LeaderID == "" {
			fmt.Println("the election is vacant")
			break
		}
		fmt.Printf("%s leads with token %d\n", event.LeaderID, event.Token)
		if err := lease.Resign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// agent-1 leads with token 1
	// the election is vacant
}
