package crash

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"regent/leadership"
)

// line is what the writer says: that it asks for something, or what it was told.
type line struct {
	ID      string `json:"id,omitempty"` // of the call: the same in both lines, and in the events of what it changes
	Told    bool   `json:"told,omitempty"`
	Reading int64  `json:"reading"` // of the writer's clock, in nanoseconds since the boot: nothing before this line is of later

	Key   string               `json:"key,omitempty"`   // asked: the call whose key it is that the caller acquires with
	Marks []leadership.EventID `json:"marks,omitempty"` // asked: what is to be marked as announced

	Leases []leadership.Lease `json:"leases,omitempty"` // told: the elections as they are now
	Events []leadership.Event `json:"events,omitempty"` // told: what the call has changed
	Code   string             `json:"code,omitempty"`   // told: why not
	Detail string             `json:"detail,omitempty"`
}

// The codes that the writer has besides those of the protocol.
const (
	codeOpen  = "OPEN"  // the store could not be opened
	codeOther = "OTHER" // an error without a code
)

// lost says whether the answer was none that a caller may go by.
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

// beginning is what the clock reads when a life of the writer begins: far behind everything that the life before can have read.
func beginning(life int) time.Duration { return time.Duration(life+1) * 10_000 * time.Hour }

// boot is the boot that all lives of the writer are in.
const boot = "the-boot-of-the-writer"

// history is for how long the writer's store keeps events.
const history = leadership.MinHistory
