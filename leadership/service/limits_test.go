package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
)

func TestAValueAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	errOf := func(_ any, err error) error { return err }
	of := func(all ...leadership.Entry) error { return errOf(entries(leadership.AppendRequest{Entries: all})) }
	data := `"` + long(leadership.MaxAppendBytes-2) + `"`
	for name, err := range map[string]error{
		"an append":       of(leadership.Entry{Data: []byte(data)}),
		"entries":         of(slices.Repeat([]leadership.Entry{{Data: []byte("1")}}, leadership.MaxEntries)...),
		"an entry's type": of(leadership.Entry{Type: long(leadership.MaxEntryTypeBytes), Data: []byte("1")}),
		"a URI":           errOf(oneOf(nil, "x:"+long(leadership.MaxURIBytes-2), 1)),
		"data":            errOf(oneOf([]byte(data), "", len(data))),
	} {
		assert.NoError(t, err, "%s at its limit", name)
	}
}
