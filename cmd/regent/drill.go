package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/cmd/regent/internal/apply"
	"regent/leadership"
	"regent/leadership/client"
)

const drillHelp = `End terms on purpose, one after the other, and measure the time without a leader. Each drill evicts the leader of one
election that matches: its term ends at the end that the leader was promised, and the order names its fencing token.
Elections take turns. One is left alone if no candidate waits in line, or if orders or the policy bar all that wait,
unless --even-alone is given. The next drill begins only when a candidate has taken over.

Each line is one drill. ENDED says how the term ended: released or yielded means that the leader stopped in time; expired,
that it did not, and its lease ran out. VACANT is the time from that end, or from the promised end if that was earlier, to
the next grant, by the store's clock. If no candidate has taken over --within after the promised end, the drill is over.

With --output json each line is a document: {"election":…,"leader":…,"fencingToken":…,"ended":…,"inTime":…,"vacantMs":…,
"successor":…,"successorToken":…}, and the last one sums up: {"drills":…,"late":…,"longestMs":…,"medianMs":…,"p99Ms":…}. With
--dry-run it is {"election":…,"leader":…,"fencingToken":…}, and "spared" with the reason if the election is left alone.

SIGINT or SIGTERM ends the drill. The exit code is 0 if there was a drill, each leader stopped in time and each had a
successor; else it is 1. Only the roles operator and admin may do this.`

type drill struct {
	*cli
	server patientServer
	of     leadership.Election // or a pattern
	every  time.Duration       // from the beginning of one to that of the next
	during time.Duration       // 0: one drill
	within time.Duration       // after the promised end a successor must lead
	alone  bool                // also without a candidate in line
	dryRun bool
	order  leadership.Order // the eviction, but for the election and its token
	done   []drillDocument
	table  columns
}

// drillDocument is the result of one drill.
type drillDocument struct {
	Election       leadership.Election    `json:"election"`
	LeaderID       leadership.CandidateID `json:"leader"`
	Token          leadership.Token       `json:"fencingToken"`
	Ended          leadership.EventType   `json:"ended,omitzero"`
	InTime         bool                   `json:"inTime"`
	VacantMs       int64                  `json:"vacantMs"` // until there was a successor
	Successor      leadership.CandidateID `json:"successor,omitzero"`
	SuccessorToken leadership.Token       `json:"successorToken,omitzero"`
}

// drillPlan says what a drill would do to an election.
type drillPlan struct {
	Election leadership.Election    `json:"election"`
	LeaderID leadership.CandidateID `json:"leader,omitzero"`
	Token    leadership.Token       `json:"fencingToken"`
	Spared   string                 `json:"spared,omitzero"` // why it is left alone
}

// drillSummary sums up all drills. The median and the percentile need enough of them.
type drillSummary struct {
	Drills    int   `json:"drills"`
	Late      int   `json:"late"` // leaders that did not stop in time
	LongestMs int64 `json:"longestMs"`
	MedianMs  int64 `json:"medianMs,omitzero"`
	P99Ms     int64 `json:"p99Ms,omitzero"`
}

func (c *cli) drillCommand() *cobra.Command {
	d := drill{cli: c, within: time.Minute, every: 5 * time.Minute, order: leadership.Order{Kind: leadership.OrderEvict, Reason: "drill"}}
	d.table = columns{[]string{"ELECTION", "LEADER", "TOKEN", "ENDED", "VACANT", "SUCCESSOR", "TOKEN"}, []int{16, 16, 5, 8, 8, 16, 5}}
	cmd := &cobra.Command{
		Use:   "drill ELECTION|PREFIX* [--every DURATION] [--for DURATION] [--within DURATION] [--even-alone] [--dry-run]",
		Short: "End terms on purpose, and measure the time without a leader",
		Long:  drillHelp,
		Example: `  regent drill 'jobs.*' --dry-run
  regent drill 'jobs.*' --every 5m --for 1h`,
		ValidArgsFunction: c.completeElection,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("drill takes one argument, an election's name or the beginning of names and a *, but got %d", len(args))
			}
			d.of = leadership.Election(args[0])
			return d.of.ValidatePattern()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.order.Actor = c.actor(d.order.Actor)
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().Var(&value[time.Duration]{&d.every, d.every.String(), "DURATION", between(time.Second, 24*time.Hour)}, "every", "how long from one drill to the next")
	cmd.Flags().Var(&value[time.Duration]{&d.during, "", "DURATION", between(time.Second, 30*24*time.Hour)}, "for", "how long drills begin (default: one drill)")
	cmd.Flags().Var(&value[time.Duration]{&d.within, d.within.String(), "DURATION", between(time.Second, 24*time.Hour)}, "within", "how long after the promised end a candidate must have taken over")
	cmd.Flags().BoolVar(&d.alone, "even-alone", false, "also elections without a candidate in line that may lead")
	cmd.Flags().BoolVar(&d.dryRun, "dry-run", false, "end no term; say of each election what a drill would do")
	c.offerReason(cmd, "reason", "why, for the election's history", &d.order.Reason, &d.order.Actor)
	return c.remote(cmd)
}

