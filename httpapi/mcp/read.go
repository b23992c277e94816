package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

type about struct {
	Election leadership.Election `json:"election"`
}

// election is an election in the form for a model.
type election struct {
	Election       leadership.Election    `json:"election"`
	State          leadership.State       `json:"state"`
	LeaderID       leadership.CandidateID `json:"leaderId,omitzero"`
	FencingToken   leadership.Token       `json:"fencingToken"`
	Revision       leadership.Revision    `json:"revision"`
	ExpiresInMs    int64                  `json:"expiresInMs,omitzero"`
	LockedForMs    int64                  `json:"lockedForMs,omitzero"`
	EndsBecause    leadership.EndReason   `json:"endsBecause,omitzero"`
	EndsInMs       int64                  `json:"endsInMs,omitzero"`
	Metadata       jsontext.Value         `json:"metadata,omitzero"`
	Note           string                 `json:"note,omitzero"`
	Report         jsontext.Value         `json:"report,omitzero"`
	ReportAgeMs    int64                  `json:"reportAgeMs,omitzero"`
	MaxStalenessMs int64                  `json:"maxStalenessMs,omitzero"`
}

func newElection(l leadership.Lease, bound time.Duration) election {
	w := wire.NewReading(leadership.Reading{Lease: l, Bound: bound})
	e := election{
		Election: w.Election, State: w.State, LeaderID: w.LeaderID, FencingToken: w.FencingToken, Revision: w.Revision, LockedForMs: w.LockedForMs,
		EndsBecause: w.EndsBecause, EndsInMs: w.EndsInMs, Metadata: w.Metadata, Note: w.Note, Report: w.Report, ReportAgeMs: w.ReportAgeMs, MaxStalenessMs: w.MaxStalenessMs,
	}
	if w.ExpiresInMs != nil {
		e.ExpiresInMs = *w.ExpiresInMs
	}
	return e
}

func (d *desk) whoLeads(ctx context.Context, in about) (election, error) {
	r, err := d.calls.Read(ctx, leadership.ReadRequest{Election: in.Election})
	return newElection(r.Lease, r.Bound), err
}

type listInput struct {
	Prefix    string              `json:"prefix,omitzero"`
	PageToken leadership.Election `json:"pageToken,omitzero"`
	Limit     *int                `json:"limit,omitzero"`
}

type listOutput struct {
	Elections     []listed            `json:"elections"`
	NextPageToken leadership.Election `json:"nextPageToken,omitzero"`
}

// listed is an election in a list: without the leader's metadata and report, which may be large.
type listed struct {
	Election     leadership.Election    `json:"election"`
	State        leadership.State       `json:"state"`
	LeaderID     leadership.CandidateID `json:"leaderId,omitzero"`
	FencingToken leadership.Token       `json:"fencingToken"`
	ExpiresInMs  int64                  `json:"expiresInMs,omitzero"`
}

func (d *desk) list(ctx context.Context, in listInput) (listOutput, error) {
	limit, err := pageSize(in.Limit)
	if err != nil {
		return listOutput{}, err
	}
	page, err := d.calls.List(ctx, leadership.ListRequest{Prefix: in.Prefix, After: in.PageToken, Limit: limit})
	out := listOutput{Elections: []listed{}, NextPageToken: page.Next}
	for _, l := range page.Leases {
		e := newElection(l, 0)
		out.Elections = append(out.Elections, listed{e.Election, e.State, e.LeaderID, e.FencingToken, e.ExpiresInMs})
	}
	return out, err
}

type membersInput struct {
	Election leadership.Election `json:"election"`
	Limit    *int                `json:"limit,omitzero"`
}

type membersOutput struct {
	wire.Members
	Nodes []node `json:"nodes"` // the first of them, in the order of their ids
	More  bool   `json:"more"`
}

// node is a member of an election.
type node struct {
	wire.Member
	Position int `json:"position,omitzero"`
}

