package clients

// Event is one line that a driver writes.
type Event struct {
	Event       string   `json:"event"`
	At          int64    `json:"at,omitzero"` // nanoseconds of CLOCK_BOOTTIME
	Token       int64    `json:"token,omitzero"`
	Valid       *bool    `json:"valid,omitempty"`
	RemainingMs *float64 `json:"remainingMs,omitempty"`
	Code        string   `json:"code,omitzero"`
	Detail      string   `json:"detail,omitzero"`
	Call        string   `json:"call,omitzero"`
	Revision    int64    `json:"revision,omitzero"`
	Type        string   `json:"type,omitzero"`
}

// The events.
const (
	Asking   = "asking"
	Leading  = "leading"
	Tick     = "tick"
	Lost     = "lost"
	Released = "released"
	Seen     = "seen"
	Item     = "item"
	Done     = "done"
	Failed   = "error"
	End      = "end"
)

// The codes of Lost and Failed that do not come from a problem document.
const (
	Deadline  = "DEADLINE"
	Cancelled = "CANCELLED"
	Other     = "OTHER"
)

// Options are the settings of a driver in REGENT_DRIVER.
type Options struct {
	Style string `json:"style,omitzero"`
	Idle  bool   `json:"idle,omitzero"`
	Try   bool   `json:"try,omitzero"`
	Again bool   `json:"again,omitzero"`
}
