package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// Candidate says which candidate campaigns with a Client, and how. The zero value works.
type Candidate struct {
	// ID should be unique in the election: a second process with the same id cannot lead while the
	// first one does. "" selects the DefaultCandidateID, one for the whole Client.
	ID leadership.CandidateID
	// LeaseDuration is the duration to ask for: 1 s to 24 h in whole milliseconds; 0 for the
	// election's configuration. The shorter it is, the sooner a dead leader is succeeded, and the
	// sooner a leader that cannot reach its server stops.
	LeaseDuration time.Duration
	// Metadata is a JSON object that describes the leader to readers of the election, such as its
	// address; see leadership.ParseMetadata.
	Metadata []byte
	// Margin is how long before the end of its lease a leader stops believing in it: the time it
	// needs to stop what it is doing. 0 selects a tenth of the lease, at most one second. Campaign
	// refuses a margin that leaves nothing of the lease.
	Margin time.Duration
	// Rounds limits the number of calls of Campaign, each of which waits in line for up to a
	// minute; 0 for no limit.
	Rounds int

	// The election's policy may use the next four fields while the candidate waits: see rule.Rank.

	// Role is leadership.RoleCandidate or RoleWitness; "" is RoleCandidate. A witness stands in
	// line, counts for the quorum, and is never granted the lease.
	Role leadership.Role
	// Priority is from leadership.MinPriority to MaxPriority; a greater one is better. See also
	// CksumPriority.
	Priority int64
	// Capabilities are at most leadership.MaxCapabilities names, such as "gpu". A candidate that
	// lacks one that the policy requires is refused at once with leadership.NotEligible.
	Capabilities []string
	// Load, if set, is called before each call of a campaign. It returns 0 to leadership.MaxLoad; a
	// smaller load is better. The newest value counts, for up to a minute. It must return soon.
	Load func() int64

	// AwaitFollowers is how many members must follow the new token before Run calls its function;
	// 0 for none. If too few do within the duration of the lease, Run releases it. See
	// Lease.AwaitFollowers.
	AwaitFollowers int

	// HandOverWithin is how long a hand-over may take, from leadership.MinWithin to MaxWithin: the
	// present term ends then, and the leader waits for its successor for half of that. 0 for
	// leadership.DefaultWithin in Lease.HandOver, and for 6 s when the context of Run ends.
	// NoHandOver: Run then releases the lease at once.
	HandOverWithin time.Duration
	// Inherit asks for the state that earlier leaders have left: see Lease.Inherited, InDoubt and
	// OpenProposals. It costs the store a few reads and one write more.
	Inherit bool
	// Statement asks for a signed statement with the grant and each renewal: see Lease.Statement.
	// The lease is then renewed by itself, not in batches.
	Statement bool
	// HearProposals has the leader watch its election, with one stream for each lease, so that
	// NoticeAsked tells it of proposals.
	HearProposals bool
	// Via is a lease for the new one to stand on: the new one ends with it at the latest. The
	// election's policy may require it (leadersOf). ID must be the id of that lease's candidate,
	// which "" selects, and both clients must have the same Clock.
	Via *Lease
	// ViaPeer is the service's name for the peer that granted Via; "" if the same service did.
	ViaPeer string
}

// NoHandOver, as Candidate.HandOverWithin, makes Run end its function's context as soon as its own
// context ends, and release the lease.
const NoHandOver time.Duration = -1

// candidacy returns the candidacy to send with the next call.
func (c Candidate) candidacy() leadership.Candidacy {
	own := leadership.Candidacy{Role: c.Role, Priority: c.Priority, Capabilities: leadership.NewNames(c.Capabilities...)}
	if c.Load != nil {
		own.Load = c.Load()
	}
	return own
}

func (c Candidate) validate() error {
	for _, name := range c.Capabilities {
		if leadership.CandidateID(name).Validate() != nil {
			return invalid("capabilities", "a capability is a name of A-Z, a-z, 0-9 and \"._@:-\", not %s", wire.Quote(name))
		}
	}
	switch {
	case c.AwaitFollowers < 0 || c.AwaitFollowers > leadership.MaxMembers:
		return invalid("awaitFollowers", "the number of followers to await must be from 0 to %d, not %d", leadership.MaxMembers, c.AwaitFollowers)
	case c.Margin < 0:
		return invalid("margin", "the margin must be 0s or more, not %v", c.Margin)
	case c.LeaseDuration > 0 && c.Margin >= c.LeaseDuration:
		return invalid("margin", "a margin of %v leaves nothing of a lease of %v; ask for a longer lease, or use a shorter margin", c.Margin, c.LeaseDuration)
	case c.HandOverWithin != 0 && c.HandOverWithin != NoHandOver && (c.HandOverWithin < leadership.MinWithin || c.HandOverWithin > leadership.MaxWithin || c.HandOverWithin%time.Millisecond != 0):
		return invalid("handOverWithin", "a hand-over takes %v to %v in whole milliseconds, 0s for the default, or NoHandOver, not %v", leadership.MinWithin, leadership.MaxWithin, c.HandOverWithin)
	case c.Via == nil && c.ViaPeer != "":
		return invalid("via.peer", "the peer %q needs the lease that it has granted; set Via", c.ViaPeer)
	case c.Via != nil && c.ID != "" && c.ID != c.Via.CandidateID():
		return invalid("candidateId", "the candidate %q cannot stand on the lease of %q; leave the id out", c.ID, c.Via.CandidateID())
	case c.Rounds < 0:
		return invalid("rounds", "rounds must be 0 or more, not %d", c.Rounds)
	}
	return nil
}

