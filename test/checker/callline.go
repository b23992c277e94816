package checker

import (
	"encoding/hex"
	"fmt"
	"time"

	"regent/leadership"
)

// callLine is a Call as it is written down. What stands here hides what stands in Call.
type callLine struct {
	Call
	Key    hash        `json:"key,omitzero"`
	Config configLine  `json:"config,omitzero"`
	Answer *answerLine `json:"answer,omitempty"`
}

// hash is written in hexadecimal digits.
type hash leadership.KeyHash

// MarshalText implements encoding.TextMarshaler.
func (h hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hash) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return fmt.Errorf("checker: %q is not the hash of a key", text)
	}
	copy(h[:], b)
	return nil
}

// configLine is leadership.Config, field by field.
type configLine struct {
	LeaseDuration time.Duration `json:"lease,omitzero"`
	LockDelay     time.Duration `json:"lockDelay,omitzero"`
}

// answerLine is leadership.Lease, field by field: a lease that gains a field is not converted to it. Its instants keep their nanoseconds.
type answerLine struct {
	Election        leadership.Election    `json:"election"`
	State           leadership.State       `json:"state"`
	LeaderID        leadership.CandidateID `json:"leader,omitempty"`
	Token           leadership.Token       `json:"token,omitzero"`
	Revision        leadership.Revision    `json:"revision,omitzero"`
	LeaseDuration   time.Duration          `json:"lease,omitzero"`
	Metadata        leadership.Metadata    `json:"metadata,omitempty"`
	ExpiresIn       time.Duration          `json:"expiresIn,omitzero"`
	RenewIn         time.Duration          `json:"renewIn,omitzero"`
	LockedFor       time.Duration          `json:"lockedFor,omitzero"`
	Lapsed          bool                   `json:"lapsed,omitempty"`
	AcquiredAt      time.Time              `json:"acquiredAt,omitzero"`
	LastHeartbeat   time.Time              `json:"lastHeartbeat,omitzero"`
	LeaseExpiration time.Time              `json:"leaseExpiration,omitzero"`
	ReadAt          time.Time              `json:"readAt,omitzero"`
	EndsBy          time.Time              `json:"endsBy,omitzero"`
	EndsBecause     leadership.EndReason   `json:"endsBecause,omitempty"`
	EndsIn          time.Duration          `json:"endsIn,omitzero"`
	Config          leadership.Config      `json:"config,omitzero"`
	Deleted         bool                   `json:"deleted,omitempty"`
}

func newCallLine(c Call) *callLine {
	l := &callLine{Call: c, Key: hash(c.Key), Config: configLine(c.Config)}
	if c.Answer != nil {
		l.Answer = new(answerLine(*c.Answer))
	}
	return l
}

func (l callLine) call() Call {
	c := l.Call
	c.Key, c.Config = leadership.KeyHash(l.Key), leadership.Config(l.Config)
	if l.Answer != nil {
		c.Answer = new(leadership.Lease(*l.Answer))
	}
	return c
}