func (d *desk) members(ctx context.Context, in membersInput) (membersOutput, error) {
	limit, err := pageSize(in.Limit)
	if err != nil {
		return membersOutput{}, err
	}
	m, err := d.calls.Members(ctx, in.Election)
	out := membersOutput{Members: wire.NewMembers(m), Nodes: []node{}, More: len(m.Members) > limit}
	for _, one := range m.Members[:min(limit, len(m.Members))] {
		out.Nodes = append(out.Nodes, node{wire.NewMember(one), one.Position})
	}
	return out, err
}

type whyInput struct {
	Election    leadership.Election    `json:"election"`
	CandidateID leadership.CandidateID `json:"candidateId"`
}

type whyOutput struct {
	Leads   bool         `json:"leads"`
	Reasons []wire.Cause `json:"reasons"`
}

func (d *desk) whyNot(ctx context.Context, in whyInput) (whyOutput, error) {
	x, err := d.calls.Explain(ctx, leadership.ExplainRequest{Election: in.Election, CandidateID: in.CandidateID})
	return whyOutput{x.Leads, wire.NewExplanation(x).Reasons}, err
}

type historyInput struct {
	Election      leadership.Election `json:"election"`
	AfterRevision leadership.Revision `json:"afterRevision,omitzero"`
	Limit         *int                `json:"limit,omitzero"`
}

type historyOutput struct {
	Events   []event             `json:"events"`
	Revision leadership.Revision `json:"revision"`
}

// event is a change of an election.
type event struct {
	Revision       leadership.Revision    `json:"revision"`
	Type           leadership.EventType   `json:"type"`
	At             time.Time              `json:"at"`
	LeaderID       leadership.CandidateID `json:"leaderId,omitzero"`
	PreviousLeader leadership.CandidateID `json:"previousLeader,omitzero"`
	FencingToken   leadership.Token       `json:"fencingToken"`
	Actor          string                 `json:"actor,omitzero"`
	Reason         string                 `json:"reason,omitzero"`
	Detail         jsontext.Value         `json:"detail,omitzero"`
}

func newEvent(e leadership.Event) event {
	w := wire.NewEvent(e)
	return event{w.Revision, w.Type, w.At, w.LeaderID, w.PreviousLeaderID, w.FencingToken, w.Actor, w.Reason, w.Detail}
}

func (d *desk) history(ctx context.Context, in historyInput) (historyOutput, error) {
	limit, err := pageSize(in.Limit)
	if err == nil {
		err = checkAfter("afterRevision", "a revision", int64(in.AfterRevision))
	}
	if err != nil {
		return historyOutput{}, err
	}
	events, err := d.calls.Events(ctx, leadership.EventsRequest{Election: in.Election, After: in.AfterRevision, Limit: limit})
	out := historyOutput{Events: []event{}, Revision: in.AfterRevision}
	for _, e := range events {
		out.Events, out.Revision = append(out.Events, newEvent(e)), e.Revision
	}
	return out, err
}

// pageSize returns the limit of a page. It refuses 0, which the client would leave out.
func pageSize(limit *int) (int, error) {
	switch {
	case limit == nil:
		return leadership.DefaultPageSize, nil
	case *limit < 1 || *limit > leadership.MaxPageSize:
		return 0, invalid("limit", "limit is from 1 to %d, not %d", leadership.MaxPageSize, *limit)
	}
	return *limit, nil
}

// checkAfter refuses a number for which the server's error would name another field.
func checkAfter(field, what string, n int64) error {
	if n < 0 {
		return invalid(field, "%s is %s, or 0 for before the first, not %d", field, what, n)
	}
	return nil
}

type watchInput struct {
	Election      leadership.Election  `json:"election"`
	AfterRevision *leadership.Revision `json:"afterRevision,omitzero"`
	Wait          *wire.Duration       `json:"wait,omitzero"`
}

