package main

import (
	"cmp"
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

// output marks errors of standard output, so that they are not taken for connection errors.
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

// printDocument writes a document on a line of its own.
func (c *cli) printDocument(document any) error {
	text, err := wire.Marshal(document)
	if err == nil {
		_, err = c.out.Write(append(text, '\n'))
	}
	return err
}

// show prints a document or, for people, a table.
func (c *cli) show(v any, rows [][]string) error {
	if c.output == document {
		return c.printDocument(v)
	}
	return c.printTable(rows)
}

// showAll prints each item as a document on a line of its own or, for people, a table.
func showAll[T, W any](c *cli, items []T, toWire func(T) W, rows [][]string) error {
	if c.output != document {
		return c.printTable(rows)
	}
	for _, item := range items {
		if err := c.printDocument(toWire(item)); err != nil {
			return err
		}
	}
	return nil
}

// facts are the rows of a table with a name and a value each.
type facts [][]string

// add adds a row, unless the value is "".
func (f *facts) add(name, value string) {
	if value != "" {
		*f = append(*f, []string{name, value})
	}
}

// addPositive adds a duration, unless it is 0.
func (f *facts) addPositive(name string, d time.Duration) {
	if d > 0 {
		f.add(name, remaining(d))
	}
}

func (c *cli) printTable(rows [][]string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// printGrant prints the lease, and the key if the server chose it. If printing fails the lease is
// held all the same, so the error says so, even where a closed standard output is no error.
func (c *cli) printGrant(g leadership.Grant, withKey bool) error {
	err := c.printGranted(g, withKey)
	switch {
	case err != nil && withKey:
		return fmt.Errorf("the lease is held, but could not be printed (%v), and its key is lost: it expires in %v", err, g.ExpiresIn)
	case err != nil:
		return fmt.Errorf("the lease is held, but could not be printed (%v); run the same command with the same key to print it again", err)
	case withKey:
		fmt.Fprintln(c.err, "Keep the key: it is shown only once, and renew and release need it.")
	}
	c.warnUnsigned(g.Lease)
	return nil
}

// warnUnsigned prints why a lease has no statement, if one was asked for.
func (c *cli) warnUnsigned(l leadership.Lease) {
	if l.StatementError != "" {
		fmt.Fprintf(c.err, "There is no statement: %s\n", printable(l.StatementError))
	}
}

func (c *cli) printGranted(g leadership.Grant, withKey bool) error {
	w := wire.NewGrant(g)
	if !withKey {
		w.Key = ""
	}
	f := facts(leaseRows(g.Lease))
	if g.Inherited != nil {
		f = append(f, inheritedRows(*g.Inherited)...)
	}
	if n := len(g.InDoubt); n > 0 {
		f.add("effects in doubt", fmt.Sprint(n))
	}
	if n := len(g.Proposals); n > 0 {
		f.add("open proposals", fmt.Sprint(n))
	}
	f.add("key", w.Key)
	return c.show(w, f)
}

func inheritedRows(i leadership.Inheritance) (rows [][]string) {
	because := ""
	if i.EndedBecause != "" {
		because = ", whose term ended (" + string(i.EndedBecause) + ")"
	}
	rows = append(rows, []string{"inherited", fmt.Sprintf("from %s with fencing token %d, put %s%s", i.LeaderID, i.Token, formatTime(i.At), because)})
	for _, row := range checkpointRows(i.Checkpoint)[4:] {
		rows = append(rows, []string{"inherited " + row[0], row[1]})
	}
	return rows
}

func (c *cli) printLease(l leadership.Lease) error {
	c.warnUnsigned(l)
	return c.show(wire.NewLease(l), leaseRows(l))
}

func leaseRows(l leadership.Lease) [][]string {
	var f facts
	held := l.State == leadership.Held
	f.add("election", string(l.Election))
	if l.Seat > 0 {
		f.add("seat", fmt.Sprintf("%d of %s", l.Seat, l.Whole()))
	}
	if seats := l.Config.Seats; seats > 0 && l.Seat == 0 && !l.Deleted { // its own state says nothing of theirs
		f.add("seats", fmt.Sprintf("%d; see 'regent members %s'", seats, l.Election))
	} else {
		f.add("state", stateOf(l))
	}
	if held {
		f.add("leader", string(l.LeaderID))
	}
	f.add("address", printable(l.Metadata.Address()))
	f.add("parked", printable(l.Parked))
	f.add("fencing token", fmt.Sprint(l.Token))
	f.add("revision", fmt.Sprint(l.Revision))
	f.add("lease", l.LeaseDuration.String())
	f.addPositive("longest lease", l.Config.MaxLeaseDuration)
	f.add("lock delay", l.Config.LockDelay.String())
	f.addPositive("retire after", l.Config.RetireAfter)
	if policy := wire.NewLease(l).Configuration.Policy; policy != nil {
		text, _ := wire.Marshal(policy) // cannot fail: each value has a JSON form
		f.add("policy", string(text))
	}
	f.add("description", printable(l.Config.Description))
	if held {
		f.add("expires in", remaining(l.ExpiresIn))
		f.add("renew in", remaining(l.RenewIn))
		f.add("acquired", formatTime(l.AcquiredAt))
	}
	if l.EndsBecause != "" {
		f.add("ends in", remaining(l.EndsIn)+" at the latest ("+string(l.EndsBecause)+")")
	}
	f.add("hand-over", successionText(l))
	if l.NotServing {
		f.add("serving", "no: it must not write yet")
	}
	f.add("via", viaText(l.Parent))
	f.add("statement", l.Statement)
	if l.Report != "" {
		f.add("report", printable(string(l.Report))+", "+remaining(l.ReportAge)+" ago")
	}
	for _, o := range l.Overrides.At(l.ReadAt) {
		f.add("order", string(o.ID)+": "+orderSentence(o))
	}
	f.addPositive("locked for", l.LockedFor)
	f.add("note", printable(l.Note))
	f.add("metadata", printable(string(l.Metadata)))
	return f
}

// successionText returns the state of a hand-over; "" if there is none.
func successionText(l leadership.Lease) string {
	s := l.Succession
	switch {
	case s.To == "":
		return ""
	case s.Yielded:
		return fmt.Sprintf("to %s, which may acquire now", s.To)
	case s.Ready:
		return fmt.Sprintf("to %s, which is ready", s.To)
	}
	return fmt.Sprintf("to %s, which is not ready yet", s.To)
}

// viaText names the lease that another one stands on; "" if there is none.
func viaText(p leadership.Parent) string {
	switch {
	case p.Election == "":
		return ""
	case p.Peer != "":
		return fmt.Sprintf("%s/%s:%d", p.Peer, p.Election, p.Token)
	}
	return fmt.Sprintf("%s:%d", p.Election, p.Token)
}

func (c *cli) printLeases(leases []leadership.Lease) error {
	rows := [][]string{{"ELECTION", "STATE", "LEADER", "TOKEN", "EXPIRES IN", "REVISION"}}
	seats := map[leadership.Election]int{} // numbers of seats that have a leader
	for _, l := range leases {
		if l.State == leadership.Held {
			seats[l.Whole()]++
		}
	}
	for _, l := range leases {
		leader, expires, state := "-", "-", stateOf(l)
		if l.Config.Seats > 0 {
			state = fmt.Sprintf("%d of %d", seats[l.Election], l.Config.Seats)
		}
		if l.Parked != "" {
			state = "parked"
		}
		if l.State == leadership.Held {
			leader, expires = string(l.LeaderID), remaining(l.ExpiresIn)
		}
		rows = append(rows, []string{string(l.Election), state, leader, fmt.Sprint(l.Token), expires, fmt.Sprint(l.Revision)})
	}
	return showAll(c, leases, wire.NewLease, rows)
}

func (c *cli) printEvents(events []leadership.Event) error {
	rows := [][]string{{"REVISION", "AT", "TYPE", "LEADER", "BEFORE", "TOKEN"}}
	won, told := false, false
	for _, e := range events {
		row := []string{fmt.Sprint(e.Revision), formatTime(e.At), string(e.Type), orDash(e.LeaderID), orDash(e.PreviousLeaderID), fmt.Sprint(e.Token)}
		if how := howWon(e); how != "" {
			row, won = append(row, how), true
		} else if what := tells(e); what != "" {
			row, told = append(row, what), true
		}
		rows = append(rows, row)
	}
	switch {
	case told:
		rows[0] = append(rows[0], "WHAT")
	case won:
		rows[0] = append(rows[0], "WON BY")
	}
	return showAll(c, events, wire.NewEvent, rows)
}

// howWon returns how the leader of an acquired event won its ballot; "" if there was none.
func howWon(e leadership.Event) string {
	detail := e.ReadDetail()
	if e.Type != leadership.EventAcquired || detail.Strategy == "" || detail.Winner == nil {
		return ""
	}
	text := string(detail.Strategy)
	switch w := *detail.Winner; {
	case w.Preferred != nil:
		text += fmt.Sprintf(" (%d preferred)", *w.Preferred)
	case w.Priority != nil:
		text += fmt.Sprintf(" %d", *w.Priority)
	case w.Load != nil:
		text += fmt.Sprintf(" %d", *w.Load)
	case w.Draw != "":
		text += " " + w.Draw
	}
	switch {
	case detail.Place > 1:
		text += fmt.Sprintf(", place %d of %d", detail.Place, detail.Bids)
	case detail.Bids > 1:
		text += fmt.Sprintf(", best of %d", detail.Bids)
	}
	return printable(text)
}

// tells returns the detail of an event in words: of a hand-over, a delegation, a ban, or a request
// for a new epoch; "" for any other.
func tells(e leadership.Event) string {
	text := ""
	switch d := e.ReadDetail(); {
	case e.Type == leadership.EventHandingOver && d.To != "":
		text = "to " + string(d.To)
		if !d.EndsBy.IsZero() {
			text += ", by " + formatTime(d.EndsBy) + " at the latest"
		}
	case (e.Type == leadership.EventYielded || e.Type == leadership.EventReleased) && d.To != "":
		text = "to " + string(d.To)
	case e.Type == leadership.EventReady:
		text = string(d.CandidateID)
	case e.Type == leadership.EventHalted:
		text = string(d.Elections)
	case e.Type == leadership.EventDelegated:
		text = string(d.Child)
	case strings.HasPrefix(string(d.Override), string(leadership.OverrideBan)), e.Type == leadership.EventLifted:
		text = cmp.Or(barred(d.CandidateID, d.Principal), string(d.Elections), string(d.Override))
	case e.Type == leadership.EventDeposed && !d.Until.IsZero(): // the cooldown
		text = barred(e.PreviousLeaderID, d.Principal) + ", until " + formatTime(d.Until)
	case e.Type == leadership.EventApprovalRequested && d.NewEpoch:
		text = "with a new epoch"
	}
	return printable(text)
}

func stateOf(l leadership.Lease) string {
	if l.Deleted {
		return "deleted"
	}
	return string(l.State)
}

func orDash(id leadership.CandidateID) string { return cmp.Or(string(id), "-") }

// remaining rounds a remaining time down to milliseconds.
func remaining(d time.Duration) string { return d.Truncate(time.Millisecond).String() }

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// printable escapes control characters in a leader's metadata, which could otherwise control the
// reader's terminal. In JSON they occur only inside strings, where an escape is valid.
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
