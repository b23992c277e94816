package mcp_test

import (
	"testing"
	"time"
)

func TestAModelLeadsOverHTTP(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		m := connect(t, f.door(), ann())
		led := m.must("lead", args{"election": "reports", "candidateId": "ann", "leaseDuration": "30s"})
		if led["fencingToken"] != 1.0 || led["leading"] != true || led["handle"] == "" {
			t.Errorf("lead answers %v", led)
		}
		handle := led["handle"]
		for range 10 {
			time.Sleep(100 * time.Second)
			if out := m.must("leading", args{"handle": handle}); out["leading"] != true || out["fencingToken"] != 1.0 {
				t.Fatalf("leading answers %v", out)
			}
		}
		m.must("stop_leading", args{"handle": handle})
		if l := f.election("reports"); l.LeaderID != "" {
			t.Errorf("%+v", l)
		}
		if out := m.must("leading", args{"handle": handle}); out["leading"] != false || out["why"] == nil {
			t.Errorf("after stop_leading, leading answers %v", out)
		}
	})
}