func (d *drill) run(ctx context.Context) (err error) {
	if d.server, err = d.connectPatiently(); err != nil {
		return err
	}
	if d.dryRun {
		return d.plan(ctx)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	err = d.rounds(ctx)
	return cmp.Or(d.summary(), err, d.verdict())
}

// rounds drills in turn until the time is over, a signal comes, or an election has no successor.
func (d *drill) rounds(ctx context.Context) error {
	var last leadership.Election
	for begin, next := time.Now(), time.Duration(0); ctx.Err() == nil; {
		l, err := d.choose(ctx, last)
		if err == nil && l.Election != "" {
			last = l.Election
			err = d.evict(ctx, l)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (d.during == 0 || !transient(err)):
			return err
		case err != nil:
			d.notice("this drill is left out", err)
		}
		if next = max(next+d.every, time.Since(begin)); next >= d.during {
			return nil
		}
		sleep(ctx, next-time.Since(begin))
	}
	return nil
}

// matching returns the elections that a drill may choose, beginning with those after last.
func (d *drill) matching(ctx context.Context, last leadership.Election) ([]leadership.Lease, error) {
	begin, pattern := d.of.Pattern()
	if !pattern {
		l, err := d.server.Get(ctx, d.of)
		return []leadership.Lease{l}, err
	}
	all, err := apply.List(ctx, d.server, begin)
	i := slices.IndexFunc(all, func(l leadership.Lease) bool { return l.Election > last })
	if i < 0 {
		return all, err
	}
	return slices.Concat(all[i:], all[:i]), err
}

// choose returns the next election whose term may be ended; its name is empty if there is none.
func (d *drill) choose(ctx context.Context, last leadership.Election) (leadership.Lease, error) {
	all, err := d.matching(ctx, last)
	if err != nil {
		return leadership.Lease{}, err
	}
	for _, l := range all {
		if why, err := d.spare(ctx, l); err != nil || why == "" {
			return l, err
		}
	}
	return leadership.Lease{}, nil
}

// spare returns why a term must not be ended, or "".
func (d *drill) spare(ctx context.Context, l leadership.Lease) (why string, err error) {
	switch {
	case l.State != leadership.Held:
		return "no candidate leads", nil
	case d.alone:
		return "", nil
	}
	m, err := patiently(ctx, d.timeout, d.server.Members, cmp.Or(l.Whole(), l.Election)) // seats have one line
	why = "no candidate is in line"
	for _, one := range m.Members {
		if one.Role != leadership.RoleCandidate || one.Position == 0 {
			continue
		}
		x, err := patiently(ctx, d.timeout, d.server.Explain, leadership.ExplainRequest{Election: l.Election, CandidateID: one.ID})
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(x.Causes, bars) {
			return "", nil
		}
		why = "an order or the policy bars the candidates in line"
	}
	return why, err
}

// bars reports whether a cause will keep a candidate from leading after the end of the term.
func bars(c leadership.Cause) bool {
	return c.Override != "" || c.Code == leadership.ReasonApproval || c.Code == leadership.ReasonParked
}

// plan prints for each election what a drill would do.
func (d *drill) plan(ctx context.Context) error {
	all, err := d.matching(ctx, "")
	if err != nil {
		return err
	}
	var plans []drillPlan
	rows := [][]string{{"ELECTION", "LEADER", "TOKEN", "DRILL"}}
	for _, l := range all {
		why, err := d.spare(ctx, l)
		if err != nil {
			return err
		}
		plans = append(plans, drillPlan{l.Election, l.LeaderID, l.Token, why})
		text := "its term would end"
		if why != "" {
			text = "left alone: " + why
		}
		rows = append(rows, []string{string(l.Election), orDash(l.LeaderID), fmt.Sprint(l.Token), text})
	}
	return showAll(d.cli, plans, func(p drillPlan) drillPlan { return p }, rows)
}

func (d *drill) evict(ctx context.Context, l leadership.Lease) error {
	r := d.order
	r.Election, r.Token = l.Election, l.Token
	after, err := d.server.Do(ctx, r)
	switch {
	case errors.Is(err, leadership.TokenStale), err == nil && (after.Token != l.Token || after.State != leadership.Held):
		return nil // the term was over already
	case err != nil:
		return err
	}
	watching, cancel := context.WithTimeout(ctx, after.EndsIn+d.within)
	defer cancel()
	one, err := d.follow(watching, after)
	switch {
	case ctx.Err() != nil: // a signal has come
		return nil
	case watching.Err() != nil:
		err = fmt.Errorf("no candidate has taken election %q over within %v after the end of the term of %s", l.Election, d.within, l.LeaderID)
	case err != nil:
		return err
	}
	d.done = append(d.done, one)
	return cmp.Or(d.tell(one), err)
}

// follow watches an evicted leader until another term has begun.
func (d *drill) follow(ctx context.Context, l leadership.Lease) (one drillDocument, err error) {
	one = drillDocument{Election: l.Election, LeaderID: l.LeaderID, Token: l.Token}
	end := l.EndsBy
	for news, err := range d.server.Watch(ctx, client.WatchRequest{Election: l.Election, After: fmt.Sprint(l.Revision)}) {
		e := news.Event
		switch {
		case err != nil:
			return one, err
		case e == nil:
			continue
		case e.Type == leadership.EventDeleted:
			return one, fmt.Errorf("election %q was deleted meanwhile", l.Election)
		case e.Type == leadership.EventAcquired:
			one.VacantMs, one.Successor, one.SuccessorToken = max(e.At.Sub(end), 0).Milliseconds(), e.LeaderID, e.Token
			return one, nil
		case one.Ended == "" && (e.PreviousLeaderID != "" || e.Type == leadership.EventYielded):
			one.Ended = e.Type
			one.InTime = e.Type == leadership.EventReleased || e.Type == leadership.EventYielded
			if e.At.Before(end) {
				end = e.At
			}
		}
	}
	return one, ctx.Err()
}

func (d *drill) tell(one drillDocument) error {
	vacant := "-"
	if one.Successor != "" {
		vacant = milliseconds(one.VacantMs)
	}
	return d.showRow(one, &d.table, string(one.Election), string(one.LeaderID), fmt.Sprint(one.Token), cmp.Or(string(one.Ended), "-"), vacant,
		orDash(one.Successor), numberOrDash(int64(one.SuccessorToken)))
}

func milliseconds(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// sum sums up the drills. It computes the percentile only from 100 drills on: with fewer it would
// be the longest.
func (d *drill) sum() (s drillSummary) {
	var vacant []int64
	for _, one := range d.done {
		if one.Ended != "" && !one.InTime {
			s.Late++
		}
		if one.Successor != "" {
			vacant = append(vacant, one.VacantMs)
		}
	}
	slices.Sort(vacant)
	s.Drills = len(d.done)
	if n := len(vacant); n > 0 {
		s.LongestMs = vacant[n-1]
		if n > 2 {
			s.MedianMs = vacant[n/2]
		}
		if n >= 100 {
			s.P99Ms = vacant[(n*99-1)/100]
		}
	}
	return s
}

func (d *drill) summary() error {
	s := d.sum()
	if s.Drills == 0 {
		return nil
	}
	text := fmt.Sprintf("%d drills: the longest vacancy %s", s.Drills, milliseconds(s.LongestMs))
	if s.MedianMs > 0 {
		text += ", the median " + milliseconds(s.MedianMs)
	}
	if s.P99Ms > 0 {
		text += ", 99 % within " + milliseconds(s.P99Ms)
	}
	text += fmt.Sprintf("; leaders that did not stop in time: %d", s.Late)
	return d.show(s, [][]string{{strings.Replace(text, "1 drills", "1 drill", 1)}})
}

// verdict returns an error unless there was a drill, and each leader stopped in time.
func (d *drill) verdict() error {
	switch s := d.sum(); {
	case s.Drills == 0:
		return errors.New("no term was ended: see why with --dry-run")
	case s.Late > 0:
		return fmt.Errorf("%d of %d leaders did not stop in time: their leases ran out", s.Late, s.Drills)
	}
	return nil
}
