package authz_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/httpapi/access/limit"
)

func TestAnInvalidAccessFileIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	const good = "{principals: [a@b.c], roles: [observer], elections: [reports]}"
	for _, c := range []struct{ name, text, reason string }{
		{"nothing", "", "the access file is empty"},
		{"no grants", "grants: []", "has no grants"},
		{"a list", "- " + good, "line 1: the access file must be keys with values; the keys are grants, limits"},
		{"a longest lease that is no duration", "grants:\n  - principals: [a@b.c]\n    maxLeaseDuration: 10x", `line 3: maxLeaseDuration must be a duration such as 1m, not "10x"`},
		{"a mistake behind an alias", "grants:\n  - &g\n    principal: [a@b.c]\n  - *g", `line 3: an entry of grants has no key "principal"`},
		{"another field", "grants: [" + good + "]\ngrant: []", `the access file cannot be read: line 2: the access file has no key "grant"; the keys are grants, limits`},
		{"a field twice", "grants: [" + good + "]\ngrants: [" + good + "]", "already defined"},
		{"two documents", "grants: [" + good + "]\n---\ngrants: [" + good + "]", "more than one YAML document"},
		{"too long", "#" + strings.Repeat("x", authz.MaxAccess), "must not exceed 1048576 bytes"},
		{"no principals", "grants: [{roles: [observer], elections: [reports]}]", "grant 1 of the access file: principals are missing"},
		{"half a principal", `grants: [{principals: ["*@b.c"], roles: [observer], elections: [reports]}]`, `principal "*@b.c" must be written in full`},
		{"no such role", "grants: [" + good + ", {principals: [a@b.c], roles: [king], elections: [reports]}]", `grant 2 of the access file: there is no role "king"`},
		{"no elections", "grants: [{principals: [a@b.c], roles: [observer]}]", "elections are missing"},
		{"candidates of no candidate", `grants: [{principals: [a@b.c], roles: [observer], elections: [reports], candidates: [a]}]`, "candidates need the role candidate"},
		{"limits below nothing", "grants: [" + good + "]\nlimits: [{principals: [a@b.c], reads: -5}]", "reads must be from 1 to"},
		{"no such limit", "grants: [" + good + "]\nlimits: [{principals: [a@b.c], writes: 5}]", `line 2: an entry of limits has no key "writes"; the keys are bytes, campaigns, elections, principals, reads, renewals, waiters, watchers`},
		{"a fraction", "grants: [" + good + "]\nlimits:\n  - {principals: [a@b.c], campaigns: 0.5}", `line 3: campaigns must be a whole number such as 100, not "0.5"`},
		{"a fraction that is merged", "grants: [" + good + "]\nlimits:\n  - {principals: [a@b.c], <<: [{reads: 5},\n      {reads: 1.5}]}", `line 4: reads must be a whole number`},
		{"limits twice", "grants: [" + good + "]\nlimits: [{principals: [a@b.c], reads: 5}, {principals: [a@b.c], reads: 6}]", `limits 2 of the access file: principal "a@b.c" has limits already`},
	} {
		if _, err := authz.ParseAccess([]byte(c.text), authz.Admitted); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v; want that %s", c.name, err, c.reason)
		} else if strings.Contains(err.Error(), "authz.") || strings.Contains(err.Error(), "!!") {
			t.Errorf("%s: %v; want no type of Go or YAML", c.name, err)
		}
	}
}

func TestLimitsAreThePrincipalsOwnOrTheGeneralOnes(t *testing.T) {
	t.Parallel()
	p, err := authz.ParseAccess([]byte(accessText+`
limits:
  - {principals: [ann@test, bob@test], renewals: 5}
  - {principals: ["https://issuer.test|7"], renewals: 3}
  - {principals: ["*"], renewals: 7, elections: 9}
`), authz.Admitted)
	require.NoError(t, err)
	of := func(email, subject string) authn.Principal {
		return authn.Principal{Issuer: "https://issuer.test", Subject: subject, Email: email}
	}
	for who, want := range map[authn.Principal]limit.Limits{
		of("ann@test", "1"): {Renewals: 5}, of("bob@test", "7"): {Renewals: 5}, of("cy@test", "3"): {Renewals: 7, Elections: 9}, {}: {Renewals: 7, Elections: 9},
		of("", "7"): {Renewals: 3}, of("dan@test", "7"): {Renewals: 3},
	} {
		if got := p.Limits(who); got != want {
			t.Errorf("the limits of %v are %+v, want %+v", who, got, want)
		}
	}
}

func FuzzParseAccess(f *testing.F) {
	f.Add([]byte(accessText))
	f.Add([]byte("grants: [{principals: ['*'], roles: [admin], elections: ['*']}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := authz.ParseAccess(text, authz.Admitted); (p == nil) == (err == nil) {
			t.Errorf("%v and %v", p, err)
		}
	})
}
