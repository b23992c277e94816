package apply

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// one returns a file named f with the text.
func one(text string) File { return File{Name: "f", Text: []byte(text)} }

// with returns a file with one election, whose members begin in line 3.
func with(members string) File {
	return one("elections:\n  reports:\n    " + strings.ReplaceAll(members, "\n", "\n    ") + "\n")
}

func TestMistakesAreNamedWithTheirLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		file File
		want string // all mistakes
	}{
		{"nothing", one(""), "f:1: the file is empty; write elections:"},
		{"a comment", one("# later\n"), "f:1: the file is empty"},
		{"a text", one("elections"), "f:1: the file must be a mapping of names to values, not a text"},
		{"a list", one("- reports\n"), "f:1: the file must be a mapping of names to values, not a list"},
		{"no elections", one("defaults: {}\n"), "f:1: elections is missing"},
		{"a second document without elections", one("elections: {}\n---\ndefaults: {}\n"), "f:3: elections is missing"},
		{"elections in another word", one("election: {reports: {}}\n"), `f:1: unknown member "election"; a file has elections and defaults; f:1: elections is missing`},
		{"an unknown member", one("elections: {}\npolicy: {}\n"), `f:2: unknown member "policy"`},
		{"an election of nothing", one("elections:\n  reports:\n"), `f:2: election "reports" must be a mapping of names to values, not nothing; write {}`},
		{"defaults of nothing", one("defaults:\nelections: {}\n"), "f:1: defaults must be a mapping"},
		{"no YAML", one("elections:\n  reports: {\n"), "f:3: this is neither YAML nor JSON: did not find expected node content"},
		{"wrong indentation", one("elections:\n  reports:\n    lockDelay: 1s\n   retireAfter: 1h\n"), "f:2: this is neither YAML nor JSON: did not find expected key; look at this line and those below"},
		{"bytes that are no text", one("elections: \xff\xfe\n"), "this is neither YAML nor JSON"},
		{"an upper-case name", one("elections:\n  Reports: {}\n"), `f:2: an election's name is made of a-z`},
		{"a reserved name", one("elections:\n  regent.relay: {}\n"), `f:2: names that begin with "regent." are reserved for Regent itself; choose another name`},
		{"a number as a name", one("elections:\n  1: {}\n"), `f:2: a name must be a text, not a number; write it in quotes`},
		{"nothing as a name", one("elections:\n  ~: {}\n"), `f:2: a name must be a text, not nothing`},
		{"true as a name", one("elections:\n  true: {}\n"), `f:2: a name must be a text, not true or false`},
		{"a list as a name", one("elections:\n  [a]: {}\n"), `f:2: a name must be a text, not a list`},
		{"an election twice", one("elections:\n  reports: {}\n  orders: {}\n  reports: {}\n"), `f:4: "reports" stands in line 2 already; keep one of the two`},
		{"an election in two documents", one("elections:\n  reports: {}\n---\nelections:\n  reports: {}\n"), `f:5: election "reports" stands in f:2 already; keep one of the two`},
		{"a merge", one("a: &a {}\nelections:\n  reports:\n    <<: *a\n"), "f:1: unknown member \"a\"; a file has elections and defaults; f:4: << is not read; what elections have in common belongs into defaults"},
		{"an unknown member of an election", with("lease: 1m"), `f:3: unknown field "lease"; the fields here are leaseDuration,`},
		{"a member twice", with("lockDelay: 1s\nlockDelay: 1s"), `f:4: "lockDelay" stands in line 3 already`},
		{"a member of a policy twice", with("policy:\n  maxTerm: 1h\n  maxTerm: 2h"), `f:5: "maxTerm" stands in line 4 already`},
		{"a duration without a unit", with("lockDelay: 0s\nleaseDuration: 30"), `f:4: leaseDuration must be a string such as "30s", not a number`},
		{"a duration in days", with("retireAfter: 30d"), `f:3: retireAfter must be a duration such as`},
		{"a lease that is too short", with("leaseDuration: 100ms"), "f:3: leaseDuration is from 1s to 24h, not 100ms"},
		{"a negative lock", with("lockDelay: -1s"), "f:3: lockDelay is from 0s to 24h"},
		{"a longest lease below the lease", with("leaseDuration: 1m\nmaxLeaseDuration: 30s"), "f:4: maxLeaseDuration is at least leaseDuration"},
		{"no longest lease", with("maxLeaseDuration: 0s"), "f:3: maxLeaseDuration is from 1s to 24h, not 0s; leave it out"},
		{"an early retirement", with("retireAfter: 1m"), "f:3: retireAfter is from 1h"},
		{"a null", with("policy:"), "f:3: policy must be an object, not null; leave it out"},
		{"an unknown member of a policy", with("policy:\n  strategy: priority\n  windows: 1s"), `f:5: unknown field "windows"`},
		{"an unknown strategy", with("policy:\n  strategy: fastest"), "f:4: "},
		{"yes for true", with("policy:\n  preempt: yes"), "f:4: preempt must be true or false, not a string; write true or false"},
		{"a window that is too long", with("policy:\n  strategy: priority\n  window: 1h"), "f:5: "},
		{"a number that is hexadecimal", with("policy:\n  verdicts: 0x3"), `f:4: write the number "0x3" in decimal`},
		{"a part of a verdict", with("policy:\n  verdicts: 1.5"), "f:4: verdicts must be"},
		{"a rate without a number of calls", with("policy:\n  errorRate: {max: 0.5}"), "f:4: policy.errorRate.min is missing"},
		{"a member of a list", with("policy:\n  quorum:\n    electorate:\n    - node-1\n    - {}"), "f:7: "},
		{"a foreign parent", with("policy:\n  delegation:\n    parent: orders"), `f:5: the parent of election "reports" is what stands before the last dot`},
		{"a description of two lines", with("description: |\n  one\n  two"), "f:3: description is"},
		{"a tag", with("description: !secret x"), `f:3: the tag "!secret" is not read; leave it out`},
		{"an endless alias", one("elections:\n  reports: &a\n    policy: *a\n"), "f:3: this is nested deeper than any configuration"},
		{"an alias of aliases", with("policy:\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: [*d,*d,*d,*d,*d,*d]"), "bytes that the API takes"},
		{"a default that is wrong, once", one("defaults:\n  lockDelay: 5\nelections:\n  reports: {}\n  orders: {}\n"), `f:2: defaults: lockDelay must be a string such as "30s", not a number`},
		{"a default that suits no election, once", one("defaults:\n  lockDelay: -1s\nelections:\n  orders: {}\n  reports: {}\n"), `f:2: election "orders": lockDelay is from`},
		{"a default that does not suit an election", one("defaults:\n  maxLeaseDuration: 1m\nelections:\n  reports: {}\n  orders: {leaseDuration: 2m}\n"), `f:2: election "orders": maxLeaseDuration is at least leaseDuration (2m), not 1m`},
		{"several", one("elections:\n  A: {}\n  b: {x: 1}\n"), `f:2: an election's name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			declared, err := Read(c.file)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `election "reports": `, ""), c.want) || len(err.(Mistakes)) != max(1, strings.Count(c.want, "f:")-strings.Count(c.want, "in f:")) && c.name != "several" {
				t.Errorf("read as %v, %v; want %s", declared, err, c.want)
			}
		})
	}
}

func TestFilesAreReadAsOne(t *testing.T) {
	t.Parallel()
	yaml := `# yaml-language-server: $schema=elections.schema.json
defaults:
  lockDelay: 5s
  policy: {strategy: random}
elections:
  orders.eu: &eu
    leaseDuration: 1m
    policy: {strategy: priority, window: 10s}
    description: 2027-03-01
  orders.us: *eu
  "1": {lockDelay: 0s}
---
elections:
  plain: {}
`
	json := "{\n\t\"$schema\": \"x\",\n\t\"elections\": {\"a\": {\"policy\": {\"errorRate\": {\"max\": 2.5e-1, \"min\": 10}}}}\n}\r\n"
	got, err := Read(one(yaml), File{Name: "j", Text: []byte(json)})
	require.NoError(t, err)
	random := leadership.Config{LockDelay: 5 * time.Second, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyRandom}}
	none := random
	none.LockDelay = 0
	orders := leadership.Config{
		LeaseDuration: time.Minute, LockDelay: 5 * time.Second, Description: "2027-03-01",
		Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: 10 * time.Second},
	}
	rated := leadership.Config{Term: leadership.TermPolicy{ErrorRate: leadership.ErrorRate{Max: 0.25, Min: 10}}}
	want := []Declared{
		{"1", none, "f:11"}, {"a", rated, "j:3"}, {"orders.eu", orders, "f:6"}, {"orders.us", orders, "f:10"}, {"plain", leadership.Config{}, "f:14"},
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, err := Read(one("elections: {}\n")); err != nil || len(got) != 0 {
		t.Errorf("no elections are read as %v, %v", got, err)
	}
}

func TestAllOfJSONIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"elections": {"a": {"description": "\ud83d\ude80 \/ \u00e9 \\ud83d \""}}}`, "🚀 / é \\ud83d \""},
		{"\t{\"elections\"\n:\n{\"a\"\n:{\"description\":\"a\u00a0b\"}}}", "a\u00a0b"},
		{`{"elections": {"a": {"description": "1"}}, "$schema": null}`, "1"},
	} {
		got, err := Read(one(c.text))
		if err != nil || got[0].Config.Description != c.want {
			t.Errorf("%s: %v, %v, want %q", c.text, got, err, c.want)
		}
	}
	mistakes := "{\"elections\": {\n\"a\": {\"lockDelay\": [\n1\n]},\n\"b\": {\"x\": true},\n\"b\": {\"leaseDuration\": 1}\n}}"
	_, err := Read(one(mistakes))
	for _, want := range []string{`f:2: election "a": lockDelay must be`, `f:5: election "b": unknown field`, `f:6: "b" stands in line 5 already`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("elections:\n  reports: {leaseDuration: 1m, policy: {strategy: priority}}\n")
	f.Add("defaults: &a {lockDelay: 5s}\nelections: {a: *a, b: {description: \"\\u0000\"}}\n---\nelections: {c: {}}")
	f.Add(`{"elections": {"a": {"policy": {"errorRate": {"max": 0.5, "min": 3}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		declared, err := Read(one(text))
		if err != nil {
			for _, m := range err.(Mistakes) {
				if !strings.HasPrefix(m, "f:") {
					t.Errorf("a mistake without a place: %s", m)
				}
			}
			return
		}
		for _, d := range declared {
			r := leadership.Configure{Election: d.Election, Config: d.Config}
			if err := r.Validate(); err != nil || !strings.HasPrefix(d.Place, "f:") {
				t.Errorf("%+v is not what the API takes: %v", d, err)
			}
			if differ := diff(&d.Config, &d.Config); len(differ) > 0 {
				t.Errorf("%+v differs from itself: %v", d, differ)
			}
		}
	})
}