// maxMargin is the largest default margin.
const maxMargin = time.Second

func (c Candidate) margin(lease time.Duration) time.Duration {
	return cmp.Or(c.Margin, min(lease/10, maxMargin))
}

// As returns a Client that campaigns as another candidate, over the same connections.
func (c *Client) As(candidate Candidate) *Client {
	other := *c
	other.candidate, other.id = candidate, &identity{}
	return &other
}

// DefaultCandidateID returns the id under which the programs of this host lead. It is the same
// after a restart, so that orders against the candidate, cooldowns and ranks hold. It is the host's
// name or, on Cloud Run, where all hosts have the same name, that of the service and the end of the
// instance's id, or that of the job and the number of the task.
//
// Two programs on one host are two incarnations of one candidate, told apart by their keys: the
// second waits in line like any candidate, but is never the successor of the first, and both count
// as one member. Give them ids of their own where that matters.
//
// stable is false if the host has no name of its own, or if Cloud Run's metadata server does not
// name the instance within a second. Then the id ends with 64 random bits, and each call returns
// another one.
func DefaultCandidateID(ctx context.Context) (id leadership.CandidateID, stable bool) {
	host, _ := os.Hostname()
	return defaultCandidateID(ctx, os.Getenv, host, thisMetadataServer())
}

func defaultCandidateID(ctx context.Context, env func(string) string, host string, server metadataServer) (id leadership.CandidateID, stable bool) {
	name := host
	first, _, _ := strings.Cut(host, ".")
	stable = first != "" && !strings.EqualFold(first, "localhost")
	if job := env("CLOUD_RUN_JOB"); job != "" {
		name, stable = job+"-"+env("CLOUD_RUN_TASK_INDEX"), true
	} else if service := env("K_SERVICE"); service != "" {
		instance := instanceID(ctx, server)
		name, stable = service+"."+instance, instance != ""
	}
	if !stable {
		name = strings.TrimSuffix(cmp.Or(name, "agent"), ".") + "." + randomText()
	}
	return candidateID(name), stable
}

// candidateID turns a name into a valid id: it replaces invalid characters by "-", and the end of a
// name that is too long by 64 bits of the name's SHA-256.
func candidateID(name string) leadership.CandidateID {
	id := strings.Map(func(r rune) rune {
		if leadership.CandidateID(r).Validate() != nil {
			return '-'
		}
		return r
	}, name)
	if len(id) > leadership.MaxCandidateLength {
		sum := sha256.Sum256([]byte(name))
		end := "." + hex.EncodeToString(sum[:8])
		id = id[:leadership.MaxCandidateLength-len(end)] + end
	}
	return leadership.CandidateID(id)
}

func randomText() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// instanceID returns the end of the platform's instance id, the part in which ids differ, or "" if
// unknown.
func instanceID(ctx context.Context, server metadataServer) string {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	id, err := server.get(ctx, "id")
	if err != nil {
		return ""
	}
	return id[max(len(id)-12, 0):]
}

// CksumPriority returns a priority that any program can compute from the candidate's id, so that
// none needs to be configured: the checksum that POSIX's cksum prints for the id without a newline,
// less 2^31. In a shell: $(($(printf %s "$id" | cksum | cut -d' ' -f1) - 2147483648)).
func CksumPriority(id leadership.CandidateID) int64 {
	const polynomial = 0x04C11DB7
	var sum uint32
	add := func(b byte) {
		sum ^= uint32(b) << 24
		for range 8 {
			carry := sum>>31 == 1
			if sum <<= 1; carry {
				sum ^= polynomial
			}
		}
	}
	for _, b := range []byte(id) {
		add(b)
	}
	for length := len(id); length > 0; length >>= 8 {
		add(byte(length))
	}
	return int64(^sum) + leadership.MinPriority
}
