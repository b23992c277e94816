package mcp_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// rights is a gate with an access file that a test changes.
type rights struct{ current atomic.Pointer[authz.Access] }

// give lets ann have a role over the elections whose names begin with own, as candidates whose
// names begin with ann. olga may lead all elections.
func (r *rights) give(t *testing.T, role wire.Role) {
	t.Helper()
	over := map[wire.Role]string{
		wire.RoleCandidate: `, elections: ["own*"], candidates: ["ann*"]`,
		wire.RoleScheduler: "", // it is about the whole service
	}
	covers, special := over[role]
	if !special {
		covers = `, elections: ["own*"]`
	}
	p, err := authz.ParseAccess(fmt.Appendf(nil, `
grants:
  - {principals: [olga@test], roles: [candidate], elections: ["*"], candidates: ["*"]}
  - {principals: [ann@test], roles: [%s]%s}
`, role, covers), authz.Admitted)
	require.NoError(t, err)
	r.current.Store(p)
}

func (r *rights) gate() *authz.Gate {
	return authz.NewGate(r.current.Load, func(context.Context, authz.Record) {})
}

func caller(name string) authn.Principal {
	return authn.Principal{Issuer: "https://issuer.test", Subject: name, Email: name + "@test"}
}

// inputs returns an input for each tool.
func inputs(election string, handle any) map[string]args {
	return map[string]args{
		"lead":             {"election": election + "-2", "candidateId": "ann"},
		"leading":          {"handle": handle},
		"report":           {"handle": handle, "progress": 1},
		"stop_leading":     {"handle": handle},
		"request_approval": {"handle": handle, "note": "may I?"},
		"who_leads":        {"election": election},
		"list":             {"prefix": election},
		"members":          {"election": election},
		"why_not":          {"election": election, "candidateId": "ann"},
		"history":          {"election": election},
		"watch":            {"election": election, "afterRevision": 0},
		"checkpoint_put":   {"handle": handle, "sequence": 2, "data": 1},
		"effect_begin":     {"handle": handle, "effectId": "mail"},
		"effect_finish":    {"handle": handle, "effectId": "mail"},
		"propose":          {"election": election, "candidateId": "ann", "proposalId": "p", "kind": "scale"},
		"proposals":        {"election": election},
		"decide":           {"handle": handle, "proposalId": "p", "verdict": "accepted"},
		"checkpoint_get":   {"election": election},
		"journal_append":   {"handle": handle, "after": 0, "entries": []any{args{"data": 1}}},
		"journal_read":     {"election": election},
		"check_token":      {"election": election, "fencingToken": 1},
		"assign":           {"election": election, "revision": 1, "candidateId": "ann", "for": "1h", "reason": "a test"},
		"evict":            {"election": election, "revision": 1, "fencingToken": 1, "reason": "a test"},
		"pause":            {"election": election, "revision": 1, "for": "1h", "reason": "a test"},
		"resume":           {"election": election, "revision": 1, "reason": "a test"},
		"approve":          {"election": election, "revision": 1, "fencingToken": 1, "reason": "a test"},
	}
}

// The test has every tool and every role, over own and other elections. A caller whose role has
// changed still has the handle of its lease.
func TestEachRoleMayCallTheToolsOfItsVerbs(t *testing.T) {
	verbs := mcp.Verbs()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(verbs)), slices.Sorted(maps.Keys(inputs("", nil)))); diff != "" {
		t.Fatalf("tools (-there are +tried)\n%s", diff)
	}
	for _, role := range wire.Roles() {
		for _, election := range []string{"own", "foreign"} {
			t.Run(fmt.Sprint(role, " over ", election), func(t *testing.T) {
				bubble(t, func(t *testing.T, f *fleet) {
					for name, verb := range verbs {
						r := &rights{}
						r.give(t, wire.RoleCandidate)
						one := &fleet{t: t, store: newStore(), start: f.start, gates: []instance.Gate{r.gate()}}
						door := one.door()
						olga, m := connect(t, door, caller("olga")), connect(t, door, caller("ann"))
						leader := m
						if election == "foreign" {
							leader = olga
						}
						handle := leader.must("lead", args{"election": election, "candidateId": "ann"})["handle"]
						leader.must("checkpoint_put", args{"handle": handle, "sequence": 1, "data": 1})
						leader.must("effect_begin", args{"handle": handle, "effectId": "mail"})
						leader.must("propose", inputs(election, handle)["propose"])
						r.give(t, role)
						allowed := election == "own" && verb.Row().Allows(role)
						out, refusal := m.call(name, inputs(election, handle)[name])
						denied := begins(refusal, wire.PermissionDenied) || election == "foreign" && begins(refusal, leadership.InvalidArgument) && strings.Contains(refusal, "handle")
						if listed, ok := out["elections"].([]any); ok {
							denied = len(listed) == 0
						}
						if denied == allowed {
							t.Errorf("%s by %s over %s: %q; allowed: %v", name, role, election, refusal, allowed)
						}
					}
				})
			})
		}
	}
}

// An access file binds candidates to principals; the door must do the same.
func TestACallerLeadsOnlyAsItsOwnCandidate(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		r := &rights{}
		r.give(t, wire.RoleCandidate)
		f.gates = []instance.Gate{r.gate()}
		m := connect(t, f.door(), caller("ann"))
		for _, in := range []args{{"election": "own", "candidateId": "bob"}, {"election": "own"}, {"election": "foreign", "candidateId": "ann"}} {
			if _, refusal := m.call("lead", in); !begins(refusal, wire.PermissionDenied) {
				t.Errorf("lead %v: %s", in, refusal)
			}
		}
		m.must("lead", args{"election": "own", "candidateId": "ann-1"})
	})
}

// Renewals are made in the name of the caller long after its call.
func TestALeaseEndsWhenItsCallerLosesTheRight(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		r := &rights{}
		r.give(t, wire.RoleCandidate)
		f.gates = []instance.Gate{r.gate()}
		door := f.door()
		ours := connect(t, door, caller("olga")).must("lead", args{"election": "own", "candidateId": "x", "keep": "1h", "leaseDuration": "30s"})
		anns := connect(t, door, caller("ann")).must("lead", args{"election": "own-2", "candidateId": "ann", "keep": "1h", "leaseDuration": "30s"})
		r.give(t, wire.RoleObserver)
		time.Sleep(time.Minute)
		if out := connect(t, door, caller("olga")).must("leading", args{"handle": ours["handle"]}); out["leading"] != true {
			t.Errorf("olga: %v", out)
		}
		if l := f.election("own-2"); l.State != leadership.Vacant {
			t.Errorf("ann lost the right a minute ago: %+v", l)
		}
		if _, refusal := connect(t, door, caller("ann")).call("leading", args{"handle": anns["handle"]}); !begins(refusal, wire.PermissionDenied) {
			t.Errorf("leading answers: %s", refusal)
		}
	})
}
