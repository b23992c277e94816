package leadership_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
)

func TestElectionNames(t *testing.T) {
	for _, good := range []string{"a", "0", "a-b", "a.b_c-d", "team-a.planner", strings.Repeat("x", 128)} {
		assert.NoError(t, leadership.Election(good).Validate(), good)
	}
	for _, bad := range []string{
		"", ".", "..", "-a", "a-", "a.", "_a", "__x__", "A", "aB", "a b", "a/b", "a:b", "a%2Fb", "é", "e\u0301", "\u202ea", "a\x00", "a\n", "😀",
		"' OR 1=1 --", "a*", strings.Repeat("x", 129),
	} {
		if err := leadership.Election(bad).Validate(); err == nil {
			t.Errorf("%q was taken", bad)
		} else if len(err.Error()) > 300 {
			t.Errorf("%q: the error is %d bytes long", bad, len(err.Error()))
		}
	}
}

func TestCandidateIDs(t *testing.T) {
	for _, good := range []string{"a", "A", "-", "agent@project.iam", "pod-7:8080", strings.Repeat("x", 128)} {
		assert.NoError(t, leadership.CandidateID(good).Validate(), good)
	}
	for _, bad := range []string{"", " ", "a b", "a/b", "a\tb", "ü", "a\x00", strings.Repeat("x", 129)} {
		if err := leadership.CandidateID(bad).Validate(); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestMetadataHaveOneForm(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for in, want := range map[string]string{
		"": "", " null ": "", "{}": "{}", ` { "b" : 1 , "a":[ ] } `: `{"a":[],"b":1}`,
		`{"a":1.0}`: `{"a":1}`, `{"a":-0}`: `{"a":0}`, `{"a":1e2}`: `{"a":100}`, `{"a":0.10}`: `{"a":0.1}`,
		`{"a":9223372036854775807,"b":18446744073709551615}`: `{"a":9223372036854775807,"b":18446744073709551615}`,
		`{"a":"<\u00e9>"}`: `{"a":"<é>"}`, deep(16): deep(16),
	} {
		got, err := leadership.ParseMetadata([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", in, got, err, want)
		}
		if again, err := leadership.ParseMetadata([]byte(got)); err != nil || again != got {
			t.Errorf("%s: the canonical form %s becomes %s, %v", in, got, again, err)
		}
	}
	for _, bad := range []string{"[]", "1", `"a"`, "{", "{}{}", "{} x", `{"a":1e400}`, "{\"a\":\"\xff\"}", deep(17), `{"a":"` + strings.Repeat("x", 4096) + `"}`} {
		if got, err := leadership.ParseMetadata([]byte(bad)); err == nil {
			t.Errorf("%.40s became %.40s", bad, got)
		}
	}
}