type watchOutput struct {
	Changed  bool                `json:"changed"`
	Event    *event              `json:"event,omitzero"`
	Revision leadership.Revision `json:"revision"`
}

// defaultWatch is how long watch waits by default: less than the time limits of most clients.
const defaultWatch = 30 * time.Second

func (d *desk) watch(ctx context.Context, in watchInput) (watchOutput, error) {
	wait := defaultWatch
	if in.Wait != nil {
		if err := checkWait(*in.Wait, time.Second); err != nil {
			return watchOutput{}, err
		}
		wait = time.Duration(*in.Wait)
	}
	r := client.WatchRequest{Election: in.Election}
	var out watchOutput
	if in.Election == "" {
		return out, invalid("election", "%v", in.Election.Validate()) // without a name it would watch all elections, which needs another right
	}
	if in.AfterRevision != nil {
		if err := checkAfter("afterRevision", "a revision", int64(*in.AfterRevision)); err != nil {
			return out, err
		}
		out.Revision, r.After = *in.AfterRevision, strconv.FormatInt(int64(*in.AfterRevision), 10)
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	trouble := fmt.Errorf("%w: the server has not answered in time", leadership.StoreUnavailable) // nil while connected
	r.Connection = func(err error) { trouble = err }
	for news, err := range d.calls.Watch(within, r) {
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return out, trouble
		case err != nil:
			return out, err
		case news.Event != nil:
			return watchOutput{true, new(newEvent(*news.Event)), news.Event.Revision}, nil
		case news.Lease != nil:
			out.Revision = news.Lease.Revision
		}
	}
	return out, nil
}

func (d *desk) checkpoint(ctx context.Context, in about) (leadership.Checkpoint, error) {
	return d.calls.Checkpoint(ctx, in.Election)
}

type journalInput struct {
	Election   leadership.Election `json:"election"`
	AfterIndex leadership.Index    `json:"afterIndex,omitzero"`
	Generation leadership.Token    `json:"generation,omitzero"`
	Limit      *int                `json:"limit,omitzero"`
}

type journalOutput struct {
	leadership.JournalPage
	Compacted *leadership.JournalSnapshot `json:"snapshot,omitzero"`
	More      bool                        `json:"more"`
}

func (d *desk) readJournal(ctx context.Context, in journalInput) (journalOutput, error) {
	var out journalOutput
	limit, err := pageSize(in.Limit)
	if err == nil {
		err = checkAfter("afterIndex", "an index", int64(in.AfterIndex))
	}
	if err != nil {
		return out, err
	}
	r := leadership.JournalRequest{Election: in.Election, After: in.AfterIndex, Generation: in.Generation, Limit: limit}
	page, err := d.calls.ReadJournal(ctx, r)
	if errors.Is(err, leadership.HistoryCompacted) {
		refusal, _ := errors.AsType[*leadership.Error](err)
		s, err := d.calls.ReadSnapshot(ctx, in.Election)
		if err != nil && (!errors.Is(err, leadership.NotFound) || refusal.Generation == in.Generation) {
			return out, err
		}
		out.Compacted = &s
		r.After, r.Generation = s.UpTo, refusal.Generation
		if page, err = d.calls.ReadJournal(ctx, r); err != nil {
			return out, err
		}
	} else if err != nil {
		return out, err
	}
	out.JournalPage, out.More = page, r.After+leadership.Index(len(page.Entries)) < page.Index
	return out, nil
}

type tokenInput struct {
	Election     leadership.Election `json:"election"`
	FencingToken leadership.Token    `json:"fencingToken"`
	Write        bool                `json:"write,omitzero"`
}

type tokenOutput struct {
	Current bool `json:"current"`
	election
}

func (d *desk) checkToken(ctx context.Context, in tokenInput) (tokenOutput, error) {
	l, err := d.calls.CheckToken(ctx, leadership.TokenCheck{Election: in.Election, Token: in.FencingToken, Write: in.Write})
	return tokenOutput{err == nil, newElection(l, 0)}, err
}
