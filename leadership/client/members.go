package client

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Join makes the caller a member of an election for r.TTL, and returns the election as Read does.
// Join again to stay, or use Member. LimitExceeded: the instance has no room.
func (c *Client) Join(ctx context.Context, r leadership.JoinRequest) (leadership.Reading, error) {
	return c.reading(ctx, leadership.ReadRequest{Election: r.Election}, post("join", wire.VerbJoin, wire.NewJoinRequest(r)))
}

// Leave ends a membership at once. It is idempotent.
func (c *Client) Leave(ctx context.Context, r leadership.LeaveRequest) error {
	k := post("leave", wire.VerbLeave, wire.LeaveRequest{CandidateID: r.CandidateID})
	_, err := ask(ctx, c, r.Election, k, func(answer wire.Left) bool { return answer.Election == r.Election })
	return err
}

// Members reads the members of an election, with their roles and the token that each follows, the
// quorum, and a status.
func (c *Client) Members(ctx context.Context, e leadership.Election) (leadership.Members, error) {
	answer, err := ask(ctx, c, e, look("members", wire.AllMembers), func(answer wire.Members) bool { return answer.Election == e && answer.Status != "" })
	return answer.Leadership(), err
}

// AwaitAcknowledgement returns which members follow a token, and which do not. It blocks until
// r.Need of them do, for at most r.Wait; too few are no error: see Acknowledgement.Done.
func (c *Client) AwaitAcknowledgement(ctx context.Context, r leadership.AcknowledgementRequest) (leadership.Acknowledgement, error) {
	k := post("await acknowledgement", wire.VerbAcknowledgement, wire.NewAcknowledgementRequest(r))
	k.wait = min(max(r.Wait, 0), leadership.MaxWait)
	return ask(ctx, c, r.Election, k, func(answer leadership.Acknowledgement) bool {
		return answer.Election == r.Election && answer.Token == r.Token && answer.JournalIndex == r.JournalIndex
	})
}

// MemberConfig says which member a program is, and how.
type MemberConfig struct {
	// ID must be unique among the members of the election, candidates included. "" selects the id
	// of the Client's Candidate.
	ID leadership.CandidateID
	// Role is leadership.RoleFollower, RoleWorker or RoleWitness; "" is RoleFollower.
	Role leadership.Role
	// TTL is how long the member counts unless it joins again, from leadership.MinMemberTTL to
	// MaxMemberTTL; 0 for 30 s. A member that has died vanishes after it.
	TTL  time.Duration
	Note string // for people: one line of at most 256 bytes
	// SeenToken, if set, is called every second and returns the newest fencing token that the
	// member follows; 0 for none. Without it the member follows the newest token that it has heard
	// of.
	SeenToken func() leadership.Token
	// Told, if set, is called with the leader, or "" for none, and the newest token: when the
	// member has joined, and when it hears of a change. It must return soon: the next join waits
	// for it.
	Told func(leader leadership.CandidateID, token leadership.Token)
	// Failed, if set, is called with the error of each join that will be retried. It must return
	// soon.
	Failed func(error)
}

const (
	// defaultTTL is the default of MemberConfig.TTL.
	defaultTTL = 30 * time.Second
	// seenEvery is how often MemberConfig.SeenToken is called.
	seenEvery = time.Second
	// leaveTimeout limits the call that leaves an election.
	leaveTimeout = 5 * time.Second
)

// Member keeps the program a member of the election until ctx ends, and then leaves. It blocks:
// call it on a goroutine of its own. It joins again every third of the TTL, a little earlier at
// random, and at once when it follows another token. It watches the election to hear of new tokens;
// if that is not possible it hears of them when it joins.
//
// It returns nil when ctx ends, and otherwise an error that a retry would not change, such as
// leadership.InvalidArgument or wire.PermissionDenied. It retries while the server cannot be
// reached, has no room for more members, or knows no such election.
func (c *Client) Member(ctx context.Context, election leadership.Election, config MemberConfig) error {
	if config.ID == "" {
		config.ID = c.candidateID(ctx)
	}
	m := member{Client: c, config: config, heard: make(chan leadership.Event, 1), request: leadership.JoinRequest{
		Election: election, CandidateID: config.ID, Role: cmp.Or(config.Role, leadership.RoleFollower),
		TTL: cmp.Or(config.TTL, defaultTTL), Note: config.Note,
	}}
	if err := m.request.Validate(); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { m.watch(watching) })
	defer beside.Wait()
	defer stop()
	return m.run(ctx)
}

