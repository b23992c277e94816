package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"regent/leadership"
)

// Lease is an election as a caller reads it. A field that does not apply is left out. A new field
// is one line here, one in NewLease, one in Leadership, and one in httpapi/openapi.yaml.
type Lease struct {
	Election        leadership.Election    `json:"election"`
	Seat            int                    `json:"seat,omitzero"` // the number of the seat, if the election is one
	Of              leadership.Election    `json:"of,omitzero"`   // with seat: the election that has it
	State           leadership.State       `json:"state"`
	LeaderID        leadership.CandidateID `json:"leaderId,omitzero"`
	FencingToken    leadership.Token       `json:"fencingToken"`
	Revision        leadership.Revision    `json:"revision"`
	LeaseDuration   Duration               `json:"leaseDuration"`
	ExpiresInMs     *int64                 `json:"expiresInMs,omitzero"` // rounded down; while held
	RenewInMs       *int64                 `json:"renewInMs,omitzero"`   // rounded down; while held
	LockedForMs     int64                  `json:"lockedForMs,omitzero"` // rounded up
	AcquiredAt      time.Time              `json:"acquiredAt,omitzero"`
	LastHeartbeat   time.Time              `json:"lastHeartbeat,omitzero"`
	LeaseExpiration time.Time              `json:"leaseExpiration,omitzero"`
	ReadAt          time.Time              `json:"readAt,omitzero"`
	EndsBy          time.Time              `json:"endsBy,omitzero"` // no renewal extends the lease beyond it
	EndsBecause     leadership.EndReason   `json:"endsBecause,omitzero"`
	EndsInMs        int64                  `json:"endsInMs,omitzero"` // rounded down; with endsBy
	Succession      *Succession            `json:"succession,omitzero"`
	Serving         *bool                  `json:"serving,omitzero"`  // false until the leader says so, with the policy promotion
	Via             *Via                   `json:"via,omitzero"`      // the lease that this one stands on
	Metadata        jsontext.Value         `json:"metadata,omitzero"` // an object
	Note            string                 `json:"note,omitzero"`
	Report          jsontext.Value         `json:"report,omitzero"`      // the leader's last, an object
	ReportedAt      time.Time              `json:"reportedAt,omitzero"`  // with report
	ReportAgeMs     int64                  `json:"reportAgeMs,omitzero"` // with report, rounded up
	Configuration   Configuration          `json:"configuration"`
	Overrides       []Override             `json:"overrides,omitzero"` // in the answer to an order
	Parked          string                 `json:"parked,omitzero"`    // why no lease is granted until operators approve
	Deleted         bool                   `json:"deleted,omitzero"`
	Configured      bool                   `json:"configured,omitzero"`     // in the answer to checkToken
	Ticket          leadership.Ticket      `json:"ticket,omitzero"`         // for the leader's next renewal
	Statement       string                 `json:"statement,omitzero"`      // if the request asked for it
	StatementError  string                 `json:"statementError,omitzero"` // or why there is no statement
	// MaxStalenessMs marks a lease that was read from a cache: it was true at some moment within
	// this time before it was sent, and may have changed since. It is left out of a lease that was
	// read from the store.
	MaxStalenessMs int64 `json:"maxStalenessMs,omitzero"`
}

// NewLease writes a lease.
func NewLease(l leadership.Lease) Lease {
	w := Lease{
		Election:        l.Election,
		State:           l.State,
		LeaderID:        l.LeaderID,
		FencingToken:    l.Token,
		Revision:        l.Revision,
		LeaseDuration:   Duration(l.LeaseDuration),
		LockedForMs:     millisUp(l.LockedFor),
		AcquiredAt:      l.AcquiredAt.UTC(),
		LastHeartbeat:   l.LastHeartbeat.UTC(),
		LeaseExpiration: l.LeaseExpiration.UTC(),
		ReadAt:          l.ReadAt.UTC(),
		EndsBy:          l.EndsBy.UTC(),
		EndsBecause:     l.EndsBecause,
		EndsInMs:        millisDown(l.EndsIn),
		Metadata:        rawObject([]byte(l.Metadata)),
		Note:            l.Note,
		Report:          rawReport(l.Report),
		ReportedAt:      l.ReportedAt.UTC(),
		ReportAgeMs:     millisUp(l.ReportAge),
		Configuration:   newConfiguration(l.Config),
		Parked:          l.Parked,
		Deleted:         l.Deleted,
		Configured:      l.Configured,
		Ticket:          l.Ticket,
		Statement:       l.Statement,
		StatementError:  l.StatementError,
	}
	if l.State == leadership.Held {
		rest := [...]int64{millisDown(l.ExpiresIn), millisDown(l.RenewIn)} // one allocation, not two
		w.ExpiresInMs, w.RenewInMs = &rest[0], &rest[1]
	}
	w.Succession, w.Via = newSuccession(l.Succession), newVia(l.Parent.Peer, l.Parent.Election, l.Parent.Token)
	w.Seat, w.Of = l.Seat, l.Whole()
	if l.NotServing {
		w.Serving = new(false)
	}
	if l.Overrides != "" {
		w.Overrides = NewOverrides(l.Overrides.At(l.ReadAt)).Overrides
	}
	return w
}

