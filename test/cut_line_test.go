package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"regent/leadership"
	"regent/leadership/client"
	ram "regent/store/memory"
	"regent/store/storetest"
	"regent/test/machine"
	"regent/test/proxy"
)

// A candidate stands in line when its connection is cut, and asks again with the same key before
// the server has noticed. In whatever order the line moves, the cut comes and the candidate
// returns, it is granted one lease.
func TestAWaiterThatIsCutOffAndComesBackIsGrantedOnce(t *testing.T) {
	t.Parallel()
	rounds := machine.Size(20, 200)
	l := newCutLine(t)
	for _, o := range []struct {
		name string
		meet func(cut, release, again func())
	}{
		{"cut-release-again", func(cut, release, again func()) { cut(); release(); again() }},
		{"release-cut-again", func(cut, release, again func()) { release(); cut(); again() }},
		{"cut-then-both", func(cut, release, again func()) { cut(); sideBySide(release, again) }},
		{"both-then-again", func(cut, release, again func()) { sideBySide(cut, release); again() }},
		{"all-at-once", func(cut, release, again func()) { sideBySide(cut, release, again) }},
	} {
		answered := 0
		for i := range rounds {
			if l.round(leadership.Election(fmt.Sprintf("%s-%d", o.name, i)), o.meet) {
				answered++
			}
		}
		t.Logf("%s: %d rounds; the first call was answered in %d", o.name, rounds, answered)
	}
}

func sideBySide(all ...func()) {
	var wg sync.WaitGroup
	for _, do := range all {
		wg.Go(do)
	}
	wg.Wait()
}

// cutLine is a server, and a connection to it that can be cut.
type cutLine struct {
	t       *testing.T
	decided chan leadership.Election // of which a decision was made
	direct  *client.Client
	through *client.Client
	line    *proxy.Line
}

func newCutLine(t *testing.T) *cutLine {
	t.Helper()
	l := &cutLine{t: t, decided: make(chan leadership.Election, 64)}
	_, address := host(t, &storetest.Fake{Store: ram.New(ram.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == "Update" {
			defer func() { l.decided <- c.Election }()
		}
		return next(ctx)
	}})
	l.direct, l.line = clientOf(t, address), proxy.NewLine(t, address)
	var err error
	l.through, err = client.New(client.Config{
		Server: "http://" + l.line.Addr(), HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// round lets ann stand in line after bob, be cut off, and come back, and reports whether her first
// call was answered all the same.
func (l *cutLine) round(e leadership.Election, meet func(cut, release, again func())) (answered bool) {
	l.t.Helper()
	l.line.Heal()
	elections := []leadership.Election{e}
	if _, err := acquires("bob")(l.t.Context(), l.direct, elections); err != nil {
		l.t.Fatal(err)
	}
	l.await(e)
	var first sync.WaitGroup
	first.Go(func() {
		switch leases, err := waits("ann")(l.t.Context(), l.through, elections); {
		case err == nil:
			answered = true
			l.granted(leases[0])
		case !errors.Is(err, leadership.OutcomeUnknown):
			l.t.Errorf("%s: the caller that was cut off was told: %v", e, err)
		}
	})
	l.await(e) // she is first in line, and was refused
	meet(l.line.Cut, func() { l.release(elections) }, func() { l.again(elections) })
	first.Wait()
	l.check(e)
	return answered
}

// await waits for a decision about the election.
func (l *cutLine) await(e leadership.Election) {
	for e != <-l.decided {
	}
}

func (l *cutLine) release(elections []leadership.Election) {
	if _, err := releases("bob")(l.t.Context(), l.direct, elections); err != nil {
		l.t.Error(err)
	}
}

func (l *cutLine) again(elections []leadership.Election) {
	leases, err := waits("ann")(l.t.Context(), l.direct, elections)
	if err != nil {
		l.t.Errorf("%s: the same call again: %v", elections[0], err)
		return
	}
	l.granted(leases[0])
}

func (l *cutLine) granted(lease leadership.Lease) {
	if lease.LeaderID != "ann" || lease.Token != 2 {
		l.t.Errorf("%s: %q was granted token %d", lease.Election, lease.LeaderID, lease.Token)
	}
}

func (l *cutLine) check(e leadership.Election) {
	l.t.Helper()
	events, err := l.direct.Events(l.t.Context(), leadership.EventsRequest{Election: e})
	if err != nil {
		l.t.Fatal(err)
	}
	if words, want := historyOf(standing{History: events}), "acquired 1, released 1, acquired 2"; words != want {
		l.t.Errorf("%s: the history is %q, not %q", e, words, want)
	}
}
