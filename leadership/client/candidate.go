package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"regent/leadership"
)

// Candidate is who campaigns with a Client, and how. Its zero value works.
type Candidate struct {
	// ID is unique in the election: another process that has the same one cannot lead while this one does. "" for a DefaultCandidateID,
	// one for all that the Client does.
	ID leadership.CandidateID
	// LeaseDuration is what to ask for: 1 s to 24 h in whole milliseconds; 0 for what the election is configured to. The shorter it is, the sooner
	// somebody follows a leader that has died, and the sooner a leader stops that cannot reach its server.
	LeaseDuration time.Duration
	// Metadata is a JSON object that tells who reads the election about its leader, such as an address; see leadership.ParseMetadata.
	Metadata []byte
	// Margin is how long before the end of the lease a leader stops believing in it: the time that it needs to stop what it is doing. 0 for a tenth
	// of the lease, a second at most. One that leaves nothing of the lease is refused by Campaign.
	Margin time.Duration
	// Rounds is how often Campaign asks before it gives up, a stand in line of a minute being one time; 0 for as often as it takes.
	Rounds int
}

func (c Candidate) validate() error {
	switch {
	case c.Margin < 0:
		return invalid("margin", "a margin is 0s or more, not %v", c.Margin)
	case c.LeaseDuration > 0 && c.Margin >= c.LeaseDuration:
		return invalid("margin", "a margin of %v leaves nothing of a lease of %v; ask for a longer lease, or take a shorter margin", c.Margin, c.LeaseDuration)
	case c.Rounds < 0:
		return invalid("rounds", "rounds are 0 or more, not %d", c.Rounds)
	}
	return nil
}

// maxMargin is the most that is taken off a lease unless more is asked for.
const maxMargin = time.Second

// margin is what is taken off a lease that lasts as long.
func (c Candidate) margin(lease time.Duration) time.Duration {
	return cmp.Or(c.Margin, min(lease/10, maxMargin))
}

// As returns a Client that campaigns as another candidate, over the same connections.
func (c *Client) As(candidate Candidate) *Client {
	other := *c
	other.candidate, other.id = candidate, &identity{}
	return &other
}

// DefaultCandidateID draws an id that no other process has, on Cloud Run neither, where all hosts have the same name: that of the revision,
// or of the job's execution and task, a part of the instance's id, as far as the platform's metadata server tells it within a second,
// and 64 random bits. Elsewhere the name of the host comes before these. Each call draws another one.
func DefaultCandidateID(ctx context.Context) leadership.CandidateID {
	return drawCandidateID(ctx, os.Getenv, thisMetadataServer())
}

func drawCandidateID(ctx context.Context, env func(string) string, server metadataServer) leadership.CandidateID {
	if name := platformName(env); name != "" {
		return joinCandidateID(name, instanceID(ctx, server), randomText())
	}
	host, _ := os.Hostname()
	return joinCandidateID(host, randomText())
}

// maxPart keeps three parts and what joins them within a candidate's id.
const maxPart = 40

// joinCandidateID joins what there is of the parts, and replaces what may not stand in an id.
func joinCandidateID(parts ...string) leadership.CandidateID {
	var kept []string
	for _, p := range parts {
		p = strings.Map(func(r rune) rune {
			if leadership.CandidateID(r).Validate() != nil {
				return '-'
			}
			return r
		}, p)
		if p != "" {
			kept = append(kept, p[:min(len(p), maxPart)])
		}
	}
	return leadership.CandidateID(strings.Join(kept, "."))
}

func randomText() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// platformName is what Cloud Run calls what runs here; "" if this is not Cloud Run.
func platformName(env func(string) string) string {
	if execution := env("CLOUD_RUN_EXECUTION"); execution != "" {
		return execution + "-" + env("CLOUD_RUN_TASK_INDEX")
	}
	return env("K_REVISION")
}

// instanceID asks the platform for the end of the instance's id, which is where two differ; "" if it does not tell.
func instanceID(ctx context.Context, server metadataServer) string {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	id, err := server.get(ctx, "id")
	if err != nil {
		return ""
	}
	return id[max(len(id)-12, 0):]
}
