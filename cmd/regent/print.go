package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"

	"regent/leadership"
	"regent/leadership/wire"
)

// output marks the errors of standard output, so that they are not taken for those of a connection.
type output struct{ w io.Writer }

type outputError struct{ error }

func (e outputError) Unwrap() error { return e.error }

func (o output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		err = outputError{err}
	}
	return n, err
}

// printDocuments writes each document on a line of its own.
func printDocuments[T, W any](c *cli, items []T, toWire func(T) W) error {
	for _, item := range items {
		text, err := wire.Marshal(toWire(item))
		if err != nil {
			return err
		}
		if _, err := c.out.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// printTable writes rows of cells, aligned.
func (c *cli) printTable(rows [][]string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printGrant prints the lease, and the key if its candidate did not bring it. A lease that could not be printed is held all the same, and whoever
// acquired it has to hear so even where an unread standard output is no error.
func (c *cli) printGrant(g leadership.Grant, withKey bool) error {
	err := c.printGranted(g, withKey)
	switch {
	case err != nil && withKey:
		return fmt.Errorf("the lease is held, but could not be printed (%v), and its key is lost: it ends by itself in %v", err, g.ExpiresIn)
	case err != nil:
		return fmt.Errorf("the lease is held, but could not be printed (%v); the same command, with the same key, prints it again", err)
	case withKey:
		fmt.Fprintln(c.err, "Keep the key: it is shown this once, and renew and release need it.")
	}
	return nil
}

func (c *cli) printGranted(g leadership.Grant, withKey bool) error {
	w := wire.NewGrant(g)
	rows := leaseRows(g.Lease)
	if withKey {
		rows = append(rows, []string{"key", w.Key})
	} else {
		w.Key = ""
	}
	if c.output == document {
		return printDocuments(c, []wire.Grant{w}, func(w wire.Grant) wire.Grant { return w })
	}
	return c.printTable(rows)
}

func (c *cli) printLease(l leadership.Lease) error {
	if c.output == document {
		return printDocuments(c, []leadership.Lease{l}, wire.NewLease)
	}
	return c.printTable(leaseRows(l))
}

// leaseRows has a row for each thing there is to say.
func leaseRows(l leadership.Lease) [][]string {
	var rows [][]string
	row := func(name, value string) { rows = append(rows, []string{name, value}) }
	row("election", string(l.Election))
	row("state", stateOf(l))
	if l.State == leadership.Held {
		row("leader", string(l.LeaderID))
	}
	row("fencing token", fmt.Sprint(l.Token))
	row("revision", fmt.Sprint(l.Revision))
	row("lease", l.LeaseDuration.String())
	row("lock delay", l.Config.LockDelay.String())
	if l.State == leadership.Held {
		row("expires in", shortly(l.ExpiresIn))
		row("renew in", shortly(l.RenewIn))
		row("acquired", instant(l.AcquiredAt))
	}
	if l.LockedFor > 0 {
		row("locked for", shortly(l.LockedFor))
	}
	if l.Metadata != "" {
		row("metadata", printable(string(l.Metadata)))
	}
	return rows
}

func (c *cli) printLeases(leases []leadership.Lease) error {
	if c.output == document {
		return printDocuments(c, leases, wire.NewLease)
	}
	rows := [][]string{{"ELECTION", "STATE", "LEADER", "TOKEN", "EXPIRES IN", "REVISION"}}
	for _, l := range leases {
		leader, expires := "-", "-"
		if l.State == leadership.Held {
			leader, expires = string(l.LeaderID), shortly(l.ExpiresIn)
		}
		rows = append(rows, []string{string(l.Election), stateOf(l), leader, fmt.Sprint(l.Token), expires, fmt.Sprint(l.Revision)})
	}
	return c.printTable(rows)
}

func (c *cli) printEvents(events []leadership.Event) error {
	if c.output == document {
		return printDocuments(c, events, wire.NewEvent)
	}
	rows := [][]string{{"REVISION", "AT", "TYPE", "LEADER", "BEFORE", "TOKEN"}}
	for _, e := range events {
		rows = append(rows, []string{
			fmt.Sprint(e.Revision), instant(e.At), string(e.Type), orDash(e.LeaderID), orDash(e.PreviousLeaderID), fmt.Sprint(e.Token),
		})
	}
	return c.printTable(rows)
}

func stateOf(l leadership.Lease) string {
	if l.Deleted {
		return "deleted"
	}
	return string(l.State)
}

func orDash(id leadership.CandidateID) string {
	if id == "" {
		return "-"
	}
	return string(id)
}

// shortly is what is left, never more than that.
func shortly(d time.Duration) string { return d.Truncate(time.Millisecond).String() }

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// printable keeps what a leader says of itself from steering the terminal of whoever reads it. In JSON such characters can only
// stand in strings, where they can be escaped.
func printable(metadata string) string {
	var b strings.Builder
	for _, r := range metadata {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
