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

// Hand the lease over before a shutdown: the successor is ready before the leader stops.
func ExampleLease_HandOver() {
	server := clienttest.Start()
	defer server.Close()
	ctx := context.Background()

	config := server.Config()
	config.Candidate = client.Candidate{ID: "agent-2"}
	config.OnSuccession = func(_ context.Context, s client.Succession) error {
		fmt.Printf("%s loads what %s has\n", s.CandidateID, s.LeaderID)
		return nil
	}
	successor, err := client.New(config)
	if err != nil {
		log.Fatal(err)
	}
	first, err := server.Client(client.Candidate{ID: "agent-1"}).Campaign(ctx, "reports")
	if err != nil {
		log.Fatal(err)
	}
	led := make(chan error)
	go func() {
		led <- successor.Run(ctx, "reports", func(_ context.Context, l *client.Lease) error {
			fmt.Println("agent-2 leads with token", l.Token())
			return nil
		})
	}()

	for err = first.HandOver(ctx, ""); errors.Is(err, leadership.NotEligible); err = first.HandOver(ctx, "") {
		time.Sleep(10 * time.Millisecond) // no candidate waits yet
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("agent-1 leads until it resigns:", first.Valid())
	if err := first.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	if err := <-led; err != nil {
		log.Fatal(err)
	}
	// Output:
	// agent-2 loads what agent-1 has
	// agent-1 leads until it resigns: true
	// agent-2 leads with token 2
}

// Append to the journal as the leader, and follow it in any process.
func ExampleClient_Follow() {
	server := clienttest.Start()
	defer server.Close()
	ctx := context.Background()

	agent := server.Client(client.Candidate{ID: "agent-1"})
	err := agent.Run(ctx, "accounts", func(ctx context.Context, l *client.Lease) error {
		journal, err := l.Journal(ctx)
		if err != nil {
			return err
		}
		_, err = journal.Append(ctx, client.Entry{Type: "open", Data: "ann"}, client.Entry{Type: "pay", Data: map[string]int{"ann": 30}})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	for item, err := range agent.Follow(ctx, "accounts", 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(item.Index(), item.Entry.Type, string(item.Entry.Data))
		if item.Index() == 2 {
			break
		}
	}
	// Output:
	// 1 open "ann"
	// 2 pay {"ann":30}
}

// A leader finds out where the last one has stopped.
func ExampleLease_Inherited() {
	server := clienttest.Start()
	defer server.Close()

	for _, id := range []leadership.CandidateID{"agent-1", "agent-2"} {
		agent := server.Client(client.Candidate{ID: id, Inherit: true})
		err := agent.Run(context.Background(), "reports", func(ctx context.Context, l *client.Lease) error {
			if last := l.Inherited(); last != nil {
				fmt.Printf("%s goes on where %s has stopped: %s %s\n", id, last.LeaderID, last.Task, last.Data)
			}
			return l.Checkpoint(ctx, "pages", map[string]int{"next": 4})
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output: agent-2 goes on where agent-1 has stopped: pages {"next":4}
}
