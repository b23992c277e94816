package httpfence_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/httpfence"
)

const election = leadership.Election("planner")

func headers(elections, tokens []string) http.Header {
	h := http.Header{}
	for _, e := range elections {
		h.Add(httpfence.ElectionHeader, e)
	}
	for _, token := range tokens {
		h.Add(httpfence.TokenHeader, token)
	}
	return h
}

func TestInvalidHeadersAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	one := []string{"planner"}
	const token, elected = httpfence.TokenHeader, httpfence.ElectionHeader
	for name, c := range map[string]struct {
		elections, tokens []string
		field, detail     string
	}{
		"nothing":                  {nil, nil, elected, "Regent-Election is missing: send the name of the election that you lead with each command"},
		"no token":                 {one, nil, token, "Regent-Fencing-Token is missing: send the fencing token of your lease with each command"},
		"two elections":            {[]string{"planner", "planner"}, []string{"34"}, elected, "occurs 2 times: send it once"},
		"two tokens":               {one, []string{"34", "34"}, token, "occurs 2 times: send it once"},
		"two tokens in one":        {one, []string{"34, 35"}, token, `not "34, 35"; send the token of your lease`},
		"an empty election":        {[]string{""}, []string{"34"}, elected, "an election needs a name"},
		"an election in capitals":  {[]string{"Planner"}, []string{"34"}, elected, "begins and ends with a letter or digit"},
		"a huge election":          {[]string{strings.Repeat("a", 1<<20)}, []string{"34"}, elected, "has at most 128 characters, this one has 1048576"},
		"an empty token":           {one, []string{""}, token, `not ""`},
		"zero":                     {one, []string{"0"}, token, `must be an integer from 1 to 9007199254740991 in decimal digits, not "0"`},
		"a leading zero":           {one, []string{"034"}, token, `not "034"`},
		"2^53":                     {one, []string{"9007199254740992"}, token, "not"},
		"2^64 and the token":       {one, []string{"18446744073709551650"}, token, "not"},
		"a tab":                    {one, []string{"34\t"}, token, `not "34\t"`},
		"a line break":             {one, []string{"34\n35"}, token, `not "34\n35"`},
		"a fraction":               {one, []string{"34.0"}, token, "not"},
		"digits of another script": {one, []string{"٣٤"}, token, "not"},
		"a huge token":             {one, []string{strings.Repeat("9", 1<<20)}, token, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := httpfence.Parse(headers(c.elections, c.tokens))
			refusal := wantRefusal(t, err, leadership.InvalidArgument)
			if refusal.Field != c.field || !strings.Contains(refusal.Detail, c.detail) {
				t.Errorf("refused for %q: %q, want %q: %q", refusal.Field, refusal.Detail, c.field, c.detail)
			}
			if len(refusal.Detail) > 512 {
				t.Errorf("the refusal has %d bytes, too many for a log line", len(refusal.Detail))
			}
			if m != (fence.Mark{}) {
				t.Errorf("with the refusal came the mark %v", m)
			}
		})
	}
}

func TestValidHeadersAreAccepted(t *testing.T) {
	t.Parallel()
	for _, token := range []leadership.Token{1, 34, leadership.MaxToken} {
		got, err := httpfence.Parse(headers([]string{"planner"}, []string{strconv.FormatInt(int64(token), 10)}))
		if want := (fence.Mark{Election: election, Token: token}); err != nil || got != want {
			t.Errorf("read %v, %v, want %v", got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("planner", "34", false)
	f.Add("planner", "+34", false)
	f.Add("Planner", "034", true)
	f.Add("", "9007199254740992", false)
	f.Fuzz(func(t *testing.T, election, token string, twice bool) {
		h := headers([]string{election}, []string{token})
		if twice {
			h.Add(httpfence.TokenHeader, token)
		}
		m, err := httpfence.Parse(h)
		if err != nil {
			wantRefusal(t, err, leadership.InvalidArgument)
			return
		}
		assert.False(t, twice, "two tokens %q were taken", token)
		_, err = (fence.Mark{}).Admit(m)
		assert.NoError(t, err, "%q and %q were read as %v", election, token, m)
		again := http.Header{}
		require.NoError(t, httpfence.SetHeaders(again, leader{m, true}))
		if again.Get(httpfence.ElectionHeader) != election || again.Get(httpfence.TokenHeader) != token {
			t.Errorf("%q and %q were read as %v, which is written %v", election, token, m, again)
		}
	})
}
