package cloud

import "fmt"

// Verdict is the result of a check.
type Verdict string

const (
	OK        Verdict = "ok"
	NotOK     Verdict = "FAILED"
	Warning   Verdict = "warning" // it works, but perhaps not as intended
	Unchecked Verdict = "not checked"
	Differs   Verdict = "differs" // an emulator, which differs from the real service
)

// Finding is the result of one check.
type Finding struct {
	Check   string // what was checked
	Verdict Verdict
	Text    string // what was found and, unless it is ok, what to do
}

// ok returns a finding that needs no action.
func ok(check, format string, args ...any) Finding {
	return Finding{check, OK, fmt.Sprintf(format, args...)}
}

func notOK(check, format string, args ...any) Finding {
	return Finding{check, NotOK, fmt.Sprintf(format, args...)}
}

func unchecked(check, format string, args ...any) Finding {
	return Finding{check, Unchecked, fmt.Sprintf(format, args...)}
}
