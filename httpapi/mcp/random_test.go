package mcp_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/mcp"
	"regent/leadership"
	"regent/leadership/service"
)

// Models lead, ask, stop and forget, through instances that come and go, while operators interfere.
// Whenever a model is told that it leads, it must lead by the store, too.
func TestAModelIsToldThatItLeadsOnlyIfItDoes(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fleet) {
				r := rand.New(rand.NewPCG(seed, 18))
				doors := []*mcp.Door{f.door(), f.door(), f.door()}
				handles := map[string][]any{} // of each model, also old ones
				yes := 0
				for range 300 {
					name := string(rune('a' + r.IntN(4)))
					i := r.IntN(len(doors))
					m := connect(t, doors[i], authn.Principal{Issuer: "https://issuer.test", Subject: name})
					switch handle := pick(r, handles[name]); r.IntN(10) {
					case 0, 1:
						out, _ := m.call("lead", args{"election": "reports", "candidateId": name, "leaseDuration": "20s", "keep": "30s"})
						if out != nil {
							handles[name] = append(handles[name], out["handle"])
						}
					case 2:
						m.call("stop_leading", args{"handle": handle})
					case 3:
						doors[i].Close()
						doors[i] = f.door()
					case 4:
						if f.token("reports") > 0 {
							f.order(m, "evict", args{"election": "reports", "fencingToken": f.token("reports"), "reason": "a test"})
						}
					case 5:
						time.Sleep(time.Duration(r.IntN(60)) * time.Second)
					default:
						time.Sleep(time.Duration(r.IntN(5)) * time.Second)
						out, _ := m.call("leading", args{"handle": handle})
						if out == nil || out["leading"] != true {
							break
						}
						yes++
						if l := f.election("reports"); l.LeaderID != leadership.CandidateID(name) || float64(l.Token) != out["fencingToken"] {
							t.Fatalf("%s is told that it leads: %v; the store says %q, token %d", name, out, l.LeaderID, l.Token)
						}
					}
				}
				if yes < 10 {
					t.Errorf("%d times a model was told that it leads; too few to tell", yes)
				}
			})
		})
	}
}

// pick returns one of the handles of a model, mostly the newest.
func pick(r *rand.Rand, own []any) any {
	switch n := len(own); {
	case n == 0:
		return "regent-lead-none"
	case r.IntN(3) > 0:
		return own[n-1]
	default:
		return own[r.IntN(n)]
	}
}

func (f *fleet) token(e leadership.Election) leadership.Token {
	l, err := service.New(f.store).Get(f.t.Context(), e)
	if err != nil {
		return 0
	}
	return l.Token
}