type member struct {
	*Client
	config  MemberConfig
	request leadership.JoinRequest
	heard   chan leadership.Event // capacity 1: the newest event not handled yet
	backoff backoff
	failed  bool // the last join has failed

	answered, unknown bool // a join was answered; an unanswered one may have arrived

	now  news
	at   leadership.Revision // of now
	told *news               // the last that Told was called with; nil for none yet
}

// news is the leader and the token that a member has heard of.
type news struct {
	leader leadership.CandidateID
	token  leadership.Token
}

// watch hears of changes until ctx ends or the watch fails for good.
func (m *member) watch(ctx context.Context) {
	for event, err := range m.Observe(ctx, m.request.Election) {
		if err != nil {
			m.log.Debug("the member hears of a new leader only when it joins", "election", m.request.Election, "reason", err)
			return
		}
		select {
		case <-m.heard:
		default:
		}
		m.heard <- event
	}
}

func (m *member) run(ctx context.Context) error {
	defer m.leave(ctx)
	for ctx.Err() == nil {
		pause, err := m.join(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		m.rest(ctx, pause)
	}
	return nil
}

// join joins once, and returns the time until the next call, or a permanent error.
func (m *member) join(ctx context.Context) (pause time.Duration, err error) {
	if m.config.SeenToken != nil {
		m.request.SeenToken = m.config.SeenToken()
	}
	reading, err := m.joinOnce(ctx)
	if err != nil {
		m.unknown = m.unknown || errors.Is(err, leadership.OutcomeUnknown)
		if !transient(err) && !errors.Is(err, leadership.LimitExceeded) && !errors.Is(err, leadership.NotFound) {
			return 0, err
		}
		if m.config.Failed != nil && ctx.Err() == nil {
			m.config.Failed(err)
		}
		if !m.failed && ctx.Err() == nil {
			m.log.Warn("the member could not join; trying again", "election", m.request.Election, "member", m.request.CandidateID, "reason", err)
		}
		m.failed = true
		return m.backoff.after(err), nil
	}
	m.backoff, m.failed, m.answered = backoff{}, false, true
	if m.hear(reading.Revision, reading.LeaderID, reading.Token) {
		return 0, nil // join again at once to report the new token
	}
	return early(m.request.TTL / 3), nil
}

// joinOnce waits for the answer even after ctx has ended, for up to leaveTimeout: a join that is
// cut off may be carried out after the member has left.
func (m *member) joinOnce(ctx context.Context) (leadership.Reading, error) {
	joining, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(leaveTimeout, cancel) })()
	return m.Join(joining, m.request)
}

// hear notes the leader and token heard of at a revision, and reports whether the member now
// follows another token.
func (m *member) hear(at leadership.Revision, leader leadership.CandidateID, token leadership.Token) (follows bool) {
	if at > m.at || at == m.at && token >= m.now.token {
		m.at, m.now = at, news{leader, token}
	}
	m.tell()
	if m.config.SeenToken == nil && token > m.request.SeenToken {
		m.request.SeenToken = token
		return true
	}
	return false
}

// tell calls Told if the leader or the token has changed, once the member has joined.
func (m *member) tell() {
	if now := m.now; m.config.Told != nil && m.answered && (m.told == nil || *m.told != now) {
		m.told = &now
		m.config.Told(now.leader, now.token)
	}
}

// rest blocks until the member has to join again, for at most pause.
func (m *member) rest(ctx context.Context, pause time.Duration) {
	due, look := time.After(pause), time.NewTicker(seenEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
			return
		case <-look.C:
			if m.config.SeenToken != nil && m.config.SeenToken() != m.request.SeenToken {
				return
			}
		case e := <-m.heard:
			if m.hear(e.Revision, e.LeaderID, e.Token) {
				return
			}
		}
	}
}

// leave ends the membership. If the call fails, the membership ends with its TTL.
func (m *member) leave(ctx context.Context) {
	if !m.answered && !m.unknown {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := m.Leave(ctx, leadership.LeaveRequest{Election: m.request.Election, CandidateID: m.request.CandidateID}); err != nil {
		m.log.Debug("the member could not leave; it vanishes when its time is over", "election", m.request.Election, "reason", err)
	}
}
