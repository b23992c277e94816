package rule

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"

	"regent/leadership"
)

// NewBid is what the candidate counts as under the policy. It has waited since that instant.
func NewBid(c leadership.Candidacy, id leadership.CandidateID, p leadership.BallotPolicy, since time.Time) leadership.Bid {
	return leadership.Bid{
		CandidateID: id, Witness: witness(c), Priority: c.Priority, Load: c.Load,
		Preferred: p.Prefer.Shared(c.Capabilities), Since: since,
	}
}

// Draw is what an election has that its bids do not.
type Draw struct {
	Election leadership.Election
	Token    leadership.Token       // that the winner gets
	Secret   string                 // with StrategyRandom; see there
	Last     leadership.CandidateID // with StrategyRoundRobin: the last leader
}

// Rank returns the bids that may win, the best first. It is pure and total: the order in which the
// bids come does not matter, and of two candidates one is always the better.
//
//	strategy      a candidate is better that         then
//	firstCome     has waited longer                  the lower id
//	priority      has the greater priority           the lower id
//	capability    has more of the preferred          the greater priority, then the lower id
//	leastLoaded   has the smaller load               the lower id
//	random        has the lower draw                 the lower id
//	roundRobin    has the next id after the last     -
//	              leader's; after the last of all
//	              ids comes the first
//
// Ids are compared byte by byte. A witness never wins.
//
// The draw of a candidate is the SHA-256 of the election, the token in decimal, Draw.Secret and the
// candidate's id, with a zero byte between two. The secret is drawn by the instance that grants the
// term before, or that opens the first ballot, and is told only with the next grant. So a candidate
// that chooses its id late cannot steer the draw, and after it any reader can repeat it. A
// candidate that bids under many ids has many draws; an instance, and an operator who reads the
// store, know the secret. For seats the election is the one that has them. No grant raises its next
// token; the secret is drawn anew once the best candidate was granted a seat.
func Rank(p leadership.BallotPolicy, d Draw, bids []leadership.Bid) []leadership.Bid {
	ranked := slices.DeleteFunc(slices.Clone(bids), func(b leadership.Bid) bool { return b.Witness })
	slices.SortFunc(ranked, func(a, b leadership.Bid) int { return Compare(p, d, a, b) })
	return ranked
}

// Better reports whether the bid a is better than b.
func Better(p leadership.BallotPolicy, d Draw, a, b leadership.Bid) bool {
	return Compare(p, d, a, b) < 0
}

// Compare is below 0 if the bid a is better than b. Witnesses come behind all others.
func Compare(p leadership.BallotPolicy, d Draw, a, b leadership.Bid) int {
	switch {
	case a.Witness && !b.Witness:
		return 1
	case !a.Witness && b.Witness:
		return -1
	}
	return cmp.Or(compareKeys(p, d, a, b), cmp.Compare(a.CandidateID, b.CandidateID))
}

// compareKeys compares by the strategy alone; Compare breaks ties by id.
func compareKeys(p leadership.BallotPolicy, d Draw, a, b leadership.Bid) int {
	switch p.Strategy {
	case leadership.StrategyPriority:
		return cmp.Compare(b.Priority, a.Priority)
	case leadership.StrategyCapability:
		return cmp.Or(cmp.Compare(b.Preferred, a.Preferred), cmp.Compare(b.Priority, a.Priority))
	case leadership.StrategyLeastLoaded:
		return cmp.Compare(a.Load, b.Load)
	case leadership.StrategyRandom:
		x, y := d.of(a.CandidateID), d.of(b.CandidateID)
		return bytes.Compare(x[:], y[:])
	case leadership.StrategyRoundRobin:
		return d.turn(a.CandidateID) - d.turn(b.CandidateID)
	}
	return a.Since.Compare(b.Since)
}

// of returns the draw of a candidate.
func (d Draw) of(c leadership.CandidateID) [sha256.Size]byte {
	var room [512]byte // so that no draw of a long line goes to the heap
	text := append(room[:0], d.Election...)
	text = strconv.AppendInt(append(text, 0), int64(d.Token), 10)
	text = append(append(text, 0), d.Secret...)
	return sha256.Sum256(append(append(text, 0), c...))
}

// turn is 0 for the candidates that follow the last leader, and 1 for the others.
func (d Draw) turn(c leadership.CandidateID) int {
	if c > d.Last {
		return 0
	}
	return 1
}

// secretBytes is how long the secret of a draw is.
const secretBytes = 8

// NewSecret draws the secret of a draw.
func NewSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never returns an error
	return hex.EncodeToString(b[:])
}

// secret is the secret of a draw as the codec checks it.
type secret string

func (s secret) Validate() error {
	if b, err := hex.DecodeString(string(s)); err != nil || len(b) != secretBytes || hex.EncodeToString(b) != string(s) {
		return errors.New("it is not the secret of a draw")
	}
	return nil
}
