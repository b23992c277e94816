package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

func (c *cli) watchCommand() *cobra.Command {
	var r client.WatchRequest
	var all bool
	var count int
	cmd := &cobra.Command{
		Use:   "watch ELECTION|'PATTERN*'|--all [--count N]",
		Short: "Show events as they happen",
		Long: `Show the state of an election, of all (--all), or of those that match a pattern, and then each event at once, until SIGINT
or SIGTERM. A broken connection is restored without missing an event; --timeout applies to the first connection. Of an
election that has seats when it begins, the state and the events of its seats are shown, too.

With --output json each line is a document: {"cursor":…,"snapshot":…} for the state of an election, {"cursor":…,"event":…}
for an event and, of several, {"cursor":…,"ready":true} once all were shown. --after resumes after a cursor; for
one election without seats the cursor is the revision. Of several, some events may be repeated: ignore revisions that you have seen.`,
		Example: `  regent watch reports
  regent watch 'team-a.*' --output json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return noArguments(cmd, args)
			}
			if len(args) == 0 {
				return errors.New("watch takes one argument, the election's name or a pattern of names, or --all")
			}
			if len(args) == 1 && leadership.Election(args[0]).IsPattern() {
				return leadership.Election(args[0]).ValidatePattern()
			}
			return oneElection(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !all {
				r.Election = leadership.Election(args[0])
			}
			begin, pattern := r.Election.Pattern()
			_, err := time.Parse(time.RFC3339Nano, r.After)
			switch {
			case pattern:
				r.Election, r.Prefix = "", begin
			case err == nil: // a cursor resumes a stream of an election and its seats
				r.Election, r.Of = "", r.Election
			}
			return c.watch(cmd.Context(), r, count)
		},
	}
	cmd.ValidArgsFunction = c.completeElection
	cmd.Flags().BoolVar(&all, "all", false, "watch all elections")
	cmd.Flags().Var(&value[int]{&count, "", "N", parseCount}, "count", "end after N lines (default: never)")
	cmd.Flags().Var(&value[string]{&r.After, "", "CURSOR", parseText}, "after", "only events after this cursor (default: the present state, then new events)")
	return c.remote(cmd)
}

// untilSignal ends with SIGINT or SIGTERM. The second one ends the process.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// watch prints news until a signal comes, count items were printed, or a permanent error. A count
// of 0 means no limit.
func (c *cli) watch(ctx context.Context, r client.WatchRequest, count int) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.timeout, func() { cancel(c.noAnswer()) })
	defer late.Stop()
	connected, told := false, false
	r.Connection = func(err error) {
		switch {
		case err == nil:
			late.Stop()
			connected, told = true, false
		case !connected:
			cancel(err)
		case !told:
			c.notice("the connection is lost; reconnecting", err)
			told = true
		}
	}
	show, whole := c.newsPrinter(r), false
	for news, err := range server.Watch(watching, r) {
		switch {
		case ctx.Err() != nil:
			return nil
		case watching.Err() != nil:
			return context.Cause(watching)
		case err == nil && r.Election != "" && news.Lease != nil && news.Lease.Config.Seats > 0:
			whole = true
		case err == nil:
			err = show(news)
			count--
		}
		if err != nil || count == 0 {
			return err
		}
		if whole {
			break
		}
	}
	if !whole {
		return nil
	}
	r.Election, r.Of = "", r.Election
	return c.watch(ctx, r, count) // again, with its seats
}

// noAnswer returns the error of a server that did not answer in time.
func (c *cli) noAnswer() error {
	return &url.Error{Op: http.MethodGet, URL: c.server, Err: context.DeadlineExceeded}
}

// notice prints a transient error.
func (c *cli) notice(what string, err error) {
	if c.output == table {
		fmt.Fprintf(c.err, "regent: %s: %s\n", what, c.sentence(err))
	}
}

type newsDocument struct {
	Cursor   string      `json:"cursor,omitzero"` // to resume from; omitted at the beginning
	Snapshot *wire.Lease `json:"snapshot,omitzero"`
	Event    *wire.Event `json:"event,omitzero"`
	Ready    bool        `json:"ready,omitzero"`
}

func newNewsDocument(n client.News) newsDocument {
	d := newsDocument{Cursor: n.Cursor, Ready: n.Ready}
	if n.Lease != nil {
		d.Snapshot = new(wire.NewLease(*n.Lease))
	}
	if n.Event != nil {
		d.Event = new(wire.NewEvent(*n.Event))
	}
	return d
}

func (c *cli) newsPrinter(r client.WatchRequest) func(client.News) error {
	from := min(1, len(r.Election)) // for one election, the first column is left out
	table := columns{
		[]string{"ELECTION", "REVISION", "AT", "TYPE", "LEADER", "BEFORE", "TOKEN"}[from:],
		[]int{16, 8, 20, 10, 16, 16, 5}[from:],
	}
	return func(n client.News) error {
		row := newsRow(n)
		return c.showRow(newNewsDocument(n), &table, row[min(from, len(row)):]...)
	}
}

// newsRow returns a row of cells, the election first, or nil if there is nothing to show.
func newsRow(n client.News) []string {
	switch {
	case n.Lease != nil:
		l := n.Lease
		return []string{string(l.Election), fmt.Sprint(l.Revision), formatTime(l.ReadAt), stateOf(*l), orDash(l.LeaderID), "-", fmt.Sprint(l.Token)}
	case n.Event != nil:
		e := n.Event
		return []string{string(e.Election), fmt.Sprint(e.Revision), formatTime(e.At), string(e.Type), orDash(e.LeaderID), orDash(e.PreviousLeaderID), fmt.Sprint(e.Token)}
	}
	return nil
}

// columns formats a table whose rows are printed one by one. A column grows with its cells.
type columns struct {
	header []string // printed with the first row, and then nil
	widths []int
}

// showRow prints a document or, for people, a row of the table; no cells are no row.
func (c *cli) showRow(v any, t *columns, cells ...string) error {
	if c.output == document {
		return c.printDocument(v)
	}
	_, err := fmt.Fprint(c.out, t.line(cells))
	return err
}

// line formats a row; no cells are none.
func (c *columns) line(cells []string) string {
	var b strings.Builder
	if header := c.header; header != nil {
		c.header = nil
		b.WriteString(c.line(header))
	}
	if len(cells) == 0 {
		return b.String()
	}
	for i, cell := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		c.widths[i] = max(c.widths[i], len(cell))
		fmt.Fprintf(&b, "%-*s", c.widths[i], cell)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
