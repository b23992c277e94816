package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"regent/leadership"
	"regent/leadership/client"
)

// SessionConfig configures a Session. Calls and Connect are required.
type SessionConfig struct {
	// Calls makes the calls that need no lease.
	Calls *client.Client
	// Connect returns another client of the server, for a lease.
	Connect func(client.Config) (*client.Client, error)
	// Candidate is the id of the candidate, unless a call of lead names another one; "" means an id
	// that is unique to this process.
	Candidate leadership.CandidateID
	Actor     string       // the actor of orders, if the server does not verify its callers
	Version   string       // of the program
	Log       *slog.Logger // nil for none
}

// Session serves the tools to one client, and holds its leases. It calls the server only from the
// first tool call on: a client may start a process only to list its tools.
type Session struct {
	config SessionConfig
	desk   *desk

	mu      sync.Mutex
	terms   map[leadership.Election]*term // nil while a call campaigns; guarded by mu
	closing bool                          // guarded by mu
	end     context.Context               // ends with the session, when the process is told to stop
	leads   sync.WaitGroup                // calls of lead in progress
}

func NewSession(c SessionConfig) *Session {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	s := &Session{config: c, terms: map[leadership.Election]*term{}}
	s.desk = &desk{calls: c.Calls, connect: s.connect, begin: s.begin, actor: func(context.Context) string { return c.Actor }, terms: s, log: c.Log}
	return s
}

func (s *Session) connect(c client.Config) (*client.Client, error) {
	c.Log = s.config.Log
	c.Candidate.ID = cmp.Or(c.Candidate.ID, s.config.Candidate)
	return s.config.Connect(c)
}

// Run serves until the input ends or ctx does, and then releases all leases. It returns nil after
// the end of the input.
func (s *Session) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	s.end = ctx
	err := newServer(s.desk, s.config.Version).Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxBody})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		err = nil
	} else if err != nil {
		err = fmt.Errorf("the input is not the Model Context Protocol, or the output is closed: %w; a program that runs a model starts this command", err)
	}
	return errors.Join(err, s.close())
}

func (s *Session) close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.leads.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(s.terms))
	var releasing sync.WaitGroup
	n := 0
	for _, t := range s.terms {
		err := &errs[n]
		n++
		releasing.Go(func() { *err = t.release(context.Background()) })
	}
	releasing.Wait()
	return errors.Join(errs...)
}

// begin returns the context of a call. It also ends with the session; the library ends it only with
// the input.
func (s *Session) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.end, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// reserve implements terms. The handle of a lease is the name of its election.
func (s *Session) reserve(_ context.Context, in leadInput) (*term, string, func(*term) (string, error), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, there := s.terms[in.Election]
	switch {
	case s.closing:
		return nil, "", nil, errClosing
	case there && before == nil:
		return nil, "", nil, fmt.Errorf("%w: another call of lead for election %q is under way; wait for its answer", leadership.LeaseHeld, in.Election)
	case there && before.lease.Valid():
		if in.CandidateID != "" && in.CandidateID != before.lease.CandidateID() {
			return nil, "", nil, invalid("candidateId", "this process leads election %q already, as %q; stop leading it first, or leave candidateId out", in.Election, before.lease.CandidateID())
		}
		return before, string(in.Election), nil, nil
	}
	s.terms[in.Election] = nil
	s.leads.Add(1)
	return nil, "", func(t *term) (string, error) {
		s.settle(in.Election, cmp.Or(t, before))
		return string(in.Election), nil
	}, nil
}

var errClosing = errors.New("the session has ended")

// settle ends a campaign: it stores the new term, the previous one, which is over, or none.
func (s *Session) settle(e leadership.Election, t *term) {
	defer s.leads.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terms[e] = t; t == nil {
		delete(s.terms, e)
	}
}

func (s *Session) find(_ context.Context, handle string) (*term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terms[leadership.Election(handle)]; t != nil {
		return t, nil
	}
	return nil, invalid("handle", "this process leads no election by that handle; pass the handle as lead returned it, or call lead")
}

func (s *Session) stop(ctx context.Context, handle string, end func(context.Context, *client.Lease) error) error {
	t, err := s.find(ctx, handle)
	if err != nil {
		return err
	}
	return end(ctx, t.lease)
}
