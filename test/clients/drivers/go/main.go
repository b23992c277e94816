package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/clients"
)

func main() {
	var err error
	if slices.Equal(os.Args[1:], []string{"worker"}) {
		err = work()
	} else {
		err = run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// run drives the SDK until the term is over.
func run(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown arguments %q: there is only \"worker\"; the settings are in the environment", args)
	}
	d, err := newDriver()
	if err != nil {
		return err
	}
	go d.listen(os.Stdin)
	if d.options.Idle {
		<-d.ctx.Done()
	} else {
		d.campaign()
	}
	d.end()
	d.beside.Wait()
	write(clients.Event{Event: clients.End})
	return nil
}

// driver leads one candidate.
type driver struct {
	client   *client.Client
	election leadership.Election
	options  clients.Options

	ctx     context.Context // of what can be cancelled
	end     context.CancelFunc
	beside  sync.WaitGroup // watches and calls
	stopped chan struct{}  // closed by stop
	stop    func()

	mu    sync.Mutex
	lease *client.Lease // nil while it does not lead; guarded by mu
}

func newDriver() (*driver, error) {
	d := &driver{election: leadership.Election(os.Getenv("REGENT_ELECTION")), stopped: make(chan struct{})}
	d.stop = sync.OnceFunc(func() { close(d.stopped) })
	d.ctx, d.end = context.WithCancel(context.Background())
	if err := json.Unmarshal([]byte(cmp.Or(os.Getenv("REGENT_DRIVER"), "{}")), &d.options); err != nil {
		return nil, fmt.Errorf("REGENT_DRIVER: %w", err)
	}
	lease, err := time.ParseDuration(os.Getenv("REGENT_LEASE"))
	if err != nil {
		return nil, fmt.Errorf("REGENT_LEASE: %w", err)
	}
	d.client, err = client.New(client.Config{
		Server:    os.Getenv("REGENT_SERVER"),
		Candidate: client.Candidate{ID: leadership.CandidateID(os.Getenv("REGENT_CANDIDATE")), LeaseDuration: lease},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		d.fail("lead", err)
		write(clients.Event{Event: clients.End})
		os.Exit(0)
	}
	return d, nil
}

// listen takes commands until the test is gone.
func (d *driver) listen(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := d.obey(lines.Text()); err != nil {
			fmt.Fprintf(os.Stderr, "driver: the command %q: %v\n", lines.Text(), err)
			os.Exit(1)
		}
	}
	os.Exit(1)
}

var printing sync.Mutex

// write writes an event.
func write(e clients.Event) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}
