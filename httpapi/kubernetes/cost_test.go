package kubernetes_test

import (
	"testing"
	"time"
)

// cost is how often the store was asked since the last time. Reads are also changes.
type cost struct{ Reads, Lists, Events, Since int }

func (f *fixture) take() cost {
	n := f.calls.Take()
	return cost{n["Get"] + n["Update"] + n["Renew"], n["List"], n["Events"], n["Since"]}
}

func TestWatchesOfOneInstanceCostTheStoreWhatOneCosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	f.want(200, "GET", leases, nil)
	f.take()
	f.want(200, "GET", leases, nil)
	if got, want := f.take(), (cost{Reads: 1, Lists: 1, Since: 1}); got != want {
		t.Errorf("a list: %+v, want %+v", got, want)
	}
	var watches []func() (string, object)
	for range 10 {
		watches = append(watches, f.stream("resourceVersion="+at(l, "metadata", "resourceVersion").(string)))
	}
	for _, next := range watches { // which begin further back
		if kind, o := next(); kind != "ADDED" || at(o, "spec", "holderIdentity") != "ann" {
			t.Errorf("got %s %v", kind, o)
		}
	}
	if got, want := f.take(), (cost{Reads: 2, Since: 2}); got != want {
		t.Errorf("ten watches that resume: %+v, want %+v", got, want)
	}
	f.want(200, "GET", leases, nil)
	if got, want := f.take(), (cost{Lists: 1}); got != want {
		t.Errorf("a list beside a watch: %+v, want %+v", got, want)
	}
	f.pass(time.Second)
	f.want(200, "PUT", one, by(l, ""))
	for _, next := range watches {
		if kind, o := next(); kind != "MODIFIED" && kind != "ADDED" || at(o, "spec", "holderIdentity") != "" {
			t.Errorf("got %s %v", kind, o)
		}
	}
	if got, most := f.take(), (cost{Reads: 4}); got.Reads > most.Reads || got.Lists+got.Events+got.Since > 0 {
		t.Errorf("a release of which ten watches hear: %+v, want %+v at most", got, most)
	}
}