// rawObject returns JSON text as it is, and nil for none.
func rawObject(text []byte) jsontext.Value {
	if len(text) == 0 {
		return nil
	}
	return text
}

// NewReading writes a lease as a reader sees it.
func NewReading(r leadership.Reading) Lease {
	w := NewLease(r.Lease)
	w.MaxStalenessMs = millisUp(r.Bound)
	return w
}

// Leadership reads a lease. It returns an error for a document that no server of Regent writes.
func (w Lease) Leadership() (leadership.Lease, error) {
	metadata, err := leadership.ParseMetadata(w.Metadata)
	if err != nil {
		return leadership.Lease{}, err
	}
	if err := w.validate(); err != nil {
		return leadership.Lease{}, err
	}
	report, err := leadership.ParseReport(w.Report)
	if err != nil {
		report = "" // from a newer server; clients do not need it
	}
	return leadership.Lease{
		Election:        w.Election,
		State:           w.State,
		LeaderID:        w.LeaderID,
		Token:           w.FencingToken,
		Revision:        w.Revision,
		LeaseDuration:   time.Duration(w.LeaseDuration),
		Metadata:        metadata,
		Note:            w.Note,
		Report:          report,
		ReportedAt:      w.ReportedAt,
		ReportAge:       fromMillis(w.ReportAgeMs),
		Overrides:       leadership.NewOverrides(Overrides{w.Overrides}.Leadership()),
		ExpiresIn:       optionalMillis(w.ExpiresInMs),
		RenewIn:         optionalMillis(w.RenewInMs),
		LockedFor:       fromMillis(w.LockedForMs),
		AcquiredAt:      w.AcquiredAt,
		LastHeartbeat:   w.LastHeartbeat,
		LeaseExpiration: w.LeaseExpiration,
		ReadAt:          w.ReadAt,
		EndsBy:          w.EndsBy,
		EndsBecause:     w.EndsBecause,
		EndsIn:          fromMillis(w.EndsInMs),
		Succession:      w.Succession.leadership(),
		Parked:          w.Parked,
		NotServing:      w.Serving != nil && !*w.Serving,
		Parent:          leadership.Parent{Peer: given(given(w.Via).Peer), Election: given(w.Via).Election, Token: given(w.Via).FencingToken},
		Config:          w.Configuration.leadership(),
		Deleted:         w.Deleted,
		Seat:            w.Seat,
		Configured:      w.Configured,
		Ticket:          w.ticket(),
		Statement:       w.Statement,
		StatementError:  w.StatementError,
	}, nil
}

// ticket drops a text that no server would accept: a leader does not need a ticket.
func (w Lease) ticket() leadership.Ticket {
	if len(w.Ticket) > leadership.MaxTicketBytes {
		return ""
	}
	return w.Ticket
}

// validate keeps a client from believing in a document that is not a lease.
func (w Lease) validate() error {
	held := w.State == leadership.Held
	switch {
	case w.Election == "":
		return errors.New("a lease without an election")
	case !held && w.State != leadership.Vacant:
		return fmt.Errorf("a lease in the state %s", Quote(string(w.State)))
	case held && (w.LeaderID == "" || w.FencingToken < 1 || w.ExpiresInMs == nil):
		return errors.New("a lease that is held without a leader, a fencing token or its remaining time")
	}
	return nil
}

func optionalMillis(ms *int64) time.Duration {
	if ms == nil {
		return 0
	}
	return fromMillis(*ms)
}

// NewGrant writes a grant, including its key.
func NewGrant(g leadership.Grant) Grant {
	return Grant{Lease: NewLease(g.Lease), Key: g.Key.Text(), WaitedMs: millisDown(g.Waited), Inherited: g.Inherited, InDoubt: g.InDoubt, Proposals: g.Proposals}
}

// Grant is the reply to an acquire.
type Grant struct {
	Lease
	Key string `json:"key,omitzero"` // if and only if the server chose it
	// WaitedMs is how long the request waited in line before the store was asked for this lease,
	// rounded down.
	WaitedMs int64 `json:"waitedMs,omitzero"`
	// Inherited is the last leader's checkpoint, if the request asked to inherit.
	Inherited *leadership.Inheritance `json:"inherited,omitzero"`
	// InDoubt are the effects that earlier leaders have not finished, if the request asked to
	// inherit.
	InDoubt []leadership.Effect `json:"inDoubt,omitzero"`
	// Proposals are the open proposals, if the request asked to inherit.
	Proposals []leadership.Proposal `json:"proposals,omitzero"`
}
