package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

func TestObserveYieldsTheStateAndThenEvents(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		l := lead(t, server.Client(named("ann")))
		var got []string
		for event, err := range server.Client(client.Candidate{}).Observe(t.Context(), "reports") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %s %s %d", event.Revision, event.Type, event.LeaderID, event.Token))
			switch len(got) {
			case 1:
				server.Cut() // events in between come later
				time.Sleep(time.Minute)
				server.Heal()
				l = lead(t, server.Client(named("bob")))
			case 3:
				l.Resign(t.Context())
			}
			if event.Type == leadership.EventReleased {
				break
			}
		}
		want := []string{"1  ann 1", "2 expired  1", "3 acquired bob 2", "4 released  2"}
		if !slices.Equal(got, want) {
			t.Errorf("observed %q, want %q", got, want)
		}
	})
	for _, err := range clientOf(t, "http://localhost", &scriptedServer{}).Observe(t.Context(), "") {
		if !errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("to observe no election: %v", err)
		}
	}
}
