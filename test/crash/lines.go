package crash

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// line is what the writer prints: that it asks for something, or what it was told.
type line struct {
	// of the call: the same in both lines, and in the events of what it changes
	ID   string `json:"id,omitempty"`
	Told bool   `json:"told,omitempty"`
	// of the writer's clock, in nanoseconds since the boot: nothing before this line has a later
	// instant
	Reading int64 `json:"reading"`

	// asked: the id of the call that drew the key
	Key   string               `json:"key,omitempty"`
	Marks []leadership.EventID `json:"marks,omitempty"` // asked: what to mark as announced
	// asked: whose journal gets its change of that number
	Journal string `json:"journal,omitempty"`
	Change  int    `json:"change,omitempty"`

	Leases []leadership.Lease `json:"leases,omitempty"` // told: the elections as they are now
	Events []leadership.Event `json:"events,omitempty"` // told: what the call has changed
	Code   string             `json:"code,omitempty"`   // told: why it was not done
	Closed bool               `json:"closed,omitempty"` // the store was closed, without an error; has no ID
	Detail string             `json:"detail,omitempty"`
}

// The writer's codes besides those of the protocol.
const (
	codeOpen  = "OPEN"  // the store could not be opened
	codeOther = "OTHER" // an error without a code
)

// lost reports whether the answer leaves the outcome open.
func (l line) lost() bool {
	switch l.Code {
	case string(leadership.StoreUnavailable), string(leadership.OutcomeUnknown), codeOpen, codeOther:
		return true
	}
	return false
}

func (l line) encode() ([]byte, error) {
	text, err := json.Marshal(l)
	return append(text, '\n'), err
}

func decode(text []byte) (l line, err error) {
	if !bytes.HasSuffix(text, []byte("\n")) {
		return line{}, fmt.Errorf("the line %q has no end", text)
	}
	return l, json.Unmarshal(text, &l)
}

// keyOf is the key that a candidate draws in the call of that id.
func keyOf(id string) leadership.Key { return leadership.Key(sha256.Sum256([]byte(id))) }

// beginning is what the clock reads at a start of the writer: long after everything that it can
// have read in the start before.
func beginning(start int) time.Duration { return time.Duration(start+1) * 10_000 * time.Hour }

// boot is the boot of all starts of the writer.
const boot = "the-boot-of-the-writer"

// history is how long the writer's store keeps events.
const history = rule.MinHistory
