package httpfence

import (
	"fmt"
	"net/http"
	"strconv"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/wire"
)

// The headers of a leader's request.
const (
	ElectionHeader = "Regent-Election" // the election that the sender leads
	// its fencing token: 1 to leadership.MaxToken, in decimal
	TokenHeader = "Regent-Fencing-Token"
)

// Parse reads the leader's mark from the headers. Each header must occur once, and a token is
// written with digits only, without leading zeros. The error is a *leadership.Error with the code
// InvalidArgument, the header's name as its Field, and a sentence that says what to do.
func Parse(h http.Header) (fence.Mark, error) {
	election, err := single(h, ElectionHeader, "the name of the election that you lead")
	if err != nil {
		return fence.Mark{}, err
	}
	text, err := single(h, TokenHeader, "the fencing token of your lease")
	if err != nil {
		return fence.Mark{}, err
	}
	m := fence.Mark{Election: leadership.Election(election)}
	if err := m.Election.Validate(); err != nil {
		return fence.Mark{}, invalid(ElectionHeader, "%s: %v", ElectionHeader, err)
	}
	token, err := strconv.ParseInt(text, 10, 64)
	m.Token = leadership.Token(token)
	if err != nil || strconv.FormatInt(token, 10) != text || m.Token < 1 || m.Token > leadership.MaxToken {
		return fence.Mark{}, invalid(TokenHeader, "%s must be an integer from 1 to %d in decimal digits, not %s; send the token of your lease",
			TokenHeader, leadership.MaxToken, wire.Quote(text))
	}
	return m, nil
}

func single(h http.Header, name, what string) (string, error) {
	switch values := h.Values(name); len(values) {
	case 1:
		return values[0], nil
	case 0:
		return "", invalid(name, "the header %s is missing: send %s with each command", name, what)
	default:
		return "", invalid(name, "the header %s occurs %d times: send it once", name, len(values))
	}
}

func invalid(field, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}
