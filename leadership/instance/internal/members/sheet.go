package members

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// sheetVersion is the version of a sheet. Readers ignore unknown fields, so adding a field needs no
// new version. A new version is for a change that an old reader would misunderstand: readers drop
// sheets of an unknown version.
const sheetVersion = 1

// sheet is one message of an instance about its members. Durations are in milliseconds, relative to
// when the sheet was sent.
type sheet struct {
	Version   int     `json:"v"`
	From      string  `json:"from"` // the instance
	Seq       int64   `json:"seq"`  // of its sheets, from 1
	Whole     *whole  `json:"whole,omitzero"`
	Ask       bool    `json:"ask,omitzero"`
	Bye       bool    `json:"bye,omitzero"`
	Elections []part  `json:"elections,omitzero"`
	Renewed   []lease `json:"renewed,omitzero"`
}

// whole says that the sheet is a piece of a whole sheet.
type whole struct {
	First int64 `json:"first"` // the number of the first piece
	Of    int64 `json:"of"`    // pieces
}

// part is the content of a sheet about one election.
type part struct {
	Election leadership.Election      `json:"e"`
	Token    leadership.Token         `json:"t,omitzero"` // known to the instance, if members stand in line
	Members  []entry                  `json:"m,omitzero"`
	Gone     []leadership.CandidateID `json:"gone,omitzero"` // members no longer at this instance
	Journal  leadership.Index         `json:"x,omitzero"`    // its last entry, if the instance has appended some
	Asked    *Proposals               `json:"q,omitzero"`    // if proposals have changed by a call at the instance
	Left     []departed               `json:"left,omitzero"` // members that have left, wherever they had joined
}

// Proposals is the state of an election's proposals after a call.
type Proposals struct {
	Changes int64 `json:"n"`             // as leadership.Proposals counts them
	Open    bool  `json:"open,omitzero"` // the call was about an open proposal, which the leader is to be told
}

// entry is one member.
type entry struct {
	ID       leadership.CandidateID `json:"id"`
	Role     leadership.Role        `json:"r"`
	Seen     leadership.Token       `json:"t,omitzero"` // without the token that it follows because it stands in line
	AgoMS    int64                  `json:"ago,omitzero"`
	Position int                    `json:"p,omitzero"`
	Note     string                 `json:"n,omitzero"`
	Joined   bool                   `json:"j,omitzero"`
	InLine   bool                   `json:"l,omitzero"`
	Follows  bool                   `json:"f,omitzero"` // the journal
	Applied  leadership.Index       `json:"a,omitzero"` // of it
}

// departed is a member that has left.
type departed struct {
	ID    leadership.CandidateID `json:"id"`
	AgoMS int64                  `json:"ago,omitzero"`
}

// lease is a lease that the instance has renewed lately.
type lease struct {
	Election leadership.Election `json:"e"`
	Token    leadership.Token    `json:"t"`
	LeftMS   int64               `json:"left"` // its remaining time when the sheet was sent
}

// Sizes of a sheet in bytes.
const (
	// maxSheet limits a received sheet; Pub/Sub takes 10 MB.
	maxSheet = 1 << 20
	// maxPiece is roughly the size of a sent sheet. The estimates below are rather too high.
	maxPiece  = maxSheet / 2
	perEntry  = 96
	perPart   = 64
	perEscape = 6 // bytes for one byte of a note
)

func (e entry) size() int    { return perEntry + len(e.ID) + perEscape*len(e.Note) }
func (d departed) size() int { return perEntry + len(d.ID) }
func (l lease) size() int    { return perEntry + len(l.Election) }

// maxAgo limits the times in the past that a sheet may have.
const maxAgo = int64(time.Hour / time.Millisecond)

func ago(d time.Duration) int64 { return min(max(d.Milliseconds(), 0), maxAgo) }

// since returns the time that was agoMS before now.
func since(agoMS int64, now time.Duration) time.Duration {
	return now - time.Duration(agoMS)*time.Millisecond
}

// decode reads a sheet. The error says why data is not one.
func decode(data []byte) (sheet, error) {
	var s sheet
	if len(data) > maxSheet {
		return s, fmt.Errorf("it has %d bytes, and a sheet has at most %d", len(data), maxSheet)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("it is no sheet: %w", err)
	}
	if s.Version != sheetVersion {
		return s, fmt.Errorf("it is of version %d, and this instance reads %d", s.Version, sheetVersion)
	}
	return s, s.validate()
}

// maxPieces is how many pieces a whole sheet may have.
const maxPieces = 1000

func (s sheet) validate() error {
	if err := leadership.CandidateID(s.From).Validate(); err != nil {
		return errors.New("its instance has no name")
	}
	if s.Seq < 1 {
		return fmt.Errorf("its number is %d", s.Seq)
	}
	if w := s.Whole; w != nil && (w.First < 1 || w.Of < 1 || w.Of > maxPieces || s.Seq < w.First || s.Seq-w.First >= w.Of) {
		return fmt.Errorf("it is number %d of %d pieces from %d", s.Seq, w.Of, w.First)
	}
	for _, p := range s.Elections {
		if err := p.validate(); err != nil {
			return err
		}
	}
	for _, l := range s.Renewed {
		if l.Election.Validate() != nil || !isToken(l.Token) || l.LeftMS < 0 || l.LeftMS > leadership.MaxLeaseDuration.Milliseconds() {
			return fmt.Errorf("it has an impossible lease of election %.64q", l.Election)
		}
	}
	return nil
}

func (p part) validate() error {
	if err := p.Election.Validate(); err != nil {
		return err
	}
	wrong := func(id leadership.CandidateID) error {
		return fmt.Errorf("it has an impossible member %.64q of election %q", id, p.Election)
	}
	if p.Journal < 0 {
		return fmt.Errorf("it has a journal of election %q with the index %d", p.Election, p.Journal)
	}
	if p.Asked != nil && p.Asked.Changes < 1 {
		return fmt.Errorf("it has %d changes of the proposals of election %q", p.Asked.Changes, p.Election)
	}
	if !isToken(p.Token) {
		return fmt.Errorf("it has the fencing token %d of election %q", p.Token, p.Election)
	}
	for _, m := range p.Members {
		if m.ID.Validate() != nil || !isToken(m.Seen) || m.AgoMS < 0 || m.AgoMS > maxAgo || m.Position < 0 || m.Applied < 0 || len(m.Note) > maxNote {
			return wrong(m.ID)
		}
	}
	for _, id := range p.Gone {
		if id.Validate() != nil {
			return wrong(id)
		}
	}
	for _, d := range p.Left {
		if d.ID.Validate() != nil || d.AgoMS < 0 || d.AgoMS > maxAgo {
			return wrong(d.ID)
		}
	}
	return nil
}

// maxNote is the most bytes that a member's note may have.
const maxNote = 256

func isToken(t leadership.Token) bool { return t >= 0 && t <= leadership.MaxToken }
